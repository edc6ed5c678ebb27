//! What a trace is told, against schedules written out.

use base::Nanos;
use clock::{Class, Group, Rank, Span, Stage};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;

type Spans = Rc<RefCell<Vec<Span>>>;

fn traced(reactor: &mut Reactor) -> Spans {
    let spans = Spans::default();
    let sink = spans.clone();
    reactor.set_trace(Some(Box::new(move |span: &Span| sink.borrow_mut().push(*span))));
    spans
}

/// Resource, unit, work, label, from, to.
type Told = (u32, u32, &'static str, Option<u64>, u64, u64);

fn told(spans: &Spans) -> Vec<Told> {
    let tell =
        |span: &Span| (span.resource, span.unit, span.work, span.label, span.from.0, span.to.0);
    spans.borrow().iter().map(tell).collect()
}

#[test]
fn each_span_has_its_resource_unit_work_and_task() {
    let mut reactor = Reactor::new(None);
    let spans = traced(&mut reactor);
    reactor.run(async {
        let group = Group::new();
        let die = group.resource("a die", Rank::Array, 1);
        let handlers = group.resource("a handler", Rank::Handler, 2);
        for number in 0..3 {
            clock::spawn(async move {
                clock::label(number);
                handlers.serve(Class::HostRead, Stage::Index, Nanos(10)).await;
                die.serve(Class::HostRead, Stage::Array, Nanos(100)).named("read").await;
            });
        }
        clock::sleep(Nanos(1_000), Stage::Batch).await;
        let names: Vec<&str> = clock::resources().iter().map(|resource| resource.name).collect();
        assert_eq!(names, ["a die", "a handler"]);
    });
    assert_eq!(
        told(&spans),
        [
            (1, 0, "index", Some(0), 0, 10),
            (1, 1, "index", Some(1), 0, 10),
            (1, 0, "index", Some(2), 10, 20),
            (0, 0, "read", Some(0), 10, 110),
            (0, 0, "read", Some(1), 110, 210),
            (0, 0, "read", Some(2), 210, 310),
        ]
    );
}

#[test]
fn a_held_unit_is_told_when_it_is_given_back() {
    let mut reactor = Reactor::new(None);
    let spans = traced(&mut reactor);
    reactor.run(async {
        let handler = Group::new().resource("a handler", Rank::Handler, 1);
        let held = handler.acquire(Class::Gc).named("long").await;
        clock::sleep(Nanos(7), Stage::Index).await;
        drop(held);
        handler.serve(Class::HostRead, Stage::Index, Nanos::ZERO).await;
    });
    assert_eq!(told(&spans), [(0, 0, "long", None, 0, 7)], "what takes no time is no span");
    assert_eq!(spans.borrow()[0].class, Class::Gc);
}

#[test]
fn units_are_numbered_from_the_lowest_that_is_free_and_given_back_by_their_holder() {
    let mut reactor = Reactor::new(None);
    let spans = traced(&mut reactor);
    reactor.run(async {
        let handlers = Group::new().resource("a handler", Rank::Handler, u32::MAX);
        for (number, time) in [(0, 10), (1, 5), (2, 30)] {
            clock::spawn(async move {
                clock::label(number);
                handlers.serve(Class::HostRead, Stage::Index, Nanos(time)).await;
            });
        }
        clock::sleep(Nanos(7), Stage::Batch).await;
        handlers.serve(Class::HostRead, Stage::Index, Nanos(40)).await;
    });
    assert_eq!(
        told(&spans),
        [
            (0, 1, "index", Some(1), 0, 5),
            (0, 0, "index", Some(0), 0, 10),
            (0, 2, "index", Some(2), 0, 30),
            (0, 1, "index", None, 7, 47),
        ]
    );
}

#[test]
fn a_label_goes_with_its_task_and_to_what_runs_on_its_behalf() {
    let mut reactor = Reactor::new(None);
    let spans = traced(&mut reactor);
    reactor.run(async {
        let group = Group::new();
        let dies = [0; 2].map(|_| group.resource("a die", Rank::Array, 1));
        clock::spawn(async move {
            clock::label(7);
            let read = |die: clock::Resource| die.serve(Class::HostRead, Stage::Array, Nanos(5));
            clock::join_all(dies.map(read).into_iter().collect()).await;
        });
        clock::sleep(Nanos(10), Stage::Batch).await;
        let after = dies[0];
        clock::spawn(async move { after.serve(Class::HostRead, Stage::Array, Nanos(5)).await });
        clock::sleep(Nanos(10), Stage::Batch).await;
    });
    let labels: Vec<_> = spans.borrow().iter().map(|span| span.label).collect();
    assert_eq!(labels, [Some(7), Some(7), None]);
}

/// Names are kept for a trace only.
#[test]
fn a_waiter_from_before_the_trace_is_told_by_its_stage() {
    let mut reactor = Reactor::new(None);
    let die = reactor.run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        for _ in 0..2 {
            clock::spawn(async move {
                die.serve(Class::HostRead, Stage::Array, Nanos(50)).named("erase").await;
            });
        }
        clock::sleep(Nanos(10), Stage::Batch).await;
        die
    });
    let spans = traced(&mut reactor);
    reactor.run(async { die.serve(Class::HostRead, Stage::Array, Nanos(5)).await });
    assert_eq!(told(&spans)[0], (0, 0, "array", None, 50, 100));
}

#[test]
fn a_span_that_began_before_the_trace_is_not_told() {
    let mut reactor = Reactor::new(None);
    let die = reactor.run(async {
        let die = Group::new().resource("a die", Rank::Array, 1);
        clock::spawn(async move { die.serve(Class::HostRead, Stage::Array, Nanos(50)).await });
        clock::sleep(Nanos(10), Stage::Batch).await;
        die
    });
    let spans = traced(&mut reactor);
    reactor.run(async { die.serve(Class::HostRead, Stage::Array, Nanos(5)).await });
    assert_eq!(told(&spans), [(0, 0, "array", None, 50, 55)]);
    reactor.set_trace(None);
    reactor.run(async { die.serve(Class::HostRead, Stage::Array, Nanos(5)).await });
    assert_eq!(spans.borrow().len(), 1);
}
