use crate::flush::flush;
use crate::history::{Call, Condition, Open, Outcome};
use crate::ledger::{Content, Excuses, Ledger, Seen};
use crate::power::{Loss, Power};
use crate::tally::Tally;
use crate::target::Target;
use base::{Buf, Key};
use controller::{Completion, Queue, QueuePair, Submission};
use node::Device;
use spec::{Command, ListReader, Opcode, Status, StoreOptions};
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use workload::{ValueGenerator, checksum_of};

/// Operations that the client keeps outstanding.
pub(crate) const OUTSTANDING: usize = 64;

/// Room for the longest value.
pub(crate) const ROOM: u32 = 1 << 20;

/// What the client is to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Store {
        len: u32,
        condition: Condition,
    },
    /// Into so many bytes, which may be fewer than the value has, but no less than 8.
    Retrieve {
        room: u32,
    },
    Exist,
    Delete,
}

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    subject: usize,
    open: Open,
    /// Bytes that the answer may bring.
    room: u32,
}

/// Notes of each key what hosts asked for and were told.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) keys: Vec<Key>,
    values: ValueGenerator,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Of each key by its number.
    ledger: Ledger,
    stores: u32,
    stored_bytes: u64,
}

/// A host with a queue of its own.
pub(crate) struct Session<'a, Q> {
    client: &'a Client,
    queue: &'a Q,
    /// What is behind each command that is outstanding.
    asked: RefCell<BTreeMap<u64, Asked>>,
}

impl Client {
    pub(crate) fn new(keys: Vec<Key>, values: ValueGenerator) -> Self {
        let ledger = Ledger::new("key", keys.len());
        let state = State { ledger, stores: 0, stored_bytes: 0 };
        Self { keys, values, state: RefCell::new(state) }
    }

    /// A host that works by `queue`.
    pub(crate) fn session<'a, Q: Queue>(&'a self, queue: &'a Q) -> Session<'a, Q> {
        Session { client: self, queue, asked: RefCell::default() }
    }

    pub(crate) fn ledger(&self) -> Ref<'_, Ledger> {
        Ref::map(self.state.borrow(), |state| &state.ledger)
    }

    /// Holds all answers to what can be, and counts them.
    ///
    /// # Panics
    /// When they can not be, unless `excuses` explain it.
    pub(crate) fn check(&self, excuses: Excuses) -> Tally {
        let state = self.state.borrow();
        state.ledger.check(|subject| format!("{:?}", self.keys[subject]), excuses);
        let (operations, stored_bytes) = (state.ledger.operations, state.stored_bytes);
        let (unanswered, digest) = (state.ledger.unanswered(), state.ledger.digest());
        Tally { operations, stored_bytes, unanswered, digest, ..Tally::default() }
    }

    /// Makes durable what was answered.
    pub(crate) async fn flush(&self, target: &dyn Target, power: &Power) {
        self.state.borrow_mut().ledger.start_flush();
        if flush(target, power).await {
            self.state.borrow_mut().ledger.end_flush();
        }
    }

    /// The device is open.
    pub(crate) fn opened(&self) {
        self.state.borrow_mut().ledger.opened();
    }

    /// Of what the device held some may be lost.
    pub(crate) fn faults_may_revert(&self) {
        self.state.borrow_mut().ledger.faults_may_revert();
    }

    /// Gives up what is outstanding: the device has lost its power.
    pub(crate) fn cut_off(&self, loss: Loss) {
        self.state.borrow_mut().ledger.cut_off(loss);
    }

    /// Notes a request of a host, which submits it now.
    pub(crate) fn ask(&self, subject: usize, request: Request) -> (Asked, Submission) {
        let state = &mut *self.state.borrow_mut();
        let (key, space) = (&self.keys[subject], Device::NAMESPACE);
        let (bytes, number) = (key.as_bytes(), subject as u64);
        let mut room = 0;
        let (call, submission) = match request {
            Request::Store { len, condition } => {
                let value = self.values.value(number, state.stores, len);
                let tag = self.values.tag(number, state.stores, len);
                state.stores += 1;
                state.stored_bytes += u64::from(len) + bytes.len() as u64;
                let command = Command::store(space, bytes, len, options(condition));
                let version = state.ledger.version(subject, (len, tag));
                (Call::Store(version, condition), Submission::with_data(command, key, value))
            }
            Request::Retrieve { room: bytes_max } => {
                room = bytes_max;
                let command = Command::retrieve(space, bytes, room);
                (Call::Retrieve, Submission::new(command, key))
            }
            Request::Exist => (Call::Exist, Submission::new(Command::exist(space, bytes), key)),
            Request::Delete => (Call::Delete, Submission::new(Command::delete(space, bytes), key)),
        };
        let open = state.ledger.invoke(subject, call);
        (Asked { subject, open, room }, submission)
    }

    /// Notes the answer to a request. What is never answered may have been done or not.
    pub(crate) fn note(&self, asked: Asked, completion: &Completion) {
        let Asked { subject, open, room } = asked;
        let ledger = &mut self.state.borrow_mut().ledger;
        let key = &self.keys[subject];
        let outcome = outcome(key, completion, room, |content| ledger.version(subject, content));
        ledger.respond(subject, open, outcome);
    }

    /// Notes that a host asks now which keys there are: of each of `subjects` whether it is.
    pub(crate) fn ask_which(&self, subjects: std::ops::Range<usize>) -> Vec<(usize, Open)> {
        let ledger = &mut self.state.borrow_mut().ledger;
        subjects.map(|subject| (subject, ledger.invoke(subject, Call::Exist))).collect()
    }

    /// Notes the answer, which has `listed` some keys, or every one that there is.
    pub(crate) fn note_which(
        &self,
        asked: &[(usize, Open)],
        listed: &BTreeSet<Vec<u8>>,
        is_every: bool,
    ) {
        let ledger = &mut self.state.borrow_mut().ledger;
        for &(subject, open) in asked {
            if listed.contains(self.keys[subject].as_bytes()) {
                ledger.respond(subject, open, Outcome::Done);
            } else if is_every {
                ledger.respond(subject, open, Outcome::NotFound);
            }
        }
    }

    /// Notes that operations without an answer will not be executed later.
    pub(crate) fn give_up(&self) {
        self.state.borrow_mut().ledger.give_up();
    }

    /// The keys of which the last answer that tells says so.
    pub(crate) fn seen(&self, wanted: Seen) -> BTreeSet<Vec<u8>> {
        let ledger = &self.state.borrow().ledger;
        let keys = self.keys.iter().enumerate();
        let seen = keys.filter(|(subject, _)| ledger.last_seen(*subject) == wanted);
        seen.map(|(_, key)| key.as_bytes().to_vec()).collect()
    }
}

