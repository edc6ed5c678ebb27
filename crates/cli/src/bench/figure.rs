//! What was measured as a figure: latencies by percentile, throughput over time.

use crate::output::Failure;
use crate::path::shown;
use crate::plot::{self, Axis, Figure, Mark, Panel, Scale, Series, Unit};
use base::Nanos;
use std::fs;
use std::path::Path;
use workload::{Kind, Outcome, Timeline};

/// Draws `outcome` into the file `path`.
pub(super) fn draw(
    path: &Path,
    title: String,
    caption: String,
    outcome: &Outcome,
) -> Result<(), Failure> {
    let panels = vec![latency(outcome), throughput(outcome)];
    let svg = plot::svg(&Figure { title, caption, panels });
    fs::write(path, svg).map_err(|error| {
        Failure::Broken(format!("the figure {} cannot be written: {error}", shown(path)))
    })
}

/// A line for each kind of operation.
fn latency(outcome: &Outcome) -> Panel {
    let series = Kind::ALL.into_iter().filter_map(|kind| {
        let tally = outcome.tally(kind)?;
        // The longest of n stands where n have one nine more than n / 10 have.
        let last = 1.0 - 1.0 / float(tally.count());
        let point = |(quantile, latency): (f64, Nanos)| (quantile.min(last), float(latency.0));
        Some(Series {
            name: kind.name().replace('_', "-"),
            mark: Mark::Line,
            like: None,
            points: tally.quantiles().map(point).collect(),
        })
    });
    Panel {
        title: "Latency".to_owned(),
        x: Axis { label: "percentile".to_owned(), scale: Scale::Nines, unit: Unit::Plain },
        y: Axis { label: "latency".to_owned(), scale: Scale::Log10, unit: Unit::Nanos },
        series: series.collect(),
    }
}

/// More steps of throughput would not be told apart.
const STEPS_MAX: usize = 100;

/// Completions of all kinds.
fn throughput(outcome: &Outcome) -> Panel {
    Panel {
        title: "Throughput".to_owned(),
        x: Axis { label: "time (s)".to_owned(), scale: Scale::Linear, unit: Unit::Plain },
        y: Axis {
            label: "operations a second".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Count,
        },
        series: vec![Series {
            name: "all operations".to_owned(),
            mark: Mark::Steps,
            like: None,
            points: rates(outcome.timeline(), outcome.elapsed()),
        }],
    }
}

/// Start of each step, in seconds, and the rate in it; the last once more where it ends.
fn rates(timeline: &Timeline, elapsed: Nanos) -> Vec<(f64, f64)> {
    let bins = timeline.counts().len().div_ceil(STEPS_MAX);
    let width = timeline.width().as_secs_f64() * float(bins as u64);
    let end = elapsed.as_secs_f64();
    let step = |(at, counts): (usize, &[u64])| {
        let start = float(at as u64) * width;
        // The run ends within the last step.
        (start, float(counts.iter().sum()) / width.min(end - start))
    };
    let mut rates: Vec<(f64, f64)> = timeline.counts().chunks(bins).enumerate().map(step).collect();
    // A run may end as its last step begins: what completed then has no rate.
    rates.retain(|(start, _)| *start < end);
    rates.extend(rates.last().map(|(_, rate)| (end, *rate)));
    rates
}

#[expect(clippy::cast_precision_loss, reason = "for a figure, where 53 bits are plenty")]
fn float(count: u64) -> f64 {
    count as f64
}
