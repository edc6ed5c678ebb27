use crate::commands::{
    acl, client, config, connection, expiry, formal, hashes, info, keys, multi, numbers, object,
    ranges, scan, server, slow, sorted_sets, strings,
};
use crate::door::Door;
use crate::failure::Failure;
use crate::number::integer;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::Transaction;
use crate::word::{Words, help};
use base::Key;
use clock::LocalFuture;
use engine::KeySpaceId;

/// It may change keys.
pub(crate) const WRITE: u16 = 1;
/// It looks at keys.
pub(crate) const READ: u16 = 2;
/// It takes the same time, however much there is.
pub(crate) const FAST: u16 = 4;
/// It may take space.
pub(crate) const GROWS: u16 = 8;
/// It is not executed by EXEC with others, but after them: it looks at all keys at once.
pub(crate) const APART: u16 = 16;
/// It is executed at once between MULTI and EXEC.
pub(crate) const AT_ONCE: u16 = 32;
/// It is about the server.
pub(crate) const ADMIN: u16 = 64;

/// It may take very long, or tell what is not the client's.
pub(crate) const DANGEROUS: u16 = 128;
/// Whoever comes may do it, before it is known who that is.
pub(crate) const UNASKED: u16 = 256;

/// What clients call the flags.
pub(crate) const FLAG_NAMES: [(u16, &str); 6] = [
    (WRITE, "write"),
    (READ, "readonly"),
    (GROWS, "denyoom"),
    (ADMIN, "admin"),
    (FAST, "fast"),
    (UNASKED, "no_auth"),
];

/// Kinds of commands that users may do, or not.
pub(crate) const CATEGORIES: [&str; 12] = [
    "keyspace",
    "read",
    "write",
    "string",
    "hash",
    "sortedset",
    "transaction",
    "connection",
    "admin",
    "dangerous",
    "fast",
    "slow",
];

/// Which arguments are keys: the first, the last (-1: the last of all), and each how many-th.
pub(crate) type Keys = (i64, i64, i64);
/// No argument is.
pub(crate) const NO_KEYS: Keys = (0, 0, 0);
/// The first one is.
pub(crate) const ONE_KEY: Keys = (1, 1, 1);
/// All are.
pub(crate) const ALL_KEYS: Keys = (1, -1, 1);

/// What a command comes to.
pub(crate) type Outcome = Result<Reply, Failure>;

/// A command that clients can send.
pub(crate) struct Command {
    /// In small letters.
    pub(crate) name: &'static str,
    /// How many arguments it has, its name among them; at least so many, if below 0.
    pub(crate) arity: i64,
    pub(crate) flags: u16,
    pub(crate) keys: Keys,
    pub(crate) summary: &'static str,
    pub(crate) run: for<'a> fn(Call<'a>) -> LocalFuture<'a, Outcome>,
}

/// All commands, by families.
pub(crate) const FAMILIES: [(&str, &[Command]); 20] = [
    ("string", strings::COMMANDS),
    ("string", numbers::COMMANDS),
    ("hash", hashes::COMMANDS),
    ("sorted-set", sorted_sets::COMMANDS),
    ("sorted-set", ranges::COMMANDS),
    ("generic", keys::COMMANDS),
    ("generic", expiry::COMMANDS),
    ("generic", scan::COMMANDS),
    ("generic", object::COMMANDS),
    ("generic", formal::GENERIC),
    ("transactions", multi::COMMANDS),
    ("connection", connection::COMMANDS),
    ("connection", client::COMMANDS),
    ("server", acl::COMMANDS),
    ("server", server::COMMANDS),
    ("server", config::COMMANDS),
    ("server", info::COMMANDS),
    ("server", slow::COMMANDS),
    ("server", formal::SERVER),
    ("server", formal::TOOLS),
];

