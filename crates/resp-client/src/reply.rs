use base::Buf;

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A word, as OK.
    Status(String),
    /// Why there is no other answer: a word in capitals, and a sentence.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Buf),
    /// That there is nothing.
    Null,
    /// Answers.
    Array(Vec<Reply>),
}

impl Reply {
    /// The bytes of a bulk.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(value) => value.bytes(),
            _ => None,
        }
    }

    /// The number of an integer.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The members of an array.
    pub fn members(&self) -> Option<&[Reply]> {
        match self {
            Self::Array(members) => Some(members),
            _ => None,
        }
    }

    /// What the server says is wrong.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }
}
