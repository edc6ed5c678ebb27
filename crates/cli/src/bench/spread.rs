//! A queue whose commands are executed by any of several reactors, whichever is free.

use super::outside::{self, Measured};
use crate::args::BenchArgs;
use crate::output::Failure;
use base::Nanos;
use base::limits::KEY_BYTES_INLINE;
use clock::{Rank, Stage, Stages, TaskId};
use controller::{Completion, Controller, Queue, Submission};
use engine::WorkPool;
use reactor::{Peer, Reactor, Remote, RingError, stopped};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use workload::Plan;

/// Commands that a reactor executes at a time: more than a disk needs in flight.
const TASKS: usize = 1_024;

/// The other reactors, each on its own thread. Dropping this ends them.
#[derive(Default)]
pub(super) struct Crew {
    board: Arc<Board>,
    pool: Arc<WorkPool>,
    remotes: Vec<Remote>,
    threads: Vec<JoinHandle<Result<(), RingError>>>,
}

/// Parses the number of reactors.
pub(super) fn reactors(text: &str) -> Result<u8, Failure> {
    let refused = || Failure::Refused(format!("reactors are 1 to 64, not {text:?}"));
    text.parse().ok().filter(|count| (1..=64).contains(count)).ok_or_else(refused)
}

/// Refuses keys that do not fit an NVMe command.
pub(super) fn check_keys(plan: &Plan) -> Result<(), Failure> {
    if plan.key_bytes <= KEY_BYTES_INLINE {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "on a drive a key has 1 to {KEY_BYTES_INLINE} bytes here, and not {}",
        plan.key_bytes
    )))
}

/// Measures `plan` on `drive`, whose commands this reactor and those of `crew` execute. `begin` is
/// called once the keys that the plan reads are stored.
pub(super) async fn measure(
    args: &BenchArgs,
    plan: &Plan,
    drive: &Arc<Controller>,
    crew: &Crew,
    begin: impl FnOnce(),
) -> Result<Measured, Failure> {
    if crew.threads.is_empty() {
        return outside::measure(args, plan, &drive.queue_pair(), || None, begin).await;
    }
    let queue = Spread::new(drive, crew);
    outside::measure(args, plan, &queue, || None, begin).await
}

/// State that all reactors share.
#[derive(Default)]
struct Board(Mutex<Posted>);

#[derive(Default)]
struct Posted {
    /// The drive, once the host has opened it.
    drive: Option<Arc<Controller>>,
    /// Tasks of reactors that wait for the drive.
    starters: Vec<TaskId>,
    commands: VecDeque<(u64, Submission)>,
    /// By reactor: tasks that wait for a command.
    idle: Vec<Vec<TaskId>>,
    /// With their command numbers.
    done: VecDeque<(u64, Completion)>,
    waiters: VecDeque<TaskId>,
}

impl Board {
    fn posted(&self) -> MutexGuard<'_, Posted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue's end in the reactor of the host.
#[derive(Clone)]
struct Spread {
    board: Arc<Board>,
    asked: Rc<RefCell<Asked>>,
}

#[derive(Default)]
struct Asked {
    next_id: u64,
    /// Submission times of commands in flight.
    since: BTreeMap<u64, Nanos>,
}

impl Spread {
    /// Returns a queue to `drive`. This reactor and those of `crew` execute its commands.
    fn new(drive: &Arc<Controller>, crew: &Crew) -> Self {
        let board = crew.board.clone();
        {
            let mut posted = board.posted();
            posted.idle.resize_with(crew.threads.len() + 1, Vec::new);
            posted.drive = Some(drive.clone());
            posted.starters.drain(..).for_each(clock::wake);
        }
        start(&board, drive);
        Self { board, asked: Rc::default() }
    }
}

impl Crew {
    /// Starts the reactors. They do work of the drive's pool, and execute commands once there is a
    /// [`Spread`].
    pub(super) fn start(others: Vec<(Peer, Remote)>) -> Result<Self, Failure> {
        let mut crew = Self::default();
        for (peer, remote) in others {
            let (board, pool) = (crew.board.clone(), crew.pool.clone());
            let thread = Builder::new().name(format!("kvasir-{}", peer.number()));
            crew.remotes.push(remote.clone());
            let spawned = thread.spawn(move || {
                let work = async {
                    let _worker = pool.join();
                    clock::spawn(start_when_open(board));
                    stopped().await;
                };
                Reactor::among(peer, None).serve(&remote, work).map(drop)
            });
            let broken = |error: io::Error| Failure::Broken(format!("no thread starts: {error}"));
            crew.threads.push(spawned.map_err(broken)?);
        }
        Ok(crew)
    }

