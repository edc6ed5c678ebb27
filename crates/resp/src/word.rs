use crate::reply::Reply;

/// A word that may follow the name of a command, and says what is to be done.
#[derive(Debug)]
pub(crate) struct Word {
    /// In small letters.
    pub(crate) name: &'static str,
    /// How many arguments there are, the command's name and this one among them; at least so many,
    /// if below 0.
    pub(crate) arity: i64,
    /// What follows, for people.
    args: &'static str,
    summary: &'static str,
}

/// Those of a command.
pub(crate) type Words = &'static [Word];

/// The word that all commands have which have any.
pub(crate) const HELP: Word = word("help", 2, "", "Tell what there is");

/// A word of this name.
pub(crate) const fn word(
    name: &'static str,
    arity: i64,
    args: &'static str,
    summary: &'static str,
) -> Word {
    Word { name, arity, args, summary }
}

impl Word {
    pub(crate) fn is(&self, asked: &[u8]) -> bool {
        asked.eq_ignore_ascii_case(self.name.as_bytes())
    }
}

/// What there is of the command `name`, for people: two lines of each word.
pub(crate) fn help(name: &str, words: Words) -> Reply {
    let capital = |word: &Word| format!("{} {}", word.name.to_ascii_uppercase(), word.args);
    let of_word = |word: &Word| {
        [capital(word).trim_end().to_owned(), format!("    {}.", word.summary)]
            .map(|line| Reply::Status(line.into()))
    };
    let first = format!("{} is followed by one of these:", name.to_ascii_uppercase());
    let lines = words.iter().flat_map(of_word);
    Reply::Array([Reply::Status(first.into())].into_iter().chain(lines).collect())
}
