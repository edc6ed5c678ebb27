//! Splits Rust source into tokens, without comments and without the text of literals.

use crate::source::is_identifier;

/// A token with its line, counted from 1.
pub(crate) type Token<'a> = (usize, &'a str);

/// Stands for a string or a character.
const LITERAL: &str = "\"\"";

/// Prefixes of strings and characters. `r` also starts an identifier such as `r#type`.
const PREFIXES: [&str; 5] = ["r", "b", "c", "br", "cr"];

/// Returns identifiers, numbers, `::`, `""` for each string or character, and single other
/// characters. Comments and lifetimes are left out.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut line, mut rest) = (1, text);
    while let Some(first) = rest.chars().next() {
        let (len, token) = next(rest, first);
        found.extend(token.map(|token| (line, token)));
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    found
}

/// Returns the length in bytes of what `rest` begins with, and its token, if it has one.
fn next(rest: &str, first: char) -> (usize, Option<&str>) {
    if first.is_whitespace() {
        return (first.len_utf8(), None);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if first == '"' {
        return (quoted(rest, '"'), Some(LITERAL));
    }
    if first == '\'' {
        return character_or_lifetime(rest);
    }
    if is_identifier(first) {
        let len = rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
        return literal(rest, len).unwrap_or((len, Some(&rest[..len])));
    }
    let len = if rest.starts_with("::") { 2 } else { first.len_utf8() };
    (len, Some(&rest[..len]))
}

/// Returns the literal that begins with a prefix of `len` bytes.
fn literal(rest: &str, len: usize) -> Option<(usize, Option<&str>)> {
    let (prefix, after) = rest.split_at(len);
    if !PREFIXES.contains(&prefix) {
        return None;
    }
    let hashes = after.len() - after.trim_start_matches('#').len();
    if prefix.ends_with('r') && after[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let body = &after[hashes + 1..];
        let body_len = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some((len + hashes + 1 + body_len, Some(LITERAL)));
    }
    match after.chars().next()? {
        quote @ ('"' | '\'') => Some((len + quoted(after, quote), Some(LITERAL))),
        _ => None,
    }
}

/// Returns the length of the literal at the start of `text`, both quotes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

fn character_or_lifetime(rest: &str) -> (usize, Option<&str>) {
    let mut chars = rest.chars().skip(1);
    let (first, second) = (chars.next(), chars.next());
    if first == Some('\\') || second == Some('\'') {
        return (quoted(rest, '\''), Some(LITERAL));
    }
    let len = rest[1..].find(|c| !is_identifier(c)).unwrap_or(rest.len() - 1);
    (1 + len, None)
}

/// Returns the length of the comment at the start of `text`, with the comments inside it.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        tokens(text).iter().map(|(_, token)| *token).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g /// h"), "a c g");
    }

    #[test]
    fn literals_have_no_text() {
        assert_eq!(words(r#"a "b \" c" d"#), "a \"\" d");
        assert_eq!(words(r##"r"b\" c r#"d " e"# f br"g" b"h" "##), "\"\" c \"\" f \"\" \"\"");
        assert_eq!(words(r"'a' '\'' b'c' b'\\' 'static d"), "\"\" \"\" \"\" \"\" d");
    }

    #[test]
    fn tokens_have_their_lines() {
        let text = "a\n\"b\nc\" /* d\n*/ e::f";
        assert_eq!(tokens(text), [(1, "a"), (2, "\"\""), (4, "e"), (4, "::"), (4, "f")]);
    }
}
