//! The words of a user's line.

use super::User;
use crate::command::{CATEGORIES, Command};
use crate::settings::Settings;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The user of a line; else what is wrong with the line.
pub(super) fn parse(line: &str) -> Result<User, String> {
    let mut words = line.split_whitespace();
    let (Some("user"), Some(name)) = (words.next(), words.next()) else {
        return Err("is not of the form \"user NAME RULE...\"".to_owned());
    };
    let mut user = User::new(name);
    words.try_for_each(|word| apply(&mut user, word))?;
    user.may_do_all = user.keys.iter().any(|pattern| pattern == "*")
        && user.rules.last().is_some_and(|rule| rule == "+@all");
    Ok(user)
}

fn apply(user: &mut User, word: &str) -> Result<(), String> {
    match word {
        "on" => user.is_on = true,
        "off" => user.is_on = false,
        "nopass" => {
            user.needs_none = true;
            user.passwords.clear();
        }
        "resetpass" => {
            user.needs_none = false;
            user.passwords.clear();
        }
        "allkeys" => user.keys.push("*".to_owned()),
        "resetkeys" => user.keys.clear(),
        "allcommands" => return commands(user, "+@all"),
        "nocommands" => return commands(user, "-@all"),
        // There are no channels, and no payloads.
        "allchannels" | "resetchannels" | "&*" | "sanitize-payload" | "skip-sanitize-payload" => {}
        _ => return apply_long(user, word),
    }
    Ok(())
}

fn apply_long(user: &mut User, word: &str) -> Result<(), String> {
    if let Some(password) = word.strip_prefix('>') {
        add_password(user, Sha256::digest(password).into());
    } else if let Some(digits) = word.strip_prefix('#') {
        let digest = digest(digits).ok_or_else(|| {
            format!("has {word:?}, which is not # and 64 hexadecimal digits of a SHA-256")
        })?;
        add_password(user, digest);
    } else if let Some(pattern) = word.strip_prefix('~') {
        user.keys.push(pattern.to_owned());
    } else if let Some(numbers) = word.strip_prefix("db=") {
        user.databases = databases(numbers).ok_or_else(|| {
            format!(
                "has {word:?}, which is not db= and numbers of databases, 0 to 15, as in db=0,3"
            )
        })?;
    } else if word.starts_with(['+', '-']) {
        return commands(user, word);
    } else {
        return Err(format!(
            "has {word:?}, which is no rule here: use on, off, nopass, >PASSWORD, #SHA256, \
             ~PATTERN, +COMMAND, -COMMAND, +@CATEGORY, -@CATEGORY and db=N"
        ));
    }
    Ok(())
}

fn add_password(user: &mut User, digest: super::Digested) {
    user.needs_none = false;
    user.passwords.push(digest);
}

fn digest(digits: &str) -> Option<super::Digested> {
    let mut digest = [0; 32];
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(digest)
}

fn databases(numbers: &str) -> Option<BTreeSet<u16>> {
    let known = |number: &u16| *number < Settings::default().databases;
    numbers.split(',').map(|number| number.parse().ok().filter(known)).collect()
}

/// Lets a user do some commands, or no longer.
fn commands(user: &mut User, word: &str) -> Result<(), String> {
    let word = word.to_lowercase();
    let (sign, what) = word.split_at(1);
    let all = || Command::all();
    let named: Vec<&Command> = match what.strip_prefix('@') {
        Some("all") => {
            user.rules.clear();
            all().collect()
        }
        Some(category) if CATEGORIES.contains(&category) => {
            all().filter(|command| command.is_of(category)).collect()
        }
        Some(category) => {
            let known = CATEGORIES.join(", ");
            return Err(format!("has {word:?}: no category is {category:?}, but all, {known}"));
        }
        None if what.contains('|') => {
            return Err(format!(
                "has {word:?}: what follows a command's name is not told apart, so name the \
                 command alone"
            ));
        }
        None => {
            let command = Command::named(what.as_bytes());
            vec![command.ok_or_else(|| format!("has {word:?}, and there is no such command"))?]
        }
    };
    for command in named {
        if sign == "+" {
            user.commands.insert(command.name);
        } else {
            user.commands.remove(command.name);
        }
    }
    user.rules.retain(|rule| rule[1..] != word[1..]);
    user.rules.push(word);
    Ok(())
}
