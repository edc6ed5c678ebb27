use crate::command::{ADMIN, CATEGORIES, Call, Command, FAMILIES, NO_KEYS, Outcome, wrong_number};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::users::User;
use crate::word::{HELP, Words, word};
use std::future::ready;

pub(crate) const COMMANDS: &[Command] = &[Command {
    name: "acl",
    arity: -2,
    flags: ADMIN,
    keys: NO_KEYS,
    summary: "Tell of users",
    run: |mut call| Box::pin(ready(acl(&mut call))),
}];

pub(crate) const WORDS: Words = &[
    word("whoami", 2, "", "Tell the name of this connection's user"),
    word("list", 2, "", "Tell what each user may do, as lines of a file of users"),
    word("users", 2, "", "Tell the names of all users"),
    word("getuser", 3, "name", "Tell what a user may do"),
    word("cat", -2, "[category]", "Tell the kinds of commands, or the commands of a kind"),
    HELP,
];

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
            let all = FAMILIES.iter().flat_map(|(_, commands)| commands.iter());
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
