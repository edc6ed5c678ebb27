use crate::peers::peers_in_virtual_time;
use crate::reactor::Reactor;
use crate::remote::Remote;
use crate::virtual_cores::VirtualCores;
use crate::virtual_time::{CommonClock, CoreTimes};
use base::{Nanos, Rng};
use clock::{LocalFuture, TaskId, TraceSink};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// One in so many stretches is preceded by turns of others: the seed chooses. Where that is seldom,
/// what is ready elsewhere is still there when a task is in the middle of its work.
const ONE_IN: [u64; 4] = [4, 16, 64, 256];

/// The most turns that others have then.
const TURNS_MAX: u64 = 8;

/// Reactors in virtual time whose tasks share what is behind [`clock::Lock`]s, on one thread: what
/// happens first is done first, in whichever reactor that is. Before a task of one reactor takes
/// its first lock, tasks of others may run, as on threads of their own. Since what a task does
/// between its first and its last lock equals an undivided step, these are all the orders that
/// threads can have, and each can be had again.
#[derive(Debug)]
pub struct PeerGroup {
    shared: Rc<Shared>,
    places: Places,
}

#[derive(Debug)]
struct Shared {
    /// `None` while it has its turn.
    reactors: RefCell<Vec<Option<Reactor>>>,
    now: Cell<Nanos>,
    /// The task of the first reactor that [`PeerGroup::run`] polls.
    root: Cell<Option<TaskId>>,
    one_in: Cell<u64>,
    turns_max: Cell<u64>,
    /// Without them, polls take no time, and there are no mailboxes.
    cores: Option<VirtualCores>,
    /// Chooses between reactors in which something happens at one instant.
    rng: RefCell<Rng>,
}

/// Starts tasks in reactors of a [`PeerGroup`].
#[derive(Clone, Default)]
pub struct Places(Rc<RefCell<Vec<Begun>>>);

