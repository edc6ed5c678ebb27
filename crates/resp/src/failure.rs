use crate::reply::Reply;
use engine::Error;
use std::borrow::Cow;

/// Why a command was not done. Nothing has changed then.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The client is told this.
    Told(Cow<'static, str>),
    /// The client is told this, with bytes of its own.
    Quoted(Vec<u8>),
    /// The store did not do it.
    Store(Error),
    /// Another writer changed a key that the command had read. The command executes again.
    Overtaken,
}

/// What a command comes to.
pub(crate) type Outcome = Result<Reply, Failure>;

impl Failure {
    pub(crate) const SYNTAX: Self = Self::Told(Cow::Borrowed("ERR syntax error"));
    pub(crate) const NOT_AN_INTEGER: Self =
        Self::Told(Cow::Borrowed("ERR value is not an integer or out of range"));
    pub(crate) const NOT_A_FLOAT: Self =
        Self::Told(Cow::Borrowed("ERR value is not a valid float"));
    pub(crate) const WRONG_TYPE: Self = Self::Told(Cow::Borrowed(
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    ));
    pub(crate) const NO_SUCH_KEY: Self = Self::Told(Cow::Borrowed("ERR no such key"));

    /// Says what is wrong with a client's request.
    pub(crate) fn told(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Told(text.into())
    }

    /// The same, with what a client has sent between the two parts of a sentence: up to its first
    /// zero, and no more than 128 bytes.
    pub(crate) fn quoting(before: &str, sent: &[u8], after: &str) -> Self {
        Self::Quoted([before.as_bytes(), quoted(sent, 128), after.as_bytes()].concat())
    }

    /// Says that no word of `command` is `asked` with so many arguments.
    pub(crate) fn no_word(command: &str, asked: &[u8]) -> Self {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        Self::quoting(before, asked, &format!("'. Try {} HELP.", command.to_ascii_uppercase()))
    }

    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::Told(text) => Reply::error(text),
            Self::Quoted(text) => Reply::Error(Cow::Owned(text)),
            Self::Store(error) => Reply::error(text_of(error)),
            Self::Overtaken => Reply::error("TRYAGAIN others keep changing the same keys"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::KeyChanged => Self::Overtaken,
            error => Self::Store(error),
        }
    }
}

/// What is repeated of an argument in a sentence.
pub(crate) fn quoted(sent: &[u8], max: usize) -> &[u8] {
    let len = sent.iter().position(|byte| *byte == 0).unwrap_or(sent.len());
    &sent[..len.min(max)]
}

/// What a client is told of an error of the store.
fn text_of(error: Error) -> String {
    match error {
        Error::CapacityExceeded => {
            "OOM command not allowed: the drive has no space left for values".to_owned()
        }
        Error::ValueTooLong { max } => format!("ERR a value has at most {max} bytes"),
        Error::BatchTooLong { max_bytes, max_records } => {
            format!(
                "ERR what happens at once changes or relies on at most {max_records} records of \
                 the drive, of which a key has one or more, and has at most {max_bytes} bytes \
                 beside its longest value"
            )
        }
        Error::Unrecovered | Error::Unwritten => format!("ERR I/O: {error}"),
        Error::KeyNotFound
        | Error::KeyExists
        | Error::KeyChanged
        | Error::BatchRepeatsKey
        | Error::NoCheckpoint
        | Error::OpenedTooOften
        | Error::ReactorEnded
        | Error::NoKeySpace
        | Error::KeySpaceExists
        | Error::KeySpaceReserved => format!("ERR {error}"),
    }
}