impl Command {
    /// The command of this name.
    pub(crate) fn named(name: &[u8]) -> Option<&'static Self> {
        Self::placed(name).map(|(_, command)| command)
    }

    pub(crate) const fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether it is of a kind.
    pub(crate) fn is_of(&self, category: &str) -> bool {
        let is_in = |family: &str| {
            let mut of_family = FAMILIES.iter().filter(|(name, _)| *name == family);
            of_family.any(|(_, commands)| commands.iter().any(|one| one.name == self.name))
        };
        match category {
            "read" => self.is(READ),
            "write" => self.is(WRITE),
            "fast" => self.is(FAST),
            "slow" => !self.is(FAST),
            "admin" => self.is(ADMIN),
            "dangerous" => self.is(DANGEROUS) || self.is(ADMIN),
            "keyspace" => is_in("generic") || is_in("server") && (self.is(READ) || self.is(WRITE)),
            "sortedset" => is_in("sorted-set"),
            "transaction" => is_in("transactions"),
            family => is_in(family),
        }
    }

    /// Its name with the word that says what is to be done, as a client is told it.
    pub(crate) fn full_name(&self, request: Request<'_>) -> String {
        let asked = if request.len() > 1 { request.arg(1) } else { &[] };
        match self.words().iter().find(|word| word.is(asked)) {
            Some(word) => format!("{}|{}", self.name, word.name),
            None => self.name.to_owned(),
        }
    }

    /// What may follow its name, if that says what is to be done.
    pub(crate) fn words(&self) -> Words {
        match self.name {
            "acl" => acl::WORDS,
            "client" => client::WORDS,
            "cluster" => formal::CLUSTER_WORDS,
            "command" => server::COMMAND_WORDS,
            "config" => config::WORDS,
            "function" => formal::FUNCTION_WORDS,
            "latency" => slow::LATENCY_WORDS,
            "memory" => object::MEMORY_WORDS,
            "module" => formal::MODULE_WORDS,
            "object" => object::OBJECT_WORDS,
            "slowlog" => slow::SLOWLOG_WORDS,
            _ => &[],
        }
    }

    /// Whether what follows its name is one of its words, if it has any and something follows.
    pub(crate) fn has_word_of(&self, request: Request<'_>) -> bool {
        let words = self.words();
        if words.is_empty() || request.len() == 1 {
            return true;
        }
        words.iter().any(|word| word.is(request.arg(1)))
    }

    /// Whether it may have so many arguments, its name among them.
    pub(crate) fn takes(&self, args: usize) -> bool {
        fits(self.arity, args)
    }

    /// Whether it may have the arguments of `request`.
    pub(crate) fn check(&self, request: Request<'_>) -> Result<(), Failure> {
        let (name, args) = (self.name, request.len());
        if !fits(self.arity, args) {
            return Err(Failure::told(wrong_number(name)));
        }
        if self.words().is_empty() || args == 1 {
            return Ok(());
        }
        let asked = request.arg(1);
        let Some(word) = self.words().iter().find(|word| word.is(asked)) else {
            let help = format!("'. Try {} HELP.", name.to_ascii_uppercase());
            return Err(Failure::quoting("ERR unknown subcommand '", asked, &help));
        };
        if !fits(word.arity, args) {
            return Err(Failure::told(wrong_number(&format!("{name}|{}", word.name))));
        }
        Ok(())
    }
}

/// Whether a command of this arity may have so many arguments.
fn fits(arity: i64, args: usize) -> bool {
    let args = i64::try_from(args).unwrap_or(i64::MAX);
    if arity < 0 { args >= -arity } else { args == arity }
}

/// What is told when it has more or less.
pub(crate) fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// A command on its way: what was sent, by whom, and what it reads and writes.
pub(crate) struct Call<'a> {
    pub(crate) command: &'static Command,
    pub(crate) request: Request<'a>,
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) session: &'a mut Session,
    pub(crate) door: &'a Door,
}

impl Call<'_> {
    /// The key space of the client's database.
    pub(crate) fn space(&self) -> KeySpaceId {
        self.session.space()
    }

    /// The key that an argument is.
    pub(crate) fn key(&self, at: usize) -> Result<Key, Failure> {
        key_of(self.request.arg(at))
    }

    /// The number that an argument is.
    pub(crate) fn integer(&self, at: usize) -> Result<i64, Failure> {
        integer(self.request.arg(at)).ok_or(Failure::NOT_AN_INTEGER)
    }

    /// Whether an argument is this word, in small or capital letters.
    pub(crate) fn is_word(&self, at: usize, word: &str) -> bool {
        self.request.arg(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Which of its words the second argument is.
    pub(crate) fn word(&self) -> &'static str {
        let mut words = self.command.words().iter();
        words.find(|word| self.is_word(1, word.name)).map(|word| word.name).unwrap_or_default()
    }

    /// What there is of the command.
    pub(crate) fn help(&self) -> Reply {
        help(self.command.name, self.command.words())
    }

    /// What is told of a date that is none.
    pub(crate) fn invalid_expiry(&self) -> Failure {
        Failure::told(format!("ERR invalid expire time in '{}' command", self.command.name))
    }
}

/// The key of these bytes.
pub(crate) fn key_of(bytes: &[u8]) -> Result<Key, Failure> {
    Key::new(bytes).map_err(|error| Failure::told(format!("ERR {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_there_once_and_in_small_letters() {
        let all: Vec<_> = FAMILIES.iter().flat_map(|(_, commands)| commands.iter()).collect();
        let names: BTreeSet<_> = all.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
