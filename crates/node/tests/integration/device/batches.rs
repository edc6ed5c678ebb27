//! Batches, and values that expire, on devices that lose their power at any instant.

use crate::device::machine::extents;
use crate::device::reopen::small;
use base::{Buf, Key, Nanos, Rng};
use clock::{Stage, UnixMillis, set_unix_now, unix_now};
use engine::{BatchOp, BatchWrite, Condition, Error, KeySpaceId, SPARE_EXTENTS_MIN, Store, Write};
use nand::Cells;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const SPACES: [KeySpaceId; 3] = [KeySpaceId(1), KeySpaceId(2), KeySpaceId(3)];
const GROUPS: u64 = 16;
const MEMBERS: u64 = 9;

/// What is stored under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    len: u32,
    tag: u64,
    expires: Option<UnixMillis>,
}

/// Of each member of a group.
type State = Vec<Option<Stored>>;

/// Keys of several key spaces that one writer changes, by batches.
struct Group {
    members: Vec<(KeySpaceId, Key)>,
    /// What was acknowledged last, or read.
    durable: State,
    /// What they become by the batch that is on its way.
    open: Option<State>,
}

impl Group {
    fn new(number: u64) -> Self {
        let member = |at: u64| {
            let space = SPACES[index(at % 3)];
            // Some have one latch: a key in several key spaces.
            let mut bytes = vec![0x42; [3, 16, 90][index(at % 3)]];
            bytes[..2].copy_from_slice(&[number, at / 3].map(|part| part.to_le_bytes()[0]));
            (space, Key::new(&bytes).expect("a key has bytes"))
        };
        let members = (0..MEMBERS).map(member).collect();
        Self { members, durable: vec![None; index(MEMBERS)], open: None }
    }

