use super::fit::LeftOut;
use super::knobs::FitKnob;
use super::points::{Figure, Point, PointLoad};
use crate::number::{counted, duration, grouped, rounded};
use crate::table;
use base::human_bytes;
use node::profile::Fitted;
use serde::Serialize;

/// The result of a calibration.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) device: String,
    pub(super) file: String,
    pub(super) points: Vec<PointReport>,
    /// Errors of the points that were fitted to, or of all points if nothing was fitted.
    pub(super) error: Errors,
    /// Errors of the points that the fit did not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_out_of_sample: Option<Errors>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) knobs: Vec<KnobReport>,
    /// Ranges of the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fitted: Option<Fitted>,
    /// Simulated points, and operations of one round of all points.
    pub(super) simulations: u64,
    pub(super) operations: u64,
}

/// A point and its simulation.
#[derive(Debug, Serialize)]
pub(super) struct PointReport {
    #[serde(flatten)]
    pub(super) load: PointLoad,
    pub(super) figure: Figure,
    pub(super) measured: f64,
    pub(super) ours: f64,
    /// Relative to the measured figure.
    pub(super) error: f64,
    pub(super) role: Role,
    /// Error in a fit without this point and the others of its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_out_of_sample: Option<f64>,
    /// Whether that fit had only smaller or only larger values.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_beyond: bool,
}

/// Use of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// The fit used it.
    Fitted,
    /// It only checks the fit.
    Checked,
    /// It only checks the fit, outside the fitted range.
    Extrapolated,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Errors {
    pub(super) largest: f64,
    pub(super) mean: f64,
}

/// A knob before and after the fit.
#[derive(Debug, Serialize)]
pub(super) struct KnobReport {
    pub(super) key: String,
    pub(super) before: Option<String>,
    pub(super) after: f64,
    /// Largest change of a point when the knob is 5 % larger, or one larger for a whole number.
    pub(super) moves: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(truth: &bool) -> bool {
    !truth
}

/// Errors of the points that were fitted to, or of all points if nothing was fitted.
pub(super) fn error(points: &[PointReport]) -> Option<Errors> {
    let of =
        |role: Role| Errors::of(points.iter().filter(move |at| at.role == role).map(|at| at.error));
    of(Role::Fitted).or_else(|| Errors::of(points.iter().map(|point| point.error)))
}

/// Errors of points that a fit did not use: the checking points, or those left out in turn.
pub(super) fn error_out_of_sample(points: &[PointReport]) -> Option<Errors> {
    if !points.iter().any(|point| point.role == Role::Fitted) {
        return None;
    }
    let checked = points.iter().filter(|point| point.role != Role::Fitted).map(|point| point.error);
    let left_out = points.iter().filter_map(|point| point.error_out_of_sample);
    Errors::of(checked).or_else(|| Errors::of(left_out))
}

impl Errors {
    /// Summarises `errors`, if there are any.
    fn of(errors: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let sizes = errors.map(f64::abs);
        let largest = sizes.clone().reduce(f64::max)?;
        let (sum, count) = sizes.fold((0.0, 0.0), |(sum, count), size| (sum + size, count + 1.0));
        Some(Self { largest, mean: sum / count })
    }

    fn sentence(self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        format!("largest {}, mean {}", percent(self.largest), percent(self.mean))
    }
}

impl PointReport {
    pub(super) fn new(point: &Point, ours: f64, role: Role, left_out: Option<LeftOut>) -> Self {
        let error = |ours: f64| ours / point.measured - 1.0;
        Self {
            load: point.load,
            figure: point.figure,
            measured: point.measured,
            ours,
            error: error(ours),
            role,
            error_out_of_sample: left_out.map(|left_out| error(left_out.figure)),
            is_beyond: left_out.is_some_and(|left_out| left_out.is_beyond),
        }
    }

    fn shown(&self, figure: f64) -> String {
        match self.figure {
            Figure::OpsPerSecond => format!("{}/s", rounded(figure)),
            Figure::LatencyNs => duration(figure),
        }
    }

    fn cells(&self) -> Vec<String> {
        let PointLoad { workload, value_bytes, key_bytes, queue_depth } = self.load;
        let out = self.error_out_of_sample.map_or_else(|| "-".to_owned(), signed);
        vec![
            workload.name.to_owned(),
            human_bytes(value_bytes.into()),
            human_bytes(key_bytes.into()),
            grouped(queue_depth.into()),
            self.shown(self.measured),
            self.shown(self.ours),
            signed(self.error),
            match self.role {
                Role::Fitted if self.is_beyond => format!("{out} beyond"),
                Role::Fitted => out,
                Role::Checked => "checked".to_owned(),
                Role::Extrapolated => "beyond".to_owned(),
            },
        ]
    }
}

impl KnobReport {
    pub(super) fn new(knob: &FitKnob, after: f64, moves: Option<f64>) -> Self {
        Self {
            key: knob.key.clone(),
            before: knob.before.clone(),
            after: knob.rounded(after),
            moves,
        }
    }

    fn cells(&self) -> Vec<String> {
        let moves = match self.moves {
            None => "-".to_owned(),
            Some(share) if share < 1e-4 => "nothing".to_owned(),
            Some(share) => format!("{:.1} %", share * 100.0),
        };
        vec![
            self.key.clone(),
            self.before.clone().unwrap_or_else(|| "-".to_owned()),
            self.after.to_string(),
            moves,
        ]
    }
}

fn signed(share: f64) -> String {
    let percent = format!("{:+.1} %", share * 100.0);
    if percent == "-0.0 %" { "+0.0 %".to_owned() } else { percent }
}

impl Report {
    /// Returns how the profile was calibrated, in one line.
    pub(super) fn title(&self) -> String {
        format!("{} and the points of {}", self.device, self.file)
    }

    /// Returns the report as text.
    pub(super) fn table(&self) -> String {
        let last = if self.knobs.is_empty() { "" } else { "left out" };
        let header = ["point", "values", "keys", "QD", "measured", "ours", "error", last];
        let mut text = format!("device {}\n\n", self.title());
        text += &table::numbers(&header, self.points.iter().map(PointReport::cells));
        let mut facts = vec![("errors", self.error.sentence())];
        if let Some(errors) = self.error_out_of_sample {
            facts.push(("out of sample", errors.sentence()));
        }
        let simulated = format!(
            "{}, {} each time",
            counted(self.simulations, "point"),
            counted(self.operations, "operation")
        );
        facts.push(("simulated", simulated));
        text += "\n";
        text += &table::facts(&facts);
        if !self.knobs.is_empty() {
            let header = ["knob", "before", "fitted", "5 % more moves"];
            text += "\n";
            text += &table::numbers(&header, self.knobs.iter().map(KnobReport::cells));
        }
        text
    }
}
