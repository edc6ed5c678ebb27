//! Reads measured points from a CSV file.

use crate::output::Failure;
use crate::path::shown;
use base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use base::{human_bytes, parse_length};
use serde::Serialize;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use workload::{Operation, Ycsb};

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// File and line, such as `points.csv:2`.
    pub(super) place: String,
    pub(super) load: PointLoad,
    pub(super) figure: Figure,
    pub(super) measured: f64,
    /// True for a point to fit to, false for a point that only checks the fit.
    pub(super) is_fit: bool,
}

/// The load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PointLoad {
    pub(super) workload: Workload,
    pub(super) value_bytes: u32,
    pub(super) key_bytes: u32,
    pub(super) queue_depth: u32,
}

/// Name of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) operation: Operation,
}

/// The measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Figure {
    OpsPerSecond,
    /// Mean.
    LatencyNs,
}

const UPDATE: Operation = Operation::Mixed { read_percent: 0 };

/// The first name of an operation is the one to print.
const WORKLOADS: [(&str, Operation); 16] = [
    ("insert", Operation::Store),
    ("store", Operation::Store),
    ("update", UPDATE),
    ("read", Operation::Retrieve),
    ("retrieve", Operation::Retrieve),
    ("mixed", Operation::Mixed { read_percent: 50 }),
    ("delete", Operation::Delete),
    ("exist", Operation::Exist),
    ("ycsb-a", Operation::Ycsb(Ycsb::A)),
    ("ycsb-b", Operation::Ycsb(Ycsb::B)),
    ("ycsb-c", Operation::Ycsb(Ycsb::C)),
    ("ycsb-d", Operation::Ycsb(Ycsb::D)),
    ("ycsb-e", Operation::Ycsb(Ycsb::E)),
    ("ycsb-f", Operation::Ycsb(Ycsb::F)),
    ("randread", Operation::RandRead),
    ("randwrite", Operation::RandWrite),
];

const COLUMNS: [&str; 7] =
    ["workload", "value_bytes", "key_bytes", "queue_depth", "ops_per_second", "latency_ns", "use"];

/// Most bytes: a longer file is probably of another kind.
const BYTES_MAX: usize = 1 << 20;

impl From<Workload> for &'static str {
    fn from(workload: Workload) -> Self {
        workload.name
    }
}

impl Workload {
    fn named(name: &str) -> Option<Self> {
        let (_, operation) = WORKLOADS.into_iter().find(|(known, _)| *known == name)?;
        Some(Self::of(operation))
    }

    fn of(operation: Operation) -> Self {
        let known = WORKLOADS.into_iter().find(|(_, known)| *known == operation);
        Self { name: known.map_or("mixed", |(name, _)| name), operation }
    }
}

/// Returns the load's name in points.
pub(crate) fn names(operation: Operation, overwrites: bool) -> Vec<&'static str> {
    match operation {
        Operation::Store if overwrites => vec!["insert", "update"],
        operation => vec![Workload::of(operation).name],
    }
}

impl Figure {
    pub(super) const fn column(self) -> &'static str {
        match self {
            Self::OpsPerSecond => "ops_per_second",
            Self::LatencyNs => "latency_ns",
        }
    }
}

