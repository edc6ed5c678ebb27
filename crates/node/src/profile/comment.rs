use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The first word of an assumption's comment.
const MARK: &str = "assumption:";

/// A value without a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The key, with its section before a dot: `nand.read_us`. Sections of the same name have
    /// numbers, from 1: `namespace[2].size_gb`.
    pub key: String,
    /// The reason for the value.
    pub sentence: String,
}

/// A key with its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commented {
    /// The key, with its section before a dot.
    pub(super) key: String,
    /// The comment lines right above it and the one after its value, without their marks.
    pub(super) comment: String,
    start: usize,
}

/// Returns the assumptions in the comments of `text`, in its order; `table` is the parsed text.
pub(super) fn assumptions(text: &str, table: &DeTable<'_>) -> Vec<Assumption> {
    let commented = commented(text, table).into_iter();
    commented
        .filter_map(|Commented { key, comment, .. }| {
            let (_, sentence) = comment.split_once(MARK)?;
            Some(Assumption { key, sentence: sentence.trim().to_owned() })
        })
        .collect()
}

/// Returns every key of `text` with a plain value and its comment, in the order of the text.
pub(super) fn commented(text: &str, table: &DeTable<'_>) -> Vec<Commented> {
    let mut found = Vec::new();
    for (name, value) in table {
        collect(text, "", name, value, &mut found);
    }
    found.sort_by_key(|commented| commented.start);
    found
}

fn collect(
    text: &str,
    section: &str,
    name: &Spanned<impl AsRef<str>>,
    value: &Spanned<DeValue<'_>>,
    found: &mut Vec<Commented>,
) {
    let key = format!("{section}{}", name.get_ref().as_ref());
    match value.get_ref() {
        DeValue::Table(table) => {
            for (name, value) in table {
                collect(text, &format!("{key}."), name, value, found);
            }
        }
        DeValue::Array(elements) if elements.iter().any(|element| element.get_ref().is_table()) => {
            let tables = elements.iter().filter_map(|element| element.get_ref().as_table());
            for (number, table) in (1..).zip(tables) {
                let number = if elements.len() > 1 { format!("[{number}]") } else { String::new() };
                for (name, value) in table {
                    collect(text, &format!("{key}{number}."), name, value, found);
                }
            }
        }
        _ => {
            let start = name.span().start;
            let comment = comment(text, start, value.span().end);
            found.push(Commented { key, comment, start });
        }
    }
}

/// Returns the comment of the key that starts at `start` and whose value ends at `end`.
fn comment(text: &str, start: usize, end: usize) -> String {
    let before = text.get(..start).unwrap_or_default();
    let above = before.rsplit_once('\n').map_or("", |(above, _)| above);
    let behind = text.get(end..).unwrap_or_default().lines().next().unwrap_or_default();
    let mut lines: Vec<&str> = above.lines().rev().map_while(after_mark).collect();
    lines.reverse();
    lines.extend(after_mark(behind));
    lines.join(" ").trim().to_owned()
}

/// Returns the text after the mark of a comment, if `line` is one.
fn after_mark(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix('#')?.trim())
}
