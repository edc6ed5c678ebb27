//! Devices that go away at any instant, all but their cells, and are opened again.

use crate::device::client::{Change, Client};
use crate::device::host::{Host, ROOM, key, retrieve};
use crate::device::machine::{again, extents, log, moke, on};
use crate::device::model::Model;
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use engine::{Error, KeySpaceId, SPARE_EXTENTS_MIN, Write};
use nand::{BlockId, Cells, DieId};
use node::profile::{GcVictims, LogFtl, Stripe};
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that come and go.
const KEYS: u64 = 300;

/// `moke` with four dies of 56 pages in 14 blocks, of which hosts see three quarters of what is
/// possible: a few hundred values fill it, so it cleans all the time.
pub(crate) fn small(rng: &mut Rng) -> Profile {
    let mut profile = moke(&[("channels", "2"), ("dies_per_channel", "2"), ("size_gb", "3")]);
    let nand = &mut profile.nand;
    (nand.blocks_per_plane, nand.pages_per_block) = (14, 16);
    (nand.page_bytes, nand.spare_bytes) = (4_096, [64, 256, 1_024][index(rng, 3)]);
    let stripe = [Stripe::Die, Stripe::Channel, Stripe::All][index(rng, 3)];
    let log = log(&mut profile);
    log.ftl = LogFtl::Append { stripe };
    log.gc_victims = [GcVictims::Greedy, GcVictims::Fifo, GcVictims::Random][index(rng, 3)];
    let (extents, extent_bytes) = extents(&profile);
    let extents = extents - u64::from(SPARE_EXTENTS_MIN);
    profile.namespaces[0].size_bytes = extents * extent_bytes * 3 / 4;
    profile
}

fn index(rng: &mut Rng, bound: u64) -> usize {
    usize::try_from(rng.below(bound)).expect("an index")
}

/// Of all sizes up to three pages, so that a value may be cut in half.
fn size(rng: &mut Rng) -> u32 {
    let len = match rng.below(8) {
        0 => rng.below(9),
        1..3 => rng.below(500),
        3..7 => rng.below(4_000),
        _ => 4_096 + rng.below(7_000),
    };
    u32::try_from(len).expect("a few pages")
}

/// The same with a log on logical blocks of a page-mapped layer, which has no stripe: four dies of
/// 40 blocks make 21 MB of flash. Both layers clean all the time.
fn small_on_blocks(rng: &mut Rng) -> Profile {
    let mut profile = small(rng);
    log(&mut profile).ftl = LogFtl::Page;
    (profile.nand.blocks_per_plane, profile.nand.pages_per_block) = (40, 32);
    profile.namespaces[0].size_bytes = 4_000_000;
    profile
}

/// What is left of a device, and what is known of it.
struct Remains {
    profile: Profile,
    cells: Arc<Cells>,
    model: Model,
    /// Changes that were not acknowledged: they happened or not.
    open: BTreeMap<u64, (Key, Change)>,
}

impl Remains {
    /// Checks that each key has the value that was acknowledged last, or the value in flight.
    /// Updates the model with the value found.
    async fn settle(&mut self, device: &Device, what: &str) {
        let host = Host::new(device);
        let mut open: BTreeMap<Key, Change> =
            std::mem::take(&mut self.open).into_values().collect();
        let keys: Vec<Key> = (0..KEYS).map(named).collect();
        let retrieved = host.each(keys.iter().map(|key| retrieve(key, ROOM))).await;
        for (key, retrieved) in keys.iter().zip(&retrieved) {
            if self.model.holds(key, retrieved) {
                continue;
            }
            let change = open.remove(key);
            let change = change.unwrap_or_else(|| panic!("{what}: {key:?}: {retrieved:?}"));
            let before = self.model.pairs.get(key).copied();
            self.model.apply(key, change);
            let is_right = self.model.holds(key, retrieved);
            assert!(is_right, "{what}: {key:?} was {before:?}, then {change:?}: {retrieved:?}");
        }
        let mut listed = host.list_all(600).await;
        listed.sort_unstable();
        assert!(listed.iter().eq(self.model.pairs.keys()), "{what}: all keys are listed once");
        self.model.check_usage(device, &self.profile).await;
    }
}

/// Keys of all lengths.
fn named(number: u64) -> Key {
    key(number, [8, 16, 17, 200][usize::try_from(number % 4).expect("below 4")])
}

/// Opens a device and lets it go, maybe before it is open.
fn open_in_vain(remains: &Remains, after: Nanos) {
    let (profile, cells) = (remains.profile.clone(), remains.cells.clone());
    Reactor::new(None).run(async move {
        clock::spawn(async move {
            let opened = Device::open(&profile, cells, 1, FaultPlan::default()).await;
            assert!(opened.is_ok(), "what was opened before opens again");
        });
        clock::sleep(after, Stage::Core).await;
    });
}

