//! Decides whether one key's history could have been made by operations that happen one at a time,
//! each between its call and its answer.
//!
//! The search is Wing and Gong's (1993) with Lowe's memory of configurations (2017), cut down by
//! what holds for a single value:
//! - An operation that changes nothing and fits the present state goes next: it can only be in the
//!   way later.
//! - Of changes that are alike for everyone who looks, the one that must end first goes first.
//! - A value that is still to be read, and will not be written again, is not left.

use crate::history::{Call, Condition, History, Moment, Operation, Outcome, Version};
use crate::violation::Violation;
use std::collections::HashSet;

/// More configurations than this are no history of a device under test.
const CONFIGURATIONS_MAX: usize = 1 << 22;

/// Decides whether `history`, of a key that was absent before, is linearizable. Operations without
/// an answer happened before they were cut off, or never.
///
/// # Panics
/// When so many operations overlap that the search would not end in reasonable time.
pub fn check(history: &History) -> Result<(), Violation> {
    if is_linearizable(history.operations(), Before::Absent) {
        return Ok(());
    }
    Err(Violation::shrink(history.operations()))
}

/// What a key holds before its first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing.
    Absent,
    /// That is not known: whatever explains the answers.
    Anything,
}

/// As [`check`], for operations in the order of their calls.
pub(crate) fn is_linearizable(operations: &[Operation], before: Before) -> bool {
    let mut search = Search::new(operations);
    search.explore(State::Absent)
        || (before == Before::Anything
            && (search.explore(State::Unread)
                || (0..search.uses.len()).any(|value| search.explore(State::of(value)))))
}

/// What the key holds between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Absent,
    /// A value that some operation reads, by its number among those.
    Value(u32),
    /// Any of the values that no operation reads: all are alike.
    Unread,
}

impl State {
    fn of(value: usize) -> Self {
        Self::Value(u32::try_from(value).expect("a history has fewer than 2^32 values"))
    }
}

/// What an operation demands of the state before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Absence,
    Presence,
    State(State),
    /// No state at all explains the answer.
    TheImpossible,
}

impl Needs {
    fn hold_in(self, state: State) -> bool {
        match self {
            Self::Nothing => true,
            Self::Absence => state == State::Absent,
            Self::Presence => state != State::Absent,
            Self::State(needed) => state == needed,
            Self::TheImpossible => false,
        }
    }
}

/// An operation as the search sees it.
#[derive(Clone, Copy, Debug)]
struct Step {
    invoked: Moment,
    returned: Moment,
    needs: Needs,
    writes: Option<State>,
    /// It may also never have happened.
    optional: bool,
    /// Of those that began with it no other happens.
    exclusive: bool,
}

impl Step {
    /// `None` for an operation without an answer that changes nothing.
    fn new(operation: &Operation, read: &[Version]) -> Option<Self> {
        let written = |version| read.binary_search(&version).map_or(State::Unread, State::of);
        let (needs, writes) = match (operation.call, operation.outcome) {
            (Call::Retrieve | Call::Exist, None) => return None,
            (Call::Store(version, condition), None | Some(Outcome::Done)) => {
                (demand(condition), Some(written(version)))
            }
            (Call::Delete, None | Some(Outcome::Done)) => (Needs::Presence, Some(State::Absent)),
            (Call::Clear, None | Some(Outcome::Done)) => (Needs::Nothing, Some(State::Absent)),
            (Call::Revert(state), None) => {
                (Needs::Nothing, Some(state.map_or(State::Absent, written)))
            }
            (Call::Lose, None) => (Needs::Nothing, Some(written(Version::LOST))),
            (_, Some(Outcome::Lost)) => (Needs::State(written(Version::LOST)), None),
            (Call::Store(..), Some(Outcome::Full))
            | (Call::Store(..) | Call::Delete, Some(Outcome::Unwritten)) => (Needs::Nothing, None),
            (Call::Store(_, Condition::MustNotExist), Some(Outcome::Exists))
            | (Call::Exist, Some(Outcome::Done)) => (Needs::Presence, None),
            (
                Call::Store(_, Condition::MustExist) | Call::Retrieve | Call::Exist | Call::Delete,
                Some(Outcome::NotFound),
            ) => (Needs::Absence, None),
            (Call::Retrieve, Some(Outcome::Value(version))) => {
                (Needs::State(written(version)), None)
            }
            _ => (Needs::TheImpossible, None),
        };
        let (invoked, returned) = (operation.invoked, operation.returned);
        let optional = operation.outcome.is_none();
        let exclusive = matches!(operation.call, Call::Revert(_));
        Some(Self { invoked, returned, needs, writes, optional, exclusive })
    }

