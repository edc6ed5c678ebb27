//! Sends commands of a reactor's queues to other reactors, and executes theirs.

use super::BalanceConfig;
use super::monitor::end_windows;
use super::shared::Shared;
use crate::server::bridge::MESSAGES;
use balance::Router;
use base::Nanos;
use controller::{Answer, DivertedCommand, DivertedOutcome, DivertedQueue, Placement};
use reactor::{Inbox, Outbox, ReceiveEnd, Remote, SendEnd, mailbox};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Messages that are handled before other tasks have a turn. The index entries of their commands
/// are prefetched together.
const TOGETHER_MAX: usize = 32;

/// A message between two reactors.
enum Message {
    /// Execute a command, which the sender has numbered.
    Execute(u64, DivertedCommand),
    /// The outcome of the command with this number.
    End(u64, DivertedOutcome),
}

/// The links of a reactor to the others.
pub(crate) struct DiverterLinks {
    shared: Arc<Shared>,
    /// The place of this reactor among those that are balanced.
    place: usize,
    /// To each reactor; `None` to itself.
    to: Vec<Option<SendEnd<Message>>>,
    /// The same from each reactor.
    from: Vec<Option<ReceiveEnd<Message>>>,
}

/// Links the reactors under `remotes`: puts the links of each into its place. Returns what they
/// know of each other.
pub(crate) fn link<'a>(
    config: BalanceConfig,
    remotes: &[Remote],
    places: impl Iterator<Item = &'a mut Option<DiverterLinks>>,
) -> Arc<Shared> {
    let shared = Arc::new(Shared::new(config, remotes));
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
    pub(crate) fn open(self) -> Rc<Diverter> {
        let Self { shared, place, to, from } = self;
        let router = RefCell::new(Router::new(shared.reactors()));
        let diverter = Rc::new(Diverter {
            place,
            peers: to.into_iter().map(|end| end.map(SendEnd::open)).collect(),
            router,
            version: Cell::new(0),
            waiting: RefCell::default(),
            gone: RefCell::default(),
            shared: shared.clone(),
        });
        for (peer, end) in from.into_iter().enumerate() {
            if let Some(end) = end {
                clock::spawn(diverter.clone().serve(peer, end.open()));
            }
        }
        if place == 0 {
            clock::spawn(end_windows(shared));
        }
        diverter
    }
}

/// Decides which reactor executes a command of this reactor's queues, and executes commands of
/// others.
pub(crate) struct Diverter {
    shared: Arc<Shared>,
    /// The place of this reactor among those that are balanced.
    place: usize,
    peers: Vec<Option<Outbox<Message>>>,
    router: RefCell<Router>,
    /// The version of the routes that the router has.
    version: Cell<u64>,
    waiting: RefCell<Waiting>,
    /// The reactors that have ended.
    gone: RefCell<Vec<usize>>,
}

/// The commands that other reactors execute, by number.
#[derive(Default)]
struct Waiting {
    next: u64,
    answers: BTreeMap<u64, (usize, Answer)>,
}

impl Placement for Diverter {
    fn choose(&self) -> Option<usize> {
        let mut router = self.router.borrow_mut();
        let mut version = self.version.get();
        self.shared.update(self.place, &mut version, &mut router);
        self.version.set(version);
        router.choose().filter(|to| !self.gone.borrow().contains(to))
    }

    fn divert(&self, to: usize, command: DivertedCommand, answer: Answer) {
        let number = self.waiting.borrow_mut().add(to, answer);
        self.outbox(to).send(Message::Execute(number, command));
        self.shared.count_diverted(self.place);
    }

    fn executed(&self, time: Nanos) {
        self.shared.add_movable(self.place, time);
    }
}

impl Diverter {
    fn outbox(&self, peer: usize) -> &Outbox<Message> {
        self.peers[peer].as_ref().expect("a reactor diverts nothing to itself")
    }

    /// Handles the messages of a peer until it has ended.
    async fn serve(self: Rc<Self>, peer: usize, inbox: Inbox<Message>) {
        clock::name_task("diverted commands");
        let outbox = self.outbox(peer).clone();
        let queue = DivertedQueue::new(move |number, outcome| {
            outbox.send(Message::End(number, outcome));
        });
        let mut commands = Vec::new();
        while let Some(message) = inbox.receive().await {
            self.take(message, &mut commands);
            for message in (1..TOGETHER_MAX).map_while(|_| inbox.try_receive()) {
                self.take(message, &mut commands);
            }
            if !commands.is_empty() {
                let began = clock::host_now();
                queue.execute(&mut commands);
                self.shared.add_movable(peer, clock::host_now() - began);
            }
            clock::give_way().await;
        }
        self.gone.borrow_mut().push(peer);
        let lost = self.waiting.borrow_mut().take_of(peer);
        for answer in lost {
            answer(DivertedOutcome::lost());
        }
    }

    /// Adds a command to `commands`, or gives an outcome to the command's queue.
    fn take(&self, message: Message, commands: &mut Vec<(u64, DivertedCommand)>) {
        match message {
            Message::Execute(number, command) => commands.push((number, command)),
            Message::End(number, outcome) => {
                let answer = self.waiting.borrow_mut().take(number);
                answer(outcome);
            }
        }
    }
}

impl Waiting {
    fn add(&mut self, peer: usize, answer: Answer) -> u64 {
        self.next += 1;
        self.answers.insert(self.next, (peer, answer));
        self.next
    }

    fn take(&mut self, number: u64) -> Answer {
        self.answers.remove(&number).expect("a command ends once").1
    }

    /// Takes the answers of all commands that `peer` has.
    fn take_of(&mut self, peer: usize) -> Vec<Answer> {
        self.answers.extract_if(.., |_, (of, _)| *of == peer).map(|(_, (_, it))| it).collect()
    }
}
