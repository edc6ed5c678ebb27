//! Stations and gates, against schedules written out.

use base::limits::BYPASS_MAX;
use base::{Nanos, Rng};
use clock::{Class, Gate, Group, Operate, Rank, Span, Stage, Stages, Station, Suspension};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Number, end and account of each.
type Log = Rc<RefCell<Vec<(u64, u64, Stages)>>>;

const SUSPENSION: Suspension = Suspension { enter: Nanos(7), resume: Nanos(3) };

/// Starts a task that arrives at `at`, has its work done, and logs its number, end and account.
fn client(log: &Log, number: u64, at: u64, work: Operate) {
    let log = log.clone();
    clock::spawn(async move {
        clock::sleep_until(Nanos(at), Stage::Batch).await;
        work.await;
        log.borrow_mut().push((number, clock::now().0, clock::stages()));
    });
}

fn work(station: Station, class: Class, time: u64) -> Operate {
    station.serve(class, Stage::Array, Nanos(time))
}

fn station() -> Station {
    Group::new().station("a die", Rank::Array)
}

fn idle_until(at: u64) -> clock::Sleep {
    clock::sleep_until(Nanos(at), Stage::Batch)
}

fn ends(log: &Log) -> Vec<(u64, u64)> {
    log.borrow().iter().map(|(number, end, _)| (*number, *end)).collect()
}

#[test]
fn a_station_serves_by_class_and_arrival_like_a_resource() {
    let run = |by_arrival: bool| {
        let log = Log::default();
        Reactor::new(None).run(async {
            let group = Group::new();
            if by_arrival {
                group.serve_in_order_of_arrival();
            }
            let (die, other) =
                (group.station("a die", Rank::Array), group.resource("another", Rank::Array, 1));
            let classes = [Class::Gc, Class::Gc, Class::HostWrite, Class::HostRead];
            for (number, class) in (0..).zip(classes) {
                client(&log, number, number, work(die, class, 100));
                let log = log.clone();
                clock::spawn(async move {
                    idle_until(number).await;
                    other.serve(class, Stage::Array, Nanos(100)).await;
                    log.borrow_mut().push((number + 10, clock::now().0, clock::stages()));
                });
            }
            idle_until(1_000).await;
            assert_eq!((die.busy(), other.busy()), (Nanos(400), Nanos(400)));
        });
        ends(&log)
    };
    let expected = |order: [u64; 4]| -> Vec<(u64, u64)> {
        let each = order.into_iter().zip([100, 200, 300, 400]);
        each.flat_map(|(number, end)| [(number, end), (number + 10, end)]).collect()
    };
    assert_eq!(run(false), expected([0, 3, 2, 1]));
    assert_eq!(run(true), expected([0, 1, 2, 3]));
}

#[test]
fn what_waits_at_a_station_is_passed_a_bounded_number_of_times() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        client(&log, 0, 0, work(die, Class::HostWrite, 10));
        client(&log, 1, 1, work(die, Class::Gc, 10));
        (2..102).for_each(|number| client(&log, number, 2, work(die, Class::HostRead, 10)));
        idle_until(10_000).await;
    });
    let place = log.borrow().iter().position(|(number, ..)| *number == 1);
    assert_eq!(place, Some(1 + BYPASS_MAX as usize), "after the first and as many others");
}

#[test]
fn work_of_one_kind_goes_together_with_one_of_each_seat() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        client(&log, 0, 0, work(die, Class::HostWrite, 100));
        let of = |kind, seat, time| work(die, Class::Gc, time).together(kind, seat);
        client(&log, 1, 1, of(1, 0, 50));
        client(&log, 2, 2, of(2, 1, 20));
        client(&log, 3, 3, of(1, 0, 20));
        client(&log, 4, 4, of(1, 2, 70).named("late"));
        client(&log, 5, 5, work(die, Class::Gc, 5));
        idle_until(1_000).await;
        assert_eq!(die.busy(), Nanos(100 + 70 + 20 + 20 + 5), "until the last of each");
    });
    // Also: work that ends before the last of its plane group frees its client at once.
    assert_eq!(ends(&log), [(0, 100), (1, 150), (4, 170), (2, 190), (3, 210), (5, 215)]);
}

