//! Real time: events keep their instants whatever the wall does. Nothing here depends on how fast
//! the machine is, only on time going forward.

use base::Nanos;
use clock::{Class, Group, Rank, Stage};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

const MS: Nanos = Nanos::from_millis(1);

/// Keeps the reactor from everything else for so long.
fn hold_up(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {}
}

#[test]
fn an_event_does_not_come_before_the_wall_has_reached_it() {
    let started = Instant::now();
    let ((), lateness) = Reactor::new(None).run_in_real_time(async {
        for after in [1_000, 50_000, 150_000, 3_000_000] {
            clock::sleep(Nanos(after), Stage::Array).await;
            assert!(started.elapsed() >= Duration::from_nanos(clock::now().0));
        }
        assert_eq!(clock::now(), Nanos(3_201_000));
    });
    assert_eq!(lateness.events(), 4);
}

#[test]
fn being_late_moves_no_later_event() {
    let mut reactor = Reactor::new(None);
    let ((), lateness) = reactor.run_in_real_time(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        let ends = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..3 {
            let ends = ends.clone();
            clock::spawn(async move {
                die.serve(Class::HostRead, Stage::Array, MS).await;
                ends.borrow_mut().push(clock::now());
                hold_up(Duration::from_millis(5));
            });
        }
        clock::sleep(Nanos(4 * MS.0), Stage::Batch).await;
        assert_eq!(*ends.borrow(), [MS, Nanos(2 * MS.0), Nanos(3 * MS.0)]);
    });
    // The second end was due at 2 ms and the wall stood at 6 ms or later.
    assert!(lateness.max() >= Nanos(4 * MS.0), "{:?}", lateness.max());
    assert!(lateness.late_events() >= 2);
}

#[test]
fn places_of_tasks_that_have_ended_are_used_again() {
    Reactor::new(None).run_in_real_time(async {
        for _ in 0..100 {
            let task = clock::spawn(async {});
            clock::sleep(Nanos(1_000), Stage::Batch).await;
            assert!(task.index() < 3, "a place is used again");
        }
    });
}

/// A panic ends the run, and with it real time.
#[test]
fn the_wall_goes_with_its_run() {
    let mut reactor = Reactor::new(None);
    let panics = std::panic::AssertUnwindSafe(|| {
        reactor.run_in_real_time(async { panic!("on purpose") });
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    hold_up(Duration::from_millis(2));
    reactor.run(async { assert_eq!(clock::host_now(), clock::now()) });
}

/// Time of this thread on a processor, in nanoseconds.
#[cfg(target_os = "linux")]
fn processor_time() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time = statistics.split(' ').next().and_then(|time| time.parse().ok());
    time.expect("Linux counts it, first in that file")
}

#[cfg(target_os = "linux")]
#[test]
fn long_waits_take_no_processor() {
    let before = processor_time();
    Reactor::new(None)
        .run_in_real_time(async { clock::sleep(Nanos(200 * MS.0), Stage::Array).await });
    let spent = processor_time() - before;
    assert!(spent < 100 * MS.0, "{spent} ns of 200 ms");
}

#[test]
fn what_arrives_is_stamped_by_the_wall_and_waits_for_what_was_due_before() {
    Reactor::new(None).run_in_real_time(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let log = |name: &'static str| {
            let order = order.clone();
            async move { order.borrow_mut().push((name, clock::now())) }
        };
        clock::spawn_at(MS, || log("device"));
        hold_up(Duration::from_millis(3));
        let arrival = clock::host_now();
        assert!(arrival >= Nanos(3 * MS.0) && clock::now() == Nanos::ZERO);
        clock::spawn_at(arrival, || log("host"));
        clock::sleep(Nanos(2 * arrival.0), Stage::Batch).await;
        assert_eq!(*order.borrow(), [("device", MS), ("host", arrival)]);
    });
}

#[test]
fn who_catches_up_comes_behind_what_was_due_and_stands_at_the_wall() {
    let ((), lateness) = Reactor::new(None).run_in_real_time(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let log = |name: &'static str| {
            let order = order.clone();
            async move { order.borrow_mut().push(name) }
        };
        clock::spawn_at(MS, || log("due"));
        clock::spawn_at(Nanos(1_000 * MS.0), || log("not due"));
        hold_up(Duration::from_millis(3));
        clock::spawn(log("ready"));
        let before = clock::host_now();
        clock::catch_up().await;
        assert_eq!(*order.borrow(), ["ready", "due"]);
        assert!(clock::now() >= before, "{} is before {before}", clock::now());
        // Nothing is due: it returns at once, at the wall clock's present.
        hold_up(Duration::from_millis(2));
        let before = clock::host_now();
        let mut waits = std::pin::pin!(clock::catch_up());
        let polled = poll(waits.as_mut());
        assert!(polled.is_ready() && clock::now() >= before);
        // It does not yield unless asked to.
        clock::spawn(log("other"));
        clock::give_way().await;
        assert_eq!(*order.borrow(), ["ready", "due", "other"]);
    });
    assert_eq!(lateness.events(), 0, "what arrives is not late");
}

fn poll(future: std::pin::Pin<&mut clock::CatchUp>) -> std::task::Poll<()> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn real_time_continues_from_virtual_time() {
    let mut reactor = Reactor::new(None);
    reactor.run(async { clock::sleep(Nanos::from_secs(1_000), Stage::Array).await });
    let (spent, _) = reactor.run_in_real_time(async {
        let began = clock::now();
        clock::sleep(MS, Stage::Array).await;
        clock::now() - began
    });
    assert_eq!(spent, MS);
    reactor.run(async {
        assert_eq!(clock::now(), Nanos::from_secs(1_000) + MS);
        assert_eq!(clock::host_now(), clock::now(), "no wall in virtual time");
    });
}