    /// Returns the pool whose work the reactors do.
    pub(super) fn pool(&self) -> Arc<WorkPool> {
        self.pool.clone()
    }

    /// Ends the reactors. The host must have no more commands, and the drive must be closed, or
    /// its cleaner must have ended: it could wait for a reactor without end.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.remotes.iter().for_each(Remote::stop);
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let sentence = format!("this machine gives not as many reactors: {error}");
                    return Err(Failure::Broken(sentence));
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.remotes.iter().for_each(Remote::stop);
        for thread in self.threads.drain(..) {
            // A second error follows from the first, which is reported instead.
            let _ = thread.join();
        }
    }
}

/// Waits for the drive, and starts to execute its commands.
async fn start_when_open(board: Arc<Board>) {
    let drive = loop {
        {
            let mut posted = board.posted();
            if let Some(drive) = &posted.drive {
                break drive.clone();
            }
            posted.starters.push(clock::current());
        }
        clock::park(Rank::Free, Stage::Queue).await;
    };
    start(&board, &drive);
}

/// Starts tasks in this reactor that execute commands of the board.
fn start(board: &Arc<Board>, controller: &Arc<Controller>) {
    for _ in 0..TASKS {
        clock::spawn(execute_all(board.clone(), controller.clone()));
    }
}

async fn execute_all(board: Arc<Board>, controller: Arc<Controller>) {
    let queue = controller.queue_pair();
    loop {
        let next = {
            let mut posted = board.posted();
            let next = posted.commands.pop_front();
            if next.is_none() {
                let task = clock::current();
                posted.idle[task.reactor_id()].push(task);
            }
            next
        };
        let Some((id, submission)) = next else {
            clock::park(Rank::Free, Stage::Queue).await;
            continue;
        };
        queue.submit(submission);
        let completion = queue.next().await;
        let waiter = {
            let mut posted = board.posted();
            posted.done.push_back((id, completion));
            posted.waiters.pop_front()
        };
        waiter.into_iter().for_each(clock::wake);
    }
}

impl Queue for Spread {
    fn submit(&self, submission: Submission) -> u64 {
        let id = {
            let asked = &mut *self.asked.borrow_mut();
            asked.next_id += 1;
            asked.since.insert(asked.next_id - 1, clock::host_now());
            asked.next_id - 1
        };
        let free = {
            let mut posted = self.board.posted();
            posted.commands.push_back((id, submission));
            posted.idle.iter_mut().max_by_key(|idle| idle.len()).and_then(Vec::pop)
        };
        free.into_iter().for_each(clock::wake);
        id
    }

    async fn next(&self) -> Completion {
        loop {
            let done = {
                let mut posted = self.board.posted();
                let done = posted.done.pop_front();
                if done.is_none() {
                    posted.waiters.push_back(clock::current());
                }
                done
            };
            if let Some((id, completion)) = done {
                return self.seen_here(id, completion);
            }
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

impl Spread {
    /// A completion as the host's reactor sees it. The time of both hops between the reactors
    /// counts as waiting.
    fn seen_here(&self, id: u64, completion: Completion) -> Completion {
        let submitted = self.asked.borrow_mut().since.remove(&id).expect("it was submitted");
        let completed = clock::host_now();
        let (latency, mut stages) = (completed - submitted, completion.stages);
        if stages.total() > latency {
            stages = Stages::default();
        }
        stages.add(Stage::Queue, latency - stages.total());
        Completion { id, submitted, completed, stages, ..completion }
    }
}
