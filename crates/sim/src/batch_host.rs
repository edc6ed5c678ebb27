use crate::client::tag_of;
use crate::history::{Call, Condition, Open, Outcome};
use crate::ledger::{Content, Excuses, Ledger};
use crate::power::{Loss, Power};
use crate::tally::Tally;
use base::{Key, Rng};
use engine::{BatchOp, BatchWrite, Error, KeySpaceId, Live, Store, Write};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use workload::{Payload, ValueGenerator};

/// Keys of a group.
const MEMBERS: usize = 5;

/// Longest values of a batch, one of them at random. A batch may be longer than the store takes.
const VALUE_BYTES_MAX: [u64; 4] = [40, 700, 2_000, 5_000];

/// Bytes that a member takes on average.
const MEMBER_BYTES: u64 = 1_200;

/// Hosts that write groups of keys in batches.
#[derive(Debug)]
pub(crate) struct BatchHost {
    keys: Vec<(KeySpaceId, Key)>,
    values: ValueGenerator,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Of each key.
    members: Ledger,
    /// Of each group. Its contents are numbers of batches.
    groups: Ledger,
    /// The batch that a member's content is from.
    batch_of: BTreeMap<(usize, Content), u64>,
    batches: u64,
    stored_bytes: u64,
    /// Whether groups may have lost a part to faults, and those that did.
    may_be_parts: bool,
    parts: BTreeSet<usize>,
}

/// What is asked of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Put(Condition),
    Delete,
}

/// A batch that is not answered yet.
struct Started {
    writes: Vec<BatchWrite>,
    group: (usize, Open),
    members: Vec<(usize, Open)>,
}

impl BatchHost {
    /// Key spaces, from 1.
    pub(crate) const SPACES: u16 = 3;

    /// Groups that fill a bit more than half of `capacity_bytes`.
    pub(crate) fn new(seed: u64, capacity_bytes: u64, payload: Payload) -> Self {
        let groups = capacity_bytes * 6 / 10 / (MEMBER_BYTES * MEMBERS as u64);
        let groups = usize::try_from(groups).expect("a small device");
        let lengths = [8, 16, 17, 60, 200];
        let keys = (0..groups * MEMBERS).map(|number| {
            let mut bytes = format!("m{number:07}").into_bytes();
            bytes.resize(lengths[number % lengths.len()], b'.');
            let space = u16::try_from(number % usize::from(Self::SPACES)).expect("a few");
            (KeySpaceId(1 + space), Key::new(&bytes).expect("1 to 255 bytes"))
        });
        let state = State {
            members: Ledger::new("member", groups * MEMBERS),
            groups: Ledger::new("group", groups),
            batch_of: BTreeMap::new(),
            batches: 0,
            stored_bytes: 0,
            may_be_parts: false,
            parts: BTreeSet::new(),
        };
        let values = ValueGenerator::new(seed, payload);
        Self { keys: keys.collect(), values, state: RefCell::new(state) }
    }

    pub(crate) fn operations(&self) -> u64 {
        let state = self.state.borrow();
        state.members.operations + state.groups.operations
    }

    /// Writes batches, one after the other.
    pub(crate) async fn write(
        self: Rc<Self>,
        store: Arc<Store>,
        power: Power,
        mut rng: Rng,
        batches: u64,
    ) {
        let groups = self.keys.len() / MEMBERS;
        for _ in 0..batches {
            let group = usize::try_from(rng.below(groups as u64)).expect("below a usize");
            let ask = match rng.below(100) {
                0..70 => Ask::Put(Condition::None),
                70..80 => Ask::Put(Condition::MustExist),
                80..88 => Ask::Put(Condition::MustNotExist),
                _ => Ask::Delete,
            };
            let started = self.start(group, ask, &mut rng);
            let outcome = store.write_batch(started.writes.clone(), store.announce()).await;
            power.on().await;
            self.end(&started, outcome);
        }
    }

