//! Tables of latencies, and of the stages in which operations spend their time.

use crate::number::{duration, percent, rounded};
use crate::table;
use clock::Stage;
use std::collections::BTreeMap;
use workload::{Kind, LatencyNanos};

/// Latencies by kind of operation.
pub(crate) type Latencies = BTreeMap<&'static str, LatencyNanos>;

/// Mean nanoseconds by kind of operation and stage.
pub(crate) type StageMeans = BTreeMap<&'static str, BTreeMap<&'static str, f64>>;

/// Returns a row for each kind of operation.
pub(crate) fn latencies(latencies: &Latencies) -> String {
    let row = |(kind, latency): (&str, &LatencyNanos)| {
        let quantiles = [latency.p50, latency.p99, latency.p999, latency.max];
        let mut row = vec![kind.to_owned(), duration(latency.mean)];
        row.extend(quantiles.map(|nanos| base::Nanos(nanos).to_string()));
        row
    };
    let header = [TITLES[0], "      mean", "       p50", "       p99", "     p99.9", "       max"];
    table::numbers(&header, in_order(latencies).map(row))
}

/// Kinds of operation side by side, with two columns each.
const KINDS_PER_TABLE: usize = 2;

/// Returns a row for each stage, and two columns for each kind of operation. Many kinds make
/// several tables.
pub(crate) fn stages(means: &StageMeans) -> String {
    let kinds: Vec<_> = in_order(means).collect();
    // In virtual time no event is late.
    let is_late = kinds.iter().any(|(_, means)| means[Stage::Late.name()] > 0.0);
    let shown = |stage: &Stage| is_late || *stage != Stage::Late;
    let stages: Vec<Stage> = Stage::ALL.into_iter().filter(shown).collect();
    let tables = kinds.chunks(KINDS_PER_TABLE).map(|kinds| stage_table(&stages, kinds));
    tables.collect::<Vec<_>>().join("\n")
}

fn stage_table(stages: &[Stage], kinds: &[(&str, &BTreeMap<&'static str, f64>)]) -> String {
    let titles = kinds.iter().map(|(kind, _)| format!("{:>16}", format!("{kind} ns")));
    let titles: Vec<String> = titles.flat_map(|title| [title, "share".to_owned()]).collect();
    let header: Vec<&str> =
        std::iter::once(TITLES[1]).chain(titles.iter().map(String::as_str)).collect();
    let rows = stages.iter().map(|&stage| {
        let columns = kinds.iter().flat_map(|(_, means)| {
            let mean = means[stage.name()];
            [rounded(mean), percent(mean, means.values().sum())]
        });
        std::iter::once(stage_title(stage).to_owned()).chain(columns).collect()
    });
    let totals = kinds.iter().flat_map(|(_, means)| {
        let total = means.values().sum();
        [rounded(total), percent(total, total)]
    });
    let total = std::iter::once("total".to_owned()).chain(totals).collect();
    table::numbers(&header, rows.chain([total]))
}

/// The kinds of a table, in a fixed number of columns, so that all tables line up.
const TITLES: [&str; 2] = ["latency             ", "where the time went "];

/// Returns the kinds of operation that occurred, in the order of a report.
fn in_order<'a, T>(
    by_kind: &'a BTreeMap<&'static str, T>,
) -> impl Iterator<Item = (&'static str, &'a T)> {
    Kind::ALL.into_iter().filter_map(|kind| Some((kind.name(), by_kind.get(kind.name())?)))
}

const fn stage_title(stage: Stage) -> &'static str {
    match stage {
        Stage::Link => "link",
        Stage::Handler => "wait for handler",
        Stage::Index => "index",
        Stage::Queue => "queue",
        Stage::Latch => "wait for key",
        Stage::Batch => "wait for page",
        Stage::Channel => "channel",
        Stage::Array => "array",
        Stage::Gc => "wait for GC",
        Stage::Core => "core",
        Stage::Late => "late",
    }
}
