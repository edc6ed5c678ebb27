use super::clients;
use super::connection::name_of;
use super::kill::kill;
use crate::command::{Call, Command, NO_KEYS, Outcome};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::session::Answers;
use crate::word::{HELP, Words, word};
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
    word("id", 2, "", "Tell the number of this connection"),
    word("setname", 3, "name", "Give this connection a name"),
    word("getname", 2, "", "Tell its name"),
    word("setinfo", 4, "LIB-NAME|LIB-VER text", "Say with which library this client was made"),
    word("list", -2, "[TYPE type] [ID id ...]", "Tell of all connections, or of some"),
    word("info", 2, "", "Tell of this connection"),
    word("kill", -3, "address | filter value ...", "End connections"),
    word("no-evict", 3, "ON|OFF", "Is taken, and changes nothing: no connection is evicted"),
    word("no-touch", 3, "ON|OFF", "Is taken, and changes nothing: nobody counts touches"),
    word("reply", 3, "ON|OFF|SKIP", "Say which commands are to be answered"),
    HELP,
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
        "list" => clients::list(call),
        "info" => Ok(clients::own(call)),
        "kill" => kill(call),
        "reply" => reply(call),
        "help" => Ok(call.help()),
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
    let place = ["lib-name", "lib-ver"].into_iter().position(|name| call.is_word(2, name));
    let Some(place) = place else {
        return Err(Failure::quoting("ERR Unrecognized option '", call.request.arg(2), "'"));
    };
    if !call.request.arg(3).iter().all(u8::is_ascii_graphic) {
        let text = " cannot contain spaces, newlines or special characters.";
        return Err(Failure::quoting("ERR ", &call.request.arg(2).to_ascii_lowercase(), text));
    }
    let text: String = call.request.arg(3).iter().copied().map(char::from).collect();
    if let Some(own) = call.door.clients().get_mut(&call.session.id) {
        own.library[place] = text;
    }
    Ok(Reply::OK)
}
