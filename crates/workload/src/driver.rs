use crate::aftermath::Aftermath;
use crate::outcome::Outcome;
use crate::plan::{Load, Plan};
use crate::replay_plan::ReplayPlan;
use crate::session::{Contents, Finished, Paused, Session};
use crate::space::Space;
use base::Nanos;
use clock::{Rank, Stage};
use controller::{Completion, Queue};
use serde::{Deserialize, Serialize};
use spec::Status;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Completions between two calls of a progress callback: some milliseconds of wall time.
const PROGRESS_STEP: u64 = 4_096;

/// Calls of a progress callback in a run for a time.
const PROGRESS_STEPS: u64 = 100;

/// Outstanding stores during a fill: enough to keep every die of the built-in profiles busy.
const FILL_QUEUE_DEPTH: u32 = 64;

/// The keys stored before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// The number of keys.
    pub keys: u64,
    /// The time in the device's clock.
    pub elapsed: Nanos,
}

/// A fill failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillError {
    /// The status of the failed store.
    pub status: Status,
    /// The number of keys stored.
    pub stored: u64,
    /// The number of keys of the plan.
    pub keys: u64,
}

impl fmt::Display for FillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, stored, keys } = self;
        if *status == Status::CAPACITY_EXCEEDED {
            write!(f, "the device is full after {stored} of {keys} keys or blocks")
        } else {
            write!(f, "a store failed after {stored} of {keys} keys or blocks: {status}")
        }
    }
}

impl std::error::Error for FillError {}

/// Stores version 0 of every key of `plan`, and waits until all are acknowledged. Submits no store
/// after the first failure.
///
/// Calls `progress` regularly with the keys stored and their number.
pub async fn fill(
    queue: &impl Queue,
    plan: &Plan,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let session = Session::filling(plan, clock::host_now());
    store_all(queue, session, fill_queue_depth(plan), progress).await
}

/// Stores version 0 of the keys of `plan` from number `first` on, in the order of the numbers, and
/// waits until all are acknowledged. The keys before `first` must be stored already.
///
/// Fails, and calls `progress`, as [`fill`] does.
pub async fn fill_from(
    queue: &impl Queue,
    plan: &Plan,
    first: u64,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let session = Session::filling_from(plan, first, clock::host_now());
    store_all(queue, session, fill_queue_depth(plan), progress).await
}

/// Stores version 0 again, `operations` times, of uniformly drawn keys of `plan`, different ones in
/// each `round`. All keys must be stored already. Like [`fill`] it ends with the first error.
///
/// The namespace's content does not change, so any run of the plan may follow.
pub async fn overwrite(
    queue: &impl Queue,
    plan: &Plan,
    round: u32,
    operations: u64,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let session = Session::overwriting(plan, round, operations, clock::host_now());
    store_all(queue, session, fill_queue_depth(plan), progress).await
}

/// Blocks of zones reach their places only if they are written one at a time.
fn fill_queue_depth(plan: &Plan) -> u32 {
    if matches!(plan.space, Space::Zones(_)) { 1 } else { FILL_QUEUE_DEPTH }
}

/// Stores the keys that exist before the trace of `plan`, as [`fill`] does.
pub async fn fill_replay(
    queue: &impl Queue,
    plan: &ReplayPlan,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let session = Session::filling_replay(plan, clock::host_now());
    store_all(queue, session, FILL_QUEUE_DEPTH, progress).await
}

async fn store_all(
    queue: &impl Queue,
    session: Session,
    depth: u32,
    progress: impl FnMut(u64, u64),
) -> Result<Fill, FillError> {
    let (_, keys) = session.progress(session.started());
    let outcome = closed_loop(queue, session, depth, progress).await.into_outcome();
    match outcome.failure() {
        None => Ok(Fill { keys, elapsed: outcome.elapsed() }),
        Some(status) => {
            let stored = outcome.operations() - outcome.errors();
            Err(FillError { status, stored, keys })
        }
    }
}

/// Runs `plan` on a device that [`fill`] has filled if the plan needs that, and that is empty
/// otherwise. Returns when all operations have completed.
///
/// Calls `progress` regularly with the progress of the run and its end: in operations, or in
/// nanoseconds of the target's clock if the plan is for a time.
pub async fn run(queue: &impl Queue, plan: &Plan, progress: impl FnMut(u64, u64)) -> Outcome {
    let session = Session::new(plan, clock::host_now());
    carry_out(queue, session, plan.load, progress).await.into_outcome()
}

/// As [`run`], on keys with the given `contents`; without it, on keys as [`run`] expects them.
pub async fn run_on(
    queue: &impl Queue,
    plan: &Plan,
    contents: Option<Contents>,
    progress: impl FnMut(u64, u64),
) -> Finished {
    let session = Session::on(plan, contents, clock::host_now());
    carry_out(queue, session, plan.load, progress).await.into_finished(plan)
}

