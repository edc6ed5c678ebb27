//! Locks that another thread holds are counted, with the time until it gives them back.

use base::Nanos;
use clock::{Lock, LockWaits, Order, Schedule, Section, install, lock_waits, uninstall};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Nanoseconds between two readings of the wall clock of [`waits_of`].
const TICK: u64 = 1_000;

/// Many times what a step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the waits of a thread that calls `lock`, while another thread holds what `hold` returns
/// until the first reads its wall clock. With `is_held` false it is given back before.
fn waits_of<'a, G>(
    is_held: bool,
    hold: impl FnOnce() -> G + Send + 'a,
    lock: impl FnOnce(),
) -> LockWaits {
    thread::scope(|scope| {
        let ((hold_it, held), (give_back, given_back)) = (channel(), channel());
        let holder = scope.spawn(move || {
            let guard = hold();
            hold_it.send(()).unwrap();
            // A lock that reads no wall clock waits until then.
            let _ = given_back.recv_timeout(TIMEOUT);
            drop(guard);
        });
        held.recv().unwrap();
        let readings = Cell::new(0);
        let mut schedule = Schedule::new(None);
        let releaser = give_back.clone();
        schedule.set_wall(Some(Box::new(move || {
            // The holder has ended after the first one.
            let _ = releaser.send(());
            readings.set(readings.get() + 1);
            Nanos(readings.get() * TICK)
        })));
        if !is_held {
            give_back.send(()).unwrap();
            holder.join().unwrap();
        }
        install(Box::new(schedule));
        lock();
        let waits = lock_waits();
        uninstall();
        waits
    })
}

const WAITED_ONCE: LockWaits = LockWaits { count: 1, time: Nanos(TICK) };

/// Checks one way to lock: `hold` in another thread, and `lock` in one whose waits are counted.
fn check<'a, G>(hold: impl Fn() -> G + Copy + Send + 'a, lock: impl Fn()) {
    assert_eq!(waits_of(true, hold, &lock), WAITED_ONCE);
    assert_eq!(waits_of(false, hold, &lock), LockWaits::default());
}

#[test]
fn a_lock_that_another_thread_holds_is_counted_once() {
    let one = Lock::new(Order::Log, 1);
    check(|| one.lock(), || assert_eq!(*one.lock(), 1));
    let both = || {
        drop(one.lock());
        drop(one.lock());
    };
    assert_eq!(waits_of(true, || one.lock(), both), WAITED_ONCE, "the second is free");
}

#[test]
fn each_lock_of_a_section_that_another_thread_holds_is_counted_once() {
    let all = [0, 1, 2, 3].map(Mutex::new);
    let hold = || all[2].lock().unwrap();
    check(hold, || drop(Section::one(Order::Lane, &all, 2)));
    check(hold, || drop(Section::all(Order::Lane, &all)));
    check(hold, || drop(Section::of(Order::Lane, &all, [3, 2, 2].into_iter())));
    let others = || drop(Section::of(Order::Lane, &all, [0, 1, 3].into_iter()));
    assert_eq!(waits_of(false, hold, others), LockWaits::default());
}

#[test]
fn a_lock_whose_holder_has_panicked_is_taken_without_a_wait() {
    let lock = Lock::new(Order::Log, 1);
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = lock.lock();
            panic!("it ends while it holds the lock");
        });
        holder.join()
    });
    assert!(panicked.is_err());
    install(Box::new(Schedule::new(None)));
    assert_eq!((*lock.lock(), lock_waits()), (1, LockWaits::default()));
    uninstall();
}
