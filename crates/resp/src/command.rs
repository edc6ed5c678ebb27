use crate::failure::Failure;
use crate::request::Request;
use crate::word::Words;

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
/// A client may run it before it authenticates.
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

/// A command that clients can send: what is known of it.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its place in the table.
    pub(crate) place: usize,
    pub(crate) family: &'static str,
    /// In small letters.
    pub(crate) name: &'static str,
    /// The number of arguments, its name among them; at least -`arity`, if below 0.
    pub(crate) arity: i64,
    pub(crate) flags: u16,
    pub(crate) keys: Keys,
    pub(crate) summary: &'static str,
    /// What may follow its name, if that says what is to be done.
    pub(crate) words: Words,
}

impl Command {
    pub(crate) const fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether it is of a kind.
    pub(crate) fn is_of(&self, category: &str) -> bool {
        let is_in = |family: &str| self.family == family;
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
        match self.words.iter().find(|word| word.is(asked)) {
            Some(word) => format!("{}|{}", self.name, word.name),
            None => self.name.to_owned(),
        }
    }

    /// Whether what follows its name is one of its words, if it has any and something follows.
    pub(crate) fn has_word_of(&self, request: Request<'_>) -> bool {
        self.words.is_empty()
            || request.len() == 1
            || self.words.iter().any(|word| word.is(request.arg(1)))
    }

    /// Which of `args` arguments are keys.
    pub(crate) fn key_places(&self, args: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, last, step) = self.keys;
        let number = |at: i64| usize::try_from(at).unwrap_or(0);
        let end = if last < 0 { args } else { number(last) + 1 };
        let places = (number(first).max(1)..end.min(args)).step_by(number(step).max(1));
        places.filter(move |_| first > 0)
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
        if self.words.is_empty() || args == 1 {
            return Ok(());
        }
        let asked = request.arg(1);
        let Some(word) = self.words.iter().find(|word| word.is(asked)) else {
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
