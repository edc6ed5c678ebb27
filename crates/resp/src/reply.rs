use crate::number::score;
use crate::outbox::Outbox;
use base::Buf;
use std::borrow::Cow;

/// The version of the protocol in which a connection is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, which every connection begins with.
    #[default]
    Two,
    /// RESP3, asked for by HELLO 3.
    Three,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The word OK.
    Ok,
    /// Another word, or a line for people.
    Status(Cow<'static, str>),
    /// Why there is no other answer: a word in capitals, and a sentence.
    Error(Cow<'static, [u8]>),
    Integer(i64),
    Double(f64),
    Bulk(Buf),
    /// A bulk of the program's own.
    Text(Cow<'static, str>),
    /// A text for people.
    Verbatim(String),
    Null,
    /// An array that does not exist.
    NullArray,
    Array(Vec<Reply>),
    Set(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// Members of two parts, which RESP2 has one after the other.
    Pairs(Vec<(Reply, Reply)>),
}

impl Reply {
    /// A word.
    pub(crate) const fn status(word: &'static str) -> Self {
        Self::Status(Cow::Borrowed(word))
    }

    /// 1 or 0.
    pub(crate) const fn flag(is_true: bool) -> Self {
        Self::Integer(is_true as i64)
    }

    /// How many.
    pub(crate) fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).expect("a count fits memory"))
    }

    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        Self::Bulk(Buf::copy_from(bytes))
    }

    pub(crate) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A bulk, or what says that there is none.
    pub(crate) fn optional(value: Option<Buf>) -> Self {
        value.map_or(Self::Null, Self::Bulk)
    }

    /// Queues its bytes.
    pub(crate) fn write(self, protocol: Protocol, out: &mut Outbox) {
        let is_three = protocol == Protocol::Three;
        match self {
            Self::Ok => out.push_bytes(b"+OK\r\n"),
            Self::Bulk(value) => out.push_bulk_of(value),
            Self::Status(word) => out.push_line(b'+', word.as_bytes()),
            Self::Error(text) => {
                // A line ends where it ends.
                let is_end = |byte: u8| matches!(byte, b'\r' | b'\n');
                let one = text.iter().map(|byte| if is_end(*byte) { b' ' } else { *byte });
                out.push_line(b'-', &one.collect::<Vec<_>>());
            }
            Self::Integer(number) => out.push_number(b':', number),
            Self::Double(number) if is_three => out.push_line(b',', score(number).as_bytes()),
            Self::Double(number) => out.push_bulk(score(number).as_bytes()),
            Self::Text(text) => out.push_bulk(text.as_bytes()),
            Self::Verbatim(text) if is_three => {
                out.push_len(b'=', text.len() + 4);
                out.push_bytes(b"txt:");
                out.push_bytes(text.as_bytes());
                out.push_bytes(b"\r\n");
            }
            Self::Verbatim(text) => out.push_bulk(text.as_bytes()),
            Self::Null | Self::NullArray if is_three => out.push_bytes(b"_\r\n"),
            Self::Null => out.push_bytes(b"$-1\r\n"),
            Self::NullArray => out.push_bytes(b"*-1\r\n"),
            Self::Array(members) => write_all(b'*', members, protocol, out),
            Self::Set(members) => {
                write_all(if is_three { b'~' } else { b'*' }, members, protocol, out);
            }
            Self::Map(pairs) if is_three => {
                out.push_len(b'%', pairs.len());
                for (name, value) in pairs {
                    name.write(protocol, out);
                    value.write(protocol, out);
                }
            }
            Self::Pairs(pairs) if is_three => {
                out.push_len(b'*', pairs.len());
                for (first, second) in pairs {
                    write_all(b'*', vec![first, second], protocol, out);
                }
            }
            Self::Map(pairs) | Self::Pairs(pairs) => {
                let members = pairs.into_iter().flat_map(|(name, value)| [name, value]);
                write_all(b'*', members.collect(), protocol, out);
            }
        }
    }
}

fn write_all(kind: u8, members: Vec<Reply>, protocol: Protocol, out: &mut Outbox) {
    out.push_len(kind, members.len());
    for member in members {
        member.write(protocol, out);
    }
}