    /// True for steps that differ in nothing but their times.
    fn is_like(&self, other: &Self) -> bool {
        let key = |step: &Self| (step.needs, step.writes, step.optional, step.exclusive);
        key(self) == key(other)
    }
}

fn demand(condition: Condition) -> Needs {
    match condition {
        Condition::None => Needs::Nothing,
        Condition::MustExist => Needs::Presence,
        Condition::MustNotExist => Needs::Absence,
    }
}

fn versions_read(operations: &[Operation]) -> Vec<Version> {
    let read = operations.iter().filter_map(|operation| match operation.outcome {
        Some(Outcome::Value(version)) => Some(version),
        Some(Outcome::Lost) => Some(Version::LOST),
        _ => None,
    });
    let mut read: Vec<_> = read.collect();
    read.sort_unstable();
    read.dedup();
    read
}

/// How many of the steps that are left read a value, and how many write it.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    readers: u32,
    writers: u32,
}

struct Search {
    /// In the order of their calls.
    steps: Vec<Step>,
    /// One bit for each step that has its place.
    placed: Vec<u64>,
    /// The placed steps in their order.
    order: Vec<usize>,
    /// Steps without a place that must have one.
    missing: usize,
    uses: Vec<Uses>,
    seen: HashSet<(usize, Box<[u64]>, State)>,
}

/// The steps that may come next: called before any of those left had to be over.
#[derive(Default)]
struct Frontier {
    observers: Vec<usize>,
    /// One of each kind.
    changes: Vec<usize>,
    /// The step that must be over first.
    first_over: Option<usize>,
}

impl Search {
    fn new(operations: &[Operation]) -> Self {
        let read = versions_read(operations);
        let steps: Vec<_> = operations.iter().filter_map(|op| Step::new(op, &read)).collect();
        let mut search = Self {
            placed: vec![0; steps.len().div_ceil(64)],
            order: Vec::with_capacity(steps.len()),
            missing: steps.iter().filter(|step| !step.optional).count(),
            uses: vec![Uses::default(); read.len()],
            seen: HashSet::new(),
            steps,
        };
        for at in 0..search.steps.len() {
            search.count_uses(at, |count| *count += 1);
        }
        search
    }

    /// True when what is left can follow on `state`.
    fn explore(&mut self, state: State) -> bool {
        let before = self.order.len();
        let frontier = self.place_observers(state);
        if self.missing == 0 || (self.is_new(state) && self.branch(state, &frontier)) {
            return true;
        }
        self.take_back(before);
        false
    }

    fn branch(&mut self, state: State, frontier: &Frontier) -> bool {
        let before = self.order.len();
        if !self.strands_readers(state) {
            for (at, after) in self.changes_of(state, frontier) {
                self.place_with_rivals(at);
                if self.explore(after) {
                    return true;
                }
                self.take_back(before);
            }
        }
        // A step that may never have happened is given up only when it holds up the others.
        let Some(at) = frontier.first_over.filter(|&at| self.steps[at].optional) else {
            return false;
        };
        self.place_with_rivals(at);
        if self.explore(state) {
            return true;
        }
        self.take_back(before);
        false
    }

    /// The changes that can follow on `state`, with the states that they lead to. Those that must
    /// happen soonest come first, for themselves or for what else waits for such a state: any order
    /// is right, but this one is nearly always that of the device.
    fn changes_of(&self, state: State, frontier: &Frontier) -> Vec<(usize, State)> {
        let waiting = frontier.observers.iter().chain(&frontier.changes).map(|at| self.steps[*at]);
        let waiting: Vec<_> = waiting.filter(|step| !step.needs.hold_in(state)).collect();
        let urgency = |at: usize, after| {
            let helped = waiting.iter().filter(|step| step.needs.hold_in(after));
            helped.map(|step| step.returned).fold(self.steps[at].returned, Moment::min)
        };
        let fitting = frontier.changes.iter().filter(|at| self.steps[**at].needs.hold_in(state));
        let mut changes: Vec<_> =
            fitting.filter_map(|&at| Some((at, self.steps[at].writes?))).collect();
        changes.sort_by_cached_key(|&(at, after)| urgency(at, after));
        changes
    }

