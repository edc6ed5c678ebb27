/// Maximum edit distance of a suggested word.
const MISTAKES_MAX: usize = 2;

/// Returns the word of `words` with the smallest edit distance to `word`, if it is small enough.
pub(super) fn nearest<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let word: Vec<char> = word.chars().take(64).collect();
    let near = words.iter().map(|candidate| (mistakes(&word, candidate), *candidate));
    let (count, candidate) = near.min()?;
    (count <= MISTAKES_MAX && count < candidate.len()).then_some(candidate)
}

/// Returns the edit distance of the two words (Levenshtein, 1966).
fn mistakes(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (above, expected) in candidate.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, found) in word.iter().enumerate() {
            let replaced = diagonal + usize::from(expected != *found);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::{mistakes, nearest};

    #[test]
    fn mistakes_count_inserted_removed_and_replaced_characters() {
        let count = |a: &str, b: &str| mistakes(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("read_us", "read_us"), 0);
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("reed_us", &["erase_us", "read_us"]), Some("read_us"));
        assert_eq!(nearest("blocks", &["channels", "read_us"]), None);
        assert_eq!(nearest("", &["a", "bc"]), None);
    }
}
