use super::answer::Answer;
use super::generate::Words;
use super::host_command::HostCommand;
use spec::Status;
use std::fmt;

/// What a client sends.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Redis(Words),
    Host(HostCommand),
}

/// The pipelines of each client, which all clients send at the same time.
pub(crate) type Round = Vec<Vec<Vec<Request>>>;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Redis(Answer),
    Host { status: Status, result: u64, data: Vec<u8> },
}

impl Request {
    /// Returns the Redis command of a line with one space between words.
    pub(crate) fn line(line: &str) -> Self {
        Self::Redis(line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    /// Returns the command of a Redis client.
    pub(crate) fn words(&self) -> &Words {
        match self {
            Self::Redis(words) => words,
            Self::Host(command) => panic!("a Redis client cannot send {command:?}"),
        }
    }

    /// Returns the command of an NVMe host.
    pub(crate) fn host_command(&self) -> &HostCommand {
        match self {
            Self::Host(command) => command,
            Self::Redis(_) => panic!("an NVMe host cannot send {self}"),
        }
    }
}

impl Reply {
    /// Returns the answer of the Redis protocol.
    pub(crate) fn answer(&self) -> &Answer {
        match self {
            Self::Redis(answer) => answer,
            Self::Host { .. } => panic!("a Redis client received {self}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(words) => {
                let words = words.iter().map(|word| match word.len() {
                    0 => "\"\"".to_owned(),
                    len if len > 200 => format!("({len} bytes)"),
                    _ => word.escape_ascii().to_string(),
                });
                f.write_str(&words.collect::<Vec<_>>().join(" "))
            }
            Self::Host(command) => write!(f, "{command}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(answer) => write!(f, "{answer}"),
            Self::Host { status, result, data } => {
                write!(f, "{status}, result {result}, \"{}\"", data.escape_ascii())
            }
        }
    }
}
