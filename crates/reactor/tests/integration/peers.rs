//! Tasks of several reactors that wait for one another, and share what is behind a lock.

use base::Nanos;
use clock::{Guard, Lock, Order, Rank, Stage, TaskId};
use reactor::{PeerGroup, Reactor, Remote, peers};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// A buffer of one place.
struct Buffer(Lock<State>);

#[derive(Default)]
struct State {
    item: Option<u64>,
    takers: VecDeque<TaskId>,
    givers: VecDeque<TaskId>,
}

impl Buffer {
    fn new() -> Arc<Self> {
        Arc::new(Self(Lock::new(Order::Log, State::default())))
    }

    fn state(&self) -> Guard<'_, State> {
        self.0.lock()
    }

    async fn give(&self, item: u64) {
        loop {
            {
                let mut state = self.state();
                if state.item.is_none() {
                    state.item = Some(item);
                    state.takers.drain(..).for_each(clock::wake);
                    return;
                }
                state.givers.push_back(clock::current());
            }
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }

    async fn take(&self) -> u64 {
        loop {
            {
                let mut state = self.state();
                if let Some(item) = state.item.take() {
                    state.givers.drain(..).for_each(clock::wake);
                    return item;
                }
                state.takers.push_back(clock::current());
            }
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

const ITEMS: u64 = 20_000;

#[test]
fn what_one_thread_gives_the_other_takes() {
    let remotes = [Remote::new().unwrap(), Remote::new().unwrap()];
    let mut places = peers(&remotes).into_iter();
    let (first, second) = (places.next().unwrap(), places.next().unwrap());
    let buffer = Buffer::new();
    let buffer_there = buffer.clone();
    let [here, there] = remotes;
    let giver = std::thread::spawn(move || {
        let work = async move {
            for item in 0..ITEMS {
                buffer_there.give(item).await;
            }
        };
        Reactor::among(second, None).serve(&there, work).unwrap();
    });
    let work = async {
        for item in 0..ITEMS {
            assert_eq!(buffer.take().await, item);
        }
    };
    Reactor::among(first, None).serve(&here, work).unwrap();
    giver.join().unwrap();
}

/// Who gave what, in the order of its taking, by two givers in reactors of their own.
fn taken(seed: u64) -> Vec<u64> {
    let mut peer_group = PeerGroup::new(3, seed, None);
    let buffer = Buffer::new();
    for place in [1, 2] {
        let buffer = buffer.clone();
        peer_group.places().spawn(place, async move {
            for round in 0..20 {
                buffer.give(round * 2 + place as u64 - 1).await;
                clock::sleep(Nanos(50), Stage::Queue).await;
            }
        });
    }
    let order = Rc::new(RefCell::new(Vec::new()));
    let filled = order.clone();
    peer_group.run(async move {
        while filled.borrow().len() < 40 {
            let item = buffer.take().await;
            filled.borrow_mut().push(item);
        }
        assert!(clock::now() >= Nanos(19 * 50), "their clocks go together");
    });
    order.take()
}

#[test]
fn the_order_in_virtual_time_is_that_of_the_seed() {
    let orders: Vec<_> = (0..8).map(taken).collect();
    for (seed, order) in (0..).zip(&orders) {
        assert_eq!(taken(seed), *order);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..40).collect::<Vec<_>>());
        for giver in [0, 1] {
            let own: Vec<_> = order.iter().filter(|item| *item % 2 == giver).collect();
            assert!(own.is_sorted(), "each gives in its order");
        }
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "seeds make a difference");
}

/// What a counter lacks that tasks of `reactors` reactors raise 200 times each, by `raise`.
fn lost(reactors: usize, seed: u64, raise: fn(&Lock<u64>)) -> u64 {
    let mut peer_group = PeerGroup::new(reactors, seed, None);
    let counter = Arc::new(Lock::new(Order::Log, 0));
    let done = Arc::new(Lock::new(Order::Log, 0));
    for place in 0..reactors {
        let (counter, done) = (counter.clone(), done.clone());
        peer_group.places().spawn(place, async move {
            for _ in 0..200 {
                raise(&counter);
                clock::sleep(Nanos(1), Stage::Queue).await;
            }
            *done.lock() += 1;
        });
    }
    peer_group.run(async {
        while *done.lock() < reactors {
            clock::sleep(Nanos(1), Stage::Queue).await;
        }
    });
    reactors as u64 * 200 - *counter.lock()
}

/// In two stretches, between which another reactor may raise it too.
fn raise_in_two(counter: &Lock<u64>) {
    let count = *counter.lock();
    *counter.lock() = count + 1;
}

#[test]
fn between_stretches_other_reactors_run_and_within_one_none() {
    for seed in 0..10 {
        assert_eq!(lost(3, seed, |counter| *counter.lock() += 1), 0);
        assert_eq!(lost(1, seed, raise_in_two), 0, "one reactor is not preempted");
        assert!(lost(3, seed, raise_in_two) > 0, "seed {seed}");
    }
}
