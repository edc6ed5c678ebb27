//! Pieces of work that several reactors do.

use base::{Nanos, Rng};
use clock::{Rank, Stage};
use engine::{Error, WorkPool};
use reactor::{PeerGroup, Reactor, Remote, peers};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const PIECES: u64 = 40;

/// Which reactor began which piece, in order.
type Begun = Arc<Mutex<Vec<(u32, u64)>>>;

/// Does a job of pieces that each take a time of their own, by the seed, and checks its results.
async fn do_job(pool: &WorkPool, begun: &Begun, seed: u64) {
    let mut rng = Rng::new(seed);
    let pieces = (0..PIECES).map(|number| {
        let (begun, time) = (begun.clone(), Nanos(rng.below(100)));
        move || async move {
            begun.lock().expect("no task panics").push((clock::reactor_id(), number));
            clock::sleep(time, Stage::Queue).await;
            number * number
        }
    });
    let squares = pool.run(Stage::Queue, pieces.collect()).await.expect("no reactor ends");
    assert_eq!(squares, (0..PIECES).map(|number| number * number).collect::<Vec<_>>());
}

fn begun_by(begun: &Begun, reactor: u32) -> Vec<u64> {
    let begun = begun.lock().expect("no task panics");
    begun.iter().filter(|(by, _)| *by == reactor).map(|(_, number)| *number).collect()
}

/// Does two jobs after each other with a worker in each of `reactors` but the first. Returns which
/// reactor began which piece. With `leaves`, the workers leave during the first job.
fn do_among(reactors: usize, seed: u64, leaves: bool) -> Vec<(u32, u64)> {
    let (pool, begun) = (Arc::new(WorkPool::default()), Begun::default());
    let mut group = PeerGroup::new(reactors, seed, Some(seed));
    let mut rng = Rng::new(!seed);
    for place in 1..reactors {
        let (pool, begun, after) = (pool.clone(), begun.clone(), Nanos(rng.below(400)));
        group.places().spawn(place, async move {
            let worker = pool.join();
            if leaves {
                clock::sleep(after, Stage::Queue).await;
                let had = begun_by(&begun, clock::reactor_id());
                worker.leave().await;
                clock::sleep(Nanos(10_000), Stage::Queue).await;
                assert_eq!(begun_by(&begun, clock::reactor_id()), had, "it has left");
            }
        });
    }
    let seen = begun.clone();
    group.run(async move {
        do_job(&pool, &seen, seed).await;
        do_job(&pool, &seen, !seed).await;
        clock::sleep(Nanos(20_000), Stage::Queue).await;
    });
    let begun = begun.lock().expect("no task panics").clone();
    let mut numbers: Vec<u64> = begun.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..2 * PIECES).map(|number| number / 2).collect::<Vec<_>>());
    begun
}

#[test]
fn a_task_without_workers_does_all_pieces_in_order() {
    Reactor::new(None).run(async {
        let (pool, begun) = (WorkPool::default(), Begun::default());
        do_job(&pool, &begun, 1).await;
        assert_eq!(begun_by(&begun, 0), (0..PIECES).collect::<Vec<_>>());
        let none: Vec<fn() -> std::future::Ready<u64>> = Vec::new();
        assert_eq!(pool.run(Stage::Queue, none).await, Ok(Vec::new()));
    });
}

#[test]
fn each_reactor_does_pieces_and_a_seed_says_which() {
    for seed in 0..100 {
        for reactors in 2..=4 {
            let begun = do_among(reactors, seed, false);
            let by: BTreeSet<u32> = begun.iter().map(|(by, _)| *by).collect();
            assert_eq!(by.len(), reactors, "seed {seed}");
            assert_eq!(do_among(reactors, seed, false), begun, "seed {seed}");
        }
    }
}

#[test]
fn pieces_of_workers_that_leave_are_done_by_others() {
    let left = (0..200).filter(|seed| {
        let begun = do_among(1 + usize::try_from(1 + seed % 3).unwrap(), *seed, true);
        begun.iter().any(|(by, _)| *by > 0)
    });
    assert!(left.count() > 100, "most leave after they have done a piece");
}

#[test]
fn jobs_of_several_reactors_are_done_at_once() {
    for seed in 0..100 {
        let pool = Arc::new(WorkPool::default());
        let (begun, done) = ([(); 3].map(|()| Begun::default()), Arc::new(Mutex::new(0)));
        let mut group = PeerGroup::new(3, seed, Some(seed));
        for (place, begun) in begun.iter().cloned().enumerate() {
            let (pool, done) = (pool.clone(), done.clone());
            group.places().spawn(place, async move {
                drop(pool.join());
                do_job(&pool, &begun, seed + place as u64).await;
                *done.lock().unwrap() += 1;
            });
        }
        group.run(async { clock::sleep(Nanos(10_000), Stage::Queue).await });
        assert_eq!(*done.lock().unwrap(), 3, "seed {seed}");
        let helped =
            (0..3).filter(|of| begun[*of as usize].lock().unwrap().iter().any(|(by, _)| by != of));
        assert!(helped.count() > 0, "seed {seed}");
    }
}

