use crate::number::{counted, duration, grouped, seconds};
use crate::rig::Cut;
use base::Nanos;
use engine::{How, Recovery};
use node::{Opened, PowerLoss};
use serde::Serialize;
use workload::Findings;

/// A power loss, what the device still programmed, and what it held after it was reopened.
#[derive(Debug, Serialize)]
pub(super) struct PowerReport {
    /// Time of the power loss, from the start of the measurement.
    cut_at_ns: u64,
    /// Time of the end of the run, if the run ended before the power loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ended_ns: Option<u64>,
    saved: Saved,
    opened: OpenedReport,
    checked: Checked,
}

/// Pages programmed after the power loss.
#[derive(Debug, Serialize)]
struct Saved {
    pages: u64,
    /// Pages of acknowledged data for which no energy was left.
    lost_pages: u64,
    time_ns: u64,
}

#[derive(Debug, Serialize)]
struct OpenedReport {
    /// Time to open all namespaces, on the device's clock.
    time_ns: u64,
    wall_seconds: f64,
    /// Pages that should exist and could not be read: some of their data may be lost.
    unreadable_pages: u64,
    /// Counters for pairs, if the device has pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreReport>,
}

#[derive(Debug, Serialize)]
struct StoreReport {
    by: &'static str,
    time_ns: u64,
    extents: u64,
    /// Extents whose records were read.
    replayed_extents: u64,
    /// Of these extents, those with a summary.
    summaries: u64,
    records: u64,
    pages_read: u64,
}

/// Result of the check of acknowledged data.
#[derive(Debug, Serialize)]
struct Checked {
    /// Keys or blocks.
    items: u64,
    /// Stores and deletes without an answer at the power loss.
    unanswered: u64,
    /// Keys or blocks that fail with an error of the medium.
    unrecovered: u64,
    /// Keys or blocks with other contents than those acknowledged last.
    lost: u64,
    /// The number of the first wrong key or block.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_lost: Option<u32>,
}

impl PowerReport {
    pub(super) fn new(cut: &Cut, run_ended: Option<Nanos>) -> Self {
        let PowerLoss { saved_pages, lost_pages, time } = cut.loss;
        let Opened { recovery, lost_pages: unreadable_pages, time: opening } = cut.opened;
        let Findings { checked, unanswered, unrecovered, lost, first_lost } = cut.findings;
        Self {
            cut_at_ns: cut.at.0,
            run_ended_ns: run_ended.map(|Nanos(at)| at),
            saved: Saved { pages: saved_pages, lost_pages, time_ns: time.0 },
            opened: OpenedReport {
                time_ns: opening.0,
                wall_seconds: cut.opening_wall_seconds,
                unreadable_pages,
                store: recovery.as_ref().map(StoreReport::new),
            },
            checked: Checked { items: checked, unanswered, unrecovered, lost, first_lost },
        }
    }

    /// Returns what was lost although it was acknowledged, if anything.
    pub(super) fn errors(&self) -> Option<String> {
        let Checked { items, lost, first_lost, .. } = self.checked;
        let is_excused = self.saved.lost_pages > 0 || self.opened.unreadable_pages > 0;
        let first = first_lost.filter(|_| !is_excused)?;
        Some(format!(
            "of {items} keys or blocks {lost} do not hold what was acknowledged before the loss of \
             power, number {first} first"
        ))
    }

    /// Returns the rows of a table of facts.
    #[expect(clippy::cast_precision_loss, reason = "times below a year")]
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let Saved { pages, lost_pages, time_ns } = self.saved;
        let at = duration(self.cut_at_ns as f64);
        let cut = match self.run_ended_ns {
            Some(end) => {
                format!("{at} after the start; the run had ended at {}", duration(end as f64))
            }
            None => format!(
                "{at} after the start, with {} unanswered",
                counted(self.checked.unanswered, "change")
            ),
        };
        let mut saved = format!("{} in {}", counted(pages, "page"), duration(time_ns as f64));
        if lost_pages > 0 {
            saved.extend(["; ", &grouped(lost_pages), " lost"]);
        }
        let mut opened = format!(
            "in {}, {} here",
            duration(self.opened.time_ns as f64),
            seconds(self.opened.wall_seconds)
        );
        if self.opened.unreadable_pages > 0 {
            let pages = counted(self.opened.unreadable_pages, "page");
            opened.extend(["; ", &pages, " not readable"]);
        }
        let mut facts = vec![("power cut", cut), ("saved after that", saved), ("opened", opened)];
        facts.extend(self.opened.store.as_ref().map(|store| ("its pairs", store.sentence())));
        facts.push(("found", self.checked.sentence()));
        facts
    }
}

impl StoreReport {
    fn new(recovery: &Recovery) -> Self {
        Self {
            by: match recovery.how {
                How::Scan => "scan",
                How::Checkpoint => "checkpoint",
            },
            time_ns: recovery.time.0,
            extents: recovery.extents,
            replayed_extents: recovery.replayed_extents,
            summaries: recovery.summaries,
            records: recovery.records,
            pages_read: recovery.pages_read,
        }
    }

    fn sentence(&self) -> String {
        format!(
            "by {}: {} of {} read, {} by summary, {} in all",
            self.by,
            grouped(self.replayed_extents),
            counted(self.extents, "extent"),
            grouped(self.summaries),
            counted(self.pages_read, "page")
        )
    }
}

impl Checked {
    fn sentence(&self) -> String {
        let Self { items, unrecovered, lost, .. } = *self;
        let items = grouped(items);
        if lost == 0 && unrecovered == 0 {
            return format!("{items} checked, each as acknowledged");
        }
        format!("{items} checked, {} lost, {} unreadable", grouped(lost), grouped(unrecovered))
    }
}
