//! Serving: timers are kept, sleep is sleep, and what other threads say is heard.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::Nanos;
use clock::{Stage, UnixMillis};
use reactor::{Load, Reactor, Remote, stopped};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[test]
fn timers_are_kept_and_a_dry_clock_ends_nothing() {
    let remote = Remote::new().unwrap();
    let stopper = remote.clone();
    let started = Instant::now();
    let (fired, lateness) = Reactor::new(None)
        .serve(&remote, async move {
            for after in [1_000, 50_000, 150_000, 3_000_000] {
                clock::sleep(Nanos(after), Stage::Array).await;
                assert!(started.elapsed() >= Duration::from_nanos(clock::now().0));
            }
            let fired = clock::now();
            // Nothing is left to happen until another thread says so.
            std::thread::spawn(move || stopper.stop());
            stopped().await;
            stopped().await;
            fired
        })
        .unwrap();
    assert!(fired >= Nanos(3_201_000));
    assert_eq!(lateness.events(), 4);
    assert!(remote.is_stopping());
}

#[test]
fn external_events_are_stamped_with_the_present() {
    let remote = Remote::new().unwrap();
    let stopper = remote.clone();
    Reactor::new(None)
        .serve(&remote, async move {
            let before = clock::host_now();
            let from = Instant::now();
            std::thread::spawn(move || {
                while from.elapsed() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
                stopper.stop();
            });
            stopped().await;
            // A clock that stood still would end this too early.
            assert!(clock::now() - before >= Nanos::from_millis(20));
            let set = clock::host_now();
            clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
            assert!(clock::host_now() - set >= Nanos::from_millis(1));
        })
        .unwrap();
}

#[test]
fn a_reactor_can_be_run_before_served_twice_and_run_after() {
    let remote = Remote::new().unwrap();
    let mut reactor = Reactor::new(None);
    let count = Rc::new(Cell::new(0));
    let counting = count.clone();
    reactor.run(async move {
        clock::spawn(async move {
            loop {
                clock::sleep(Nanos::from_micros(50), Stage::Batch).await;
                counting.set(counting.get() + 1);
            }
        });
        clock::sleep(Nanos::from_micros(501), Stage::Batch).await;
    });
    assert_eq!(count.get(), 10);
    for end in [20, 30] {
        let sleep = async { clock::sleep(Nanos::from_micros(500), Stage::Batch).await };
        let ((), lateness) = reactor.serve(&remote, sleep).unwrap();
        assert_eq!(count.get(), end);
        assert_eq!(lateness.events(), 11);
    }
    reactor.run(async { clock::sleep(Nanos::from_micros(500), Stage::Batch).await });
    assert_eq!(count.get(), 40);
}

/// Works for 30 ms between two waits of 60 ms.
fn work_and_wait() -> (Load, Nanos) {
    let remote = Remote::new().unwrap();
    let started = Instant::now();
    let root = async move {
        clock::sleep(Nanos::from_millis(60), Stage::Queue).await;
        let from = Instant::now();
        while from.elapsed() < Duration::from_millis(30) {}
        clock::sleep(Nanos::from_millis(60), Stage::Queue).await;
    };
    Reactor::new(None).serve(&remote, root).unwrap();
    let elapsed = Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap());
    (remote.load(), elapsed)
}

#[test]
fn a_reactor_counts_how_it_spends_its_time() {
    // Others on the machine may keep it from the processor in the middle of something.
    for attempt in 1.. {
        let (load, elapsed) = work_and_wait();
        assert!(load.busy >= Nanos::from_millis(30), "{load:?}");
        assert!(load.busy.0 + load.idle.0 <= elapsed.0, "{load:?} in {elapsed}");
        // The clock was 30 ms late after the work, so that 30 ms were left of the second wait.
        let is_exact = load.busy < Nanos::from_millis(32)
            && load.idle >= Nanos::from_millis(87)
            && (2..10).contains(&load.sleeps);
        if is_exact {
            return;
        }
        assert!(attempt < 100, "{load:?}");
    }
}

#[test]
#[should_panic(expected = "a reactor is served under one remote")]
fn another_remote_is_refused() {
    let mut reactor = Reactor::new(None);
    for _ in 0..2 {
        let _ = reactor.serve(&Remote::new().unwrap(), async {});
    }
}

#[test]
fn what_is_left_is_dropped_with_the_reactor() {
    let remote = Remote::new().unwrap();
    let mut reactor = Reactor::new(None);
    let alive = Rc::new(());
    let held = alive.clone();
    let root = async move {
        clock::spawn(async move {
            stopped().await;
            drop(held);
        });
    };
    reactor.serve(&remote, root).unwrap();
    assert_eq!(Rc::strong_count(&alive), 2);
    drop(reactor);
    assert_eq!(Rc::strong_count(&alive), 1);
    remote.stop();
}

#[test]
fn the_date_is_that_of_the_machine() {
    let today = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        UnixMillis(u64::try_from(since.as_millis()).unwrap())
    };
    let (remote, mut reactor) = (Remote::new().unwrap(), Reactor::new(None));
    for _ in 0..2 {
        let before = today();
        let later = async {
            clock::sleep(Nanos(20_000_000), Stage::Array).await;
            clock::unix_now()
        };
        let (date, _) = reactor.serve(&remote, later).unwrap();
        // Each of the two is cut to a millisecond.
        let earliest = UnixMillis(before.0 + 19);
        let latest = UnixMillis(today().0 + 1);
        assert!((earliest..=latest).contains(&date), "{earliest:?}, {date:?}, {latest:?}");
    }
}
