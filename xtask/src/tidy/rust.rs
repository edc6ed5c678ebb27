use super::violation::at;
use crate::source::{code, has_word};

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;

const NAMES: [&str; 6] =
    ["mod.rs", "utils.rs", "common.rs", "helpers.rs", "types.rs", "prelude.rs"];

const HEADINGS: [&str; 4] = ["# How it works", "# Guarantees", "# Trusts", "# Not here"];

// Split, so that this file does not break its own rules.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("HA", "CK"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];
const IGNORE: &str = concat!("#[", "ignore");
const UNSAFE: &str = concat!("un", "safe");

/// Files that may contain `unsafe`, each place with its proof: kernel interfaces that share memory
/// with the program.
const UNSAFE_FILES: [&str; 3] = [
    "crates/passthrough/src/ioctl.rs",
    "crates/reactor/src/ring.rs",
    "crates/vfio-user/src/memory/mapping.rs",
];

/// Finds every violation in one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if NAMES.contains(&name) {
        violations.push(at(path, 1, format!("no file is called {name}: name it after its noun")));
    }
    if lines.len() > FILE_LINES_MAX {
        let sentence = format!("the file has {} lines, more than {FILE_LINES_MAX}", lines.len());
        violations.push(at(path, FILE_LINES_MAX + 1, sentence));
    }
    if name == "lib.rs" && folder.ends_with("src") {
        violations.extend(headings(path, &lines));
    }
    for (index, line) in lines.iter().enumerate() {
        let sentences = line_sentences(path, line);
        violations.extend(sentences.into_iter().map(|sentence| at(path, index + 1, sentence)));
        if is_function(line) {
            violations.extend(function(path, &lines[index..], index + 1));
        }
    }
    violations
}

fn headings(path: &str, lines: &[&str]) -> Vec<String> {
    let has = |heading| lines.iter().any(|line| line.strip_prefix("//! ") == Some(heading));
    let missing = HEADINGS.into_iter().filter(|heading| !has(heading));
    missing.map(|heading| at(path, 1, format!("the crate's text has no `{heading}`"))).collect()
}

fn line_sentences(path: &str, line: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let columns = line.chars().count();
    if columns > COLUMNS_MAX {
        sentences.push(format!("the line has {columns} columns, more than {COLUMNS_MAX}"));
    }
    if let Some(other) = line.chars().find(|c| !c.is_ascii()) {
        sentences.push(format!("source is ASCII, and this is {}", other.escape_unicode()));
    }
    for word in UNFINISHED.into_iter().filter(|word| has_word(line, word)) {
        sentences.push(format!("{word} marks unfinished work: finish it or open an issue"));
    }
    if line.contains(IGNORE) {
        sentences.push("a test that does not run proves nothing: run it or delete it".into());
    }
    if has_word(code(line), UNSAFE) && !UNSAFE_FILES.contains(&path) {
        sentences.push(format!("this file may not hold {UNSAFE} code"));
    }
    sentences
}

fn is_function(line: &str) -> bool {
    const BEFORE: [&str; 8] =
        ["pub", "pub(crate)", "pub(super)", "const", "async", "extern", "\"C\"", UNSAFE];
    line.split_whitespace().find(|word| !BEFORE.contains(word)) == Some("fn")
}

fn function(path: &str, lines: &[&str], number: usize) -> Option<String> {
    let count = function_lines(lines);
    let sentence = format!("the function has {count} lines, more than {FUNCTION_LINES_MAX}");
    (count > FUNCTION_LINES_MAX).then(|| at(path, number, sentence))
}

/// Counts the lines of the function that starts with the first of `lines`. In formatted code its
/// last line is the first brace after its body's opening at its own indentation.
fn function_lines(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut is_body = false;
    for (index, line) in lines.iter().enumerate() {
        let ends = |end| code(line).ends_with(end);
        if is_body {
            if line.trim_start().starts_with('}') && indent(line) == indent(lines[0]) {
                return index + 1;
            }
        } else if ends('{') {
            is_body = true;
        } else if ends(';') || ends('}') {
            return index + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/b.rs";

    /// Returns the lines of the violations in `text`, and their joined sentences.
    fn violations(path: &str, text: &str) -> (Vec<usize>, String) {
        let found = check(path, text);
        let line = |text: &String| text.split(':').nth(1).unwrap().parse().unwrap();
        (found.iter().map(line).collect(), found.join("\n"))
    }

    #[track_caller]
    fn breaks(path: &str, text: &str, line: usize, sentence: &str) {
        let (lines, sentences) = violations(path, text);
        assert_eq!(lines, [line], "{sentences}");
        assert!(sentences.contains(sentence), "{sentences}");
    }

    #[track_caller]
    fn keeps(path: &str, text: &str) {
        assert_eq!(check(path, text), Vec::<String>::new());
    }

    #[test]
    fn lines_have_at_most_100_columns() {
        keeps(PATH, &format!("// {}\n", "a".repeat(97)));
        breaks(PATH, &format!("\n// {}\n", "a".repeat(98)), 2, "101 columns");
    }

    #[test]
    fn source_is_ascii() {
        breaks(PATH, "// caf\u{e9}\n", 1, "\\u{e9}");
    }

    #[test]
    fn a_file_has_at_most_800_lines() {
        keeps(PATH, &"//\n".repeat(800));
        breaks(PATH, &"//\n".repeat(801), 801, "801 lines");
    }

    #[test]
    fn a_function_has_at_most_70_lines() {
        let sample = |lines: usize| {
            format!(
                "impl A {{\n    pub(crate) const fn a(\n    ) -> B {{ // why\n{}    }}\n}}\n",
                "        b();\n".repeat(lines - 3)
            )
        };
        keeps(PATH, &sample(70));
        breaks(PATH, &sample(71), 2, "71 lines");
    }

    #[test]
    fn functions_without_a_body_or_on_one_line_end_there() {
        let rest = "    b,\n".repeat(80);
        keeps(PATH, &format!("trait A {{\n    fn a(&self) -> B;\n{rest}}}\n"));
        keeps(PATH, &format!("trait A {{\n    fn a(\n        &self,\n    ) -> B;\n{rest}}}\n"));
        keeps(PATH, &format!("mod a {{\n    fn a() {{}}\n{rest}}}\n"));
    }

    #[test]
    fn no_file_is_a_drawer() {
        for name in NAMES {
            breaks(&format!("crates/a/src/{name}"), "", 1, name);
        }
        keeps("crates/a/src/filetypes.rs", "");
    }

    #[test]
    fn no_mark_of_unfinished_work_stays() {
        for word in UNFINISHED {
            breaks(PATH, &format!("\n// a {word} b\n"), 2, word);
            keeps(PATH, &format!("// a{word}\n"));
        }
    }

    #[test]
    fn no_test_is_ignored() {
        breaks(PATH, &format!("    {IGNORE} = \"slow\"]\n"), 1, "does not run");
    }

    #[test]
    fn no_code_goes_past_the_compiler() {
        breaks(PATH, &format!("    {UNSAFE} {{ a() }}\n"), 1, UNSAFE);
        keeps(PATH, &format!("#![forbid({UNSAFE}_code)] // {UNSAFE}\n"));
    }

    #[test]
    fn a_library_says_what_it_is_under_four_headings() {
        let text = HEADINGS.map(|heading| format!("//! {heading}\n")).concat();
        keeps("crates/a/src/lib.rs", &text);
        keeps("crates/a/src/main.rs", "");
        for heading in HEADINGS {
            breaks("crates/a/src/lib.rs", &text.replace(heading, "# Else"), 1, heading);
        }
    }
}