#[test]
fn work_that_arrives_when_a_plane_group_starts_joins_it() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        let of = |seat| work(die, Class::HostRead, 50).together(1, seat);
        client(&log, 0, 10, of(0));
        client(&log, 1, 10, of(1));
        client(&log, 2, 10, of(1));
        client(&log, 3, 11, of(2));
        idle_until(1_000).await;
    });
    assert_eq!(ends(&log), [(0, 60), (1, 60), (2, 110), (3, 110)]);
}

#[test]
fn work_waits_for_announced_work_and_leaves_the_station_to_others() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        let of = |class, seat| work(die, class, 50).together(1, seat);
        die.announce(Class::Gc, 1, 1);
        client(&log, 0, 10, of(Class::Gc, 0));
        client(&log, 1, 15, work(die, Class::Gc, 30));
        client(&log, 2, 70, of(Class::Gc, 1));
        // Work does not wait for announced work of its own plane, or for less urgent work.
        clock::spawn(async move {
            idle_until(200).await;
            (0..2).for_each(|_| die.announce(Class::Gc, 1, 0));
            die.announce(Class::Wear, 1, 3);
        });
        client(&log, 3, 210, of(Class::Gc, 0));
        client(&log, 5, 215, of(Class::Gc, 0));
        client(&log, 4, 220, of(Class::Wear, 3));
        idle_until(1_000).await;
    });
    assert_eq!(ends(&log), [(1, 45), (0, 120), (2, 120), (3, 260), (5, 310), (4, 310)]);
}

#[test]
fn a_suspended_station_stays_busy_and_its_trace_shows_each_part() {
    let spans = Rc::new(RefCell::new(Vec::new()));
    let sink = spans.clone();
    let mut reactor = Reactor::new(None);
    reactor.set_trace(Some(Box::new(move |span: &Span| {
        sink.borrow_mut().push((span.work, span.unit, span.from.0, span.to.0));
    })));
    let log = Log::default();
    reactor.run(async {
        let die = station();
        let write = |seat| {
            let work = work(die, Class::HostWrite, 100).named("program").together(1, seat);
            work.suspendable(SUSPENSION)
        };
        client(&log, 0, 0, write(0));
        client(&log, 1, 0, write(1));
        client(&log, 2, 40, work(die, Class::HostRead, 20).named("read"));
        idle_until(50).await;
        assert_eq!(die.busy(), Nanos(50), "also while no operation runs");
        idle_until(1_000).await;
        assert_eq!(die.busy(), Nanos(100 + 7 + 20 + 3));
    });
    assert_eq!(ends(&log), [(2, 67), (0, 130), (1, 130)]);
    let account = log.borrow()[1].2;
    assert_eq!((account[Stage::Array], account[Stage::Queue]), (Nanos(110), Nanos(20)));
    let mut told = spans.borrow().clone();
    told.sort_by_key(|(_, unit, from, _)| (*from, *unit));
    let expected = [
        ("program", 0, 0, 47),
        ("program", 1, 0, 47),
        ("read", 0, 47, 67),
        ("program", 0, 67, 130),
        ("program", 1, 67, 130),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_waits_is_not_passed_more_often_by_suspending() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        client(&log, 0, 0, work(die, Class::HostWrite, 1_000).suspendable(SUSPENSION));
        client(&log, 1, 1, work(die, Class::HostWrite, 10));
        (2..102).for_each(|number| client(&log, number, 10, work(die, Class::HostRead, 10)));
        idle_until(100_000).await;
    });
    let order: Vec<u64> = ends(&log).iter().map(|(number, _)| *number).collect();
    let expected = (2..66).chain([0, 1]).chain(66..102);
    assert!(order.iter().copied().eq(expected), "{order:?}");
}

#[test]
fn reads_in_two_suspensions_pass_what_waits_no_more_often_than_in_one() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        let write = || work(die, Class::HostWrite, 1_000).suspendable(SUSPENSION);
        client(&log, 0, 0, write());
        client(&log, 1, 1, work(die, Class::Gc, 10));
        client(&log, 2, 2, write());
        (3..43).for_each(|number| client(&log, number, 10, work(die, Class::HostRead, 10)));
        (43..83).for_each(|number| client(&log, number, 2_000, work(die, Class::HostRead, 10)));
        idle_until(100_000).await;
    });
    let order: Vec<u64> = ends(&log).iter().map(|(number, _)| *number).collect();
    // 40 reads, the second write, and as many more as make 64 in a row.
    let expected = (3..43).chain([0]).chain(43..66).chain([2, 1]).chain(66..83);
    assert!(order.iter().copied().eq(expected), "{order:?}");
}

