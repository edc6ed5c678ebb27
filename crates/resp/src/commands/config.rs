use crate::call::{Call, Functions};
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::glob::matches;
use crate::parameters::refused;
use crate::reply::Reply;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions =
    &[("config", |mut call| Box::pin(ready(config(&mut call))))];

fn config(call: &mut Call<'_>) -> Outcome {
    match call.word() {
        "get" => Ok(get(call)),
        "set" => set(call),
        "help" => Ok(call.help()),
        "rewrite" => Err(Failure::told("ERR The server is running without a config file")),
        _ => {
            call.door.counters().reset();
            call.door.watcher().reset();
            Ok(Reply::Ok)
        }
    }
}

fn get(call: &Call<'_>) -> Reply {
    let is_asked = |name: &str| {
        let mut patterns = call.request.rest(2);
        patterns.any(|one| matches(&one.to_ascii_lowercase(), name.as_bytes()))
    };
    let all = fixed(call.door).into_iter().chain(call.door.parameters().all());
    let asked = all.filter(|(name, _)| is_asked(name));
    Reply::Map(asked.map(|(name, value)| (Reply::text(name), Reply::text(value))).collect())
}

/// What the server is told when it starts.
fn fixed(door: &Door) -> [(&'static str, String); 6] {
    [
        ("appendonly", "no".to_owned()),
        ("databases", door.settings().databases.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("proto-max-bulk-len", door.store().value_bytes_max().to_string()),
        ("save", String::new()),
    ]
}

/// Changes all that is named, or nothing.
fn set(call: &Call<'_>) -> Outcome {
    if !call.request.len().is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    let (door, request) = (call.door, call.request);
    let (fixed, parameters) = (fixed(door), door.parameters());
    let names = || (2..request.len()).step_by(2).map(|at| request.arg(at).to_ascii_lowercase());
    let mut known: Vec<(&str, usize)> = Vec::new();
    for (name, at) in names().zip((2..).step_by(2)) {
        let found = parameters.all().find(|(known, _)| known.as_bytes() == name);
        let refuse = |why| Err(refused(request.arg(at), why));
        match found {
            None if fixed.iter().any(|(fixed, _)| fixed.as_bytes() == name) => {
                return refuse("can't set immutable config");
            }
            None => {
                let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
                return Err(Failure::quoting(before, request.arg(at), "'"));
            }
            Some((name, _)) if known.iter().any(|(before, _)| *before == name) => {
                return refuse("duplicate parameter");
            }
            Some((name, _)) => known.push((name, at + 1)),
        }
    }
    let mut changes = Vec::new();
    for (name, at) in known {
        let change = parameters.change(name, request.arg(at)).expect("there is one of this name");
        changes.push(change.map_err(|why| refused(name.as_bytes(), &why))?);
    }
    door.watcher().change(&changes);
    Ok(Reply::Ok)
}
