use super::connection::name_of;
use crate::command::{Call, Command, NO_KEYS, Outcome, Words};
use crate::door::Client;
use crate::failure::Failure;
use crate::number::integer;
use crate::reply::Reply;
use crate::session::Answers;
use std::future::ready;

pub(crate) const COMMANDS: &[Command] = &[Command {
    name: "client",
    arity: -2,
    flags: 0,
    keys: NO_KEYS,
    summary: "Say who one is, and see who else is there",
    run: |mut call| Box::pin(ready(client(&mut call))),
}];

pub(crate) const WORDS: Words = &[
    ("id", 2),
    ("setname", 3),
    ("getname", 2),
    ("setinfo", 4),
    ("list", -2),
    ("info", 2),
    ("no-evict", 3),
    ("no-touch", 3),
    ("reply", 3),
];

fn client(call: &mut Call<'_>) -> Outcome {
    match call.word() {
        "id" => Ok(Reply::Integer(i64::try_from(call.session.id).unwrap_or(i64::MAX))),
        "setname" => {
            call.session.manner.name = name_of(call.request.arg(2))?;
            Ok(Reply::OK)
        }
        "getname" if call.session.manner.name.is_empty() => Ok(Reply::Null),
        "getname" => Ok(Reply::text(call.session.manner.name.clone())),
        "setinfo" => set_info(call),
        "list" => list(call),
        "info" => {
            let clients = call.door.clients();
            let own = clients.get(&call.session.id);
            Ok(Reply::Verbatim(own.map(|own| line(call.session.id, own)).unwrap_or_default()))
        }
        "reply" => reply(call),
        _ => switch(call),
    }
}

/// Nothing is evicted, and nobody counts touches: either way is as it is.
fn switch(call: &Call<'_>) -> Outcome {
    if call.is_word(2, "on") || call.is_word(2, "off") {
        Ok(Reply::OK)
    } else {
        Err(Failure::SYNTAX)
    }
}

fn reply(call: &mut Call<'_>) -> Outcome {
    let answers = &mut call.session.manner.answers;
    let arg = call.request.arg(2).to_ascii_lowercase();
    *answers = match arg.as_slice() {
        b"on" => Answers::All,
        b"off" => Answers::None,
        b"skip" if *answers == Answers::None => Answers::None,
        b"skip" => Answers::SkipTwo,
        _ => return Err(Failure::SYNTAX),
    };
    Ok(Reply::OK)
}

fn set_info(call: &Call<'_>) -> Outcome {
    if !call.is_word(2, "lib-name") && !call.is_word(2, "lib-ver") {
        return Err(Failure::quoting("ERR Unrecognized option '", call.request.arg(2), "'"));
    }
    if !call.request.arg(3).iter().all(u8::is_ascii_graphic) {
        let text = " cannot contain spaces, newlines or special characters.";
        return Err(Failure::quoting("ERR ", &call.request.arg(2).to_ascii_lowercase(), text));
    }
    Ok(Reply::OK)
}

fn list(call: &Call<'_>) -> Outcome {
    let clients = call.door.clients();
    let mut lines = String::new();
    if call.request.len() == 2 {
        clients.iter().for_each(|(id, client)| lines += &line(*id, client));
    } else if call.is_word(2, "type") && call.request.len() == 4 {
        if call.is_word(3, "normal") {
            clients.iter().for_each(|(id, client)| lines += &line(*id, client));
        } else if !["master", "replica", "slave", "pubsub"].iter().any(|no| call.is_word(3, no)) {
            return Err(Failure::quoting("ERR Unknown client type '", call.request.arg(3), "'"));
        }
    } else if call.is_word(2, "id") && call.request.len() > 3 {
        for arg in call.request.rest(3) {
            let id = integer(arg).filter(|id| *id > 0).and_then(|id| u64::try_from(id).ok());
            let id = id.ok_or_else(|| Failure::told("ERR Invalid client ID"))?;
            if let Some(client) = clients.get(&id) {
                lines += &line(id, client);
            }
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(Reply::Verbatim(lines))
}

fn line(id: u64, client: &Client) -> String {
    let seconds = |since: base::Nanos| (clock::now().0.saturating_sub(since.0)) / 1_000_000_000;
    let Client { since, last, name, user, database, protocol, queued, command } = client;
    let (age, idle) = (seconds(*since), seconds(*last));
    let queued = queued.map_or(-1, |queued| i64::try_from(queued).unwrap_or(i64::MAX));
    let flags = if queued < 0 { 'N' } else { 'x' };
    format!(
        "id={id} name={name} age={age} idle={idle} flags={flags} db={database} multi={queued} \
         cmd={command} user={user} resp={protocol}\n"
    )
}
