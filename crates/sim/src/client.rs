use crate::flush::flush;
use crate::history::{Call, Condition, Open, Outcome};
use crate::ledger::{Content, Ledger};
use crate::power::{Loss, Power};
use base::{Buf, Key};
use controller::{Completion, QueuePair, Submission};
use node::Device;
use spec::{Command, ListReader, Opcode, Status, StoreOptions};
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use workload::{ValueGenerator, checksum_of};

/// Operations that the client keeps outstanding.
pub(crate) const OUTSTANDING: usize = 64;

/// Room for the longest value.
const BUFFER_BYTES: u32 = 1 << 20;

/// What the client is to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Store { len: u32, condition: Condition },
    Retrieve,
    Exist,
    Delete,
}

/// A host that notes for each of its keys what it asked for and what it was told.
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
    /// The operation behind each outstanding command.
    open: BTreeMap<u64, (usize, Open)>,
    stored_bytes: u64,
}

impl Client {
    pub(crate) fn new(keys: Vec<Key>, values: ValueGenerator) -> Self {
        let ledger = Ledger::new("key", keys.len());
        let state = State { ledger, stores: 0, open: BTreeMap::new(), stored_bytes: 0 };
        Self { keys, values, state: RefCell::new(state) }
    }

    pub(crate) fn ledger(&self) -> Ref<'_, Ledger> {
        Ref::map(self.state.borrow(), |state| &state.ledger)
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.state.borrow().stored_bytes
    }

    /// Submits requests, with [`OUTSTANDING`] commands at a time, until there are no more.
    pub(crate) async fn submit_all(
        &self,
        queue: &QueuePair,
        power: &Power,
        requests: impl Iterator<Item = (usize, Request)>,
    ) {
        for (subject, request) in requests {
            while self.outstanding() >= OUTSTANDING {
                self.complete(queue, power).await;
            }
            self.submit(queue, subject, request);
        }
    }

    /// Waits for the answers to all that was submitted.
    pub(crate) async fn finish(&self, queue: &QueuePair, power: &Power) {
        while self.outstanding() > 0 {
            self.complete(queue, power).await;
        }
        assert_eq!(queue.outstanding(), 0, "an answered command is not outstanding");
    }

    /// Makes durable what was answered.
    pub(crate) async fn flush(&self, device: &Device, power: &Power) {
        self.state.borrow_mut().ledger.start_flush();
        if flush(device, power).await {
            self.state.borrow_mut().ledger.end_flush();
        }
    }

    /// Of what the device held some may be lost.
    pub(crate) fn faults_may_revert(&self) {
        self.state.borrow_mut().ledger.faults_may_revert();
    }

    /// Gives up what is outstanding: the device has lost its power.
    pub(crate) fn cut_off(&self, loss: Loss) {
        let mut state = self.state.borrow_mut();
        state.open.clear();
        state.ledger.cut_off(loss);
    }

    fn outstanding(&self) -> usize {
        self.state.borrow().open.len()
    }

    fn submit(&self, queue: &QueuePair, number: usize, request: Request) {
        let mut state = self.state.borrow_mut();
        let (key, space) = (&self.keys[number], Device::NAMESPACE);
        let bytes = key.as_bytes();
        let (call, submission) = match request {
            Request::Store { len, condition } => {
                let value = self.values.value(number as u64, state.stores, len);
                let tag = self.values.tag(number as u64, state.stores, len);
                state.stores += 1;
                state.stored_bytes += u64::from(len) + bytes.len() as u64;
                let command = Command::store(space, bytes, len, options(condition));
                let version = state.ledger.version(number, (len, tag));
                (Call::Store(version, condition), Submission::with_data(command, key, value))
            }
            Request::Retrieve => {
                let command = Command::retrieve(space, bytes, BUFFER_BYTES);
                (Call::Retrieve, Submission::new(command, key))
            }
            Request::Exist => (Call::Exist, Submission::new(Command::exist(space, bytes), key)),
            Request::Delete => (Call::Delete, Submission::new(Command::delete(space, bytes), key)),
        };
        let open = state.ledger.invoke(number, call);
        let before = state.open.insert(queue.submit(submission), (number, open));
        assert!(before.is_none(), "a queue numbers its commands");
    }

    async fn complete(&self, queue: &QueuePair, power: &Power) {
        let completion = queue.next().await;
        power.on().await;
        let state = &mut *self.state.borrow_mut();
        let open = state.open.remove(&completion.id);
        let (number, open) = open.expect("a command is completed once");
        let key = &self.keys[number];
        let outcome = outcome(key, &completion, |content| state.ledger.version(number, content));
        state.ledger.respond(number, open, outcome);
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
    version: impl FnOnce(Content) -> crate::history::Version,
) -> Outcome {
    match completion.status {
        Status::SUCCESS if completion.opcode == Opcode::RETRIEVE => {
            let value = &completion.data;
            assert_eq!(
                completion.result,
                u64::from(value.len()),
                "the host's buffer takes it whole"
            );
            Outcome::Value(version((value.len(), tag_of(value, key))))
        }
        Status::SUCCESS => Outcome::Done,
        Status::KEY_DOES_NOT_EXIST => Outcome::NotFound,
        Status::KEY_EXISTS => Outcome::Exists,
        Status::CAPACITY_EXCEEDED => Outcome::Full,
        Status::UNRECOVERED_ERROR => Outcome::Lost,
        status => panic!("{} of {key:?}: {status}", completion.opcode),
    }
}

/// The tag that a value was made from. An empty one has no room for any.
pub(crate) fn tag_of(value: &Buf, key: &Key) -> u64 {
    if value.len() == 0 {
        return 0;
    }
    checksum_of(value).unwrap_or_else(|damaged| panic!("{key:?}: {damaged}: {value:?}"))
}

/// Every key of the device, by List commands with buffers of `buffer_bytes`, which takes the
/// longest keys twice.
pub(crate) async fn list_all(queue: &QueuePair, buffer_bytes: u32) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    let mut last: Option<Key> = None;
    loop {
        let start = last.as_ref().map_or(&[][..], Key::as_bytes);
        let command = Command::list(Device::NAMESPACE, start, buffer_bytes);
        let long_key = last.clone().filter(Key::is_long);
        queue.submit(Submission { command, long_key, data: Buf::phantom(0, 0) });
        let completion = queue.next().await;
        assert_eq!(completion.status, Status::SUCCESS, "List");
        let data = completion.data.bytes().expect("a list is never a phantom");
        let keys: Result<Vec<_>, _> = ListReader::new(data).expect("a list has a count").collect();
        let keys = keys.expect("a list is whole");
        // A list begins with the key that it starts at, if that is still there.
        let new = if keys.first() == Some(&start) { &keys[1..] } else { &keys[..] };
        let Some(furthest) = new.last() else { return all };
        for key in new {
            assert!(all.insert(key.to_vec()), "key {} is listed twice", key.escape_ascii());
        }
        last = Some(Key::new(furthest).expect("a listed key has 1 to 255 bytes"));
    }
}