    /// A batch, and what it makes of the group.
    fn change(&self, rng: &mut Rng) -> (Vec<BatchWrite>, State) {
        let (mut writes, mut state) = (Vec::new(), self.durable.clone());
        for (at, (space, key)) in self.members.iter().enumerate() {
            let (space, key) = (*space, key.clone());
            let op = match rng.below(8) {
                0..3 => continue,
                3 => {
                    state[at] = None;
                    BatchOp::DELETE
                }
                _ => {
                    let len = [0, 40, 900, 4_000, 9_000][index(rng.below(5))];
                    let tag = if len == 0 { 0 } else { rng.next_u64() };
                    let expires =
                        (rng.below(4) == 0).then(|| UnixMillis(unix_now().0 + rng.below(2_000)));
                    state[at] = Some(Stored { len, tag, expires });
                    let write = Write { condition: Condition::Always, expires };
                    BatchOp::Put { value: Buf::phantom(len, tag), write }
                }
            };
            writes.push(BatchWrite { space, key, op });
        }
        (writes, state)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

/// Length and tag of what is there.
type Seen = Option<(u32, u64)>;

fn seen_of(state: Option<&State>) -> Vec<Seen> {
    state.map_or(Vec::new(), |state| seen(state))
}

/// What is seen of a state at this date.
fn seen(state: &[Option<Stored>]) -> Vec<Seen> {
    let is_there = |stored: &Stored| stored.expires.is_none_or(|date| unix_now() < date);
    let seen =
        |stored: &Option<Stored>| stored.filter(is_there).map(|stored| (stored.len, stored.tag));
    state.iter().map(seen).collect()
}

async fn read(store: &Arc<Store>, space: KeySpaceId, key: &Key) -> Option<(u32, u64)> {
    match store.get(space, key).await {
        Ok(value) if value.len() == 0 => Some((0, 0)),
        Ok(value) => Some((value.len(), value.checksum())),
        Err(Error::KeyNotFound) => None,
        Err(error) => panic!("{error}"),
    }
}

type Groups = Rc<RefCell<Vec<Group>>>;

/// Changes a group for ever.
async fn write_forever(store: Arc<Store>, groups: Groups, number: usize, mut rng: Rng) {
    loop {
        // A batch of nothing takes no time.
        clock::sleep(Nanos::from_micros(10), Stage::Core).await;
        let (writes, state) = groups.borrow()[number].change(&mut rng);
        groups.borrow_mut()[number].open = Some(state);
        let done = store.write_batch(writes, store.announce()).await;
        let group = &mut groups.borrow_mut()[number];
        let state = group.open.take();
        match done {
            // It may have been read already.
            Ok(()) => group.durable = state.unwrap_or_else(|| group.durable.clone()),
            Err(Error::CapacityExceeded | Error::BatchTooLong { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads members for ever. What was read once is there for good, and with it all of its batch.
async fn read_forever(store: Arc<Store>, groups: Groups, mut rng: Rng) {
    loop {
        let (number, at) = (index(rng.below(GROUPS)), index(rng.below(MEMBERS)));
        // Nor does a read of what is not there.
        clock::sleep(Nanos::from_micros(10), Stage::Core).await;
        let (space, key) = groups.borrow()[number].members[at].clone();
        let got = read(&store, space, &key).await;
        let group = &mut groups.borrow_mut()[number];
        let is_new = |state: &State| {
            let (new, old) = (state[at].map(|new| (new.len, new.tag)), seen(&group.durable)[at]);
            got.is_some() && got == new && got != old && new.is_some_and(|(len, _)| len > 0)
        };
        if group.open.as_ref().is_some_and(is_new) {
            group.durable = group.open.clone().expect("it is there");
        }
    }
}

/// Stores beside the groups, so that extents fill up and are cleaned.
async fn fill_forever(store: Arc<Store>, mut rng: Rng) {
    loop {
        let mut bytes = [0x99; 8];
        bytes[0] = rng.below(200).to_le_bytes()[0];
        let key = Key::new(&bytes).expect("a key has bytes");
        let value =
            Buf::phantom(1 + u32::try_from(rng.below(4_000)).expect("it is small"), rng.next_u64());
        clock::sleep(Nanos::from_micros(10), Stage::Core).await;
        let announced = store.announce();
        match store.put(SPACES[0], &key, &value, Write::default(), announced).await {
            Ok(_) | Err(Error::CapacityExceeded) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that each group has the state after its last acknowledged batch, or after the batch in
/// flight. Returns how many batches in flight are absent.
#[expect(clippy::await_holding_refcell_ref, reason = "no task writes during the check")]
async fn settle(store: &Arc<Store>, groups: &Groups, what: &str) -> u64 {
    let mut cut_off = 0;
    for (number, group) in groups.borrow_mut().iter_mut().enumerate() {
        let (mut state, before) =
            (Vec::new(), [seen(&group.durable), seen_of(group.open.as_ref())]);
        for (space, key) in &group.members {
            state.push(read(store, *space, key).await);
        }
        // Some may expire while they are read.
        let is = |before: &[Seen], after: &[Seen]| {
            let mut ends = before.iter().zip(after);
            state.iter().all(|one| ends.next().is_some_and(|(a, b)| one == a || one == b))
        };
        let open = group.open.take();
        if is(&before[0], &seen(&group.durable)) {
            cut_off += u64::from(open.is_some());
            continue;
        }
        let open = open.unwrap_or_else(|| panic!("{what}, group {number}: {state:?}"));
        let after = seen(&open);
        let was = &before[0];
        assert!(
            is(&before[1], &after),
            "{what}, group {number}: {was:?}, then {after:?}: {state:?}"
        );
        group.durable = open;
    }
    cut_off
}

/// Four times larger extents, which take batches over several pages, and fewer of them.
fn small_of_large_extents(rng: &mut Rng) -> Profile {
    let mut profile = small(rng);
    (profile.nand.blocks_per_plane, profile.nand.pages_per_block) = (10, 64);
    let (extents, extent_bytes) = extents(&profile);
    let extents = extents - u64::from(SPARE_EXTENTS_MIN);
    profile.namespaces[0].size_bytes = extents * extent_bytes / 2;
    profile
}

/// One life after the other. Returns how many extents were cleaned, and how many batches were cut
/// off.
fn lives(seed: u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let profile = small_of_large_extents(&mut rng);
    let cells = Device::manufacture(&profile, seed);
    let groups: Groups = Rc::new(RefCell::new((0..GROUPS).map(Group::new).collect()));
    let (mut date, mut sum) = (UnixMillis::START, (0, 0));
    for life in 0..7 {
        let what = format!("seed {seed}, life {life}");
        if life > 0 && rng.below(3) == 0 {
            open_in_vain(&profile, &cells, date, Nanos(rng.below(40_000_000)));
        }
        let mut reactor = Reactor::new(seed.is_multiple_of(2).then_some(seed + life));
        sum = reactor.run(async {
            set_unix_now(UnixMillis(date.0 + rng.below(500)));
            let device = match life {
                0 => Device::format(&profile, cells.clone(), seed, FaultPlan::default()).await,
                _ => open(&profile, &cells).await,
            };
            let device = device.unwrap_or_else(|error| panic!("{what}: {error}"));
            let store = device.store().clone();
            if life == 0 {
                for space in &SPACES[1..] {
                    store.create_key_space(*space).await.expect("there is room");
                }
            }
            let cut_off = settle(&store, &groups, &what).await;
            for number in 0..index(GROUPS) {
                let rng = Rng::new(rng.next_u64());
                clock::spawn(write_forever(store.clone(), groups.clone(), number, rng));
                let rng = Rng::new(seed + number as u64);
                clock::spawn(read_forever(store.clone(), groups.clone(), rng));
            }
            clock::spawn(fill_forever(store.clone(), Rng::new(rng.next_u64())));
            let longest = 1_000_000_000 >> rng.below(8);
            clock::sleep(Nanos(rng.below(longest)), Stage::Core).await;
            date = unix_now();
            (sum.0 + device.figures().store.victims, sum.1 + cut_off)
        });
    }
    sum
}

async fn open(profile: &Profile, cells: &Arc<Cells>) -> Result<Device, node::DeviceError> {
    let opened = Device::open(profile, cells.clone(), 1, FaultPlan::default()).await;
    opened.map(|(device, _)| device)
}

/// Opens a device and lets it go, maybe before it is open.
fn open_in_vain(profile: &Profile, cells: &Arc<Cells>, date: UnixMillis, after: Nanos) {
    let (profile, cells) = (profile.clone(), cells.clone());
    Reactor::new(None).run(async move {
        set_unix_now(date);
        clock::spawn(async move {
            assert!(open(&profile, &cells).await.is_ok(), "what was opened before opens again");
        });
        clock::sleep(after, Stage::Core).await;
    });
}

#[test]
fn batches_are_whole_or_absent_after_a_power_cut_at_any_instant() {
    let sums = (0..40).map(lives);
    let (victims, cut_off) = sums.fold((0, 0), |sum, (a, b)| (sum.0 + a, sum.1 + b));
    assert!(victims > 500, "only {victims} extents were cleaned");
    assert!(cut_off > 1_000, "only {cut_off} batches were cut off");
}
