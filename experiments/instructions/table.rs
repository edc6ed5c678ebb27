//! The table of all paths: printed, kept in a file, and compared with it.

use crate::paths::Path;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

/// The table in the checkout.
pub(crate) const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions/counts.txt");

/// Counts may differ from the table by this share.
const SHARE: f64 = 0.02;

/// Counts may differ from the table by this number as well, since they are rounded.
const ROUNDING: f64 = 0.1;

const COLUMNS: [&str; 6] =
    ["instructions", "locked", "divisions", "allocations", "copies", "checksums"];

/// The means of an operation of each path, by the path's name, and the tools that counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) tools: String,
    pub(crate) rows: BTreeMap<&'static str, [f64; 6]>,
}

impl Table {
    /// Reads a table that [`Self::text`] wrote. The error is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let tools = lines.next().and_then(|line| line.strip_prefix("# "));
        let tools = tools.ok_or("line 1 of the table has no tools")?.to_owned();
        let mut rows = BTreeMap::new();
        for (number, line) in (3..).zip(lines.skip(1)) {
            let mut words = line.split_whitespace();
            let path = words.next().and_then(Path::named);
            let means: Result<Vec<f64>, _> = words.map(str::parse).collect();
            let means = means.ok().and_then(|means| <[f64; 6]>::try_from(means).ok());
            let (Some(path), Some(means)) = (path, means) else {
                return Err(format!("line {number} of the table has no path and six numbers"));
            };
            rows.insert(path.name(), means);
        }
        Ok(Self { tools, rows })
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("# {}\n{}\n", self.tools, heading());
        for path in Path::ALL {
            if let Some(means) = self.rows.get(path.name()) {
                text += &row(path, means);
                text.push('\n');
            }
        }
        text
    }

    /// Returns a sentence for each count of `path` that is not that of the table.
    pub(crate) fn differences(&self, path: Path, means: &[f64; 6]) -> Vec<String> {
        let Some(listed) = self.rows.get(path.name()) else {
            return vec![format!("{} is not in the table", path.name())];
        };
        let each = COLUMNS.iter().zip(listed.iter().zip(means));
        each.filter(|(_, (listed, mean))| (*mean - *listed).abs() > *listed * SHARE + ROUNDING)
            .map(|(column, (listed, mean))| {
                let change = if mean > listed { "grew" } else { "shrank" };
                format!("{}: {column} {change} from {listed} to {mean}", path.name())
            })
            .collect()
    }
}

pub(crate) fn heading() -> String {
    let mut line = format!("{:<20}", "path");
    for column in COLUMNS {
        let _infallible = write!(line, " {column:>12}");
    }
    line
}

pub(crate) fn row(path: Path, means: &[f64; 6]) -> String {
    let mut line = format!("{:<20}", path.name());
    for mean in means {
        let _infallible = write!(line, " {mean:>12.1}");
    }
    line
}

/// Returns the versions of what decides about the counts, beside the sources.
pub(crate) fn tools() -> Result<String, String> {
    let rustc = said("rustc", "rustc")?;
    let valgrind = said("valgrind", "valgrind")?;
    let libc = said("ldd", "libc-bin")?;
    let libc = libc.rsplit(' ').next().unwrap_or_default();
    Ok(format!("{}, {valgrind}, glibc {libc}", rustc.split(" (").next().unwrap_or_default()))
}

/// Returns the first line of what `program --version` prints.
fn said(program: &str, package: &str) -> Result<String, String> {
    let ran = Command::new(program).arg("--version").output();
    let ran = ran.map_err(|error| format!("{program} (package {package}) fails: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = BTreeMap::from([("disk-store", [10_000.0, 50.0, 0.0, 2.5, 9.0, 1.0])]);
        Table { tools: "rustc 1".to_owned(), rows }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        assert_eq!(Table::parse(&table().text()), Ok(table()));
        assert!(Table::parse("").is_err());
        assert!(Table::parse("# rustc 1\npath\ndisk-store 1 2 3").is_err());
        assert!(Table::parse("# rustc 1\npath\nno-path 1 2 3 4 5 6").is_err());
    }

    #[test]
    fn a_count_differs_from_two_percent_on() {
        let differences = |means| table().differences(Path::DiskStore, &means).join("; ");
        assert_eq!(differences([10_199.0, 50.9, 0.1, 2.5, 9.0, 1.1]), "");
        assert_eq!(
            differences([10_201.0, 50.0, 0.2, 2.5, 8.0, 1.0]),
            "disk-store: instructions grew from 10000 to 10201; \
             disk-store: divisions grew from 0 to 0.2; disk-store: copies shrank from 9 to 8"
        );
        assert_eq!(table().differences(Path::Set, &[0.0; 6]), ["set is not in the table"]);
    }
}
