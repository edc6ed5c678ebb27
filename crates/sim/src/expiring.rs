use crate::client::tag_of;
use crate::power::{Loss, Power};
use crate::put::put;
use crate::trace;
use base::{Key, Nanos, Rng};
use clock::{Stage, UnixMillis};
use engine::{Condition, Error, KeySpaceId, Store, Write};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use workload::{Payload, ValueGenerator};

/// Longest life of a value in milliseconds.
const LIFE_MS_MAX: u64 = 40;

/// Longest value in bytes.
const VALUE_BYTES_MAX: u64 = 2_000;

/// Where the keys are.
const SPACE: KeySpaceId = KeySpaceId(1);

/// Hosts of keys whose values go by themselves. Each key has one, which does one thing at a time.
#[derive(Debug)]
pub(crate) struct Expiring {
    values: ValueGenerator,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    keys: Vec<Subject>,
    versions: u32,
    operations: u64,
    /// Time on the clocks of the devices before.
    before: Nanos,
}

/// What a key can be.
#[derive(Debug)]
struct Subject {
    key: Key,
    possible: Vec<Holding>,
    /// What it may also be again after a loss of power.
    shadows: Vec<Holding>,
    /// What could not be written since the store was opened, and the next start may find.
    unwritten: Vec<Holding>,
    /// What it ever was.
    all: Vec<Holding>,
    /// Changes that were asked for and answered so far.
    changes: u64,
}

/// A value, by its length and tag, and its end; or none.
type Holding = Option<(u32, u64, UnixMillis)>;

impl Expiring {
    pub(crate) fn new(seed: u64, keys: u64, payload: Payload) -> Self {
        let keys = (0..keys).map(|number| {
            let key = Key::new(format!("expires{number:02}").as_bytes()).expect("a short key");
            Subject {
                key,
                possible: vec![None],
                shadows: Vec::new(),
                unwritten: Vec::new(),
                all: Vec::new(),
                changes: 0,
            }
        });
        let (versions, operations) = (0, 0);
        let state = State { keys: keys.collect(), versions, operations, before: Nanos::ZERO };
        let values = ValueGenerator::new(seed ^ 1, payload);
        Self { values, state: RefCell::new(state) }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state.borrow().operations
    }

    /// Tells a device that was just turned on how late it is.
    pub(crate) fn set_date(&self) {
        clock::set_unix_now(UnixMillis::START.after(self.state.borrow().before + clock::now()));
    }

    /// Works with key `number`.
    pub(crate) async fn work(
        self: Rc<Self>,
        store: Arc<Store>,
        power: Power,
        number: u64,
        mut rng: Rng,
        steps: u64,
    ) {
        let number = usize::try_from(number).expect("a few");
        self.look(&store, &power, number, &mut rng).await;
        for _ in 0..steps {
            match rng.below(10) {
                0..3 => self.put(&store, &power, number, &mut rng).await,
                3 => self.delete(&store, &power, number).await,
                4..6 => clock::sleep(Nanos(rng.below(8_000_000)), Stage::Core).await,
                _ => self.look(&store, &power, number, &mut rng).await,
            }
            power.on().await;
        }
    }

    fn key(&self, number: usize) -> Key {
        self.state.borrow().keys[number].key.clone()
    }

    async fn put(&self, store: &Arc<Store>, power: &Power, number: usize, rng: &mut Rng) {
        let len = 8 + u32::try_from(rng.below(VALUE_BYTES_MAX)).expect("a short value");
        let life = Nanos::from_millis(rng.below(LIFE_MS_MAX));
        let expires = match rng.below(4) {
            0 => UnixMillis::MAX,
            _ => clock::unix_now().after(life),
        };
        let version = {
            let mut state = self.state.borrow_mut();
            state.versions += 1;
            state.versions
        };
        let value = self.values.value(number as u64, version, len);
        let tag = self.values.tag(number as u64, version, len);
        let holding = Some((len, tag, expires));
        self.state.borrow_mut().keys[number].start(holding);
        let write = Write {
            condition: Condition::Always,
            expires: (expires != UnixMillis::MAX).then_some(expires),
        };
        let (outcome, _) = put(store, SPACE, &self.key(number), &value, write).await;
        power.on().await;
        self.end(number, holding, outcome.map(drop));
    }

    async fn delete(&self, store: &Arc<Store>, power: &Power, number: usize) {
        self.state.borrow_mut().keys[number].start(None);
        let outcome = store.delete(SPACE, &self.key(number), store.announce()).await;
        power.on().await;
        self.end(number, None, outcome);
    }

