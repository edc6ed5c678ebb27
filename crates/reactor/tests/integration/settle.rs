//! What is left when nothing is left to happen, and going on from there on another clock.

use base::Nanos;
use clock::{Class, Group, Rank, Stage};
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn a_settled_reactor_has_done_all_but_what_waits_for_others() {
    let mut reactor = Reactor::new(None);
    let done = Rc::new(Cell::new(0));
    let waiter = reactor.run(async {
        for after in 1..=3 {
            let done = done.clone();
            clock::spawn(async move {
                clock::sleep(Nanos(1_000 * after), Stage::Core).await;
                done.set(done.get() + 1);
            });
        }
        let done = done.clone();
        clock::spawn(async move {
            clock::park(Rank::Free, Stage::Queue).await;
            done.set(100);
        })
    });
    assert_eq!(done.get(), 0);
    reactor.settle();
    assert_eq!((done.get(), reactor.run(async { clock::now() })), (3, Nanos(3_000)));
    reactor.run(async { clock::wake(waiter) });
    reactor.settle();
    assert_eq!(done.get(), 100);
}

/// Draws of a shuffled clock decide the order of tasks, so the order shows the draws.
#[test]
fn a_restored_clock_continues_the_saved_order() {
    let order = |reactor: &mut Reactor| {
        let seen = Rc::new(std::cell::RefCell::new(Vec::new()));
        reactor.run(async {
            for name in 0..20 {
                let seen = seen.clone();
                clock::spawn(async move {
                    clock::sleep(Nanos(500), Stage::Core).await;
                    seen.borrow_mut().push((name, clock::now(), clock::unix_now()));
                });
            }
        });
        reactor.settle();
        seen.take()
    };
    let resource = || Group::new().resource("a thing", Rank::Core, 1);
    let mut one = Reactor::new(Some(3));
    let (part, held) = one.run(async {
        let part = clock::Part::begin();
        let held = resource();
        let part = part.end();
        clock::set_unix_now(clock::UnixMillis(2_000_000_000_000));
        held.serve(Class::Gc, Stage::Array, Nanos(7_000)).await;
        (part, held)
    });
    order(&mut one);
    let saved = one.run(async { clock::save(&part) });

    let mut other = Reactor::new(Some(3));
    let again = other.run(async {
        let again = resource();
        assert!(clock::restore(&part, saved));
        again
    });
    let busy = |reactor: &mut Reactor, of: clock::Resource| reactor.run(async { of.busy() });
    assert_eq!(busy(&mut other, again), Nanos(7_000));
    assert_eq!(busy(&mut one, held), Nanos(7_000));
    assert_eq!(order(&mut other), order(&mut one));

    let saved = one.run(async { clock::save(&part) });
    let fits = Reactor::new(None).run(async { clock::restore(&clock::Part::begin(), saved) });
    assert!(!fits, "it has another number of resources");
}

/// Two clocks that stopped at different times and dates go on as one.
#[test]
fn parts_of_a_clock_are_restored_beside_each_other() {
    let group = || Group::new().resource("a thing", Rank::Core, 1);
    let saved = |busy: u64, date: u64| {
        let mut reactor = Reactor::new(None);
        let part = reactor.run(async {
            let part = clock::Part::begin();
            let thing = group();
            clock::set_unix_now(clock::UnixMillis(date));
            thing.serve(Class::Gc, Stage::Array, Nanos(busy)).await;
            part.end()
        });
        reactor.run(async { clock::save(&part) })
    };
    let date = 2_000_000_000_000;
    let (early, late) = (saved(7_000, date + 5_000), saved(9_000_000, date));
    Reactor::new(None).run(async {
        let _other = group();
        let mut things = Vec::new();
        for (saved, now) in [(early, 7_000), (late, 9_000_000)] {
            let part = clock::Part::begin();
            things.push(group());
            assert!(clock::restore(&part.end(), saved));
            assert_eq!(clock::now(), Nanos(now));
        }
        assert_eq!(clock::unix_now(), clock::UnixMillis(date + 5_000), "no date goes back");
        assert_eq!(
            things.iter().map(|thing| thing.busy().0).collect::<Vec<_>>(),
            [7_000, 9_000_000]
        );
    });
}
