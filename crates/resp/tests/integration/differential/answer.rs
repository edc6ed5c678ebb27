//! Answers as a client understands them.

use std::fmt;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Double(Vec<u8>),
    Bulk(Vec<u8>),
    Verbatim(Vec<u8>),
    Null,
    NullBulk,
    NullArray,
    Array(Vec<Answer>),
    Set(Vec<Answer>),
    Map(Vec<Answer>),
}

impl Answer {
    /// The answer at the start of `bytes` and its length, if it is all there.
    pub(crate) fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, after) = (&bytes[1..end], end + 2);
        let text = || std::str::from_utf8(line).expect("a number");
        let len = || text().parse::<i64>().expect("a number");
        let one = |answer| Some((answer, after));
        match bytes[0] {
            b'+' => one(Self::Status(line.to_vec())),
            b'-' => one(Self::Error(line.to_vec())),
            b':' => one(Self::Integer(len())),
            b',' => one(Self::Double(line.to_vec())),
            b'_' => one(Self::Null),
            b'$' if line == b"-1" => one(Self::NullBulk),
            b'*' if line == b"-1" => one(Self::NullArray),
            kind @ (b'$' | b'=') => {
                let until = after + usize::try_from(len()).expect("a length");
                let bulk = bytes.get(after..until)?.to_vec();
                assert_eq!(bytes.get(until..until + 2)?, b"\r\n");
                let answer = if kind == b'$' { Self::Bulk(bulk) } else { Self::Verbatim(bulk) };
                Some((answer, until + 2))
            }
            kind => {
                let count =
                    usize::try_from(len()).expect("a length") * if kind == b'%' { 2 } else { 1 };
                let (mut members, mut at) = (Vec::new(), after);
                for _ in 0..count {
                    let (member, len) = Self::parse(&bytes[at..])?;
                    members.push(member);
                    at += len;
                }
                let answer = match kind {
                    b'*' => Self::Array(members),
                    b'~' => Self::Set(members),
                    b'%' => Self::Map(members),
                    other => panic!("no answer begins with {}", other.escape_ascii()),
                };
                Some((answer, at))
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) | Self::Error(text) => {
                write!(f, "{}", String::from_utf8_lossy(text))
            }
            Self::Integer(number) => write!(f, ":{number}"),
            Self::Double(text) => write!(f, ",{}", String::from_utf8_lossy(text)),
            Self::Bulk(bytes) | Self::Verbatim(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Null | Self::NullBulk | Self::NullArray => f.write_str("(nil)"),
            Self::Array(members) | Self::Set(members) | Self::Map(members) => {
                f.write_str("[")?;
                for (at, member) in members.iter().enumerate() {
                    write!(f, "{}{member}", if at > 0 { " " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}