    fn start(&self, group: usize, ask: Ask, rng: &mut Rng) -> Started {
        let state = &mut *self.state.borrow_mut();
        state.batches += 1;
        let batch = state.batches;
        let call = match ask {
            Ask::Put(condition) => Call::Store(state.groups.version(group, (0, batch)), condition),
            Ask::Delete => Call::Delete,
        };
        let open = state.groups.invoke(group, call);
        let max = VALUE_BYTES_MAX[usize::try_from(rng.below(4)).expect("below 4")];
        let mut members = Vec::new();
        let mut writes = Vec::new();
        for member in group * MEMBERS..(group + 1) * MEMBERS {
            let len = u32::try_from(rng.below(max)).expect("a short value") + 8;
            let number = u32::try_from(batch).expect("a run has fewer batches");
            let (space, key) = self.keys[member].clone();
            let (call, op) = match ask {
                Ask::Put(condition) => {
                    let value = self.values.value(member as u64, number, len);
                    let content = (len, self.values.tag(member as u64, number, len));
                    state.batch_of.insert((member, content), batch);
                    state.stored_bytes += u64::from(len);
                    let version = state.members.version(member, content);
                    let write = Write { condition: engine_condition(condition), expires: None };
                    (Call::Store(version, condition), BatchOp::Put { value, write })
                }
                Ask::Delete => (Call::Delete, BatchOp::DELETE),
            };
            members.push((member, state.members.invoke(member, call)));
            writes.push(BatchWrite { space, key, op });
        }
        Started { writes, group: (group, open), members }
    }

    fn end(&self, started: &Started, outcome: Result<(), Error>) {
        let state = &mut *self.state.borrow_mut();
        let is_delete = matches!(started.writes[0].op, BatchOp::Delete { .. });
        let outcome = match outcome {
            // Whether there was anything to delete is not said.
            Ok(()) if is_delete => return state.settle_delete(started),
            Ok(()) => Outcome::Done,
            // Which of the members it is about is not said.
            Err(Error::KeyNotFound | Error::KeyExists) if state.may_be_parts => {
                return state.leave_open(started);
            }
            Err(Error::KeyNotFound) => Outcome::NotFound,
            Err(Error::KeyExists) => Outcome::Exists,
            Err(Error::CapacityExceeded | Error::BatchTooLong { .. }) => Outcome::Full,
            Err(Error::Unrecovered) => return state.leave_open(started),
            Err(Error::Unwritten) => Outcome::Unwritten,
            Err(error) => panic!("a batch: {error}"),
        };
        state.groups.respond(started.group.0, started.group.1, outcome);
        for &(member, open) in &started.members {
            state.members.respond(member, open, outcome);
        }
    }

    /// Reads members, one after the other.
    pub(crate) async fn read(
        self: Rc<Self>,
        store: Arc<Store>,
        power: Power,
        mut rng: Rng,
        reads: u64,
    ) {
        for _ in 0..reads {
            let member = rng.below(self.keys.len() as u64);
            self.get(&store, &power, usize::try_from(member).expect("below a usize")).await;
        }
    }

    /// The batch that the member's value is from; nothing where it has none.
    async fn get(&self, store: &Arc<Store>, power: &Power, member: usize) -> Option<Member> {
        let open = self.state.borrow_mut().members.invoke(member, Call::Retrieve);
        let (space, key) = &self.keys[member];
        let value = store.get(*space, key).await;
        power.on().await;
        let state = &mut *self.state.borrow_mut();
        let (outcome, found) = match value {
            Ok(value) => {
                let content = (value.len(), tag_of(&value, key));
                let batch = state.batch_of.get(&(member, content)).copied();
                let batch =
                    batch.unwrap_or_else(|| panic!("{key:?} has a value that no batch wrote"));
                let version = state.members.version(member, content);
                (Outcome::Value(version), Some(Member::Of(batch)))
            }
            Err(Error::KeyNotFound) => (Outcome::NotFound, None),
            Err(Error::Unrecovered) => (Outcome::Lost, Some(Member::Lost)),
            Err(error) => panic!("{key:?}: {error}"),
        };
        state.members.respond(member, open, outcome);
        found
    }

