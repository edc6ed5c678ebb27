use base::Rng;
use nand::{Fault, FaultKind, FaultPlan, FaultReport, FaultRule, When};
use node::Profile;
use std::fmt::Write;

/// What a line begins with that names the device to which the next plan is given.
const HEAD: &str = "# device ";

/// The faults of each device of a run, in the order in which they are turned on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFaults(pub(crate) Vec<FaultPlan>);

impl RunFaults {
    /// The plans in `text`, which [`Self::text`] has written.
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut plans = Vec::new();
        for part in text.split(HEAD).skip(1) {
            let (number, plan) = part.split_once('\n').unwrap_or((part, ""));
            let number: usize = number.trim().parse().expect("a head names a device");
            plans.resize(plans.len().max(number + 1), FaultPlan::default());
            plans[number] = node::faults::parse(name, plan).expect("it was written as a plan");
        }
        Self(plans)
    }

    /// All plans that are not empty, each a file of its own below a line that says whose it is.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (number, plan) in self.0.iter().enumerate().filter(|(_, plan)| !plan.rules.is_empty()) {
            write!(text, "{HEAD}{number}\n{}", node::faults::text(plan))
                .expect("a string takes all text");
        }
        text
    }

    pub(crate) fn rules(&self) -> usize {
        self.0.iter().map(|plan| plan.rules.len()).sum()
    }

    /// True when blocks may go out of use: also those with a page that cannot be read do.
    pub(crate) fn retire_blocks(&self) -> bool {
        let keeps = |kind| matches!(kind, FaultKind::FlippedBit | FaultKind::SlowDie { .. });
        self.0.iter().flat_map(|plan| &plan.rules).any(|rule| !keeps(rule.kind))
    }

    /// The same with only the rules whose numbers `keep` names.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut number = 0;
        let plans = self.0.iter().map(|plan| {
            let rules = plan.rules.iter().filter(|_| {
                number += 1;
                keep(number - 1)
            });
            FaultPlan { seed: plan.seed, rules: rules.copied().collect() }
        });
        Self(plans.collect())
    }
}

/// What the faults of a run strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struck {
    /// Programs and erases, which excuse no loss.
    Changes,
    /// Reads too.
    All,
}

/// A plan for one device: a few faults of some kinds.
pub(crate) fn drawn(struck: Struck, profile: &Profile, rng: &mut Rng) -> FaultPlan {
    let dies = u64::from(profile.nand.channels * profile.nand.dies_per_channel);
    let seed = rng.next_u64();
    let mut rules = Vec::new();
    let mut add = |kind, one_in: u64, steps: u64, rng: &mut Rng| {
        if rng.below(one_in) > 0 {
            return;
        }
        let when = if rng.below(2) == 0 {
            When::Nth(1 + rng.below(steps))
        } else {
            When::Ppm(u32::try_from(2_000_000 / steps).expect("there are several steps"))
        };
        rules.push(FaultRule { most: Some(1 + rng.below(2)), ..FaultRule::new(kind, when) });
    };
    if struck == Struck::All {
        add(FaultKind::UncorrectableRead, 2, 4_000, rng);
        add(FaultKind::FlippedBit, 3, 4_000, rng);
    } else {
        add(FaultKind::FailedProgram, 2, 300, rng);
    }
    add(FaultKind::FailedProgram, 3, 1_500, rng);
    add(FaultKind::FailedErase, 4, 100, rng);
    add(FaultKind::BadBlock, 5, 1_500, rng);
    if rng.below(4) == 0 {
        let percent = 150 + u32::try_from(rng.below(400)).expect("a few hundred");
        let die = Some(u32::try_from(rng.below(dies)).expect("a few"));
        let all = When::Ppm(1_000_000);
        rules.push(FaultRule { die, ..FaultRule::new(FaultKind::SlowDie { percent }, all) });
    }
    FaultPlan { seed, rules }
}

/// `plan`, with what `report` says that came of it in the place of what was left to chance. A slow
/// die stays as it is.
pub(crate) fn explicit(plan: &FaultPlan, report: &FaultReport) -> FaultPlan {
    let is_slow = |kind: FaultKind| matches!(kind, FaultKind::SlowDie { .. });
    let slow = plan.rules.iter().filter(|rule| is_slow(rule.kind)).copied();
    let happened = report.list.iter().filter(|fault| !is_slow(fault.kind));
    let rules = happened.map(Fault::rule).chain(slow).collect();
    FaultPlan { seed: plan.seed, rules }
}

/// Pages whose content the faults of `plan` may have taken, at most; those that happened if it is
/// known.
pub(crate) fn pages_hit(plan: &FaultPlan, report: Option<&FaultReport>) -> u64 {
    if let Some(report) = report {
        return report.counts.uncorrectable_reads + report.counts.flipped_bits;
    }
    let takes = |rule: &&FaultRule| {
        matches!(rule.kind, FaultKind::UncorrectableRead | FaultKind::FlippedBit)
    };
    plan.rules.iter().filter(takes).map(|rule| rule.most.unwrap_or(1)).sum()
}
