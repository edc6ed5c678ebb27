//! Sends commands of a reactor's queues to other reactors, and executes theirs.

use super::BalanceConfig;
use super::monitor::end_windows;
use super::peer::{Message, Peer};
use super::shared::Shared;
use crate::server::bridge::MESSAGES;
use balance::{Costs, Router};
use base::Nanos;
use controller::{Answer, DivertedCommand, Placement};
use reactor::{CommonClock, ReceiveEnd, Remote, SendEnd, mailbox};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The links of a reactor to the others.
pub struct DiverterLinks {
    shared: Arc<Shared>,
    /// The place of this reactor among those that are balanced.
    place: usize,
    /// To each reactor; `None` to itself.
    to: Vec<Option<SendEnd<Message>>>,
    /// The same from each reactor.
    from: Vec<Option<ReceiveEnd<Message>>>,
}

/// Links the reactors under `remotes`, which measure queues by `clock`: puts the links of each into
/// its place. Returns what they know of each other.
pub fn link<'a>(
    config: BalanceConfig,
    clock: CommonClock,
    remotes: &[Remote],
    places: impl Iterator<Item = &'a mut Option<DiverterLinks>>,
) -> Arc<Shared> {
    let shared = Arc::new(Shared::new(config, clock, remotes));
    let unlinked = |place| {
        let (to, from) = (Vec::new(), remotes.iter().map(|_| None).collect());
        DiverterLinks { shared: shared.clone(), place, to, from }
    };
    let mut links: Vec<DiverterLinks> = (0..remotes.len()).map(unlinked).collect();
    for (from, sender) in remotes.iter().enumerate() {
        for (to, receiver) in remotes.iter().enumerate() {
            let ends = (from != to).then(|| mailbox(MESSAGES, sender, receiver));
            let (send, receive) = ends.unzip();
            links[from].to.push(send);
            links[to].from[from] = receive;
        }
    }
    places.zip(links).for_each(|(place, links)| *place = Some(links));
    shared
}

impl DiverterLinks {
    /// Opens the links in their reactor, and executes the commands of the others until it ends. The
    /// first reactor also balances all.
    pub fn open(self) -> Rc<Diverter> {
        let Self { shared, place, to, from } = self;
        let router = RefCell::new(Router::new(place, shared.reactors()));
        let mut peers = Vec::new();
        for (other, ends) in to.into_iter().zip(from).enumerate() {
            let (Some(to), Some(from)) = ends else {
                peers.push(None);
                continue;
            };
            let peer = Peer::new(other, from.open(), to.open());
            peers.push(Some(peer.clone()));
            let shared = shared.clone();
            clock::spawn(async move { peer.serve(place, &shared).await });
        }
        if place == 0 {
            clock::spawn(end_windows(shared.clone()));
        }
        Rc::new(Diverter { shared, place, peers, router, version: Cell::new(0) })
    }
}

/// Decides which reactor executes a command of this reactor's queues, and executes commands of
/// others.
pub struct Diverter {
    shared: Arc<Shared>,
    /// The place of this reactor among those that are balanced.
    place: usize,
    /// The other reactors, by place.
    peers: Vec<Option<Rc<Peer>>>,
    router: RefCell<Router>,
    /// The version of the routes that the router has.
    version: Cell<u64>,
}

impl Placement for Diverter {
    fn prepare(&self) {
        for peer in self.peers.iter().flatten() {
            peer.handle(None, self.place, &self.shared);
        }
    }

    fn place(&self, places: &mut [Option<usize>]) -> bool {
        let mut router = self.router.borrow_mut();
        let mut version = self.version.get();
        self.shared.update(self.place, &mut version, &mut router);
        self.version.set(version);
        let count = places.len() as u64;
        // A task that is ready has a command or more, as far as can be told.
        let ready = clock::ready_tasks() as u64;
        let waiting: usize = self.peers.iter().flatten().map(|peer| peer.waiting()).sum();
        self.shared.count_arrived(self.place, count, count + ready + waiting as u64);
        let Some(Costs { fixed, movable }) = router.costs() else {
            return router.place(places, |_| ()) && self.reserve(places) > 0;
        };
        let (now, ready_takes) = (self.shared.now(), Nanos((fixed.0 + movable.0) * ready));
        let is_diverted = router.place(places, |queues| {
            self.shared.read_queues(now, movable, queues);
            queues[self.place] = ready_takes + self.shared.queue(self.place, movable);
        });
        let diverted = if is_diverted { self.reserve(places) } else { 0 };
        let here = Nanos(fixed.0 * count + movable.0 * (count - diverted));
        self.shared.set_busy(self.place, now, ready_takes + here);
        diverted > 0
    }

    fn divert(&self, to: usize, command: DivertedCommand, answer: Answer) {
        let peer = self.peers[to].as_ref().expect("a reactor diverts nothing to itself");
        peer.divert(command, answer);
    }

    fn flush(&self) {
        self.peers.iter().flatten().for_each(|peer| peer.flush());
    }

    fn executed(&self, time: Nanos, count: u64) {
        self.shared.count_executed(self.place, self.place, (time, count));
    }
}

impl Diverter {
    /// Counts the commands that go to each other reactor, so that all see its queue grow, and
    /// returns how many do. Those of a reactor that has ended stay here.
    fn reserve(&self, places: &mut [Option<usize>]) -> u64 {
        let mut all = 0;
        for (to, peer) in self.peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let here = places.iter_mut().filter(|place| **place == Some(to));
            if peer.has_ended() {
                here.for_each(|place| *place = None);
                continue;
            }
            let count = here.count() as u64;
            if count > 0 {
                self.shared.count_diverted(self.place, to, count);
                all += count;
            }
        }
        all
    }
}
