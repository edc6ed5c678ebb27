use crate::peers::peers_in_virtual_time;
use crate::reactor::Reactor;
use base::{Nanos, Rng};
use clock::{LocalFuture, TraceSink};
use std::cell::RefCell;
use std::fmt;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// Reactors in virtual time whose tasks wait for one another's, on one thread: what happens first
/// is done first, in whichever reactor that is. So what several threads would do to what they share
/// inside of a [`clock::Monitor`] is done in an order that can be had again.
#[derive(Debug)]
pub struct PeerGroup {
    reactors: Vec<Reactor>,
    places: Places,
    now: Nanos,
    /// Chooses between reactors in which something happens at one instant.
    rng: Rng,
}

/// Starts tasks in reactors of a [`PeerGroup`].
#[derive(Clone, Default)]
pub struct Places(Rc<RefCell<Vec<Begun>>>);

/// A task that is to begin in the reactor of this place.
type Begun = (usize, LocalFuture<'static, ()>);

impl PeerGroup {
    /// So many reactors whose clocks stand at zero; `seed` chooses between what happens at one
    /// instant. With `shuffle`, also within each: see [`clock::Schedule::new`].
    pub fn new(count: usize, seed: u64, shuffle: Option<u64>) -> Self {
        let places = peers_in_virtual_time(count).into_iter();
        let reactors = places.map(|place| Reactor::among(place, shuffle)).collect();
        Self { reactors, places: Places::default(), now: Nanos::ZERO, rng: Rng::new(seed) }
    }

    /// What starts tasks in them.
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// Tells what `sink` returns of each span for which a resource is held in a reactor.
    pub fn set_trace(&mut self, sink: impl Fn() -> Option<TraceSink>) {
        self.reactors.iter_mut().for_each(|reactor| reactor.set_trace(sink()));
    }

    /// Runs `root` to its end in the first of them, and everything else as far as that takes.
    ///
    /// # Panics
    /// When the clocks run dry before `root` is done.
    pub fn run<T>(&mut self, root: impl Future<Output = T>) -> T {
        let mut root = pin!(root);
        let root_task = self.reactors[0].add_task();
        let mut output = None;
        while output.is_none() {
            for (place, future) in self.places.0.take() {
                self.reactors[place].spawn(future);
            }
            let next = self.next().expect("nothing is left to happen in any reactor");
            let now = self.now;
            self.reactors[next].step(now, |task, context| {
                let is_root = next == 0 && task == root_task;
                if is_root && let Poll::Ready(done) = root.as_mut().poll(context) {
                    clock::end_task(task);
                    output = Some(done);
                }
                is_root
            });
        }
        output.expect("it was looked at above")
    }

    /// The reactor in which something happens next, and moves on to when that is.
    fn next(&mut self) -> Option<usize> {
        let events = self.reactors.iter().map(|reactor| reactor.next_event(self.now));
        let events: Vec<Option<Nanos>> = events.collect();
        let first = events.iter().flatten().min().copied()?;
        let firsts = events.iter().enumerate().filter(|(_, event)| **event == Some(first));
        let firsts: Vec<usize> = firsts.map(|(place, _)| place).collect();
        self.now = self.now.max(first);
        let chosen = self.rng.below(firsts.len() as u64);
        Some(firsts[usize::try_from(chosen).expect("it is below a length")])
    }
}

impl Places {
    /// Starts `future` as a task of reactor `place`, from 0, at this instant.
    pub fn spawn(&self, place: usize, future: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push((place, Box::pin(future)));
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Places")
    }
}
