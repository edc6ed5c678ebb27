use serde::Serialize;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Output of a command that ran to its end.
#[derive(Debug)]
pub(crate) struct Output {
    text: String,
    /// Whether a part of `text` is useless, as of JSON.
    is_document: bool,
    /// Errors that the run found, as a sentence.
    errors: Option<String>,
    /// Known failures that happened, as a sentence.
    known_failures: Option<String>,
}

/// Exit status of a run with known failures only.
const KNOWN_FAILURES: u8 = 3;

/// Why a command did not run to its end, as a sentence.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input cannot be used.
    Refused(String),
    /// The run failed.
    Broken(String),
}

impl Output {
    /// Returns `text`, which ends with a newline, for standard output.
    pub(crate) fn new(text: String) -> Self {
        Self { text, is_document: false, errors: None, known_failures: None }
    }

    /// Returns `value` as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        let text = serde_json::to_string_pretty(value).expect("reports have only names as keys");
        Self { is_document: true, ..Self::new(text + "\n") }
    }

    /// Returns `value` as JSON on one line, for a command that prints several objects.
    pub(crate) fn json_line(value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value).expect("reports have only names as keys");
        Self::new(text + "\n")
    }

    /// Adds the errors that the run found, if `errors` has any.
    pub(crate) fn with_errors(self, errors: Option<String>) -> Self {
        let all: Vec<String> = self.errors.into_iter().chain(errors).collect();
        Self { errors: (!all.is_empty()).then(|| all.join("; ")), ..self }
    }

    /// Adds the known failures, if `known_failures` has any. The command ends with status 3 if
    /// nothing else fails.
    pub(crate) fn with_known_failures(self, known_failures: Option<String>) -> Self {
        Self { known_failures, ..self }
    }

    pub(crate) fn print(self) -> ExitCode {
        let mut stdout = io::stdout().lock();
        let printed = stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush());
        let is_lost = |error: &io::Error| {
            // A closed pipe is not an error: a reader such as `head` may stop early.
            self.is_document || error.kind() != ErrorKind::BrokenPipe
        };
        let lost = printed.err().filter(is_lost);
        let lost = lost.map(|error| format!("cannot write the output: {error}"));
        let Self { errors, known_failures, .. } = self.with_errors(lost);
        match (errors, known_failures) {
            (Some(sentence), _) => Failure::Broken(sentence).print(),
            (None, Some(sentence)) => {
                say_aside(&sentence);
                ExitCode::from(KNOWN_FAILURES)
            }
            (None, None) => ExitCode::SUCCESS,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(sentence) | Self::Broken(sentence)) = self;
        f.write_str(sentence)
    }
}

impl Failure {
    /// A failure for unusable input.
    pub(crate) fn refused(reason: impl Display) -> Self {
        Self::Refused(reason.to_string())
    }

    /// The same, prefixed with `place`.
    pub(crate) fn of(self, place: &str) -> Self {
        let say = |sentence| format!("{place}: {sentence}");
        match self {
            Self::Refused(sentence) => Self::Refused(say(sentence)),
            Self::Broken(sentence) => Self::Broken(say(sentence)),
        }
    }

    pub(crate) fn print(self) -> ExitCode {
        let (sentence, code) = match self {
            Self::Refused(sentence) => (sentence, 2),
            Self::Broken(sentence) => (sentence, 1),
        };
        say_aside(&sentence);
        ExitCode::from(code)
    }
}

/// Prints `sentence` on standard error.
pub(crate) fn say_aside(sentence: &str) {
    // If standard error is closed, there is no other place to report it.
    let _ = writeln!(io::stderr(), "kvasir: {}", in_one_line(sentence));
}

/// Returns `sentence` without characters that move a terminal's cursor.
pub(crate) fn in_one_line(sentence: &str) -> String {
    let mut line = String::with_capacity(sentence.len());
    for character in sentence.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn a_sentence_stays_in_one_line() {
        assert_eq!(in_one_line("a\nb\u{1b}[2J\r \u{e9}"), "a\\nb\\u{1b}[2J\\r \u{e9}");
    }
}
