//! A number for each command, and for each word that says what one of several is to do: for what is
//! counted by command.

use crate::command::Command;
use crate::request::Request;
use std::sync::OnceLock;

/// One of all commands, or a word of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandNumber(u16);

#[derive(Debug)]
struct Numbering {
    /// Of each command in the order of [`Command::all`] the number; those of its words follow it.
    first: Vec<u16>,
    names: Vec<String>,
}

static NUMBERING: OnceLock<Numbering> = OnceLock::new();

fn numbering() -> &'static Numbering {
    NUMBERING.get_or_init(|| {
        let (mut first, mut names) = (Vec::new(), Vec::new());
        for command in Command::all() {
            first.push(u16::try_from(names.len()).expect("there are no 65,536 commands"));
            names.push(command.name.to_owned());
            let words = command.words.iter();
            names.extend(words.map(|word| format!("{}|{}", command.name, word.name)));
        }
        Numbering { first, names }
    })
}

impl CommandNumber {
    /// How many there are.
    pub(crate) fn count() -> usize {
        numbering().names.len()
    }

    /// All of them, in order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u16::MAX).take(Self::count()).map(Self)
    }

    /// That of `command`; with the word of `request`, if it is one of its own.
    pub(crate) fn of(command: &Command, request: Request<'_>) -> Self {
        let first = numbering().first[command.place];
        let words = command.words;
        if words.is_empty() || request.len() == 1 {
            return Self(first);
        }
        let asked = request.arg(1);
        let mut numbers = (first + 1..).zip(words);
        let found = numbers.find(|(_, word)| word.is(asked));
        Self(found.map_or(first, |(number, _)| number))
    }

    /// That of the command of this name, which there is.
    pub(crate) fn named(name: &str) -> Self {
        let command = Command::named(name.as_bytes()).expect("there is such a command");
        Self(numbering().first[command.place])
    }

    /// Those that `asked` is the name of: of a command and its words, or of one of those. Nothing,
    /// if there is no such command.
    pub(crate) fn asked(asked: &[u8]) -> Option<impl Iterator<Item = Self>> {
        let is_it = |number: &Self| asked.eq_ignore_ascii_case(number.name().as_bytes());
        let first = Self::all().find(is_it)?;
        let is_below = move |number: &Self| {
            let rest = number.name().strip_prefix(first.name());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        Some(Self::all().filter(is_below))
    }

    /// As clients are told it: the command's name, with the word behind a bar.
    pub(crate) fn name(self) -> &'static str {
        &numbering().names[self.place()]
    }

    /// A number for an atomic, not 0, which stands for no command.
    pub(crate) const fn code(self) -> u16 {
        self.0 + 1
    }

    /// The command of such a number.
    pub(crate) fn of_code(code: u16) -> Option<Self> {
        code.checked_sub(1).map(Self)
    }

    /// Its place among all.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}