    fn end(&self, number: usize, holding: Holding, outcome: Result<(), Error>) {
        let mut state = self.state.borrow_mut();
        state.operations += 1;
        trace::event(format_args!("{:?}: {outcome:?}", state.keys[number].key));
        match outcome {
            Ok(()) => state.keys[number].changed(holding),
            // What is not there may also have expired just now.
            Err(Error::KeyNotFound) => {}
            Err(Error::CapacityExceeded | Error::Unrecovered) => {
                state.keys[number].take_back(holding);
            }
            Err(Error::Unwritten) => {
                state.keys[number].take_back(holding);
                state.keys[number].unwritten.push(holding);
            }
            Err(error) => panic!("{:?}: {error}", state.keys[number].key),
        }
    }

    async fn look(&self, store: &Arc<Store>, power: &Power, number: usize, rng: &mut Rng) {
        let from = clock::unix_now();
        let key = self.key(number);
        if rng.below(3) == 0 {
            let exists = store.exist(SPACE, &key).await;
            power.on().await;
            if let Ok(exists) = exists {
                self.saw(number, from, |found| found.is_some() == exists);
            }
            return;
        }
        let value = store.get(SPACE, &key).await;
        power.on().await;
        match value {
            Ok(value) => {
                let seen = (value.len(), tag_of(&value, &key));
                self.saw(number, from, |found| found == Some(seen));
            }
            Err(Error::KeyNotFound) => self.saw(number, from, |found| found.is_none()),
            Err(Error::Unrecovered) => {}
            Err(error) => panic!("{key:?}: {error}"),
        }
    }

    /// Keeps what explains an answer of now to a question of `from`.
    fn saw(&self, number: usize, from: UnixMillis, explains: impl Fn(Option<(u32, u64)>) -> bool) {
        let until = clock::unix_now();
        let state = &mut *self.state.borrow_mut();
        state.operations += 1;
        let subject = &mut state.keys[number];
        let before = subject.possible.clone();
        trace::event(format_args!("{:?}: one of {before:?} is looked at", subject.key));
        subject.possible.retain(|holding| match *holding {
            None => explains(None),
            Some((len, tag, expires)) => {
                (expires > from && explains(Some((len, tag))))
                    || (expires <= until && explains(None))
            }
        });
        assert!(
            !subject.possible.is_empty(),
            "{:?} is none of {before:?}, between {from:?} and {until:?}",
            subject.key
        );
    }

    /// How often each key was changed when the flush began.
    pub(crate) fn start_flush(&self) -> Vec<u64> {
        self.state.borrow().keys.iter().map(|subject| subject.changes).collect()
    }

    /// Notes that changes before the flush are durable.
    pub(crate) fn end_flush(&self, since: Vec<u64>) {
        let mut state = self.state.borrow_mut();
        for (subject, changes) in state.keys.iter_mut().zip(since) {
            if subject.changes == changes {
                subject.shadows.clear();
            }
        }
    }

    /// Of what the store held some may be lost: what the keys are now is found out.
    pub(crate) fn faults_may_revert(&self) {
        let mut state = self.state.borrow_mut();
        for subject in &mut state.keys {
            subject.possible.push(None);
            subject.possible.extend(subject.all.iter().copied());
        }
    }

    /// The store is open: what its keys are now they are for good.
    pub(crate) fn opened(&self) {
        let mut state = self.state.borrow_mut();
        for subject in &mut state.keys {
            subject.shadows.clear();
            subject.unwritten.clear();
        }
    }

    pub(crate) fn cut_off(&self, loss: Loss) {
        let mut state = self.state.borrow_mut();
        state.before += loss.at;
        for subject in &mut state.keys {
            subject.possible.extend(&subject.unwritten);
            if loss.forgets {
                subject.possible.extend(&subject.shadows);
            }
            if loss.is_lasting {
                subject.shadows.clear();
            }
        }
    }
}

impl Subject {
    /// A change is asked for: until it is answered the key may be either.
    fn start(&mut self, holding: Holding) {
        self.changes += 1;
        trace::event(format_args!("{:?}: to {holding:?}", self.key));
        self.all.push(holding);
        self.possible.push(holding);
    }

    fn changed(&mut self, holding: Holding) {
        // A flush that began before this answer need not cover it.
        self.changes += 1;
        self.shadows.extend(self.possible.iter().filter(|other| **other != holding));
        // After a later change it comes only if that is lost.
        self.shadows.append(&mut self.unwritten);
        self.possible = vec![holding];
    }

    fn take_back(&mut self, holding: Holding) {
        let at = self.possible.iter().rposition(|other| *other == holding);
        self.possible.remove(at.expect("it was noted when it was asked for"));
    }
}