#[test]
fn reads_of_hosts_are_not_suspended_and_only_they_go_in_a_suspension() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = station();
        client(&log, 0, 0, work(die, Class::HostRead, 100).suspendable(SUSPENSION));
        client(&log, 1, 50, work(die, Class::HostRead, 20));
        let of = |class, seat| work(die, class, 20).together(1, seat);
        client(&log, 2, 200, work(die, Class::HostWrite, 100).suspendable(SUSPENSION));
        client(&log, 3, 240, of(Class::Gc, 0));
        client(&log, 4, 240, of(Class::HostRead, 1));
        client(&log, 5, 241, of(Class::HostRead, 2));
        idle_until(1_000).await;
    });
    assert_eq!(ends(&log), [(0, 100), (1, 120), (4, 267), (5, 267), (2, 330), (3, 350)]);
}

#[test]
fn the_stages_of_random_work_add_up_and_equal_seeds_are_equal_runs() {
    let run = |seed: u64| {
        let log = Log::default();
        Reactor::new(Some(seed)).run(async {
            let group = Group::new();
            let dies = [0, 1].map(|_| group.station("a die", Rank::Array));
            let mut rng = Rng::new(seed);
            let classes = [Class::HostRead, Class::HostWrite, Class::Gc, Class::Wear];
            for number in 0..2_000 {
                let mut below = |bound: u32| u32::try_from(rng.below(bound.into())).unwrap();
                let class = classes[below(4) as usize];
                let mut work = work(dies[below(2) as usize], class, below(90).into());
                if below(4) > 0 {
                    let kind = u8::from(class == Class::HostRead);
                    work = work.together(kind, below(4));
                }
                if below(2) > 0 {
                    let [enter, resume] = [10, 10].map(|bound| Nanos(below(bound).into()));
                    work = work.suspendable(Suspension { enter, resume });
                }
                client(&log, number, below(50_000).into(), work);
            }
            idle_until(1_000_000).await;
        });
        log.take()
    };
    for seed in 0..20 {
        let log = run(seed);
        assert_eq!(log.len(), 2_000);
        for (_, end, stages) in &log {
            assert_eq!(stages.total(), Nanos(*end), "a task begins at the start of the clock");
        }
        assert_eq!(log, run(seed));
    }
}

#[test]
fn a_timer_that_a_suspension_made_void_changes_nothing_in_real_time() {
    let log = Log::default();
    let log_inside = log.clone();
    let ((), lateness) = Reactor::new(None).run_in_real_time(async move {
        let die = station();
        let write = work(die, Class::HostWrite, 1_000_000).suspendable(SUSPENSION);
        client(&log_inside, 0, 0, write);
        client(&log_inside, 1, 500_000, work(die, Class::HostRead, 2_000_000));
        idle_until(4_000_000).await;
    });
    assert_eq!(ends(&log), [(1, 2_500_007), (0, 3_000_010)]);
    assert_eq!(lateness.events(), 4, "of two sleeps and two pieces of work");
}

#[test]
fn a_gate_stays_closed_until_its_last_closer_opens_it() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let gate = Arc::new(Gate::new());
        for (number, at) in [(0, 5), (1, 10), (2, 20), (3, 45)] {
            let (gate, log) = (gate.clone(), log.clone());
            clock::spawn(async move {
                idle_until(at).await;
                gate.pass().await;
                log.borrow_mut().push((number, clock::now().0, clock::stages()));
            });
        }
        for (from, to) in [(10, 30), (20, 40)] {
            let gate = gate.clone();
            clock::spawn(async move {
                // Before those who come at this instant.
                idle_until(from - 1).await;
                let _closed = gate.close();
                idle_until(to).await;
            });
        }
        idle_until(100).await;
        let closed = gate.close();
        let (late, log) = (gate.clone(), log.clone());
        clock::spawn(async move {
            late.pass().await;
            log.borrow_mut().push((4, clock::now().0, clock::stages()));
        });
        idle_until(110).await;
        drop(closed);
        let closed_again = gate.close();
        idle_until(130).await;
        drop(closed_again);
        idle_until(200).await;
    });
    assert_eq!(ends(&log), [(0, 5), (1, 40), (2, 40), (3, 45), (4, 130)]);
    let waited: Vec<u64> = log.borrow().iter().map(|(.., stages)| stages[Stage::Gc].0).collect();
    assert_eq!(waited, [0, 30, 20, 0, 30]);
}
