use crate::profile::error::ProfileError;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Maximum characters of a profile that an error quotes.
const QUOTED_CHARS_MAX: usize = 40;

/// The text of a profile and its name in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

impl<'t> Source<'t> {
    /// Parses the text as TOML, with the position of every key and value.
    pub(crate) fn table(self) -> Result<DeTable<'t>, ProfileError> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        // The parser lists errors of the structure before errors of values.
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        match errors.into_iter().min_by_key(start) {
            None => Ok(table.into_inner()),
            Some(error) => {
                let place = error.span().unwrap_or_default();
                Err(self.error(self.line(place.start), self.syntax(error.message(), place)))
            }
        }
    }

    fn syntax(self, message: &str, place: Range<usize>) -> String {
        match self.text.get(place) {
            Some(text) if !text.is_empty() => {
                format!("this is not TOML: {message}, at {}", quoted(text))
            }
            _ => format!("this is not TOML: {message}"),
        }
    }

    /// Returns the line number, from 1, of the byte at `offset`.
    pub(crate) fn line(self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    /// Returns the error `problem` at `line`.
    pub(crate) fn error(self, line: usize, problem: String) -> ProfileError {
        ProfileError::Invalid { file: self.name.to_owned(), line, problem }
    }
}

/// Returns `text` in quotes, in one line, truncated if long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// Returns `value` as errors quote it.
pub(crate) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => shown_number(number.as_str(), &number.to_string()),
        DeValue::Float(number) => shown_number(number.as_str(), &number.to_string()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Returns a number as errors quote it. The parser does not reject control characters in `text`.
fn shown_number(digits: &str, text: &str) -> String {
    if digits.len() <= QUOTED_CHARS_MAX {
        text.escape_debug().to_string()
    } else {
        "a very long number".to_owned()
    }
}

/// Returns `"a", "b" or "c"`, with `last` between the last two.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let mut words: Vec<String> = words.into_iter().map(|word| format!("{word:?}")).collect();
    let Some(end) = words.pop() else { return "nothing".to_owned() };
    if words.is_empty() { end } else { format!("{} {last} {end}", words.join(", ")) }
}
