//! Pieces of work that any reactor of a pool may do.

use crate::error::Error;
use clock::{LocalFuture, Lock, Notify, Order, Rank, Stage, TaskId};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A piece of work. The reactor that takes it makes its future, which stays there.
type Piece = Box<dyn FnOnce() -> LocalFuture<'static, ()> + Send>;

/// Reactors that do pieces of one another's work.
///
/// A task that has work calls [`Self::run`]. It takes its pieces one by one, and so do the
/// [`PoolWorker`]s, of which each other reactor may have one or several. Without workers the task
/// does all pieces, in order.
///
/// The pool's lock is taken alone, as a stretch of its own.
pub struct WorkPool(Lock<State>);

#[derive(Default)]
struct State {
    /// By job: the pieces that no reactor has begun. No job has none.
    jobs: BTreeMap<u64, VecDeque<Piece>>,
    next_job: u64,
    workers: usize,
    /// Workers that wait for a piece.
    idle: Vec<TaskId>,
}

/// A task that does pieces of a pool's work, in the reactor that started it.
#[derive(Debug)]
pub struct PoolWorker {
    worker: Rc<Worker>,
    task: TaskId,
}

#[derive(Debug)]
struct Worker {
    pool: Arc<WorkPool>,
    is_leaving: Cell<bool>,
    has_left: Cell<bool>,
    left: Notify,
}

/// What the pool counts as a worker. The worker's task owns it, so it drops when the worker has
/// left, and also when the reactor ends.
struct Member {
    worker: Rc<Worker>,
    /// `None` until the task begins.
    task: Option<TaskId>,
}

/// The results of a job, by piece.
struct Results<T> {
    /// `None` for a piece that has not ended, and for one that was dropped.
    done: Vec<Option<T>>,
    missing: usize,
    /// The task that waits for the last of them.
    waiter: Option<TaskId>,
}

/// Where the result of a piece goes. It drops when the piece has ended, or with the piece when the
/// reactor that began it ends.
struct Place<T> {
    results: Arc<Lock<Results<T>>>,
    number: usize,
    result: Option<T>,
}

impl Default for WorkPool {
    fn default() -> Self {
        Self(Lock::new(Order::Pool, State::default()))
    }
}

impl WorkPool {
    /// Starts a task in this reactor that does pieces of the pool's work, one at a time.
    pub fn join(self: &Arc<Self>) -> PoolWorker {
        let member = Member::new(self.clone());
        let worker = member.worker.clone();
        let task = clock::spawn(member.work());
        PoolWorker { worker, task }
    }

    /// As [`Self::join`], for a worker whose reactor ends within a piece, after so many others.
    #[cfg(test)]
    pub(crate) fn join_and_end(self: &Arc<Self>, after: usize) {
        let mut member = Member::new(self.clone());
        clock::spawn(async move {
            member.task = Some(clock::current());
            for _ in 0..after {
                let piece = member.worker.next().await.expect("it does not leave");
                piece().await;
            }
            drop(member.worker.next().await);
        });
    }

    /// Returns how many tasks do the pieces of a job: the one that has it, and the workers.
    pub fn tasks(&self) -> usize {
        1 + self.0.lock().workers
    }

    /// Has all `pieces` done by this task and the pool's workers, and returns their results in
    /// order. The task holds nothing that a piece waits for. The time that it waits for workers
    /// goes to `stage`.
    ///
    /// [`Error::ReactorEnded`] when a reactor has ended within a piece that it had begun; all other
    /// pieces have been done by then.
    pub async fn run<T, F, P>(&self, stage: Stage, pieces: Vec<P>) -> Result<Vec<T>, Error>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        P: FnOnce() -> F + Send + 'static,
    {
        let results = self.run_each(stage, pieces).await;
        results.into_iter().collect::<Option<_>>().ok_or(Error::ReactorEnded)
    }

    /// As [`Self::run`], but returns `None` for a piece within which a reactor has ended, and the
    /// results of all others.
    pub(crate) async fn run_each<T, F, P>(&self, stage: Stage, pieces: Vec<P>) -> Vec<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        P: FnOnce() -> F + Send + 'static,
    {
        let results = Arc::new(Lock::new(Order::Pool, Results::missing(pieces.len())));
        let pieces = pieces.into_iter().enumerate();
        let pieces = pieces.map(|(number, piece)| -> Piece {
            let place = Place { results: results.clone(), number, result: None };
            Box::new(move || {
                Box::pin(async move {
                    // What the piece holds drops before its place, which may wake the task.
                    let result = piece().await;
                    place.end(result);
                })
            })
        });
        let job = self.add(pieces.collect());
        while let Some(piece) = self.take_of(job) {
            piece().await;
        }
        if results.lock().is_awaited() {
            clock::park(Rank::Free, stage).await;
        }
        std::mem::take(&mut results.lock().done)
    }

