use crate::history::{Call, Condition, History, Open, Outcome, Version};
use base::{Buf, Key, Nanos};
use controller::{Completion, QueuePair, Submission};
use node::Device;
use spec::{Command, ListReader, Opcode, Status, StoreOptions};
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

/// A key and what its client has seen of it.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) key: Key,
    pub(crate) history: History,
    /// The length and the tag of each version.
    versions: Vec<(u32, u64)>,
}

impl Subject {
    fn new(key: Key) -> Self {
        Self { key, history: History::default(), versions: Vec::new() }
    }

    /// The number of a content, whoever names it first.
    fn version(&mut self, len: u32, tag: u64) -> Version {
        let known = self.versions.iter().position(|version| *version == (len, tag));
        let number = known.unwrap_or_else(|| {
            self.versions.push((len, tag));
            self.versions.len() - 1
        });
        Version(u32::try_from(number).expect("a key is stored less than 2^32 times"))
    }

    /// True when the last answer that tells says that the key is there.
    pub(crate) fn was_there(&self) -> bool {
        let answers = self.history.operations().iter().rev();
        let mut telling =
            answers.filter_map(|operation| match (operation.call, operation.outcome) {
                (Call::Retrieve, Some(Outcome::Value(_))) => Some(true),
                (Call::Retrieve, Some(Outcome::NotFound)) => Some(false),
                _ => None,
            });
        telling.next().unwrap_or(false)
    }
}

/// A host that notes for each of its keys what it asked for and what it was told. It lives longer
/// than the devices that it talks to.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) subjects: Vec<Subject>,
    values: ValueGenerator,
    stores: u32,
    /// The operation behind each outstanding command.
    open: BTreeMap<u64, (usize, Open)>,
    /// Time on the clocks of the devices before.
    before: Nanos,
    pub(crate) operations: u64,
    pub(crate) stored_bytes: u64,
}

impl Client {
    pub(crate) fn new(keys: impl Iterator<Item = Key>, values: ValueGenerator) -> Self {
        Self {
            subjects: keys.map(Subject::new).collect(),
            values,
            stores: 0,
            open: BTreeMap::new(),
            before: Nanos::ZERO,
            operations: 0,
            stored_bytes: 0,
        }
    }

    /// Submits requests, with [`OUTSTANDING`] commands at a time, until there are no more.
    pub(crate) async fn submit_all(
        &mut self,
        queue: &QueuePair,
        requests: impl Iterator<Item = (usize, Request)>,
    ) {
        for (subject, request) in requests {
            while self.open.len() >= OUTSTANDING {
                self.complete(&queue.next().await);
            }
            self.submit(queue, subject, request);
        }
    }

    /// Waits for the answers to all that was submitted.
    pub(crate) async fn finish(&mut self, queue: &QueuePair) {
        while !self.open.is_empty() {
            self.complete(&queue.next().await);
        }
        assert_eq!(queue.outstanding(), 0, "an answered command is not outstanding");
    }

    /// Gives up what is outstanding: the device has lost its power at `at`, on its clock.
    pub(crate) fn cut_off(&mut self, at: Nanos) {
        self.before += at;
        self.open.clear();
        for subject in &mut self.subjects {
            subject.history.cut_off(self.before);
        }
    }

    fn submit(&mut self, queue: &QueuePair, number: usize, request: Request) {
        let at = self.before + clock::now();
        let subject = &mut self.subjects[number];
        let (key, space) = (subject.key.clone(), Device::NAMESPACE);
        let bytes = key.as_bytes();
        let (call, submission) = match request {
            Request::Store { len, condition } => {
                let value = self.values.value(number as u64, self.stores, len);
                let tag = self.values.tag(number as u64, self.stores, len);
                self.stores += 1;
                self.stored_bytes += u64::from(len) + bytes.len() as u64;
                let command = Command::store(space, bytes, len, options(condition));
                let call = Call::Store(subject.version(len, tag), condition);
                (call, Submission::with_data(command, &key, value))
            }
            Request::Retrieve => {
                let command = Command::retrieve(space, bytes, BUFFER_BYTES);
                (Call::Retrieve, Submission::new(command, &key))
            }
            Request::Exist => (Call::Exist, Submission::new(Command::exist(space, bytes), &key)),
            Request::Delete => (Call::Delete, Submission::new(Command::delete(space, bytes), &key)),
        };
        let open = subject.history.invoke(call, at);
        let before = self.open.insert(queue.submit(submission), (number, open));
        assert!(before.is_none(), "a queue numbers its commands");
    }

    fn complete(&mut self, completion: &Completion) {
        let open = self.open.remove(&completion.id);
        let (number, open) = open.expect("a command is completed once");
        let subject = &mut self.subjects[number];
        let outcome = outcome(subject, completion);
        subject.history.respond(open, outcome, self.before + clock::now());
        self.operations += 1;
    }
}

fn options(condition: Condition) -> StoreOptions {
    match condition {
        Condition::None => StoreOptions::NONE,
        Condition::MustExist => StoreOptions::MUST_EXIST,
        Condition::MustNotExist => StoreOptions::MUST_NOT_EXIST,
    }
}

fn outcome(subject: &mut Subject, completion: &Completion) -> Outcome {
    match completion.status {
        Status::SUCCESS if completion.opcode == Opcode::RETRIEVE => {
            let value = &completion.data;
            assert_eq!(completion.result, value.len().into(), "the host's buffer takes it whole");
            Outcome::Value(subject.version(value.len(), tag_of(value, &subject.key)))
        }
        Status::SUCCESS => Outcome::Done,
        Status::KEY_DOES_NOT_EXIST => Outcome::NotFound,
        Status::KEY_EXISTS => Outcome::Exists,
        Status::CAPACITY_EXCEEDED => Outcome::Full,
        status => panic!("{} of {:?}: {status}", completion.opcode, subject.key),
    }
}

/// The tag that a value was made from. An empty one has no room for any.
fn tag_of(value: &Buf, key: &Key) -> u64 {
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
