use crate::fault::{Fault, FaultKind, FaultPlan, FaultReport, FaultRule, When};
use crate::geometry::{BlockId, Ppa};
use base::{Nanos, Rng, mix};
use clock::now;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MILLION: u64 = 1_000_000;

/// Applies a [`FaultPlan`] to the steps of an array.
#[derive(Debug)]
pub(crate) struct Faults(Mutex<State>);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    seed: u64,
    rules: Vec<Armed>,
    /// The number of steps of each kind.
    senses: u64,
    programs: u64,
    erases: u64,
    begun: u64,
    report: FaultReport,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Armed {
    rule: FaultRule,
    rng: Rng,
    /// The number of steps that matched the rule, and how many of them had the fault.
    matched: u64,
    struck: u64,
}

/// The place and kind of a step.
#[derive(Clone, Copy)]
struct Step {
    block: BlockId,
    page: Option<u32>,
    at: Nanos,
}

/// The damage of a sense to its page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Damage {
    pub(crate) is_uncorrectable: bool,
    /// The bit to flip.
    pub(crate) flip: Option<u64>,
}

/// The result of a program or an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Good,
    Failed,
    /// Failed, and the block is now bad.
    Broke,
}

impl State {
    /// Returns the plan that they were made with.
    pub(crate) fn plan(&self) -> FaultPlan {
        let rules = self.rules.iter().map(|armed| armed.rule).collect();
        FaultPlan { seed: self.seed, rules }
    }
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        let arm = |(name, rule): (u64, FaultRule)| {
            if let FaultKind::SlowDie { percent } = rule.kind {
                assert!(percent >= 100, "a slow die takes at least 100 per cent, not {percent}");
            }
            Armed { rule, rng: Rng::fork(plan.seed, name), matched: 0, struck: 0 }
        };
        Self(Mutex::new(State {
            seed: plan.seed,
            rules: (0..).zip(plan.rules).map(arm).collect(),
            senses: 0,
            programs: 0,
            erases: 0,
            begun: 0,
            report: FaultReport::default(),
        }))
    }

    /// Returns the state, for a saved state of the array.
    pub(crate) fn save(&self) -> State {
        self.state().clone()
    }

    /// Restores the state that [`Self::save`] returned.
    pub(crate) fn restore(&self, saved: State) {
        *self.state() = saved;
    }

    pub(crate) fn report(&self) -> FaultReport {
        self.state().report.clone()
    }

    /// Handles a sense of a programmed page. `can_flip`: the page has real bytes.
    pub(crate) fn sense(&self, ppa: Ppa, can_flip: bool) -> Damage {
        let mut state = self.state();
        state.senses += 1;
        let (ordinal, step) = (state.senses, Step::at_page(ppa));
        let is_uncorrectable = state.strike(FaultKind::UncorrectableRead, step, ordinal);
        let flips = can_flip && state.strike(FaultKind::FlippedBit, step, ordinal);
        let flip = flips.then(|| mix(state.seed ^ mix(ordinal)));
        Damage { is_uncorrectable, flip }
    }

    /// Handles the end of a program.
    pub(crate) fn program(&self, ppa: Ppa) -> End {
        let mut state = self.state();
        state.programs += 1;
        let ordinal = state.programs;
        state.change(FaultKind::FailedProgram, Step::at_page(ppa), ordinal)
    }

    /// Handles the end of an erase.
    pub(crate) fn erase(&self, block: BlockId) -> End {
        let mut state = self.state();
        state.erases += 1;
        let ordinal = state.erases;
        state.change(FaultKind::FailedErase, Step { block, page: None, at: now() }, ordinal)
    }

    /// Returns how long a step of `time` takes with faults of [`FaultKind::SlowDie`].
    pub(crate) fn stretch(&self, block: BlockId, page: Option<u32>, time: Nanos) -> Nanos {
        let mut state = self.state();
        state.begun += 1;
        let (ordinal, step) = (state.begun, Step { block, page, at: now() });
        let slow = (0..state.rules.len()).filter_map(|index| {
            let kind = state.rules[index].rule.kind;
            let FaultKind::SlowDie { percent } = kind else { return None };
            state.rules[index].strikes(step).then(|| {
                state.note(kind, step, ordinal);
                percent
            })
        });
        let percent = slow.max().unwrap_or(100);
        let stretched = u128::from(time.0) * u128::from(percent) / 100;
        Nanos(u64::try_from(stretched).expect("a step takes less than 500 years"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether a rule for faults of `kind` strikes. Every rule counts the step.
    fn strike(&mut self, kind: FaultKind, step: Step, ordinal: u64) -> bool {
        let mut strikes = false;
        for armed in self.rules.iter_mut().filter(|armed| armed.rule.kind == kind) {
            strikes |= armed.strikes(step);
        }
        if strikes {
            self.note(kind, step, ordinal);
        }
        strikes
    }

    fn change(&mut self, kind: FaultKind, step: Step, ordinal: u64) -> End {
        let fails = self.strike(kind, step, ordinal);
        let changes = self.programs + self.erases;
        if self.strike(FaultKind::BadBlock, step, changes) {
            End::Broke
        } else if fails {
            End::Failed
        } else {
            End::Good
        }
    }

    fn note(&mut self, kind: FaultKind, step: Step, ordinal: u64) {
        let Step { block, page, at } = step;
        self.report.add(Fault { at, kind, block, page, ordinal });
    }
}

impl Armed {
    fn strikes(&mut self, step: Step) -> bool {
        if !self.rule.matches(step.block, step.page, step.at) {
            return false;
        }
        self.matched += 1;
        let drawn = match self.rule.when {
            When::Nth(number) => self.matched == number,
            When::Ppm(chance) => self.rng.below(MILLION) < u64::from(chance),
        };
        let strikes = drawn && self.rule.most.is_none_or(|most| self.struck < most);
        self.struck += u64::from(strikes);
        strikes
    }
}

impl Step {
    fn at_page(ppa: Ppa) -> Self {
        Self { block: ppa.block, page: Some(ppa.page), at: now() }
    }
}
