/// Formats a violation.
pub(super) fn at(path: &str, line: usize, sentence: impl std::fmt::Display) -> String {
    format!("{path}:{line}: {sentence}")
}