/// Returns the points of the file at `path`, at least one.
pub(super) fn read(path: &Path) -> Result<Vec<Point>, Failure> {
    let name = shown(path);
    let unreadable = |reason: String| Failure::Refused(format!("{name} cannot be read: {reason}"));
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > BYTES_MAX {
        return Err(unreadable(format!("points have at most {BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    // Spreadsheets write this mark at the start of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(&name, text)
        .map_err(|(line, problem)| Failure::Refused(format!("{name}:{line}: {problem}")))
}

/// Number of a line, and the error in it.
type Problem = (usize, String);

fn parse(name: &str, text: &str) -> Result<Vec<Point>, Problem> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let Some((number, header)) = lines.next() else {
        return Err((1, format!("there is no header; columns are {}", COLUMNS.join(", "))));
    };
    let columns = columns(header).map_err(|problem| (number, problem))?;
    let points = lines.map(|(number, line)| {
        row(&columns, line)
            .map(|point| Point { place: format!("{name}:{number}"), ..point })
            .map_err(|problem| (number, problem))
    });
    let points: Vec<Point> = points.collect::<Result<_, _>>()?;
    if points.is_empty() { Err((number, "there is no point below".to_owned())) } else { Ok(points) }
}

/// Returns the columns that `header` names, in its order.
fn columns(header: &str) -> Result<Vec<&'static str>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let Some(column) = COLUMNS.into_iter().find(|column| *column == name) else {
            return Err(format!("there is no column {name:?}, only {}", COLUMNS.join(", ")));
        };
        if columns.contains(&column) {
            return Err(format!("the column {column} is there twice"));
        }
        columns.push(column);
    }
    let missing = COLUMNS[..4].iter().find(|column| !columns.contains(column));
    if let Some(missing) = missing {
        return Err(format!("the column {missing} is missing"));
    }
    if !columns.contains(&"ops_per_second") && !columns.contains(&"latency_ns") {
        return Err("neither ops_per_second nor latency_ns is there".to_owned());
    }
    Ok(columns)
}

fn row(columns: &[&str], line: &str) -> Result<Point, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(format!("there are {} cells below {} columns", cells.len(), columns.len()));
    }
    let cell = |name: &str| {
        let at = columns.iter().position(|column| *column == name);
        at.map_or("", |at| cells[at])
    };
    let bytes = |name, range: RangeInclusive<u64>| {
        let text = cell(name);
        parse_length(text).ok().filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            let [least, most] = [range.start(), range.end()].map(|bytes| human_bytes(*bytes));
            format!("{name} is {text:?}, but must be a size from {least} to {most}")
        })
    };
    let (figure, measured) = figure(cell("ops_per_second"), cell("latency_ns"))?;
    let workload = workload(cell("workload"))?;
    let load = PointLoad {
        workload,
        value_bytes: whole(bytes("value_bytes", 0..=VALUE_BYTES_MAX.into())?),
        key_bytes: whole(bytes("key_bytes", 1..=KEY_BYTES_MAX as u64)?),
        queue_depth: whole(number("queue_depth", cell("queue_depth"), 65_535)?),
    };
    let is_mixture = matches!(
        load.workload.operation,
        Operation::Mixed { read_percent: 1.. } | Operation::Ycsb(_)
    );
    if figure == Figure::LatencyNs && is_mixture {
        return Err(format!(
            "latency_ns is of one kind of operation, and {} of several",
            workload.name
        ));
    }
    let is_fit = match cell("use") {
        "" | "fit" => true,
        "check" => false,
        other => return Err(format!("use is {other:?}, but must be fit or check")),
    };
    Ok(Point { place: String::new(), load, figure, measured, is_fit })
}

fn workload(name: &str) -> Result<Workload, String> {
    Workload::named(name).ok_or_else(|| {
        let known = WORKLOADS.map(|(name, _)| name).join(", ");
        format!("there is no workload {name:?}, only {known}")
    })
}

fn number(name: &str, text: &str, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{name} is {text:?}, but must be a whole number from 1 to {most}"))
}

/// Returns whichever of the two is given.
fn figure(rate: &str, latency: &str) -> Result<(Figure, f64), String> {
    let (figure, text) = match (rate, latency) {
        ("", "") => return Err("neither ops_per_second nor latency_ns is given".to_owned()),
        (rate, "") => (Figure::OpsPerSecond, rate),
        ("", latency) => (Figure::LatencyNs, latency),
        _ => return Err("both ops_per_second and latency_ns are given".to_owned()),
    };
    let range = 1e-3..=1e12;
    let measured = text.parse().ok().filter(|number| range.contains(number));
    measured.map(|measured| (figure, measured)).ok_or_else(|| {
        format!("{} is {text:?}, but must be a number from 0.001 to 1e12", figure.column())
    })
}

