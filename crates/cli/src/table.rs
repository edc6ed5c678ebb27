//! Formats text in columns, for a terminal of 80 columns.

use comfy_table::{CellAlignment, Table, presets};

/// Formats `rows` below `header`: the first column left-aligned and indented, the others
/// right-aligned.
pub(crate) fn numbers(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(header, rows, CellAlignment::Right)
}

/// Formats `rows` below `header`: all columns left-aligned.
pub(crate) fn list(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(header, rows, CellAlignment::Left)
}

/// Formats names and their values.
pub(crate) fn facts(rows: &[(&str, String)]) -> String {
    let rows =
        rows.iter().map(|(name, value)| vec![format!("{name:<FACT_COLUMNS$}"), value.clone()]);
    aligned(&[], rows, CellAlignment::Left)
}

/// Columns of the names of facts, so that the values of all sections line up.
const FACT_COLUMNS: usize = 19;

/// Blanks between columns.
const GAP: u16 = 2;

fn aligned(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    alignment: CellAlignment,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !header.is_empty() {
        table.set_header(header);
    }
    for mut row in rows {
        row[0].insert_str(0, "  ");
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        column.set_cell_alignment(if index == 0 { CellAlignment::Left } else { alignment });
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn numbers_line_up_at_their_right_ends() {
        let rows = [strings(&["a", "1", "22"]), strings(&["bcd", "333", "4"])];
        let lines =
            ["title of it  mean  p50\n", "  a             1   22\n", "  bcd         333    4\n"];
        assert_eq!(numbers(&["title of it", "mean", "p50"], rows), lines.concat());
    }

    #[test]
    fn lists_line_up_at_their_left_ends() {
        let rows = [strings(&["a", "1"]), strings(&["bcd", "333"])];
        assert_eq!(list(&["of", "x"], rows), "of     x\n  a    1\n  bcd  333\n");
    }

    #[test]
    fn facts_line_up_in_all_sections() {
        let text = facts(&[("device", "moke".to_owned()), ("errors", "0".to_owned())]);
        let lines = ["  device               moke\n", "  errors               0\n"];
        assert_eq!(text, lines.concat());
    }
}
