use super::load::{Figures, Loads};
use super::spread::{self, LoadSpread, Measure, Spread};
use crate::table;
use node::ProfileError;
use node::profile::Change;
use serde::Serialize;

/// A smaller relative change counts as none.
const MOVED: f64 = 0.005;

/// Columns of a value; a longer value is cut.
const VALUE_COLUMNS: usize = 11;

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Effects of all knobs of a profile.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) profile: String,
    /// What was made smaller in its flash.
    cut: Option<String>,
    #[serde(flatten)]
    pub(super) base: Base,
    pub(super) knobs: Vec<Row>,
}

/// Figures of the unchanged profile.
#[derive(Debug, Serialize)]
pub(super) struct Base {
    #[serde(rename = "base")]
    loads: Loads,
    /// Differences between seeds.
    spread: Vec<LoadSpread>,
}

/// A knob.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) key: String,
    /// Its value in the profile.
    pub(super) value: String,
    /// None for a value of zero.
    pub(super) changes: Vec<Changed>,
}

/// A changed knob.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    /// Half, double, or the other word.
    pub(super) change: &'static str,
    is_scaled: bool,
    /// Why this profile is impossible.
    refused: Option<String>,
    /// Largest effect beyond the differences between seeds.
    moved: Option<Moved>,
    /// Largest effect within the differences between seeds.
    within_spread: Option<Moved>,
    figures: Option<Loads>,
}

/// A measure of a load: changed over unchanged.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Moved {
    load: String,
    measure: Measure,
    ratio: f64,
}

impl Base {
    /// Measurements with several seeds; changes are compared with the first.
    pub(super) fn new(runs: Vec<Loads>) -> Self {
        let spread = spread::all(&runs);
        Self { loads: runs.into_iter().next().unwrap_or_default(), spread }
    }

    /// Returns the spread of a measure of a load.
    fn spread(&self, load: &str, measure: Measure) -> Option<Spread> {
        let found = self.spread.iter().find(|one| one.load == load && one.measure == measure);
        found.map(|found| found.spread)
    }

    /// True if the effect is within the differences between seeds.
    fn may_be_chance(&self, moved: &Moved) -> bool {
        let spread = self.spread(&moved.load, moved.measure);
        spread.is_some_and(|spread| spread.contains(moved.ratio))
    }
}

impl Changed {
    /// Returns the result of `change`, compared with `base`.
    pub(super) fn new(change: Change, measured: Result<Loads, String>, base: &Base) -> Self {
        let (name, is_scaled) = match change {
            Change::Halved => ("halved", true),
            Change::Doubled => ("doubled", true),
            Change::To(word) => (word, false),
        };
        let most =
            |is_chance| measured.as_ref().ok().and_then(|loads| most_moved(base, loads, is_chance));
        let (moved, within_spread) = (most(false), most(true));
        let (figures, refused) = match measured {
            Ok(loads) => (Some(loads), None),
            Err(reason) => (None, Some(reason)),
        };
        Self { change: name, is_scaled, refused, moved, within_spread, figures }
    }

    /// Formats a table cell.
    fn cell(&self) -> String {
        match (&self.refused, &self.moved, &self.within_spread) {
            (Some(_), ..) => "cannot be".to_owned(),
            (None, Some(moved), _) => moved.cell(),
            (None, None, Some(_)) => "within spread".to_owned(),
            (None, None, None) => "moves nothing".to_owned(),
        }
    }
}

impl Row {
    /// Returns the measure with the largest effect of any change, and its ratio for each possible
    /// change, 1 where nothing moved.
    pub(super) fn ratios(&self, base: &Base) -> Vec<(&Changed, f64)> {
        let most = self.changes.iter().filter_map(|changed| changed.moved.as_ref());
        let most = most.max_by(|one, other| one.weight().total_cmp(&other.weight()));
        let ratio = |changed: &Changed| {
            let loads = changed.figures.as_ref()?;
            let Some(most) = most else { return Some(1.0) };
            let mut all = all_moves(&base.loads, loads);
            let same = |moved: &Moved| moved.load == most.load && moved.measure == most.measure;
            Some(all.find(same).map_or(1.0, |moved| moved.ratio))
        };
        self.changes.iter().filter_map(|changed| Some((changed, ratio(changed)?))).collect()
    }
}

impl Moved {
    fn cell(&self) -> String {
        let Self { load, ratio, .. } = self;
        let measure = self.measure.name();
        if *ratio >= 10.0 {
            return format!("{load} {measure} x{ratio:.0}");
        }
        format!("{load} {measure} {:+.0}%", (ratio - 1.0) * 100.0)
    }

    /// Returns the size of the effect. Of equal effects, that of a mean is shown.
    fn weight(&self) -> f64 {
        let of_measure = if self.measure == Measure::Mean { 1.01 } else { 1.0 };
        self.ratio.ln().abs() * of_measure
    }
}

/// Returns the measure that changed by the largest factor, up or down: among those within the
/// differences between seeds if `is_chance`, otherwise among the others. Percentiles are left out,
/// since they change in steps.
fn most_moved(base: &Base, changed: &Loads, is_chance: bool) -> Option<Moved> {
    let moved = all_moves(&base.loads, changed)
        .filter(|moved| moved.measure != Measure::P99 && (moved.ratio - 1.0).abs() >= MOVED)
        .filter(|moved| base.may_be_chance(moved) == is_chance);
    moved.max_by(|one, other| one.weight().total_cmp(&other.weight()))
}