impl<Q: Queue> Session<'_, Q> {
    /// Submits requests, with [`OUTSTANDING`] commands at a time, until there are no more.
    pub(crate) async fn submit_all(
        &self,
        power: &Power,
        requests: impl Iterator<Item = (usize, Request)>,
    ) {
        for (subject, request) in requests {
            while self.asked.borrow().len() >= OUTSTANDING {
                self.complete(power).await;
            }
            self.submit(subject, request);
        }
    }

    /// Waits for the answers to all that was submitted.
    pub(crate) async fn finish_all(&self, power: &Power) {
        while !self.asked.borrow().is_empty() {
            self.complete(power).await;
        }
    }

    fn submit(&self, subject: usize, request: Request) {
        let (asked, submission) = self.client.ask(subject, request);
        let before = self.asked.borrow_mut().insert(self.queue.submit(submission), asked);
        assert!(before.is_none(), "a queue numbers its commands");
    }

    async fn complete(&self, power: &Power) {
        let completion = self.queue.next().await;
        power.on().await;
        let asked = self.asked.borrow_mut().remove(&completion.id);
        self.client.note(asked.expect("a command is completed once"), &completion);
    }
}

impl Session<'_, QueuePair> {
    /// As [`Self::finish_all`], of a queue that counts what is outstanding.
    pub(crate) async fn finish(&self, power: &Power) {
        self.finish_all(power).await;
        assert_eq!(self.queue.outstanding(), 0, "an answered command is not outstanding");
    }
}

fn options(condition: Condition) -> StoreOptions {
    match condition {
        Condition::None => StoreOptions::NONE,
        Condition::MustExist => StoreOptions::MUST_EXIST,
        Condition::MustNotExist => StoreOptions::MUST_NOT_EXIST,
    }
}

fn outcome(
    key: &Key,
    completion: &Completion,
    room: u32,
    version: impl FnOnce(Content) -> crate::history::Version,
) -> Outcome {
    match completion.status {
        Status::SUCCESS if completion.opcode == Opcode::RETRIEVE => {
            let value = &completion.data;
            let len = u32::try_from(completion.result).expect("a value is not that long");
            assert_eq!(value.len(), len.min(room), "the host's buffer is used as far as it goes");
            Outcome::Value(version((len, tag_of(value, key))))
        }
        Status::SUCCESS => Outcome::Done,
        Status::KEY_DOES_NOT_EXIST => Outcome::NotFound,
        Status::KEY_EXISTS => Outcome::Exists,
        Status::CAPACITY_EXCEEDED => Outcome::Full,
        Status::UNRECOVERED_ERROR => Outcome::Lost,
        Status::WRITE_FAULT => Outcome::Unwritten,
        status => panic!("{} of {key:?}: {status}", completion.opcode),
    }
}

/// The tag that a value was made from, of which this is all or the first bytes. An empty one has no
/// room for any.
pub(crate) fn tag_of(value: &Buf, key: &Key) -> u64 {
    if value.len() == 0 {
        return 0;
    }
    checksum_of(value).unwrap_or_else(|damaged| panic!("{key:?}: {damaged}: {value:?}"))
}

/// Every key of the device, by List commands with buffers of `buffer_bytes`, which takes the
/// longest keys twice.
pub(crate) async fn list_all(queue: &impl Queue, buffer_bytes: u32) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    let mut last: Option<Key> = None;
    loop {
        let start = last.as_ref().map_or(&[][..], Key::as_bytes);
        let command = Command::list(Device::NAMESPACE, start, buffer_bytes);
        let long_key = last.clone().filter(Key::is_long);
        queue.submit(Submission { command, long_key, data: Buf::phantom(0, 0) });
        let keys = keys_of(&queue.next().await);
        // A list begins with the key that it starts at, if that is still there.
        let is_start = keys.first().is_some_and(|first| first == start);
        let new = if is_start { &keys[1..] } else { &keys[..] };
        let Some(furthest) = new.last() else { return all };
        for key in new {
            assert!(all.insert(key.clone()), "key {} is listed twice", key.escape_ascii());
        }
        last = Some(Key::new(furthest).expect("a listed key has 1 to 255 bytes"));
    }
}

/// The keys that a List returned, in its order.
pub(crate) fn keys_of(completion: &Completion) -> Vec<Vec<u8>> {
    assert_eq!(completion.status, Status::SUCCESS, "List");
    let data = completion.data.bytes().expect("a list is never a phantom");
    let keys: Result<Vec<_>, _> = ListReader::new(data).expect("a list has a count").collect();
    keys.expect("a list is whole").into_iter().map(<[u8]>::to_vec).collect()
}
