use crate::command::Command;
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::number::integer;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::Transaction;
use crate::word::help;
use base::Key;
use clock::LocalFuture;
use engine::KeySpaceId;

/// Executes a command.
pub(crate) type Function = for<'a> fn(Call<'a>) -> LocalFuture<'a, Outcome>;

/// The functions of some commands, by the names of these.
pub(crate) type Functions = &'static [(&'static str, Function)];

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
        let mut words = self.command.words.iter();
        words.find(|word| self.is_word(1, word.name)).map(|word| word.name).unwrap_or_default()
    }

    /// What there is of the command.
    pub(crate) fn help(&self) -> Reply {
        help(self.command.name, self.command.words)
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
