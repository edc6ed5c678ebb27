//! Users and their rights, in the form of the lines that Redis keeps them in.

mod rules;

use crate::command::Command;
use crate::glob::matches;
use crate::request::Request;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// SHA-256 of a password.
type Digested = [u8; 32];

/// The user of a client that has not authenticated.
const DEFAULT: &str = "default";

/// The users that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(BTreeMap<String, Arc<User>>);

/// Why a file of users is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {why}")]
pub struct UsersError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// One user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) is_on: bool,
    /// Any password is right.
    pub(crate) needs_none: bool,
    passwords: Vec<Digested>,
    /// Patterns of keys.
    pub(crate) keys: Vec<String>,
    /// Databases; all, if none is named.
    pub(crate) databases: BTreeSet<u16>,
    commands: BTreeSet<&'static str>,
    /// The rules of commands, as they were written.
    pub(crate) rules: Vec<String>,
    /// There is nothing that the user may not do, but for databases.
    pub(crate) may_do_all: bool,
}

impl Default for Users {
    /// The user `default` with all rights and without a password.
    fn default() -> Self {
        let line = format!("user {DEFAULT} on nopass ~* +@all");
        Self::parse(&line).expect("it is right")
    }
}

impl Users {
    /// The users of a file: a line for each, `user NAME RULE...`. Empty lines, and those that begin
    /// with `#`, are skipped. Without a line of its own the user `default` is off, so that every
    /// client has to authenticate.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = BTreeMap::new();
        let default = User::new(DEFAULT);
        users.insert(default.name.clone(), Arc::new(default));
        let mut named = BTreeSet::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why| UsersError { line: at + 1, why };
            let user = rules::parse(line).map_err(wrong)?;
            if !named.insert(user.name.clone()) {
                return Err(wrong(format!("names {:?} once more", user.name)));
            }
            users.insert(user.name.clone(), Arc::new(user));
        }
        Ok(Self(users))
    }

    /// Whether a client may do something without a password.
    pub fn are_open(&self) -> bool {
        self.everybody().is_some()
    }

    /// Whether there is a user of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The name of a user without a password.
    pub fn without_password(&self) -> Option<&str> {
        self.all().find(|user| user.is_on && user.needs_none).map(|user| &user.name[..])
    }

    /// The user of a client that has not authenticated, if that user needs no password.
    pub(crate) fn everybody(&self) -> Option<Arc<User>> {
        self.0.get(DEFAULT).filter(|user| user.is_on && user.needs_none).cloned()
    }

    /// The user of this name, if the password is right. Takes as long if there is no such user.
    pub(crate) fn admit(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let given: Digested = Sha256::digest(password).into();
        let user = std::str::from_utf8(name).ok().and_then(|name| self.0.get(name));
        let unknown = User::new("");
        let is_right = user.map_or(&unknown, Arc::as_ref).has_password(&given);
        user.filter(|user| user.is_on && (user.needs_none || is_right)).cloned()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&User> {
        self.0.get(std::str::from_utf8(name).ok()?).map(Arc::as_ref)
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &User> {
        self.0.values().map(Arc::as_ref)
    }
}

impl User {
    /// A user without rights.
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_on: false,
            needs_none: false,
            passwords: Vec::new(),
            keys: Vec::new(),
            databases: BTreeSet::new(),
            commands: BTreeSet::new(),
            rules: vec!["-@all".to_owned()],
            may_do_all: false,
        }
    }

    /// Looks at all of them and at all of their bytes, whatever they are, so that the time says
    /// nothing.
    fn has_password(&self, given: &Digested) -> bool {
        let differs = |one: &Digested| one.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
        self.passwords.iter().fold(false, |is_one, password| is_one | (differs(password) == 0))
    }

    /// The digests of the passwords, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> impl Iterator<Item = String> {
        self.passwords.iter().map(|password| {
            let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
            password.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
        })
    }

    pub(crate) fn may_run(&self, command: &Command) -> bool {
        self.commands.contains(command.name)
    }

    /// Whether all keys of a request are among those of the user.
    pub(crate) fn may_use_keys_of(&self, command: &Command, request: Request<'_>) -> bool {
        let may = |key: &[u8]| self.keys.iter().any(|pattern| matches(pattern.as_bytes(), key));
        command.key_places(request.len()).all(|at| may(request.arg(at)))
    }

    pub(crate) fn may_select(&self, database: u16) -> bool {
        self.databases.is_empty() || self.databases.contains(&database)
    }

    /// The database that the user begins with.
    pub(crate) fn first_database(&self) -> u16 {
        self.databases.first().copied().unwrap_or(0)
    }

    /// The line that says all of this.
    pub(crate) fn line(&self) -> String {
        let mut words = vec!["user".to_owned(), self.name.clone()];
        words.push(if self.is_on { "on" } else { "off" }.to_owned());
        words.extend(self.needs_none.then(|| "nopass".to_owned()));
        words.extend(self.passwords().map(|digest| format!("#{digest}")));
        words.extend(self.keys.iter().map(|pattern| format!("~{pattern}")));
        words.extend(self.rules.iter().cloned());
        if !self.databases.is_empty() {
            let numbers: Vec<_> = self.databases.iter().map(u16::to_string).collect();
            words.push(format!("db={}", numbers.join(",")));
        }
        words.join(" ")
    }
}
