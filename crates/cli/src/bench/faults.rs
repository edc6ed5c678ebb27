use crate::args::MeasureArgs;
use crate::number::counted;
use crate::output::Failure;
use crate::target::Target;
use node::{Fault, FaultCounts, FaultPlan, FaultReport};
use serde::Serialize;
use std::path::Path;

/// Returns the plan of faults that `args` name for the device of `target`, if they name one.
pub(super) fn load(args: &MeasureArgs, target: &Target) -> Result<Option<FaultPlan>, Failure> {
    let load = |path: &Path| node::faults::load(&path.to_string_lossy(), &target.profile);
    let plan = args.faults.as_deref().map(load);
    plan.transpose().map_err(Failure::refused)
}

/// Flash faults that happened.
#[derive(Debug, Serialize)]
pub(super) struct FaultsReport {
    /// By kind.
    counts: Counts,
    /// In order, at most the first thousand of each kind.
    list: Vec<Listed>,
    /// Faults that are not in the list.
    unlisted: u64,
}

#[derive(Debug, Serialize)]
struct Counts {
    uncorrectable_reads: u64,
    flipped_bits: u64,
    failed_programs: u64,
    failed_erases: u64,
    bad_blocks: u64,
    slow_steps: u64,
}

#[derive(Debug, Serialize)]
struct Listed {
    /// Device clock, counted from the start of the device.
    at_ns: u64,
    kind: &'static str,
    die: u32,
    block: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    /// The plan's `nth` that makes this fault happen again.
    nth: u64,
}

impl FaultsReport {
    pub(super) fn new(report: &FaultReport) -> Self {
        let FaultCounts {
            uncorrectable_reads,
            flipped_bits,
            failed_programs,
            failed_erases,
            bad_blocks,
            slow_steps,
        } = report.counts;
        let counts = Counts {
            uncorrectable_reads,
            flipped_bits,
            failed_programs,
            failed_erases,
            bad_blocks,
            slow_steps,
        };
        let list = report.list.iter().map(Listed::new).collect();
        Self { counts, list, unlisted: report.unlisted }
    }

    /// Returns the faults that happened, for a table of facts.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let Counts {
            uncorrectable_reads,
            flipped_bits,
            failed_programs,
            failed_erases,
            bad_blocks,
            slow_steps,
        } = self.counts;
        let kinds = [
            (uncorrectable_reads, "unreadable page", ""),
            (flipped_bits, "flipped bit", ""),
            (failed_programs, "failed program", ""),
            (failed_erases, "failed erase", ""),
            (bad_blocks, "block", " gone bad"),
            (slow_steps, "slow step", ""),
        ];
        let happened = kinds.into_iter().filter(|(count, ..)| *count > 0);
        let happened: Vec<String> =
            happened.map(|(count, name, more)| counted(count, name) + more).collect();
        let said = if happened.is_empty() { "none".to_owned() } else { happened.join(", ") };
        vec![("faults of the flash", said)]
    }
}

impl Listed {
    fn new(fault: &Fault) -> Self {
        Self {
            at_ns: fault.at.0,
            kind: node::faults::kind_name(fault.kind),
            die: fault.block.die.0,
            block: fault.block.block,
            page: fault.page,
            nth: fault.ordinal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_counted_in_words() {
        let said = |counts| {
            let report = FaultReport { counts, ..FaultReport::default() };
            FaultsReport::new(&report).facts()[0].1.clone()
        };
        let counts = FaultCounts { flipped_bits: 1, bad_blocks: 1, ..FaultCounts::default() };
        assert_eq!(said(counts), "1 flipped bit, 1 block gone bad");
        let counts = FaultCounts { slow_steps: 2_000, bad_blocks: 2, ..FaultCounts::default() };
        assert_eq!(said(counts), "2 blocks gone bad, 2,000 slow steps");
        assert_eq!(said(FaultCounts::default()), "none");
    }
}