/// Runs a device of which `profile` makes the profile through some lives. Returns how many extents
/// it cleaned, and how many blocks of flash the layer below.
fn lives(seed: u64, profile: impl Fn(&mut Rng) -> Profile) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let profile = profile(&mut rng);
    let cells = Device::manufacture(&profile, seed);
    let model = Model { whole: rng.below(4) == 0, ..Model::default() };
    let mut remains = Remains { profile, cells, model, open: BTreeMap::new() };
    let mut victims = (0, 0);
    for life in 0..6 {
        let what = format!("seed {seed}, life {life}");
        if life > 0 && rng.below(3) == 0 {
            open_in_vain(&remains, Nanos(rng.below(40_000_000)));
        }
        Reactor::new((seed.is_multiple_of(2)).then_some(seed + life)).run(async {
            let (profile, cells) = (&remains.profile, remains.cells.clone());
            let device = match life {
                0 => Device::format(profile, cells, seed, FaultPlan::default()).await,
                _ => Device::open(profile, cells, seed, FaultPlan::default())
                    .await
                    .map(|(device, _)| device),
            };
            let device = device.unwrap_or_else(|error| panic!("{what}: {error}"));
            remains.settle(&device, &what).await;
            let mut client = Client::new(&device, std::mem::take(&mut remains.model));
            let longest = 2_000_000_000 >> rng.below(6);
            let end = clock::now() + Nanos(rng.below(longest));
            let deletes = rng.below(30);
            let change = || {
                let number = rng.below(KEYS);
                (named(number), (rng.below(100) >= deletes).then(|| size(&mut rng)))
            };
            client.run_until(end, change).await;
            assert_eq!(client.refused.damaged, 0, "{what}");
            let figures = device.figures();
            victims.0 += figures.store.victims;
            victims.1 += figures.blocks.victims;
            (remains.model, remains.open) = (client.model, client.outstanding);
        });
    }
    victims
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_cut_at_any_instant() {
    let victims: u64 = (0..40).map(|seed| lives(seed, small).0).sum();
    assert!(victims > 1_000, "only {victims} extents were cleaned");
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_cut_when_the_log_is_on_blocks() {
    let victims = (0..12).map(|seed| lives(seed, small_on_blocks));
    let (extents, blocks) =
        victims.fold((0, 0), |sum, victims| (sum.0 + victims.0, sum.1 + victims.1));
    assert!(extents > 100 && blocks > 100, "only {extents} extents and {blocks} blocks cleaned");
}

/// Values stored once lie on blocks that are erased when cleaning has moved them.
#[test]
fn a_record_is_read_after_its_first_block_was_erased() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut profile = small(&mut rng);
        // Others may leave an extent alone for ever.
        log(&mut profile).gc_victims = GcVictims::Fifo;
        let (cells, model) = on(&profile, async |device| {
            let mut client = Client::new(device, Model { whole: true, ..Model::default() });
            for number in 0..60 {
                client.store(&named(number), 30 * u32::try_from(number).expect("small")).await;
                // Something in each extent dies, or there is nothing to clean it for.
                client.store(&named(60), 3_000).await;
            }
            client.finish().await;
            let written: Vec<BlockId> = blocks(device.cells());
            let is_worn = |block: &BlockId| device.cells().erase_count(*block) > 0;
            while !written.iter().all(is_worn) {
                assert!(
                    device.figures().store.victims < 10_000,
                    "seed {seed}: some are never erased"
                );
                client.store(&named(60 + rng.below(20)), size(&mut rng)).await;
            }
            client.finish().await;
            client.model.check(device, &profile).await;
            (device.cells().clone(), client.model)
        });
        again(&profile, &cells, async |device| model.check(device, &profile).await);
    }
}

/// The blocks that hold pages.
fn blocks(cells: &Cells) -> Vec<BlockId> {
    let (dies, blocks) = (cells.geometry().dies(), cells.geometry().blocks_per_die());
    let all =
        (0..dies).flat_map(|die| (0..blocks).map(move |block| BlockId { die: DieId(die), block }));
    all.filter(|block| cells.programmed(*block) > 0).collect()
}

#[test]
fn key_spaces_and_their_absence_survive() {
    let profile = small(&mut Rng::new(3));
    let spaces = [2, 3, 4].map(KeySpaceId);
    let value = |space: KeySpaceId| Buf::phantom(700, space.0.into());
    let put = async |device: &Device, space: KeySpaceId| {
        let store = device.store();
        let announced = store.announce();
        store.put(space, &named(1), &value(space), Write::default(), announced).await
    };
    let get = async |device: &Device, space: KeySpaceId| {
        let value = device.store().get(space, &named(1)).await;
        value.map(|value| value.checksum())
    };
    let cells = on(&profile, async |device| {
        for space in spaces {
            device.store().create_key_space(space).await.unwrap();
            put(device, space).await.unwrap();
        }
        device.store().delete_key_space(spaces[1]).await.unwrap();
        device.store().delete_key_space(spaces[2]).await.unwrap();
        device.store().create_key_space(spaces[2]).await.unwrap();
        device.cells().clone()
    });
    for life in 0..4 {
        again(&profile, &cells, async |device| {
            assert_eq!(device.store().key_spaces(), [1, 2, 4].map(KeySpaceId), "life {life}");
            assert_eq!(get(device, spaces[0]).await, Ok(2));
            assert_eq!(get(device, spaces[1]).await, Err(Error::NoKeySpace));
            assert_eq!(get(device, spaces[2]).await, Err(Error::KeyNotFound), "of an earlier life");
            assert_eq!(device.store().usage().values.records, 1 + 2 * 4, "life {life}");
            // Until what is gone was cleaned away.
            let mut client = Client::new(device, Model::default());
            let mut rng = Rng::new(life);
            while device.figures().store.victims < 60 {
                client.store(&named(rng.below(40)), size(&mut rng)).await;
            }
            for number in 0..40 {
                client.delete(&named(number)).await;
            }
            client.finish().await;
        });
    }
}
