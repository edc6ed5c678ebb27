//! Reading Rust source by its lines and words, without parsing it.

/// Returns `line` without its comment.
pub(crate) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code).trim_end()
}

/// True when `text` contains `word` and no longer identifier around it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        let joins = |neighbour: Option<char>| neighbour.is_some_and(is_identifier);
        !(joins(before) || word.ends_with(is_identifier) && joins(after))
    })
}

pub(crate) fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_only_as_a_whole() {
        assert!(has_word("a = word;", "word"));
        assert!(has_word("words word", "word"));
        assert!(!has_word("a_word words", "word"));
        assert!(has_word("go!(x)", "go!") && !has_word("ago!()", "go!"));
    }

    #[test]
    fn code_ends_where_the_comment_starts() {
        assert_eq!(code("    let a = 1; // one"), "    let a = 1;");
        assert_eq!(code("/// text"), "");
    }
}
