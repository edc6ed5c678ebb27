//! Reactors that do pieces of one another's jobs, and workers that leave.

use crate::sync::Mutex;
use crate::work_pool::{PoolWorker, WorkPool};
use base::Nanos;
use clock::{LocalFuture, Rank, Stage, TaskId};
use loom::thread::{self, JoinHandle};
use reactor::{LoomPeers, check_by_loom};
use std::sync::Arc;

/// An event for which one task of any reactor waits.
#[derive(Default)]
struct Event(Mutex<(bool, Option<TaskId>)>);

impl Event {
    fn happen(&self) {
        let waiter = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        waiter.into_iter().for_each(clock::wake);
    }

    async fn wait(&self) {
        let has_happened = {
            let mut state = self.0.lock().unwrap();
            state.1 = (!state.0).then(clock::current);
            state.0
        };
        if !has_happened {
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

/// A pool and the reactors that use it.
#[derive(Clone)]
struct Team {
    pool: Arc<WorkPool>,
    peers: LoomPeers,
}

impl Team {
    fn new(reactors: u32) -> Self {
        Self { pool: Arc::default(), peers: LoomPeers::new(reactors) }
    }

    /// Runs a reactor with a worker on a thread of its own.
    fn spawn<R, F>(&self, number: u32, run: R) -> JoinHandle<()>
    where
        R: FnOnce(PoolWorker) -> F + 'static,
        F: Future<Output = ()>,
    {
        let Self { pool, peers } = self.clone();
        thread::spawn(move || peers.run(number, async { run(pool.join()).await }))
    }

    /// Runs a reactor whose worker leaves when `end` has happened.
    fn help_and_leave(&self, number: u32) -> JoinHandle<()> {
        self.spawn(number, |worker| async {
            yield_now().await;
            worker.leave().await;
        })
    }

    fn help_until(&self, number: u32, end: &Arc<Event>) -> JoinHandle<()> {
        let end = end.clone();
        self.spawn(number, |worker| async move {
            end.wait().await;
            worker.leave().await;
        })
    }

    async fn do_job(&self, pieces: usize) {
        let all = (0..pieces).map(|number| move || async move { number });
        let results = self.pool.run(Stage::Queue, all.collect()).await.unwrap();
        assert_eq!(results, (0..pieces).collect::<Vec<_>>());
    }

    /// Does a job of two pieces, each of which waits until the other has begun.
    async fn do_job_together(&self) {
        let begun: Arc<[Event; 2]> = Arc::default();
        let pieces = (0..2).map(|number| {
            let begun = begun.clone();
            move || -> LocalFuture<'static, ()> {
                Box::pin(async move {
                    begun[number].happen();
                    begun[1 - number].wait().await;
                })
            }
        });
        self.pool.run(Stage::Queue, pieces.collect()).await.unwrap();
    }
}

/// Lets the other tasks of this reactor run.
async fn yield_now() {
    clock::sleep(Nanos(1), Stage::Queue).await;
}

#[test]
fn loom_task_gets_the_result_of_each_piece() {
    check_by_loom(None, || {
        let (team, end) = (Team::new(2), Arc::default());
        let helper = team.help_until(1, &end);
        team.peers.run(0, async {
            team.do_job(2).await;
            end.happen();
        });
        helper.join().unwrap();
        assert_eq!(team.pool.tasks(), 1);
    });
}

/// A deadlock if the worker is not woken.
#[test]
fn loom_idle_worker_takes_a_piece_at_once() {
    check_by_loom(None, || {
        let (team, end) = (Team::new(2), Arc::default());
        let helper = team.help_until(1, &end);
        team.peers.run(0, async {
            team.do_job_together().await;
            end.happen();
        });
        helper.join().unwrap();
    });
}

#[test]
fn loom_worker_that_leaves_strands_no_piece() {
    check_by_loom(None, || {
        let team = Team::new(2);
        let helper = team.help_and_leave(1);
        team.peers.run(0, team.do_job(2));
        helper.join().unwrap();
        assert_eq!(team.pool.tasks(), 1);
    });
}

/// The pool would wake a task that is gone.
#[test]
fn loom_worker_that_has_left_is_not_woken() {
    check_by_loom(None, || {
        let (team, left, end) = (Team::new(2), Arc::<Event>::default(), Arc::<Event>::default());
        let (has_left, until) = (left.clone(), end.clone());
        let helper = team.spawn(1, |worker| async move {
            yield_now().await;
            worker.leave().await;
            has_left.happen();
            until.wait().await;
        });
        team.peers.run(0, async {
            left.wait().await;
            team.do_job(3).await;
            end.happen();
        });
        helper.join().unwrap();
    });
}

/// Both of two workers take pieces, and one leaves.
#[test]
fn loom_job_ends_though_one_of_two_workers_leaves() {
    check_by_loom(Some(4), || {
        let (team, end) = (Team::new(3), Arc::default());
        let leaving = team.help_and_leave(1);
        let helper = team.help_until(2, &end);
        team.peers.run(0, async {
            team.do_job(3).await;
            end.happen();
        });
        leaving.join().unwrap();
        helper.join().unwrap();
        assert_eq!(team.pool.tasks(), 1);
    });
}

/// A deadlock if a worker that was woken, and leaves, does not wake the other.
#[test]
fn loom_worker_that_leaves_passes_its_wake_on() {
    check_by_loom(Some(2), || {
        let (team, end) = (Team::new(3), Arc::default());
        let leaving = team.help_and_leave(1);
        let helper = team.help_until(2, &end);
        team.peers.run(0, async {
            team.do_job_together().await;
            end.happen();
        });
        leaving.join().unwrap();
        helper.join().unwrap();
    });
}

#[test]
fn loom_two_jobs_end_though_each_worker_leaves_after_its_own() {
    check_by_loom(None, || {
        let team = Team::new(2);
        let other = team.clone();
        let helper = team.spawn(1, |worker| async move {
            other.do_job(2).await;
            worker.leave().await;
        });
        team.peers.run(0, async {
            let worker = team.pool.join();
            team.do_job(2).await;
            worker.leave().await;
        });
        helper.join().unwrap();
    });
}