    /// Adds a job, and wakes a worker for each piece but the first.
    fn add(&self, pieces: VecDeque<Piece>) -> u64 {
        let mut state = self.0.lock();
        state.next_job += 1;
        let (job, helpers) = (state.next_job, pieces.len().saturating_sub(1));
        if !pieces.is_empty() {
            state.jobs.insert(job, pieces);
        }
        let busy = state.idle.len().saturating_sub(helpers);
        let woken = state.idle.split_off(busy);
        // Each worker that is woken takes this lock first.
        drop(state);
        woken.into_iter().for_each(clock::wake);
        job
    }

    fn take_of(&self, job: u64) -> Option<Piece> {
        self.0.lock().take_of(job)
    }
}

impl State {
    fn take_of(&mut self, job: u64) -> Option<Piece> {
        let pieces = self.jobs.get_mut(&job)?;
        let piece = pieces.pop_front();
        if pieces.is_empty() {
            self.jobs.remove(&job);
        }
        piece
    }

    /// Takes a piece of the oldest job.
    fn take(&mut self) -> Option<Piece> {
        let (job, _) = self.jobs.first_key_value()?;
        self.take_of(*job)
    }
}

impl Member {
    fn new(pool: Arc<WorkPool>) -> Self {
        pool.0.lock().workers += 1;
        let (is_leaving, has_left, left) = (Cell::new(false), Cell::new(false), Notify::new());
        Self { worker: Rc::new(Worker { pool, is_leaving, has_left, left }), task: None }
    }

    async fn work(mut self) {
        clock::name_task("pool worker");
        self.task = Some(clock::current());
        while let Some(piece) = self.worker.next().await {
            piece().await;
            clock::give_way().await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let Self { worker, task } = self;
        {
            let mut state = worker.pool.0.lock();
            state.workers -= 1;
            state.idle.retain(|idle| Some(*idle) != *task);
            // The worker may have been woken for a piece that it did not take.
            if !state.jobs.is_empty() {
                state.idle.drain(..).for_each(clock::wake_from_ended);
            }
        }
        worker.has_left.set(true);
        worker.left.notify();
    }
}

impl Worker {
    /// Waits for a piece. Returns `None` when the worker leaves.
    async fn next(&self) -> Option<Piece> {
        loop {
            {
                let mut state = self.pool.0.lock();
                if self.is_leaving.get() {
                    return None;
                }
                if let Some(piece) = state.take() {
                    return Some(piece);
                }
                state.idle.push(clock::current());
            }
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

impl PoolWorker {
    /// Lets the worker take no further piece, and waits until it has done the one that it has
    /// begun. Its reactor may end then. Other reactors do the pieces that are left.
    pub async fn leave(self) {
        let Self { worker, task } = self;
        worker.is_leaving.set(true);
        {
            let mut state = worker.pool.0.lock();
            // A worker that is not among these was woken already, or does a piece.
            if let Some(at) = state.idle.iter().position(|idle| *idle == task) {
                state.idle.swap_remove(at);
                clock::wake(task);
            }
        }
        while !worker.has_left.get() {
            worker.left.wait().await;
        }
    }
}

impl<T> Results<T> {
    fn missing(count: usize) -> Self {
        Self { done: (0..count).map(|_| None).collect(), missing: count, waiter: None }
    }

    /// Puts the result of a piece. Returns the task that waits for the last of them.
    fn put(&mut self, number: usize, result: Option<T>) -> Option<TaskId> {
        self.done[number] = result;
        self.missing -= 1;
        if self.missing == 0 { self.waiter.take() } else { None }
    }

    /// Returns whether results are missing. The current task is woken with the last.
    fn is_awaited(&mut self) -> bool {
        let is_awaited = self.missing > 0;
        self.waiter = is_awaited.then(clock::current);
        is_awaited
    }
}

impl<T> Place<T> {
    fn end(mut self, result: T) {
        self.result = Some(result);
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let waiter = self.results.lock().put(self.number, self.result.take());
        // The task that waits takes this lock first.
        waiter.into_iter().for_each(clock::wake_from_ended);
    }
}

impl fmt::Debug for WorkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkPool")
    }
}