/// Returns every measure of every load, changed over unchanged.
fn all_moves(base: &Loads, changed: &Loads) -> impl Iterator<Item = Moved> {
    base.iter().flat_map(|before| {
        let after = changed.iter().filter(|after| after.load == before.load);
        after.flat_map(|after| moves(&before.load, &before.figures, &after.figures))
    })
}

fn moves(load: &str, before: &Figures, after: &Figures) -> Vec<Moved> {
    let moved = |measure: Measure| {
        let (before, after) = (measure.of(before)?, measure.of(after)?);
        Some(Moved { load: load.to_owned(), measure, ratio: after / before })
    };
    Measure::ALL.into_iter().filter_map(moved).collect()
}

/// Returns the error in a profile, without its place.
pub(super) fn problem(error: ProfileError) -> String {
    match error {
        ProfileError::Invalid { problem, .. } => problem,
        other => other.to_string(),
    }
}

impl Report {
    pub(super) fn new(profile: &str, cut: Option<String>, base: Base, knobs: Vec<Row>) -> Self {
        Self { profile: profile.to_owned(), cut, base, knobs }
    }

    /// Describes the setup in one or two sentences.
    pub(super) fn setup(&self) -> String {
        let cut = self.cut.as_ref().map(|cut| format!("; {cut}")).unwrap_or_default();
        format!("profile {}, virtual time{cut}", self.profile)
    }

    /// Returns text for a terminal.
    pub(super) fn table(&self) -> String {
        let setup = self.setup();
        let heading = format!("device {setup}; +- is how far another seed may move a figure");
        let mut text = wrapped(&heading, "");
        text += "\n";
        text += &self.base_table();
        text += "\n";
        text += &self.numbers();
        text += &self.words();
        text += &self.refusals();
        text
    }

    fn base_table(&self) -> String {
        let rows = self.base.loads.iter().map(|measurement| {
            let Figures { mean_ns, p99_ns, per_second, write_amplification } = measurement.figures;
            let spread = |measure| {
                let spread = self.base.spread(&measurement.load, measure);
                spread.map_or_else(|| "-".to_owned(), |it| format!("{:.1}%", it.reach() * 100.0))
            };
            vec![
                measurement.load.clone(),
                crate::number::duration(mean_ns),
                spread(Measure::Mean),
                crate::number::duration(p99_ns),
                crate::number::rounded(per_second),
                spread(Measure::Rate),
                crate::number::ratio(write_amplification),
                spread(Measure::WriteAmplification),
            ]
        });
        let header = ["load", "mean", "+-", "p99", "rate (1/s)", "+-", "WA", "+-"];
        table::numbers(&header, rows)
    }

    /// Returns a line for each number.
    fn numbers(&self) -> String {
        let is_number = |row: &&Row| row.changes.iter().all(|changed| changed.is_scaled);
        let rows = sections(self.knobs.iter().filter(is_number), |row| {
            let cell =
                |at: usize| row.changes.get(at).map_or_else(|| "is zero".to_owned(), Changed::cell);
            vec![vec![shortened(&row.value), cell(0), cell(1)]]
        });
        table::list(&["number", "value", "halved", "doubled"], rows)
    }

    /// Returns a line for each alternative word.
    fn words(&self) -> String {
        let is_word = |row: &&Row| row.changes.iter().any(|changed| !changed.is_scaled);
        let rows = sections(self.knobs.iter().filter(is_word), |row| {
            let value = row.value.trim_matches('"');
            let lines = row.changes.iter();
            lines.map(|one| vec![value.to_owned(), one.change.to_owned(), one.cell()]).collect()
        });
        if rows.is_empty() {
            return String::new();
        }
        format!("\n{}", table::list(&["word", "value", "instead", "moves"], rows))
    }

    /// Returns why some changes are impossible.
    fn refusals(&self) -> String {
        let mut text = String::new();
        for row in &self.knobs {
            for changed in &row.changes {
                if let Some(reason) = &changed.refused {
                    let line = format!("{} {}: {reason}", row.key, changed.change);
                    text += &wrapped(&line, "  ");
                }
            }
        }
        if text.is_empty() { text } else { format!("\nwhat cannot be\n{text}") }
    }
}

/// Returns the lines of all `rows`, each section below its name.
fn sections<'a>(
    rows: impl Iterator<Item = &'a Row>,
    lines: impl Fn(&Row) -> Vec<Vec<String>>,
) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut current = "";
    for row in rows {
        let (section, key) = row.key.rsplit_once('.').unwrap_or(("", &row.key));
        if section != current {
            all.push(vec![section.to_owned()]);
            current = section;
        }
        for line in lines(row) {
            all.push([vec![format!("  {key}")], line].concat());
        }
    }
    let widest = all.iter().map(Vec::len).max().unwrap_or(0);
    for row in &mut all {
        row.resize(widest, String::new());
    }
    all
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_COLUMNS) {
        None => value.to_owned(),
        Some(_) => value.chars().take(VALUE_COLUMNS - 2).chain("..".chars()).collect(),
    }
}

/// Wraps `text`; all lines but the first start with `indent` and two more blanks.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.len() + 1 + word.len() > COLUMNS {
            lines += &line;
            lines += "\n";
            line = format!("{indent}  ");
            is_empty = true;
        }
        if !is_empty {
            line += " ";
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}
