//! How errors quote a profile.

use toml::de::DeValue;

/// Maximum characters of a profile that an error quotes.
const QUOTED_CHARS_MAX: usize = 40;

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
