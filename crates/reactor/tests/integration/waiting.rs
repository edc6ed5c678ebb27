//! Resources, parking, joining and the account of time, against closed forms.

use base::Nanos;
use clock::{Class, Group, Order, Rank, Resource, Section, Stage, Stages};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;

type Log = Rc<RefCell<Vec<(u64, Nanos, Stages)>>>;

/// Starts a task that arrives at `at`, is served for `time`, and logs its number, end and account.
fn client(log: &Log, number: u64, at: u64, resource: Resource, class: Class, time: u64) {
    let log = log.clone();
    clock::spawn(async move {
        clock::sleep_until(Nanos(at), Stage::Batch).await;
        resource.serve(class, Stage::Array, Nanos(time)).await;
        log.borrow_mut().push((number, clock::now(), clock::stages()));
    });
}

fn idle_until(at: u64) -> clock::Sleep {
    clock::sleep_until(Nanos(at), Stage::Batch)
}

#[test]
fn a_resource_serves_in_order_of_arrival_and_stages_add_up() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        for number in 0..5 {
            client(&log, number, number * 10, die, Class::HostRead, 45);
        }
        idle_until(1_000).await;
        assert_eq!(die.busy(), Nanos(5 * 45));
    });
    for (number, end, stages) in log.borrow().iter() {
        let finish = 45 * (number + 1);
        assert_eq!(*end, Nanos(finish));
        assert_eq!(stages[Stage::Queue], Nanos(finish - 45 - number * 10));
        assert_eq!(stages.total(), *end);
    }
}

#[test]
fn a_resource_of_n_units_serves_n_at_a_time() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let handlers = Group::new().resource("a handler", Rank::Handler, 3);
        (0..7).for_each(|number| client(&log, number, 0, handlers, Class::HostRead, 10));
        idle_until(100).await;
    });
    let ends: Vec<u64> = log.borrow().iter().map(|(_, end, _)| end.0).collect();
    assert_eq!(ends, [10, 10, 10, 20, 20, 20, 30]);
}

#[test]
fn reads_overtake_queued_writes_and_collection_but_not_the_one_in_service() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        client(&log, 0, 0, die, Class::Gc, 100);
        client(&log, 1, 1, die, Class::Gc, 100);
        client(&log, 2, 2, die, Class::HostWrite, 100);
        client(&log, 3, 3, die, Class::HostRead, 100);
        idle_until(1_000).await;
    });
    let order: Vec<u64> = log.borrow().iter().map(|entry| entry.0).collect();
    assert_eq!(order, [0, 3, 2, 1]);
    // Behind collection for what was left of the first: 100 - 3. The rest of the write's wait is
    // the read's service.
    assert_eq!(log.borrow()[1].2[Stage::Gc], Nanos(97));
    assert_eq!(log.borrow()[1].2[Stage::Queue], Nanos(0));
    assert_eq!(log.borrow()[2].2[Stage::Gc], Nanos(98));
    assert_eq!(log.borrow()[2].2[Stage::Queue], Nanos(100));
}

#[test]
fn promoted_collection_overtakes_writes_and_not_reads() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let group = Group::new();
        let [first, second] = [(); 2].map(|()| group.promotion());
        first.want(true);
        second.want(true);
        // One of two that want it is enough.
        second.want(false);
        let die = group.resource("a die", Rank::Array, 1);
        client(&log, 0, 0, die, Class::HostRead, 100);
        client(&log, 1, 1, die, Class::HostWrite, 100);
        client(&log, 2, 2, die, Class::Gc, 100);
        client(&log, 3, 3, die, Class::HostRead, 100);
        idle_until(1_000).await;
    });
    let order: Vec<u64> = log.borrow().iter().map(|entry| entry.0).collect();
    assert_eq!(order, [0, 3, 2, 1]);
}

#[test]
fn a_waiter_is_bypassed_at_most_the_bound() {
    let log = Log::default();
    let bound = u64::from(base::limits::BYPASS_MAX);
    Reactor::new(None).run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        client(&log, 1_000, 1, die, Class::Gc, 10);
        // A read waits whenever the die gets free, for ever.
        (0..2 * bound)
            .for_each(|number| client(&log, number, number * 9, die, Class::HostRead, 10));
        idle_until(100_000).await;
    });
    let place = log.borrow().iter().position(|entry| entry.0 == 1_000).unwrap() as u64;
    assert_eq!(place, bound + 1, "the one in service, then as many as may pass");
}

#[test]
fn a_unit_is_held_across_stages_until_its_guard_drops() {
    let log = Log::default();
    Reactor::new(None).run(async {
        let group = Group::new();
        let register = group.resource("a register", Rank::Register, 1);
        let channel = group.resource("a channel", Rank::Channel, 1);
        for number in 0..2 {
            let log = log.clone();
            clock::spawn(async move {
                let held = register.acquire(Class::HostRead).await;
                channel.serve(Class::HostRead, Stage::Channel, Nanos(5)).await;
                clock::sleep(Nanos(20), Stage::Array).await;
                drop(held);
                log.borrow_mut().push((number, clock::now(), clock::stages()));
            });
        }
        idle_until(1_000).await;
    });
    assert_eq!(log.borrow()[0].1, Nanos(25));
    assert_eq!(log.borrow()[1].1, Nanos(50));
    assert_eq!(log.borrow()[1].2[Stage::Queue], Nanos(25));
}

