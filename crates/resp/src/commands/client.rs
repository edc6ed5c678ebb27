use super::clients;
use super::connection::name_of;
use super::kill::kill;
use crate::call::{Call, Functions};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::session::Answers;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions =
    &[("client", |mut call| Box::pin(ready(client(&mut call))))];

fn client(call: &mut Call<'_>) -> Outcome {
    match call.word() {
        "id" => Ok(Reply::Integer(i64::try_from(call.session.id).unwrap_or(i64::MAX))),
        "setname" => {
            call.session.manner.name = name_of(call.request.arg(2))?;
            Ok(Reply::Ok)
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

/// Accepts ON and OFF: neither changes anything, since no client is evicted and no touch counted.
fn switch(call: &Call<'_>) -> Outcome {
    if call.is_word(2, "on") || call.is_word(2, "off") {
        Ok(Reply::Ok)
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
    Ok(Reply::Ok)
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
    Ok(Reply::Ok)
}
