//! The figure of a measurement: latencies by percentile, throughput over time.

use crate::plot::{self, Axis, Figure, Mark, Panel, Scale, Series, Unit};
use base::Nanos;
use std::path::Path;
use workload::{Kind, Outcome};

/// Draws `outcome` into the file `path`. Returns why it cannot be written, as a sentence.
pub(super) fn draw(
    path: &Path,
    title: String,
    caption: String,
    outcome: &Outcome,
) -> Option<String> {
    let panels = vec![latency(outcome), throughput(outcome)];
    plot::write(path, &Figure { title, caption, panels })
}

/// Returns a line for each kind of operation.
fn latency(outcome: &Outcome) -> Panel {
    let series = Kind::ALL.into_iter().filter_map(|kind| {
        let tally = outcome.tally(kind)?;
        // The longest of n operations is drawn where n / 10 operations would have one nine less.
        let last = 1.0 - 1.0 / float(tally.count());
        let point = |(quantile, latency): (f64, Nanos)| (quantile.min(last), float(latency.0));
        Some(Series {
            name: kind.name().replace('_', "-"),
            mark: Mark::Line,
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

/// Most steps of throughput: more could not be distinguished.
const STEPS_MAX: usize = 100;

/// Completions of all kinds.
fn throughput(outcome: &Outcome) -> Panel {
    let timeline = outcome.timeline();
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
            points: rates(timeline.counts(), timeline.width(), outcome.elapsed()),
        }],
    }
}

/// Start of each step in seconds and its rate; the last rate again at the end of the run.
fn rates(counts: &[u64], bin: Nanos, elapsed: Nanos) -> Vec<(f64, f64)> {
    let bins = counts.len().div_ceil(STEPS_MAX);
    let width = bin.as_secs_f64() * float(bins as u64);
    let end = elapsed.as_secs_f64();
    let mut steps: Vec<u64> = counts.chunks(bins).map(|bins| bins.iter().sum()).collect();
    // A run ends with a completion. A very short last step would show it as a spike.
    let last = float(steps.len() as u64 - 1) * width;
    if steps.len() > 1 && end - last < width / 2.0 {
        let rest = steps.pop().unwrap_or_default();
        *steps.last_mut().expect("there was more than one") += rest;
    }
    let count = steps.len();
    let step = |(at, operations): (usize, u64)| {
        let start = float(at as u64) * width;
        let time = if at + 1 == count { end - start } else { width };
        (start, float(operations) / time)
    };
    let mut rates: Vec<(f64, f64)> = steps.into_iter().enumerate().map(step).collect();
    rates.extend(rates.last().map(|(_, rate)| (end, *rate)));
    rates
}

#[expect(clippy::cast_precision_loss, reason = "for a figure, where 53 bits are plenty")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One completion each 56.6 us, in bins of 1.024 ms: the rate must not depend on where the run
    /// ends.
    #[test]
    fn a_steady_run_has_a_steady_rate_to_its_end() {
        let bin = Nanos(1_024_000);
        for operations in 100..2_000_u64 {
            let elapsed = Nanos(operations * 56_600);
            let mut counts = vec![0; usize::try_from(elapsed.0 / bin.0).unwrap() + 1];
            for operation in 1..=operations {
                counts[usize::try_from(operation * 56_600 / bin.0).unwrap()] += 1;
            }
            let rates = rates(&counts, bin, elapsed);
            let mean = 1e9 / 56_600.0;
            for (at, rate) in &rates {
                assert!((rate / mean - 1.0).abs() < 0.12, "{operations}: {rate} at {at}");
            }
            assert_eq!(rates.last().map(|(end, _)| *end), Some(elapsed.as_secs_f64()));
        }
    }
}