/// A task that is to begin in the reactor of this place.
type Begun = (usize, LocalFuture<'static, ()>);

/// Lets no other reactor run before stretches once it drops.
struct Preemption;

impl Drop for Preemption {
    fn drop(&mut self) {
        clock::preempt_by(None);
    }
}

impl PeerGroup {
    /// So many reactors whose clocks stand at zero; `seed` chooses between what happens at one
    /// instant. With `shuffle`, also within each: see [`clock::Schedule::new`].
    pub fn new(count: usize, seed: u64, shuffle: Option<u64>) -> Self {
        Self::of(count, seed, shuffle, None)
    }

    /// As [`Self::new`], on cores with these `times`: the wall of each reactor moves on as it polls
    /// and while it stalls, and [`Self::remotes`] can be linked by mailboxes.
    pub fn on_cores(count: usize, seed: u64, shuffle: Option<u64>, times: CoreTimes) -> Self {
        Self::of(count, seed, shuffle, Some(VirtualCores::new(count, times, seed)))
    }

    fn of(count: usize, seed: u64, shuffle: Option<u64>, cores: Option<VirtualCores>) -> Self {
        let peers = peers_in_virtual_time(count).into_iter().enumerate();
        let reactor = |(place, peer)| {
            let mut reactor = Reactor::among(peer, shuffle);
            reactor.driver = cores.as_ref().map(|cores| cores.driver(place));
            Some(reactor)
        };
        let reactors = peers.map(reactor).collect();
        let mut rng = Rng::new(seed);
        let one_in = usize::try_from(rng.below(4)).expect("one of four");
        let shared = Shared {
            one_in: Cell::new(ONE_IN[one_in]),
            turns_max: Cell::new(TURNS_MAX),
            cores,
            reactors: RefCell::new(reactors),
            now: Cell::default(),
            root: Cell::default(),
            rng: RefCell::new(rng),
        };
        Self { shared: Rc::new(shared), places: Places::default() }
    }

    /// Lets others have up to `turns_max` turns before one in `one_in` stretches.
    pub fn preempt_often(&mut self, one_in: u64, turns_max: u64) {
        self.shared.one_in.set(one_in);
        self.shared.turns_max.set(turns_max);
    }

    /// Returns the handles of the reactors, which count their load by the stages of their tasks.
    ///
    /// # Panics
    /// Without [`CoreTimes`].
    pub fn remotes(&self) -> Vec<Remote> {
        self.cores().remotes()
    }

    /// Returns the clock that all of them read.
    ///
    /// # Panics
    /// Without [`CoreTimes`].
    pub fn clock(&self) -> CommonClock {
        self.cores().clock()
    }

    fn cores(&self) -> &VirtualCores {
        self.shared.cores.as_ref().expect("the reactors are on cores")
    }

    /// What starts tasks in them.
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// Tells what `sink` returns of each span for which a resource is held in a reactor.
    pub fn set_trace(&mut self, sink: impl Fn() -> Option<TraceSink>) {
        let mut reactors = self.shared.reactors.borrow_mut();
        reactors.iter_mut().flatten().for_each(|reactor| reactor.set_trace(sink()));
    }

    /// Runs `root` to its end in the first of them, and everything else as far as that takes.
    ///
    /// # Panics
    /// When the clocks run dry before `root` is done.
    pub fn run<T>(&mut self, root: impl Future<Output = T>) -> T {
        let mut root = pin!(root);
        self.shared.root.set(Some(self.shared.with(0, Reactor::add_task)));
        let _preemption = self.shared.clone().preempt();
        let mut output = None;
        while output.is_none() {
            for (place, future) in self.places.0.take() {
                self.shared.with(place, |reactor| reactor.spawn(future));
            }
            let next = self.shared.next().expect("nothing is left to happen in any reactor");
            self.shared.step(next, |task, context| {
                let is_root = self.shared.is_root(next, task);
                if is_root && let Poll::Ready(done) = root.as_mut().poll(context) {
                    clock::end_task(task);
                    output = Some(done);
                }
                is_root
            });
        }
        output.expect("it was looked at above")
    }
}

impl Shared {
    /// Does `work` with a reactor that does not have its turn.
    fn with<T>(&self, place: usize, work: impl FnOnce(&mut Reactor) -> T) -> T {
        let taken = self.reactors.borrow_mut()[place].take();
        let mut reactor = taken.expect("a reactor has one turn at a time");
        let done = work(&mut reactor);
        self.reactors.borrow_mut()[place] = Some(reactor);
        done
    }

    /// Gives the reactor at `place` a turn: see [`Reactor::step`].
    fn step(&self, place: usize, poll_root: impl FnOnce(TaskId, &mut Context<'_>) -> bool) {
        let now = self.now.get();
        self.with(place, |reactor| match &self.cores {
            None => reactor.step(now, poll_root),
            Some(cores) => cores.step((place, now), reactor, poll_root),
        });
    }

    fn is_root(&self, place: usize, task: TaskId) -> bool {
        place == 0 && self.root.get() == Some(task)
    }

    /// The reactor in which something happens next, and moves on to when that is.
    fn next(&self) -> Option<usize> {
        let first = self.events().map(|(_, event)| event).min()?;
        self.now.set(self.now.get().max(first));
        self.choose(first)
    }

    /// When something happens next in each that does not have its turn.
    fn events(&self) -> impl Iterator<Item = (usize, Nanos)> {
        let now = self.now.get();
        let reactors = self.reactors.borrow();
        let events = reactors.iter().enumerate();
        let events = events.filter_map(|(place, it)| {
            let event = it.as_ref()?.next_event(now)?;
            Some((place, self.cores.as_ref().map_or(event, |cores| cores.earliest(place, event))))
        });
        events.collect::<Vec<_>>().into_iter()
    }

    /// One of those in which something happens by then.
    fn choose(&self, by: Nanos) -> Option<usize> {
        let ready: Vec<usize> =
            self.events().filter(|(_, event)| *event <= by).map(|(place, _)| place).collect();
        let at = self.rng.borrow_mut().below(ready.len().max(1) as u64);
        ready.get(usize::try_from(at).expect("it is below a length")).copied()
    }

    /// Lets others run before stretches until the guard drops.
    fn preempt(self: Rc<Self>) -> Option<Preemption> {
        let has_peers = self.reactors.borrow().len() > 1;
        has_peers.then(|| {
            clock::preempt_by(Some(Rc::new(move || self.run_others())));
            Preemption
        })
    }

    /// Lets another reactor have some turns while a task of one is polled.
    fn run_others(&self) {
        let (is_due, turns) = {
            let mut rng = self.rng.borrow_mut();
            (rng.below(self.one_in.get()) == 0, 1 + rng.below(self.turns_max.get()))
        };
        if !is_due {
            return;
        }
        let give_turns = |by: Option<Nanos>| {
            for _ in 0..turns {
                if let Some(by) = by
                    && let Some(event) = self.events().map(|(_, event)| event).min()
                    && event <= by
                {
                    self.now.set(self.now.get().max(event));
                }
                let Some(other) = self.choose(self.now.get()) else { break };
                self.step(other, |task, _| {
                    let is_root = self.is_root(other, task);
                    if is_root {
                        clock::put_back(task);
                    }
                    is_root
                });
            }
            self.now.get()
        };
        clock::set_aside(|| match &self.cores {
            None => _ = give_turns(None),
            Some(cores) => cores.stall(|until| give_turns(Some(until))),
        });
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
