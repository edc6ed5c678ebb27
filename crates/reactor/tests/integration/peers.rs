//! Tasks of several reactors that wait for one another's inside of a monitor.

use base::Nanos;
use clock::{Monitor, Rank, Stage, TaskId};
use reactor::{PeerGroup, Reactor, Remote, peers};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A buffer of one place (Hoare), and whether a task is inside its monitor.
#[derive(Default)]
struct Buffer {
    state: Mutex<State>,
    is_used: AtomicBool,
}

#[derive(Default)]
struct State {
    item: Option<u64>,
    takers: VecDeque<TaskId>,
    givers: VecDeque<TaskId>,
}

impl Buffer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panicked")
    }

    /// Does `work` under two locks; no other task may enter between them.
    fn alone<T>(
        &self,
        look: impl FnOnce(&State) -> bool,
        work: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        assert!(!self.is_used.swap(true, Ordering::Relaxed), "one at a time is inside");
        let is_possible = look(&self.state());
        std::thread::yield_now();
        let done = is_possible.then(|| work(&mut self.state()));
        self.is_used.store(false, Ordering::Relaxed);
        done
    }

    async fn give(&self, item: u64) {
        while self
            .alone(
                |state| state.item.is_none(),
                |state| {
                    assert!(state.item.replace(item).is_none());
                    state.takers.drain(..).for_each(clock::wake);
                },
            )
            .is_none()
        {
            self.state().givers.push_back(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }

    async fn take(&self) -> u64 {
        loop {
            let taken = self.alone(
                |state| state.item.is_some(),
                |state| {
                    state.givers.drain(..).for_each(clock::wake);
                    state.item.take().expect("it was there")
                },
            );
            if let Some(item) = taken {
                return item;
            }
            self.state().takers.push_back(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

const ITEMS: u64 = 20_000;

#[test]
fn what_one_thread_gives_the_other_takes_and_one_at_a_time_is_inside() {
    let remotes = [Remote::new().unwrap(), Remote::new().unwrap()];
    let mut places = peers(&remotes).into_iter();
    let (first, second) = (places.next().unwrap(), places.next().unwrap());
    let (monitor, buffer) = (Monitor::new(), Arc::new(Buffer::default()));
    let (monitor_there, buffer_there) = (monitor.clone(), buffer.clone());
    let [here, there] = remotes;
    let giver = std::thread::spawn(move || {
        let work = async move {
            for item in 0..ITEMS {
                monitor_there.enter(buffer_there.give(item)).await;
            }
        };
        Reactor::among(second, None).serve(&there, work).unwrap();
    });
    let work = async {
        for item in 0..ITEMS {
            assert_eq!(monitor.enter(buffer.take()).await, item);
        }
    };
    Reactor::among(first, None).serve(&here, work).unwrap();
    giver.join().unwrap();
}

/// Who gave what, in the order of its taking, by two givers in reactors of their own.
fn taken(seed: u64) -> Vec<u64> {
    let mut peer_group = PeerGroup::new(3, seed, None);
    let (monitor, buffer) = (Monitor::new(), Arc::new(Buffer::default()));
    for place in [1, 2] {
        let (monitor, buffer) = (monitor.clone(), buffer.clone());
        peer_group.places().spawn(place, async move {
            // What is spawned inside is inside.
            let spawned = buffer.clone();
            let inside = async move {
                clock::spawn(async move {
                    for round in 0..20 {
                        spawned.give(round * 2 + place as u64 - 1).await;
                        clock::sleep(Nanos(50), Stage::Queue).await;
                    }
                });
            };
            monitor.enter(inside).await;
        });
    }
    let order = Rc::new(RefCell::new(Vec::new()));
    let filled = order.clone();
    peer_group.run(async move {
        while filled.borrow().len() < 40 {
            let item = monitor.enter(buffer.take()).await;
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

#[test]
#[should_panic(expected = "one monitor is entered at a time")]
fn entering_a_second_monitor_panics() {
    let (outer, inner) = (Monitor::new(), Monitor::new());
    Reactor::new(None).run(outer.enter(inner.enter(async {})));
}
