use crate::profile::error::ProfileError;
use crate::profile::quote::quoted;
use std::ops::Range;
use toml::de::DeTable;

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