/// As [`run_on`], but pauses after `operations` were submitted and have ended.
pub async fn run_to_pause(
    queue: &impl Queue,
    plan: &Plan,
    contents: Option<Contents>,
    operations: u64,
    progress: impl FnMut(u64, u64),
) -> Paused {
    let session = Session::on(plan, contents, clock::host_now()).pausing_after(operations);
    Paused::new(carry_out(queue, session, plan.load, progress).await, plan.load)
}

/// Continues a paused run of `plan` on another queue.
pub async fn finish(
    queue: &impl Queue,
    plan: &Plan,
    paused: Paused,
    progress: impl FnMut(u64, u64),
) -> Finished {
    let load = paused.load;
    carry_out(queue, paused.resume(), load, progress).await.into_finished(plan)
}

async fn carry_out(
    queue: &impl Queue,
    session: Session,
    load: Load,
    progress: impl FnMut(u64, u64),
) -> Session {
    match load {
        Load::QueueDepth(depth) => closed_loop(queue, session, depth, progress).await,
        Load::Rate { per_second, outstanding } => {
            let pace = Arrivals { per_second: Some(per_second), outstanding };
            open_loop(queue, session, pace, progress).await
        }
    }
}

/// As [`run`] at a queue depth, but for `time` only, and leaves outstanding commands unfinished.
/// The caller cuts the device's power at that instant. Also returns the content that the device
/// must then hold. Not for zones, nor for a plan at a rate.
///
/// Calls `progress` regularly with the progress and the end of the run, in nanoseconds.
pub async fn run_until(
    queue: &impl Queue,
    plan: &Plan,
    time: Nanos,
    mut progress: impl FnMut(u64, u64),
) -> (Outcome, Aftermath) {
    let Load::QueueDepth(depth) = plan.load else { panic!("a run that is cut off has a depth") };
    let session = Rc::new(RefCell::new(Some(Session::recorded(plan, clock::host_now()))));
    let start = clock::now();
    let (running, queue) = (session.clone(), queue.clone());
    clock::spawn(async move { run_while_there(&queue, &running, depth).await });
    for step in 1..=PROGRESS_STEPS {
        clock::sleep_until(start + Nanos(time.0 / PROGRESS_STEPS * step), Stage::Core).await;
        progress(time.0 / PROGRESS_STEPS * step, time.0);
    }
    clock::sleep_until(start + time, Stage::Core).await;
    let session = session.borrow_mut().take();
    session.expect("it is taken once").into_aftermath()
}

/// Runs until the session ends or the caller takes it away.
async fn run_while_there(queue: &impl Queue, session: &RefCell<Option<Session>>, depth: u32) {
    let fill = || {
        let mut session = session.borrow_mut();
        let Some(session) = session.as_mut() else { return false };
        while session.outstanding() < u64::from(depth) && session.has_more(clock::host_now()) {
            session.submit(clock::host_now(), |submission| queue.submit(submission));
        }
        session.outstanding() > 0
    };
    while fill() {
        let completion = queue.next().await;
        if let Some(session) = session.borrow_mut().as_mut() {
            take(queue, session, &completion, &mut |_, _| ());
        }
    }
}

/// Repeats the recorded operations of `plan` on a device that [`fill_replay`] has filled and that
/// is otherwise empty. Returns when all operations have completed.
///
/// Calls `progress` regularly with the number of completed operations and of all operations.
pub async fn replay(
    queue: &impl Queue,
    plan: &ReplayPlan,
    progress: impl FnMut(u64, u64),
) -> Outcome {
    assert!(plan.queue_depth > 0, "something is to be outstanding");
    let session = Session::replaying(plan, clock::host_now());
    let session = if session.due().is_some() {
        open_loop(queue, session, Arrivals::RECORDED, progress).await
    } else {
        closed_loop(queue, session, plan.queue_depth, progress).await
    };
    session.into_outcome()
}

async fn closed_loop(
    queue: &impl Queue,
    mut session: Session,
    depth: u32,
    mut progress: impl FnMut(u64, u64),
) -> Session {
    loop {
        while session.outstanding() < u64::from(depth) {
            let due = clock::host_now();
            if session.is_held() || !session.has_more(due) {
                break;
            }
            session.submit(due, |submission| queue.submit(submission));
        }
        if session.outstanding() == 0 {
            break;
        }
        let completion = queue.next().await;
        take(queue, &mut session, &completion, &mut progress);
        if session.completed().is_multiple_of(COMPLETIONS_A_TURN) {
            clock::give_way().await;
        }
    }
    report_end(&session, progress);
    session
}

