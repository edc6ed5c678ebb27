use crate::call::{Call, Functions};
use crate::command::{CATEGORIES, Command, wrong_number};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::users::User;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions = &[("acl", |mut call| Box::pin(ready(acl(&mut call))))];

fn acl(call: &mut Call<'_>) -> Outcome {
    let users = call.door.users();
    match call.word() {
        "whoami" => Ok(Reply::text(call.session.user_name().to_owned())),
        "list" => Ok(Reply::Array(users.all().map(|user| Reply::text(user.line())).collect())),
        "users" => {
            Ok(Reply::Array(users.all().map(|user| Reply::text(user.name.clone())).collect()))
        }
        "getuser" => Ok(users.get(call.request.arg(2)).map_or(Reply::Null, facts)),
        "cat" => categories(call),
        _ => Ok(call.help()),
    }
}

fn categories(call: &Call<'_>) -> Outcome {
    match call.request.len() {
        2 => Ok(Reply::Array(CATEGORIES.iter().map(|name| Reply::text(*name)).collect())),
        3 => {
            let asked = call.request.arg(2).to_ascii_lowercase();
            let Some(category) = CATEGORIES.iter().find(|name| name.as_bytes() == asked) else {
                return Err(Failure::quoting("ERR Unknown category '", call.request.arg(2), "'"));
            };
            let all = Command::all();
            let of = all.filter(|command| command.is_of(category));
            Ok(Reply::Array(of.map(|command| Reply::text(command.name)).collect()))
        }
        _ => Err(Failure::told(wrong_number("acl|cat"))),
    }
}

fn facts(user: &User) -> Reply {
    let mut flags = vec![Reply::text(if user.is_on { "on" } else { "off" })];
    flags.extend(user.needs_none.then(|| Reply::text("nopass")));
    let keys: Vec<_> = user.keys.iter().map(|pattern| format!("~{pattern}")).collect();
    let databases = user.databases.iter().map(|number| Reply::Integer((*number).into()));
    Reply::Map(vec![
        (Reply::text("flags"), Reply::Set(flags)),
        (Reply::text("passwords"), Reply::Array(user.passwords().map(Reply::text).collect())),
        (Reply::text("commands"), Reply::text(user.rules.join(" "))),
        (Reply::text("keys"), Reply::text(keys.join(" "))),
        (Reply::text("channels"), Reply::text("")),
        (Reply::text("selectors"), Reply::Array(Vec::new())),
        (Reply::text("databases"), Reply::Array(databases.collect())),
    ])
}