#[test]
fn joined_children_run_side_by_side_and_the_slowest_counts() {
    Reactor::new(None).run(async {
        let group = Group::new();
        let dies: Vec<Resource> = (0..3).map(|_| group.resource("a die", Rank::Array, 1)).collect();
        let reads: Vec<_> = [30, 50, 40]
            .into_iter()
            .zip(dies)
            .map(|(time, die)| async move {
                die.serve(Class::HostRead, Stage::Array, Nanos(time)).await;
                time
            })
            .collect();
        assert_eq!(clock::join_all(reads).await, [30, 50, 40]);
        assert_eq!(clock::now(), Nanos(50));
        assert_eq!(clock::stages()[Stage::Array], Nanos(50));
    });
}

#[test]
fn joined_futures_run_first_as_far_as_they_can() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let note = |what: &'static str| log.borrow_mut().push(what);
    Reactor::new(None).run(async {
        let other = log.clone();
        clock::spawn(async move { other.borrow_mut().push("another") });
        let children = [0, 40, 30].into_iter().map(|time| {
            let log = log.clone();
            async move {
                log.borrow_mut().push("begins");
                if time > 0 {
                    clock::sleep(Nanos(time), Stage::Array).await;
                }
                log.borrow_mut().push("ends");
                time
            }
        });
        assert_eq!(clock::join_at_once(children).await, [0, 40, 30]);
        note("joined");
        assert_eq!(clock::now(), Nanos(40));
        // As long as the one that took longest.
        assert_eq!(clock::stages()[Stage::Array], Nanos(40));
        let none = clock::join_at_once(std::iter::empty::<std::future::Ready<()>>()).await;
        assert!(none.is_empty());
    });
    let expected = ["begins", "ends", "begins", "begins", "another", "ends", "ends", "joined"];
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn waking_resumes_a_parked_task() {
    Reactor::new(None).run(async {
        let sleeper = clock::current();
        clock::spawn(async move {
            clock::sleep(Nanos(70), Stage::Array).await;
            clock::wake(sleeper);
        });
        assert_eq!(clock::park(Rank::Latch, Stage::Latch).await, Nanos(70));
        assert_eq!(clock::stages()[Stage::Latch], Nanos(70));
    });
}

fn order_of_ties(shuffle: Option<u64>) -> Vec<u64> {
    let log = Log::default();
    Reactor::new(shuffle).run(async {
        let group = Group::new();
        for number in 0..20 {
            let die = group.resource("a die", Rank::Array, 1);
            client(&log, number, 0, die, Class::HostRead, 10);
        }
        idle_until(100).await;
    });
    log.borrow().iter().map(|entry| entry.0).collect()
}

#[test]
fn ties_break_by_submission_or_by_a_seed() {
    assert_eq!(order_of_ties(None), (0..20).collect::<Vec<_>>());
    assert_eq!(order_of_ties(Some(1)), order_of_ties(Some(1)));
    assert_ne!(order_of_ties(Some(1)), order_of_ties(Some(2)));
    assert_ne!(order_of_ties(Some(1)), order_of_ties(None));
}

#[test]
fn spawned_tasks_continue_in_the_next_run() {
    let log = Log::default();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        client(&log, 0, 0, die, Class::HostRead, 45);
    });
    assert!(log.borrow().is_empty());
    reactor.run(idle_until(45));
    assert_eq!(log.borrow()[0].1, Nanos(45));
}

#[test]
fn dropping_a_reactor_drops_its_tasks_where_they_stand() {
    let log = Log::default();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        (0..3).for_each(|number| client(&log, number, 0, die, Class::HostRead, 45));
        idle_until(50).await;
    });
    drop(reactor);
    assert_eq!(log.borrow().len(), 1);
    assert_eq!(Rc::strong_count(&log), 1, "the tasks are gone");
}

#[test]
#[should_panic(expected = "a task gives its locks back before it waits")]
fn a_task_that_waits_in_a_section_panics() {
    Reactor::new(None).run(async {
        let locks = [Mutex::new(())];
        let _section = Section::one(Order::Lane, &locks, 0);
        clock::sleep(Nanos(1), Stage::Batch).await;
    });
}

#[test]
#[should_panic(expected = "may not wait for Register")]
fn waiting_for_an_earlier_rank_panics() {
    Reactor::new(None).run(async {
        let group = Group::new();
        let channel = group.resource("a channel", Rank::Channel, 1);
        let register = group.resource("a register", Rank::Register, 1);
        let _held = channel.acquire(Class::HostRead).await;
        let _circle = register.acquire(Class::HostRead).await;
    });
}

#[test]
#[should_panic(expected = "task 0 waits for another task (Latch)")]
fn a_deadlocked_run_lists_the_waiting_tasks() {
    Reactor::new(None).run(async {
        clock::park(Rank::Latch, Stage::Latch).await;
    });
}

#[test]
#[should_panic(expected = "only a parked task can be woken")]
fn waking_a_task_that_is_not_parked_panics() {
    Reactor::new(None).run(async { clock::wake(clock::current()) });
}