/// Completions that are checked, and followed by another operation, before the device gets a turn.
const COMPLETIONS_A_TURN: u64 = 8;

/// Late operations submitted in sequence before the device gets a turn. The device may run on this
/// processor, so it would starve if submitting took longer than the rate allows. Its cleaner works
/// in pieces of less than 50 us, and gives way between them also while stores wait for it. So the
/// load must not take much longer.
const LATE_IN_A_ROW: u32 = 4;

/// When operations are due, and the most outstanding ones.
#[derive(Clone, Copy)]
struct Arrivals {
    /// The rate; `None` for the recorded times.
    per_second: Option<u64>,
    outstanding: Option<u32>,
}

impl Arrivals {
    const RECORDED: Self = Self { per_second: None, outstanding: None };

    fn is_full(self, session: &Session) -> bool {
        self.outstanding.is_some_and(|most| session.outstanding() >= u64::from(most))
    }
}

/// Submits each operation when it is due in one task, and collects completions in another.
async fn open_loop(
    queue: &impl Queue,
    session: Session,
    arrivals: Arrivals,
    mut progress: impl FnMut(u64, u64),
) -> Session {
    let per_second = arrivals.per_second;
    let shared = Rc::new((RefCell::new(Some(session)), Cell::new(None)));
    let submitter = (queue.clone(), shared.clone());
    clock::spawn(async move {
        let (queue, shared) = submitter;
        let (session, held) = &*shared;
        let next = || next_due(session.borrow().as_ref()?, per_second);
        let must_wait = |session: &Session| session.is_held() || arrivals.is_full(session);
        let mut late = 0;
        while let Some(due) = next() {
            late = if due < clock::host_now() { late + 1 } else { 0 };
            if late % LATE_IN_A_ROW == LATE_IN_A_ROW - 1 {
                clock::give_way().await;
            }
            clock::sleep_until(due, Stage::Queue).await;
            while session.borrow().as_ref().is_some_and(must_wait) {
                held.set(Some(clock::current()));
                clock::park(Rank::Free, Stage::Queue).await;
            }
            // The device may have ended since.
            if next().is_none() {
                return;
            }
            let mut session = session.borrow_mut();
            let session = session.as_mut().expect("the next operation is its own");
            session.submit(due, |submission| queue.submit(submission));
        }
    });
    let (session, held) = &*shared;
    let is_over =
        |session: &Session| session.outstanding() == 0 && next_due(session, per_second).is_none();
    while !session.borrow().as_ref().is_none_or(is_over) {
        let completion = queue.next().await;
        if let Some(session) = session.borrow_mut().as_mut() {
            take(queue, session, &completion, &mut progress);
        }
        if let Some(submitter) = held.take() {
            clock::wake(submitter);
        }
    }
    // If the device has ended, the submitter may sleep until its next operation would be due.
    let session = session.take().expect("only this task takes it");
    report_end(&session, progress);
    session
}

/// Returns when the next operation is due, at `per_second` operations a second or as recorded;
/// `None` after the last.
fn next_due(session: &Session, per_second: Option<u64>) -> Option<Nanos> {
    let due = match per_second {
        Some(per_second) => arrival(session.started(), session.submitted(), per_second),
        None => session.due()?,
    };
    session.has_more(due).then_some(due)
}

/// Returns when operation `index` of a run that starts at `start` is due, at `per_second`
/// operations a second. Rounds the product, not each interval, so that the rate is exact.
fn arrival(start: Nanos, index: u64, per_second: u64) -> Nanos {
    // A run has fewer than 2^32 operations: the product is below 2^62.
    start + Nanos(index * Nanos::from_secs(1).0 / per_second)
}

/// Counts a completion.
#[inline]
fn take(
    queue: &impl Queue,
    session: &mut Session,
    completion: &Completion,
    progress: &mut impl FnMut(u64, u64),
) {
    let seen = clock::host_now();
    let has_ended = session.complete(completion, seen, |submission| queue.submit(submission));
    if has_ended && session.completed().is_multiple_of(PROGRESS_STEP) {
        let (done, total) = session.progress(seen);
        // The caller reports the end when the last one has completed.
        if done < total {
            progress(done, total);
        }
    }
}

fn report_end(session: &Session, mut progress: impl FnMut(u64, u64)) {
    let (done, total) = session.progress(clock::host_now());
    progress(done, total);
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
        assert_eq!(
            error(Status::CAPACITY_EXCEEDED),
            "the device is full after 7 of 9 keys or blocks"
        );
        assert_eq!(
            error(Status::INTERNAL_ERROR),
            "a store failed after 7 of 9 keys or blocks: Internal Error"
        );
    }
}