fn whole(number: u64) -> u32 {
    u32::try_from(number).expect("it was compared with a bound of 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "workload,value_bytes,key_bytes,queue_depth,ops_per_second,latency_ns,use";

    #[test]
    fn a_point_is_a_load_and_a_figure() {
        let text = format!(
            "# a source\n\n{HEADER}\ninsert,64,16,64,139000,,\n read , 4KiB,16,1,,84200.5,check\n"
        );
        let points = parse("points.csv", &text).unwrap();
        let load = |name, value_bytes, queue_depth| PointLoad {
            workload: Workload::named(name).unwrap(),
            value_bytes,
            key_bytes: 16,
            queue_depth,
        };
        let expected = [
            Point {
                place: "points.csv:4".to_owned(),
                load: load("store", 64, 64),
                figure: Figure::OpsPerSecond,
                measured: 139_000.0,
                is_fit: true,
            },
            Point {
                place: "points.csv:5".to_owned(),
                load: load("retrieve", 4_096, 1),
                figure: Figure::LatencyNs,
                measured: 84_200.5,
                is_fit: false,
            },
        ];
        assert_eq!(points, expected);
        assert_eq!(points[0].load.workload.name, "insert");
    }

    #[test]
    fn columns_may_stand_in_any_order_and_those_of_no_use_be_left_out() {
        let text = "queue_depth,ops_per_second,workload,key_bytes,value_bytes\n8,100,update,16,0\n";
        let point = parse("points.csv", text).unwrap()[0].clone();
        assert_eq!((point.load.queue_depth, point.load.value_bytes), (8, 0));
        assert_eq!(point.load.workload.operation, Operation::Mixed { read_percent: 0 });
    }

    #[test]
    fn an_error_names_its_line() {
        for (row, words) in [
            ("", "no point below"),
            ("insert,64,16,64,1", "there are 5 cells below 7 columns"),
            ("scan,64,16,64,1,,", "no workload \"scan\", only insert"),
            ("insert,x,16,64,1,,", "value_bytes is \"x\", but must be a size from 0 B to 2.0 MiB"),
            ("insert,3MiB,16,64,1,,", "value_bytes is \"3MiB\""),
            ("insert,64,0,64,1,,", "key_bytes is \"0\", but must be a size from 1 B to 255 B"),
            ("insert,64,16,0,1,,", "queue_depth is \"0\", but must be a whole number from 1 to"),
            ("insert,64,16,64,,,", "neither ops_per_second nor latency_ns is given"),
            ("insert,64,16,64,1,1,", "both ops_per_second and latency_ns are given"),
            ("insert,64,16,64,-1,,", "ops_per_second is \"-1\", but must be a number"),
            ("insert,64,16,64,nan,,", "ops_per_second is \"nan\", but must be a number"),
            ("insert,64,16,64,,inf,", "latency_ns is \"inf\", but must be a number"),
            ("insert,64,16,64,1,,maybe", "use is \"maybe\", but must be fit or check"),
            ("ycsb-a,64,16,64,,1,", "latency_ns is of one kind of operation, and ycsb-a of"),
        ] {
            let (line, problem) = parse("points.csv", &format!("{HEADER}\n{row}\n")).unwrap_err();
            assert!(problem.contains(words), "{row}: {problem}");
            assert_eq!(line, if words == "no point below" { 1 } else { 2 }, "{row}");
        }
        for (header, words) in [
            ("", "there is no header"),
            ("workload,size", "there is no column \"size\", only workload"),
            ("workload,workload", "the column workload is there twice"),
            ("workload,value_bytes,queue_depth", "the column key_bytes is missing"),
            ("workload,value_bytes,key_bytes,queue_depth", "neither ops_per_second nor"),
        ] {
            let (line, problem) = parse("points.csv", &format!("{header}\n")).unwrap_err();
            assert!(line == 1 && problem.contains(words), "{header}: {problem}");
        }
    }
}