    /// Reads every group while no writer is active.
    pub(crate) async fn check_content(&self, store: &Arc<Store>, power: &Power) {
        let groups = self.keys.len() / MEMBERS;
        for group in 0..groups {
            let open = self.state.borrow_mut().groups.invoke(group, Call::Retrieve);
            let mut found = Vec::new();
            for member in group * MEMBERS..(group + 1) * MEMBERS {
                found.push(self.get(store, power, member).await);
            }
            found.retain(|member| *member != Some(Member::Lost));
            found.dedup();
            let state = &mut *self.state.borrow_mut();
            if state.parts.contains(&group) {
                continue;
            }
            let outcome = match found[..] {
                // All are lost.
                [] => continue,
                [None] => Outcome::NotFound,
                [Some(Member::Of(batch))] => {
                    Outcome::Value(state.groups.version(group, (0, batch)))
                }
                _ if state.may_be_parts => {
                    state.parts.insert(group);
                    continue;
                }
                _ => panic!("group {group} has parts of several batches: {found:?}"),
            };
            state.groups.respond(group, open, outcome);
        }
        check_counts(store);
    }

    pub(crate) fn start_flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.members.start_flush();
        state.groups.start_flush();
    }

    pub(crate) fn end_flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.members.end_flush();
        state.groups.end_flush();
    }

    pub(crate) fn opened(&self) {
        let state = &mut *self.state.borrow_mut();
        state.members.opened();
        state.groups.opened();
    }

    pub(crate) fn cut_off(&self, loss: Loss) {
        let state = &mut *self.state.borrow_mut();
        state.members.cut_off(loss);
        state.groups.cut_off(loss);
    }

    /// Allows a group to be of several batches, as faults may have lost a part of the store.
    pub(crate) fn faults_may_revert(&self) {
        let state = &mut *self.state.borrow_mut();
        state.members.faults_may_revert();
        state.groups.faults_may_revert();
        state.may_be_parts = true;
    }

    pub(crate) fn check(&self, excuses: Excuses) -> Tally {
        let state = self.state.borrow();
        state.members.check(|member| format!("{:?}", self.keys[member]), excuses);
        assert!(state.parts.len() <= excuses.hit, "groups in parts: {:?}", state.parts);
        state.groups.check(|group| format!("group {group}"), excuses);
        let operations = state.members.operations + state.groups.operations;
        Tally { operations, stored_bytes: state.stored_bytes, ..Tally::default() }
    }
}

/// What a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Of(u64),
    Lost,
}

impl State {
    /// A delete is answered alike whether there was something or not.
    fn settle_delete(&mut self, started: &Started) {
        self.groups.respond_either(started.group.0, started.group.1);
        for &(member, open) in &started.members {
            self.members.respond_either(member, open);
        }
    }

    /// It has changed nothing, for some member could not be read, or was not as the batch wants it:
    /// as if it had not been asked.
    fn leave_open(&mut self, started: &Started) {
        self.groups.respond(started.group.0, started.group.1, Outcome::Full);
        for &(member, open) in &started.members {
            self.members.respond(member, open, Outcome::Full);
        }
    }
}

/// What lives in all extents is what lives in all.
fn check_counts(store: &Store) {
    let by_extent = store.live_by_extent().into_iter();
    let sum = by_extent.map(|(_, live)| live).sum::<Live>();
    assert_eq!(sum, store.usage().values, "what lives in all extents is what lives in all");
}

fn engine_condition(condition: Condition) -> engine::Condition {
    match condition {
        Condition::None => engine::Condition::Always,
        Condition::MustExist => engine::Condition::MustExist,
        Condition::MustNotExist => engine::Condition::MustNotExist,
    }
}
