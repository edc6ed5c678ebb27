use crate::call::{Call, Functions};
use crate::command::{CATEGORIES, Command, FLAG_NAMES, NO_KEYS};
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::glob::matches;
use crate::hidden;
use crate::reply::Reply;
use engine::{Error, KeySpaceId};
use std::future::ready;

pub(crate) const FUNCTIONS: Functions = &[
    ("command", |mut call| Box::pin(ready(command(&mut call)))),
    ("time", |_| Box::pin(ready(Ok(time())))),
    ("dbsize", |mut call| Box::pin(ready(dbsize(&mut call)))),
    ("flushall", |call| Box::pin(flushall(call))),
    ("flushdb", |call| Box::pin(flushdb(call))),
];

fn command(call: &mut Call<'_>) -> Outcome {
    let all = || Command::all();
    if call.request.len() == 1 {
        return Ok(Reply::Array(all().map(facts).collect()));
    }
    let named = || call.request.rest(2).map(Command::named);
    match call.word() {
        "count" => Ok(Reply::count(all().count())),
        "info" if call.request.len() == 2 => Ok(Reply::Array(all().map(facts).collect())),
        "info" => Ok(Reply::Array(named().map(|one| one.map_or(Reply::Null, facts)).collect())),
        "list" => list(call),
        "getkeys" => getkeys(call),
        "help" => Ok(call.help()),
        _ if call.request.len() == 2 => Ok(Reply::Map(all().map(docs).collect())),
        _ => Ok(Reply::Map(named().flatten().map(docs).collect())),
    }
}

/// Names of commands, and of commands with a word that says what is to be done: `client|list`.
fn list(call: &Call<'_>) -> Outcome {
    type IsWanted<'a> = Box<dyn Fn(&Command, &str) -> bool + 'a>;
    let arg = || call.request.arg(4);
    let is_wanted: IsWanted<'_> = match call.request.len() {
        2 => Box::new(|_, _| true),
        5 if !call.is_word(2, "filterby") => return Err(Failure::SYNTAX),
        5 if call.is_word(3, "module") => Box::new(|_, _| false),
        5 if call.is_word(3, "aclcat") => {
            let asked = arg().to_ascii_lowercase();
            let known = CATEGORIES.iter().find(|name| name.as_bytes() == asked);
            Box::new(move |command, _| known.is_some_and(|category| command.is_of(category)))
        }
        5 if call.is_word(3, "pattern") => {
            let pattern = arg().to_ascii_lowercase();
            Box::new(move |_, name| matches(&pattern, name.as_bytes()))
        }
        _ => return Err(Failure::SYNTAX),
    };
    let mut names = Vec::new();
    for command in Command::all() {
        let words = command.words.iter().map(|word| format!("{}|{}", command.name, word.name));
        let all = [command.name.to_owned()].into_iter().chain(words);
        names.extend(all.filter(|name| is_wanted(command, name)).map(Reply::text));
    }
    // As Redis: what is filtered is no set.
    Ok(if call.request.len() == 2 { Reply::Set(names) } else { Reply::Array(names) })
}

/// Which arguments of the command that stands behind are keys.
fn getkeys(call: &Call<'_>) -> Outcome {
    let args: Vec<_> = call.request.rest(2).collect();
    let command = Command::named(args[0]);
    let command = command.ok_or_else(|| Failure::told("ERR Invalid command specified"))?;
    if command.keys == NO_KEYS {
        return Err(Failure::told("ERR The command has no key arguments"));
    }
    if !command.takes(args.len()) {
        let text = "ERR Invalid number of arguments specified for command";
        return Err(Failure::told(text));
    }
    let keys = command.key_places(args.len()).map(|at| Reply::bytes(args[at]));
    Ok(Reply::Array(keys.collect()))
}

/// What clients know a command by.
fn facts(command: &'static Command) -> Reply {
    let flags = FLAG_NAMES.iter().filter(|(flag, _)| command.is(*flag));
    let (first, last, step) = command.keys;
    Reply::Array(vec![
        Reply::text(command.name),
        Reply::Integer(command.arity),
        Reply::Set(flags.map(|(_, name)| Reply::status(name)).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

fn docs(command: &'static Command) -> (Reply, Reply) {
    let facts = vec![
        (Reply::text("summary"), Reply::text(command.summary)),
        (Reply::text("group"), Reply::text(command.family)),
    ];
    (Reply::text(command.name), Reply::Map(facts))
}

/// Strings and collections of a database.
pub(super) fn keys_of(door: &Door, strings: KeySpaceId) -> Result<u64, Failure> {
    Ok(count(door, strings)? + count(door, hidden::roots(strings))?)
}

/// Strings and collections of a database that expire and have not.
pub(super) fn expires_of(door: &Door, strings: KeySpaceId) -> Result<u64, Failure> {
    let mut expires = 0;
    for space in [strings, hidden::roots(strings)] {
        match door.store().expiring_in(space) {
            Err(Error::NoKeySpace) => {}
            counted => expires += counted?.waiting,
        }
    }
    Ok(expires)
}

pub(super) fn count(door: &Door, space: KeySpaceId) -> Result<u64, Failure> {
    match door.store().key_count(space) {
        Err(Error::NoKeySpace) => Ok(0),
        keys => Ok(keys?),
    }
}

fn time() -> Reply {
    let millis = clock::host_unix_now().0;
    let part = |number: u64| Reply::text(number.to_string());
    let micros = millis % 1_000 * 1_000 + clock::now().0 / 1_000 % 1_000;
    Reply::Array(vec![part(millis / 1_000), part(micros)])
}

fn dbsize(call: &mut Call<'_>) -> Outcome {
    let keys = keys_of(call.door, call.space())?;
    Ok(Reply::Integer(i64::try_from(keys).unwrap_or(i64::MAX)))
}

/// Whether there is no more than a word that says when it is to be done: it is done at once.
fn check_when(call: &Call<'_>) -> Result<(), Failure> {
    let is_known = call.request.len() == 1
        || call.request.len() == 2 && (call.is_word(1, "async") || call.is_word(1, "sync"));
    if is_known { Ok(()) } else { Err(Failure::SYNTAX) }
}

async fn flushall(call: Call<'_>) -> Outcome {
    check_when(&call)?;
    for database in 0..call.door.settings().databases {
        call.session.check_database(database)?;
    }
    for database in 0..call.door.settings().databases {
        call.door.empty(Door::space(database)).await?;
    }
    Ok(Reply::Ok)
}

async fn flushdb(call: Call<'_>) -> Outcome {
    check_when(&call)?;
    call.door.empty(call.space()).await?;
    Ok(Reply::Ok)
}
