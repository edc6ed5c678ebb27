//! What a reactor has of another one: the commands and outcomes that go there and come from there.

use super::shared::Shared;
use base::Nanos;
use clock::BusyStage;
use controller::{Answer, DivertedCommand, DivertedOutcome, DivertedQueue};
use reactor::{Inbox, Outbox};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Messages that are handled before other tasks have a turn. The index entries of their commands
/// are prefetched together.
const TOGETHER_MAX: usize = 32;

/// A message between two reactors.
pub(super) enum Message {
    /// Execute a command, which the sender has numbered.
    Execute(usize, DivertedCommand),
    /// The outcome of the command with this number.
    End(usize, DivertedOutcome),
}

/// Another reactor.
pub(super) struct Peer {
    /// Its place among those that are balanced.
    place: usize,
    inbox: Inbox<Message>,
    outgoing: Rc<Outgoing>,
    /// Executes its commands.
    queue: Rc<DivertedQueue>,
    /// The commands that it executes, by number.
    waiting: RefCell<Slab<Answer>>,
    has_ended: Cell<bool>,
    /// Set while messages are handled: their answers may lead here again.
    is_handling: Cell<bool>,
}

/// What goes to another reactor.
struct Outgoing {
    outbox: Outbox<Message>,
    unsent: RefCell<Vec<Message>>,
    /// Whether outcomes are gathered, to be sent together.
    gathers: Cell<bool>,
}

impl Peer {
    pub(super) fn new(place: usize, inbox: Inbox<Message>, outbox: Outbox<Message>) -> Rc<Self> {
        let unsent = RefCell::default();
        let outgoing = Rc::new(Outgoing { outbox, unsent, gathers: Cell::new(false) });
        let queue = DivertedQueue::new({
            let outgoing = outgoing.clone();
            move |number, outcome| outgoing.answer(Message::End(number, outcome))
        });
        Rc::new(Self {
            place,
            inbox,
            outgoing,
            queue,
            waiting: RefCell::default(),
            has_ended: Cell::new(false),
            is_handling: Cell::new(false),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Returns the number of commands that it executes.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Sends a command with the next [`Self::flush`].
    pub(super) fn divert(&self, command: DivertedCommand, answer: Answer) {
        let number = self.waiting.borrow_mut().insert(answer);
        self.outgoing.unsent.borrow_mut().push(Message::Execute(number, command));
    }

    pub(super) fn flush(&self) {
        self.outgoing.flush();
    }

    /// Handles its messages until it has ended, in reactor `here`.
    pub(super) async fn serve(self: Rc<Self>, here: usize, shared: &Shared) {
        clock::name_task("diverted commands");
        clock::set_busy_stage(BusyStage::Complete);
        while let Some(message) = self.inbox.receive().await {
            self.handle(Some(message), here, shared);
            clock::give_way().await;
        }
        self.has_ended.set(true);
        for answer in self.waiting.take() {
            answer.1.give(DivertedOutcome::lost());
        }
    }

    /// Handles `first` and the messages that have come since, in reactor `here`. Without `first`,
    /// returns at once if a call is in progress.
    pub(super) fn handle(&self, first: Option<Message>, here: usize, shared: &Shared) {
        if self.is_handling.replace(true) {
            assert!(first.is_none(), "a message is received while none is handled");
            return;
        }
        let (mut commands, mut outcomes) = (Vec::new(), Vec::new());
        let mut sort = |message| match message {
            Message::Execute(number, command) => commands.push((number, command)),
            Message::End(number, outcome) => outcomes.push((number, outcome)),
        };
        let most = TOGETHER_MAX - usize::from(first.is_some());
        first.into_iter().for_each(&mut sort);
        self.inbox.receive_some(most, sort);
        if !outcomes.is_empty() {
            let _stage = clock::enter_busy_stage(BusyStage::Complete);
            for (number, outcome) in outcomes {
                let answer = self.waiting.borrow_mut().remove(number);
                answer.give(outcome);
            }
        }
        if !commands.is_empty() {
            let (count, took) = (commands.len() as u64, self.execute(&mut commands));
            shared.count_executed(here, self.place, (took, count));
        }
        self.is_handling.set(false);
    }

    /// Executes commands, and sends the outcomes of those that end at once. Returns the time taken.
    fn execute(&self, commands: &mut Vec<(usize, DivertedCommand)>) -> Nanos {
        let _stage = clock::enter_busy_stage(BusyStage::Kv);
        let began = clock::host_now();
        self.outgoing.gathers.set(true);
        self.queue.execute(commands);
        self.outgoing.gathers.set(false);
        self.outgoing.flush();
        clock::host_now() - began
    }
}

impl Outgoing {
    fn answer(&self, outcome: Message) {
        if self.gathers.get() {
            self.unsent.borrow_mut().push(outcome);
        } else {
            self.outbox.send(outcome);
        }
    }

    fn flush(&self) {
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.is_empty() {
            self.outbox.send_all(unsent.drain(..));
        }
    }
}