/// Does a job of two pieces, each of which waits until the other has begun.
async fn do_job_together(pool: &WorkPool) {
    let begun = Arc::new(AtomicU32::default());
    let pieces = (0..2).map(|_| {
        let begun = begun.clone();
        move || async move {
            begun.fetch_add(1, Ordering::SeqCst);
            for _ in 0..1_000 {
                if begun.load(Ordering::SeqCst) == 2 {
                    return;
                }
                clock::sleep(Nanos(1), Stage::Queue).await;
            }
            panic!("no worker takes the other piece");
        }
    });
    pool.run(Stage::Queue, pieces.collect()).await.expect("no reactor ends");
}

#[test]
fn an_idle_worker_takes_the_piece_of_one_that_leaves() {
    for seed in 0..100 {
        let (pool, leaving) = (Arc::new(WorkPool::default()), Arc::new(Mutex::new(None)));
        let mut group = PeerGroup::new(3, seed, Some(seed));
        let (of_second, of_third) = (pool.clone(), pool.clone());
        let to_leave = leaving.clone();
        group.places().spawn(1, async move {
            let worker = of_second.join();
            *to_leave.lock().unwrap() = Some(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
            worker.leave().await;
        });
        group.places().spawn(2, async move { drop(of_third.join()) });
        group.run(async move {
            clock::sleep(Nanos(1), Stage::Queue).await;
            // Its reactor runs this task first, then the worker, which the job may have woken.
            clock::wake(leaving.lock().unwrap().expect("it has begun"));
            do_job_together(&pool).await;
        });
    }
}

/// Runs `work` in a reactor of this thread, and a worker in another thread, whose reactor ends
/// 100 ms after `is_due`.
fn do_beside_one_that_ends<T: 'static>(
    pool: &Arc<WorkPool>,
    is_due: impl Fn() -> bool + Send + 'static,
    work: impl Future<Output = T> + 'static,
) -> T {
    let remotes = [(); 2].map(|()| Remote::new().expect("the system has a ring"));
    let [first, second] = peers(&remotes).try_into().expect("two places");
    let [ours, theirs] = remotes;
    let of_thread = pool.clone();
    let thread = std::thread::spawn(move || {
        let until_due = async move {
            clock::sleep(Nanos::from_millis(10), Stage::Queue).await;
            let _worker = of_thread.join();
            while !is_due() {
                clock::sleep(Nanos::from_micros(100), Stage::Queue).await;
            }
            clock::sleep(Nanos::from_millis(100), Stage::Queue).await;
        };
        Reactor::among(second, None).serve(&theirs, until_due).map(drop)
    });
    let result = Rc::new(RefCell::new(None));
    let found = result.clone();
    let done = Reactor::among(first, None).serve(&ours, async move {
        clock::spawn(async move { *found.borrow_mut() = Some(work.await) });
        for _ in 0..10_000 {
            if result.borrow().is_some() {
                break;
            }
            clock::sleep(Nanos::from_micros(1_000), Stage::Queue).await;
        }
        result.take()
    });
    thread.join().expect("no task panics").expect("the system has a ring");
    done.expect("the system has a ring").0.expect("the work ends")
}

/// Waits until the pool has so many tasks.
async fn wait_for_tasks(pool: &WorkPool, tasks: usize) {
    while pool.tasks() != tasks {
        clock::sleep(Nanos::from_micros(100), Stage::Queue).await;
    }
}

/// Has two pieces done, of which another thread begins one. That thread ends within it.
async fn do_among_threads(pool: Arc<WorkPool>, begun: Arc<AtomicBool>) -> Result<Vec<u64>, Error> {
    wait_for_tasks(&pool, 2).await;
    let pieces = (0..2).map(|number| {
        let begun = begun.clone();
        move || async move {
            if clock::reactor_id() == 1 {
                begun.store(true, Ordering::SeqCst);
                clock::sleep(Nanos::from_secs(3_600), Stage::Queue).await;
            }
            while !begun.load(Ordering::SeqCst) {
                clock::sleep(Nanos::from_micros(100), Stage::Queue).await;
            }
            number
        }
    });
    let done = pool.run(Stage::Queue, pieces.collect()).await;
    wait_for_tasks(&pool, 1).await;
    done
}

#[test]
fn a_job_fails_if_a_reactor_ends_within_its_piece_and_the_pool_forgets_its_worker() {
    let (pool, begun) = (Arc::new(WorkPool::default()), Arc::new(AtomicBool::default()));
    let seen = begun.clone();
    let work = do_among_threads(pool.clone(), begun);
    // By 100 ms later this thread has done its piece, and waits.
    let result = do_beside_one_that_ends(&pool, move || seen.load(Ordering::SeqCst), work);
    assert_eq!(result, Err(Error::ReactorEnded));
}

#[test]
fn the_pool_forgets_a_worker_whose_reactor_ends_while_it_is_idle() {
    let (pool, joined) = (Arc::new(WorkPool::default()), Arc::new(AtomicBool::default()));
    let (in_pool, seen) = (pool.clone(), joined.clone());
    let work = async move {
        drop(in_pool.join());
        wait_for_tasks(&in_pool, 3).await;
        joined.store(true, Ordering::SeqCst);
        wait_for_tasks(&in_pool, 2).await;
        // The pool wakes the worker that became idle last, which is that of this reactor now.
        do_job_together(&in_pool).await;
    };
    do_beside_one_that_ends(&pool, move || seen.load(Ordering::SeqCst), work);
}