    /// Gives every observer that fits `state` its place now; returns what can come after them.
    fn place_observers(&mut self, state: State) -> Frontier {
        loop {
            let frontier = self.frontier();
            let before = self.order.len();
            for &at in &frontier.observers {
                if self.steps[at].needs.hold_in(state) {
                    self.place(at);
                }
            }
            if self.order.len() == before {
                return frontier;
            }
        }
    }

    fn frontier(&self) -> Frontier {
        let mut frontier = Frontier::default();
        let mut over = Moment::NEVER;
        let first_word = self.placed.iter().position(|word| *word != u64::MAX);
        for at in first_word.map_or(self.steps.len(), |word| word * 64)..self.steps.len() {
            if self.is_placed(at) {
                continue;
            }
            let step = &self.steps[at];
            if step.invoked > over {
                break;
            }
            if step.returned < over {
                over = step.returned;
                frontier.first_over = Some(at);
            }
            if step.writes.is_none() {
                frontier.observers.push(at);
            } else {
                self.add_change(&mut frontier.changes, at);
            }
        }
        frontier
    }

    fn add_change(&self, changes: &mut Vec<usize>, at: usize) {
        let step = &self.steps[at];
        match changes.iter_mut().find(|other| self.steps[**other].is_like(step)) {
            Some(other) if step.returned < self.steps[*other].returned => *other = at,
            Some(_) => {}
            None => changes.push(at),
        }
    }

    /// True when a change now would leave a value that must still be read and cannot come back.
    fn strands_readers(&self, state: State) -> bool {
        let State::Value(value) = state else { return false };
        let uses = self.uses[value as usize];
        uses.readers > 0 && uses.writers == 0
    }

    fn is_new(&mut self, state: State) -> bool {
        let first = self.placed.iter().position(|word| *word != u64::MAX);
        let first = first.unwrap_or(self.placed.len());
        let last = self.placed.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        let open = self.placed[first..last.max(first)].into();
        assert!(self.seen.len() < CONFIGURATIONS_MAX, "too many operations overlap to decide");
        self.seen.insert((first, open, state))
    }

    fn is_placed(&self, at: usize) -> bool {
        self.placed[at / 64] >> (at % 64) & 1 == 1
    }

    fn place(&mut self, at: usize) {
        self.placed[at / 64] |= 1 << (at % 64);
        self.order.push(at);
        self.missing -= usize::from(!self.steps[at].optional);
        self.count_uses(at, |count| *count -= 1);
    }

    /// Gives a step its place, and gives up those that cannot happen beside it.
    fn place_with_rivals(&mut self, at: usize) {
        self.place(at);
        if !self.steps[at].exclusive {
            return;
        }
        let invoked = self.steps[at].invoked;
        for rival in self.steps.partition_point(|step| step.invoked < invoked)..self.steps.len() {
            if self.steps[rival].invoked > invoked {
                break;
            }
            if self.steps[rival].exclusive && !self.is_placed(rival) {
                self.place(rival);
            }
        }
    }

    /// Takes their places from all but the first `keep` steps.
    fn take_back(&mut self, keep: usize) {
        while self.order.len() > keep {
            let at = self.order.pop().expect("it has more than it keeps");
            self.placed[at / 64] &= !(1 << (at % 64));
            self.missing += usize::from(!self.steps[at].optional);
            self.count_uses(at, |count| *count += 1);
        }
    }

    fn count_uses(&mut self, at: usize, count: impl Fn(&mut u32)) {
        let step = self.steps[at];
        if let Needs::State(State::Value(value)) = step.needs {
            count(&mut self.uses[value as usize].readers);
        }
        if let Some(State::Value(value)) = step.writes {
            count(&mut self.uses[value as usize].writers);
        }
    }
}

#[cfg(test)]
mod tests;
