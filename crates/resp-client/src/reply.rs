use base::Buf;

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A simple string such as OK.
    Status(String),
    /// An error: a word in capitals, and a sentence.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Buf),
    /// Null.
    Null,
    /// Answers.
    Array(Vec<Reply>),
}

impl Reply {
    /// Returns the bytes of a bulk.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(value) => value.bytes(),
            _ => None,
        }
    }

    /// Returns the number of an integer.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the members of an array.
    pub fn members(&self) -> Option<&[Reply]> {
        match self {
            Self::Array(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the message of an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }
}
