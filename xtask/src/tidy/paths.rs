//! The lists of `docs/internals/paths.md`: the files and functions of a path, and their totals.

use super::violation::at;
use crate::source::{code, has_word};
use crate::tree::Tree;

const PATHS: &str = "docs/internals/paths.md";

/// A heading that states totals, and what the rows below it have.
struct Section<'a> {
    line: usize,
    level: usize,
    /// Functions and files.
    stated: (usize, usize),
    functions: usize,
    files: Vec<&'a str>,
}

/// Finds rows that name a missing file or function, and headings with other totals than their rows.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.get(PATHS) else {
        return vec![at(PATHS, 1, "the list of the paths is missing")];
    };
    let mut violations = Vec::new();
    let mut open: Vec<Section> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let level = line.len() - line.trim_start_matches('#').len();
        if level > 0 {
            let over = open.iter().position(|section| section.level >= level);
            let over = open.split_off(over.unwrap_or(open.len()));
            violations.extend(over.iter().filter_map(Section::difference));
            open.extend(totals(line).map(|stated| Section {
                line: number,
                level,
                stated,
                functions: 0,
                files: Vec::new(),
            }));
        } else if let Some((file, functions)) = row(line) {
            match open.first() {
                None => violations.push(at(PATHS, number, "no heading above has totals")),
                Some(path) if path.files.contains(&file) => {
                    violations.push(at(PATHS, number, format!("its path has {file} twice")));
                }
                Some(_) => {}
            }
            for section in &mut open {
                section.functions += functions.len();
                section.files.push(file);
            }
            let sentences = missing(tree, file, &functions);
            violations.extend(sentences.into_iter().map(|it| at(PATHS, number, it)));
        }
    }
    violations.extend(open.iter().filter_map(Section::difference));
    violations
}

impl Section<'_> {
    fn difference(&self) -> Option<String> {
        let found = (self.functions, self.files.len());
        let sentence = format!("its rows have {} functions in {} files", found.0, found.1);
        (found != self.stated).then(|| at(PATHS, self.line, sentence))
    }
}

/// Returns the totals of a heading such as `## A path: 3 functions in 2 files`.
fn totals(heading: &str) -> Option<(usize, usize)> {
    let (_, stated) = heading.rsplit_once(": ")?;
    let (functions, files) = stated.strip_suffix(" files")?.split_once(" functions in ")?;
    Some((functions.parse().ok()?, files.parse().ok()?))
}

/// Returns the file and the functions of a row, both in backticks.
fn row(line: &str) -> Option<(&str, Vec<&str>)> {
    let (file, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
    let (functions, _) = rest.split_once(" |")?;
    Some((file, functions.split(", ").map(|name| name.trim_matches('`')).collect()))
}

/// Finds what a row names that is not there. The last word of `Type::name` is a function's name: a
/// file has it as often as the row names it.
fn missing(tree: &Tree, file: &str, functions: &[&str]) -> Vec<String> {
    let Some(text) = tree.get(file) else { return vec![format!("there is no {file}")] };
    let text = text.split_once("\nmod tests {").map_or(text, |(text, _)| text);
    let name = |function: &str| format!("fn {}", function.rsplit("::").next().unwrap_or(function));
    let mut sentences = Vec::new();
    for (place, function) in functions.iter().enumerate() {
        let known = functions[..place].iter().filter(|other| name(other) == name(function));
        let defined = text.lines().filter(|line| has_word(code(line), &name(function)));
        if functions[..place].contains(function) || defined.count() <= known.count() {
            sentences.push(format!("{file} has no `{function}`, or the row has it twice"));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Paths\n\
        ## One: 3 functions in 2 files\n\
        ### a: 2 functions in 1 files\n\
        | file | functions | what |\n\
        |---|---|---|\n\
        | `a.rs` | `A::run`, `B::run` | runs |\n\
        ### b: 1 functions in 1 files\n\
        | `b.rs` | `stop` | stops |\n\
        ## Two: 1 functions in 1 files\n\
        | `b.rs` | `stop` | stops |\n";

    /// Returns the violations of `TEXT` with `new` in place of `old`, without their file.
    fn violations(old: &str, new: &str) -> Vec<String> {
        assert!(TEXT.contains(old), "{old}");
        let text = TEXT.replacen(old, new, 1);
        let a =
            "impl A {\n    fn run() {}\n}\nfn run(b: B) {}\n#[cfg(test)]\nmod tests {\nfn go()\n";
        let b = "// fn go()\npub(crate) async fn stop<T>(\n";
        let found = check(&Tree::sample(&[(PATHS, &text), ("a.rs", a), ("b.rs", b)]));
        found.iter().map(|it| it.replacen(&format!("{PATHS}:"), "", 1)).collect()
    }

    #[test]
    fn rows_that_are_there_and_totals_that_are_right_hold() {
        assert_eq!(violations("One", "1"), Vec::<String>::new());
    }

    #[test]
    fn a_file_or_function_that_is_missing_is_named_with_its_line() {
        assert_eq!(violations("`b.rs`", "`c.rs`"), ["8: there is no c.rs"]);
        for name in ["go", "sto", "stop_all"] {
            let sentence = format!("8: b.rs has no `{name}`, or the row has it twice");
            assert_eq!(violations("`stop`", &format!("`{name}`")), [sentence]);
        }
        let sentence = "6: a.rs has no `go`, or the row has it twice";
        assert_eq!(violations("`B::run`", "`go`"), [sentence]);
        let sentence = "6: a.rs has no `A::run`, or the row has it twice";
        assert_eq!(violations("`B::run`", "`A::run`"), [sentence]);
    }

    #[test]
    fn two_functions_of_a_name_are_two_in_the_file() {
        let found = violations("`a.rs` | `A::run`, `B::run`", "`b.rs` | `A::stop`, `B::stop`");
        let sentence = "6: b.rs has no `B::stop`, or the row has it twice";
        assert_eq!(found, [sentence, "8: its path has b.rs twice"]);
    }

    #[test]
    fn totals_are_those_of_the_rows() {
        let sentence = ["2: its rows have 3 functions in 2 files"];
        assert_eq!(violations("3 functions", "4 functions"), sentence);
        assert_eq!(violations("in 2 files", "in 3 files"), sentence);
        let sentence = ["9: its rows have 1 functions in 1 files"];
        assert_eq!(violations("Two: 1", "Two: 0"), sentence);
        let sentence = ["7: its rows have 1 functions in 1 files"];
        assert_eq!(violations("b: 1", "b: 2"), sentence);
    }

    #[test]
    fn each_row_is_counted_once() {
        let found = violations("`b.rs` | `stop`", "`a.rs` | `run`");
        assert_eq!(found, ["8: its path has a.rs twice"]);
        assert_eq!(violations("## Two: 1 functions in 1 files", "## Two").len(), 1);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
