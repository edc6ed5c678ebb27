use super::keys::database_of;
use crate::call::{Call, Functions};
use crate::command::wrong_number;
use crate::failure::{Failure, Outcome};
use crate::number::integer;
use crate::reply::{Protocol, Reply};
use std::future::ready;

/// The version of Redis whose commands these are: clients choose by it what they send.
pub(super) const REDIS_VERSION: &str = "7.0.15";

pub(crate) const FUNCTIONS: Functions = &[
    ("ping", |mut call| Box::pin(ready(ping(&mut call)))),
    ("echo", |mut call| Box::pin(ready(Ok(echo(&mut call))))),
    ("hello", |mut call| Box::pin(ready(hello(&mut call)))),
    ("auth", |mut call| Box::pin(ready(auth(&mut call)))),
    ("select", |mut call| Box::pin(ready(select(&mut call)))),
    ("quit", |mut call| Box::pin(ready(Ok(quit(&mut call))))),
    ("reset", |mut call| Box::pin(ready(Ok(reset(&mut call))))),
];

fn ping(call: &mut Call<'_>) -> Outcome {
    match call.request.len() {
        1 => Ok(Reply::status("PONG")),
        2 => Ok(Reply::Bulk(call.request.value(1))),
        _ => Err(Failure::told(wrong_number("ping"))),
    }
}

fn echo(call: &mut Call<'_>) -> Reply {
    Reply::Bulk(call.request.value(1))
}

fn select(call: &mut Call<'_>) -> Outcome {
    call.session.manner.database = database_of(call, 1)?;
    Ok(Reply::Ok)
}

fn quit(call: &mut Call<'_>) -> Reply {
    call.session.is_over = true;
    Reply::Ok
}

fn reset(call: &mut Call<'_>) -> Reply {
    call.session.reset(call.door);
    Reply::status("RESET")
}

fn auth(call: &mut Call<'_>) -> Outcome {
    match call.request.len() {
        2 if call.door.users().are_open() => Err(Failure::told(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        )),
        2 => admit(call, b"default", call.request.arg(1)).map(|()| Reply::Ok),
        3 => admit(call, call.request.arg(1), call.request.arg(2)).map(|()| Reply::Ok),
        _ => Err(Failure::SYNTAX),
    }
}

/// Makes the client a user, if the password is right.
fn admit(call: &mut Call<'_>, name: &[u8], password: &[u8]) -> Result<(), Failure> {
    let text = "WRONGPASS invalid username-password pair or user is disabled.";
    let user = call.door.users().admit(name, password).ok_or_else(|| Failure::told(text))?;
    call.session.become_user(user);
    Ok(())
}

fn hello(call: &mut Call<'_>) -> Outcome {
    let mut protocol = call.session.manner.protocol;
    if call.request.len() > 1 {
        protocol = match integer(call.request.arg(1)) {
            Some(2) => Protocol::Two,
            Some(3) => Protocol::Three,
            Some(_) => return Err(Failure::told("NOPROTO unsupported protocol version")),
            None => {
                let text = "ERR Protocol version is not an integer or out of range";
                return Err(Failure::told(text));
            }
        };
    }
    let mut name = None;
    let mut at = 2;
    while at < call.request.len() {
        let left = call.request.len() - at - 1;
        if call.is_word(at, "auth") && left >= 2 {
            admit(call, call.request.arg(at + 1), call.request.arg(at + 2))?;
            at += 3;
        } else if call.is_word(at, "setname") && left >= 1 {
            name = Some(name_of(call.request.arg(at + 1))?);
            at += 2;
        } else {
            let asked = call.request.arg(at);
            return Err(Failure::quoting("ERR Syntax error in HELLO option '", asked, "'"));
        }
    }
    if call.session.manner.user.is_none() {
        return Err(Failure::told(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select the \
             RESP protocol version at the same time",
        ));
    }
    let manner = &mut call.session.manner;
    manner.protocol = protocol;
    manner.name = name.unwrap_or_else(|| std::mem::take(&mut manner.name));
    let number = if protocol == Protocol::Two { 2 } else { 3 };
    Ok(Reply::Map(vec![
        (Reply::text("server"), Reply::text("redis")),
        (Reply::text("version"), Reply::text(REDIS_VERSION)),
        (Reply::text("proto"), Reply::Integer(number)),
        (Reply::text("id"), Reply::Integer(i64::try_from(call.session.id).unwrap_or(i64::MAX))),
        (Reply::text("mode"), Reply::text("standalone")),
        (Reply::text("role"), Reply::text("master")),
        (Reply::text("modules"), Reply::Array(Vec::new())),
    ]))
}

/// A name that a client may give itself.
pub(super) fn name_of(bytes: &[u8]) -> Result<String, Failure> {
    if !bytes.iter().all(u8::is_ascii_graphic) {
        let text = "ERR Client names cannot contain spaces, newlines or special characters.";
        return Err(Failure::told(text));
    }
    Ok(bytes.iter().copied().map(char::from).collect())
}
