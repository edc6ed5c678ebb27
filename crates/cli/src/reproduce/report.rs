//! The report of an experiment, as text and JSON.

use super::finding::{Finding, Verdict};
use crate::number::rounded;
use crate::{path, table};
use serde::Serialize;
use std::path::Path;

/// The result of an experiment, and the experiment.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) id: &'static str,
    /// What it shows.
    #[serde(skip)]
    pub(super) what: &'static str,
    /// Place in the paper.
    pub(super) source: &'static str,
    #[serde(flatten)]
    pub(super) finding: Finding,
    /// Why the criterion is known not to hold, if it is known and does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known_failure: Option<String>,
}

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Columns of the names of facts.
const NAME_COLUMNS: usize = 13;

impl Report {
    /// True if a criterion fails that is not a known failure.
    pub(super) fn fails_unexpectedly(&self) -> bool {
        let Finding { holds, beside, .. } = &self.finding;
        let is_unexpected = !holds && self.known_failure.is_none();
        is_unexpected || beside.as_ref().is_some_and(|beside| !beside.holds)
    }

    /// Returns text for a terminal; `plot` is the file of its figure, if it was drawn.
    pub(super) fn table(&self, plot: Option<&Path>) -> String {
        let plot = plot.map(|plot| fact("figure", &path::shown(plot))).unwrap_or_default();
        let Self { id, what, source, finding, .. } = self;
        let mut text = [
            &format!("{id}: {what}\n\n"),
            &fact("source", source),
            &fact("setup", &finding.setup),
            &plot,
            "\n",
            &self.figures(),
            "\n",
            &self.verdicts(),
            "\nassumptions\n",
        ]
        .concat();
        text.extend(finding.assumptions.iter().map(|assumption| hanging("  - ", assumption)));
        text
    }

    /// Returns each criterion and, below it, whether it holds.
    fn verdicts(&self) -> String {
        let Finding { criterion, holds, beside, .. } = &self.finding;
        let verdict = |holds: bool| if holds { "holds" } else { "does not hold" };
        let mut text = fact("criterion", criterion);
        text += &match &self.known_failure {
            None => fact("", verdict(*holds)),
            Some(reason) => fact("", &format!("does not hold, which is known: {reason}")),
        };
        if let Some(Verdict { criterion, holds }) = beside {
            text += &fact("beside it", criterion);
            text += &fact("", verdict(*holds));
        }
        text
    }

    fn figures(&self) -> String {
        let rows = &self.finding.rows;
        let widest = rows.iter().map(|row| row.unit.len()).max().unwrap_or(0);
        let rows = rows.iter().map(|row| {
            let paper = row.paper.map_or_else(|| "-".to_owned(), figure);
            vec![row.label.clone(), paper, figure(row.ours), format!("{:<widest$}", row.unit)]
        });
        table::numbers(&["", "     paper", "      ours", ""], rows)
    }
}

/// Formats `value`; large values as whole numbers.
fn figure(value: f64) -> String {
    if value >= 1_000.0 {
        return rounded(value);
    }
    let text = format!("{value:.3}");
    if text == "-0.000" { text[1..].to_owned() } else { text }
}

/// Returns the row named `name`.
fn fact(name: &str, text: &str) -> String {
    hanging(&format!("  {name:<NAME_COLUMNS$}"), text)
}

/// Wraps `text` for a terminal: the first line after `lead`, the others aligned below it.
fn hanging(lead: &str, text: &str) -> String {
    let mut lines = vec![lead.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        let is_empty = line.len() == lead.len();
        if !is_empty && line.len() + 1 + word.len() > COLUMNS {
            lines.push(" ".repeat(lead.len()) + word);
            continue;
        }
        line.push_str(if is_empty { "" } else { " " });
        line.push_str(word);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::finding::Row;

    #[test]
    fn text_hangs_below_its_first_line_and_fits_a_terminal() {
        assert_eq!(hanging("  - ", "a b"), "  - a b\n");
        let of_columns = |last| hanging("  - ", &["x".repeat(37), "x".repeat(last)].join(" "));
        assert_eq!(of_columns(38).lines().map(str::len).collect::<Vec<_>>(), [80]);
        assert_eq!(of_columns(39).lines().map(str::len).collect::<Vec<_>>(), [41, 43]);
        let words = ["word"; 40].join(" ");
        let text = hanging("  - ", &words);
        // 15 words of 5 columns without the last blank, after 4 columns.
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [78, 78, 53]);
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
        let said: Vec<&str> = text.split_whitespace().skip(1).collect();
        assert_eq!(said.join(" "), words);
    }

    #[test]
    fn large_figures_are_whole_numbers() {
        assert_eq!(figure(238_095.24), "238,095");
        for (value, text) in [(56.6, "56.600"), (-19.3, "-19.300"), (-0.000_4, "0.000")] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_program_is_given_the_keys_that_are_promised() {
        let row = Row { label: "a".to_owned(), paper: None, ours: 1.5, unit: "us" };
        let finding = Finding { rows: vec![row], ..Finding::default() };
        let mut report =
            Report { id: "a", what: "hidden", source: "b", finding, known_failure: None };
        let text = serde_json::to_string(&report).unwrap();
        let rows = r#""rows":[{"label":"a","paper":null,"ours":1.5,"unit":"us"}]"#;
        let start = r#"{"id":"a","source":"b","setup":"","assumptions":[],"#;
        let criterion = r#""criterion":"","holds":false"#;
        assert_eq!(text, format!("{start}{rows},{criterion}}}"));
        report.known_failure = Some("c".to_owned());
        report.finding.beside = Some(Verdict { criterion: "d".to_owned(), holds: true });
        let text = serde_json::to_string(&report).unwrap();
        let beside = r#""beside":{"criterion":"d","holds":true},"known_failure":"c""#;
        assert_eq!(text, format!("{start}{rows},{criterion},{beside}}}"));
    }

    #[test]
    fn a_known_failure_is_printed_with_its_reason_and_second_criterion() {
        let finding = Finding {
            criterion: "an old one".to_owned(),
            beside: Some(Verdict { criterion: "a new one".to_owned(), holds: true }),
            ..Finding::default()
        };
        let known_failure = Some("a reason".to_owned());
        let report = Report { id: "a", what: "b", source: "c", finding, known_failure };
        let expected = "  criterion    an old one\n               does not hold, which is known: a \
                        reason\n";
        let table = report.table(None);
        assert!(table.contains(expected), "{table}");
        assert!(table.contains("  beside it    a new one\n               holds\n"), "{table}");
    }
}
