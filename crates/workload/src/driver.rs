use crate::outcome::Outcome;
use crate::plan::{Load, Plan};
use crate::session::Session;
use base::Nanos;
use clock::Stage;
use controller::QueuePair;
use spec::Status;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Completions between two calls of a progress callback: some milliseconds of wall time.
const PROGRESS_STEP: u64 = 4_096;

/// Outstanding stores while keys are filled in: enough to keep every die of the built-in profiles
/// busy.
const FILL_QUEUE_DEPTH: u32 = 64;

/// Keys that were stored before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// How many.
    pub keys: u64,
    /// How long that took in the device's clock.
    pub elapsed: Nanos,
}

/// The device did not take all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillError {
    /// How a store ended that did not succeed.
    pub status: Status,
    /// How many keys were stored.
    pub stored: u64,
    /// How many were to be.
    pub keys: u64,
}

impl fmt::Display for FillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, stored, keys } = self;
        if *status == Status::CAPACITY_EXCEEDED {
            write!(f, "the device is full after {stored} of {keys} keys")
        } else {
            write!(f, "a store failed after {stored} of {keys} keys: {status}")
        }
    }
}

impl std::error::Error for FillError {}

/// Stores version 0 of every key of `plan`, and waits until all are acknowledged. Nothing more is
/// submitted after the first store that fails.
///
/// `progress` is called now and then with the keys stored and their number.
pub async fn fill(
    queue: &QueuePair,
    plan: &Plan,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let mut session = Session::filling(plan, clock::now());
    closed_loop(queue, &mut session, FILL_QUEUE_DEPTH, progress).await;
    let outcome = session.into_outcome();
    match outcome.failure() {
        None => Ok(Fill { keys: plan.keys, elapsed: outcome.elapsed() }),
        Some(status) => {
            let stored = outcome.operations() - outcome.errors();
            Err(FillError { status, stored, keys: plan.keys })
        }
    }
}

/// Carries out `plan` on a device that [`fill`] has filled if the plan needs that, and is otherwise
/// empty; returns when all its operations have completed.
///
/// `progress` is called now and then with the operations completed and their number.
pub async fn run(queue: &QueuePair, plan: &Plan, progress: impl FnMut(u64, u64)) -> Outcome {
    let mut session = Session::new(*plan, clock::now());
    match plan.load {
        Load::QueueDepth(depth) => {
            closed_loop(queue, &mut session, depth, progress).await;
            session.into_outcome()
        }
        Load::Rate { per_second } => open_loop(queue, session, per_second, progress).await,
    }
}

async fn closed_loop(
    queue: &QueuePair,
    session: &mut Session,
    depth: u32,
    mut progress: impl FnMut(u64, u64),
) {
    let total = session.limit();
    loop {
        while session.has_more() && session.outstanding() < u64::from(depth) {
            session.submit(clock::now(), |submission| queue.submit(submission));
        }
        if session.outstanding() == 0 {
            break;
        }
        session.complete(&queue.next().await);
        report(session, total, &mut progress);
    }
}

/// One task submits when an operation is due, whatever the other, which collects, waits for.
async fn open_loop(
    queue: &QueuePair,
    session: Session,
    per_second: u64,
    mut progress: impl FnMut(u64, u64),
) -> Outcome {
    let (start, total) = (clock::now(), session.limit());
    let session = Rc::new(RefCell::new(session));
    let submitter = (queue.clone(), session.clone());
    clock::spawn(async move {
        let (queue, session) = submitter;
        for index in 0..total {
            let due = arrival(start, index, per_second);
            clock::sleep_until(due, Stage::Queue).await;
            session.borrow_mut().submit(due, |submission| queue.submit(submission));
        }
    });
    for _ in 0..total {
        let completion = queue.next().await;
        let mut session = session.borrow_mut();
        session.complete(&completion);
        report(&session, total, &mut progress);
    }
    Rc::into_inner(session).expect("the submitter has ended").into_inner().into_outcome()
}

/// When operation `index` of a run that starts at `start` is due, at `per_second` operations a
/// second. Intervals are not rounded one by one, so that the rate is exact.
fn arrival(start: Nanos, index: u64, per_second: u64) -> Nanos {
    // A run has fewer than 2^32 operations: the product is below 2^62.
    start + Nanos(index * Nanos::from_secs(1).0 / per_second)
}

#[inline]
fn report(session: &Session, total: u64, progress: &mut impl FnMut(u64, u64)) {
    let done = session.completed();
    if done.is_multiple_of(PROGRESS_STEP) || done == total {
        progress(done, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_keep_the_rate_exactly() {
        for per_second in [1, 3, 7_000, 999_999_937, 4_000_000_000] {
            for index in [0, 1, 2, 999, per_second, u64::from(u32::MAX) - 2] {
                let exact = u128::from(index) * 1_000_000_000 / u128::from(per_second);
                let due = arrival(Nanos(5), index, per_second);
                assert_eq!(u128::from(due.0), 5 + exact, "{index} at {per_second}");
            }
        }
    }

    #[test]
    fn a_device_that_did_not_take_all_keys_is_named_with_how_many_fitted() {
        let error = |status| FillError { status, stored: 7, keys: 9 }.to_string();
        assert_eq!(error(Status::CAPACITY_EXCEEDED), "the device is full after 7 of 9 keys");
        assert_eq!(
            error(Status::INTERNAL_ERROR),
            "a store failed after 7 of 9 keys: Internal Error"
        );
    }
}
