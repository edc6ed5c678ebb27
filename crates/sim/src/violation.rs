use crate::history::{Call, Moment, Operation, Outcome};
use crate::linearizable::{Before, is_linearizable};
use std::fmt;

/// The part of a history that no order of its operations explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    operations: Vec<Operation>,
    before: Before,
}

impl Violation {
    /// The operations that contradict each other, in the order of their calls, and before them the
    /// stores of the values that they read.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub(crate) fn shrink(operations: &[Operation]) -> Self {
        let history = until_first_contradiction(operations);
        let start = last_start(&history);
        let before = if start == 0 { Before::Absent } else { Before::Anything };
        let mut window = from(&history, start);
        drop_observers(&mut window, before);
        Self { operations: with_sources(&history, &window), before }
    }
}

/// The history as it stood at the first answer that is not possible.
fn until_first_contradiction(operations: &[Operation]) -> Vec<Operation> {
    let mut ends: Vec<_> = operations.iter().map(|operation| operation.returned).collect();
    ends.sort_unstable();
    ends.dedup();
    let is_possible = |end: &Moment| is_linearizable(&until(operations, *end), Before::Absent);
    let possible = ends.partition_point(is_possible);
    ends.get(possible).map_or_else(|| operations.to_vec(), |end| until(operations, *end))
}

/// What was known right after `moment`.
fn until(operations: &[Operation], moment: Moment) -> Vec<Operation> {
    let called = operations.iter().filter(|operation| operation.invoked <= moment);
    let known = called.map(|operation| {
        if operation.returned <= moment {
            return *operation;
        }
        Operation { returned: Moment::NEVER, outcome: None, ..*operation }
    });
    known.collect()
}

/// The last operation from which on the history is impossible, whatever was there before; the first
/// one if there is no such operation.
fn last_start(history: &[Operation]) -> usize {
    let starts: Vec<_> = (1..history.len()).collect();
    starts.partition_point(|start| !is_linearizable(&from(history, *start), Before::Anything))
}

/// The operations from number `start` on, and the changes still open then, which may belong to what
/// was before.
fn from(history: &[Operation], start: usize) -> Vec<Operation> {
    let (before, rest) = history.split_at(start);
    let open = before.iter().filter(|op| op.is_change() && op.returned > rest[0].invoked);
    let open = open.map(|operation| Operation { outcome: None, ..*operation });
    open.chain(rest.iter().copied()).collect()
}

/// Drops operations that changed nothing, as long as the rest stays impossible.
fn drop_observers(window: &mut Vec<Operation>, before: Before) {
    for at in (0..window.len()).rev() {
        if !window[at].is_change() {
            let operation = window.remove(at);
            if is_linearizable(window, before) {
                window.insert(at, operation);
            }
        }
    }
}

/// The window as it was in `history`, and before it the last store of each value that it reads.
fn with_sources(history: &[Operation], window: &[Operation]) -> Vec<Operation> {
    let in_window =
        |operation: &&Operation| window.iter().any(|other| other.invoked == operation.invoked);
    let mut sources: Vec<_> = window
        .iter()
        .filter_map(|read| {
            let mut before = history.iter().filter(|op| op.invoked < read.invoked);
            before.rfind(|op| stores_what(op, read)).map(|op| op.invoked)
        })
        .collect();
    sources.sort_unstable();
    let shown =
        history.iter().filter(|op| in_window(op) || sources.binary_search(&op.invoked).is_ok());
    shown.copied().collect()
}

fn stores_what(store: &Operation, read: &Operation) -> bool {
    match (store.call, read.outcome) {
        (Call::Store(stored, _), Some(Outcome::Value(version))) => stored == version,
        _ => false,
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self.before {
            Before::Absent => "on a key that was absent",
            Before::Anything => "whatever the key was before",
        };
        write!(f, "no order of these operations explains their answers, {before}:")?;
        self.operations.iter().try_for_each(|operation| write!(f, "\n    {operation}"))
    }
}

impl std::error::Error for Violation {}
