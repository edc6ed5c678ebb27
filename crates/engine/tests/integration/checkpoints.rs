//! Stores that lose power at any instant, opened by their checkpoint and by a scan.

mod life;
mod medium;

use base::{Buf, Nanos, Rng};
use engine::{
    CachedHashIndex, Condition, Config, Error, HashIndex, How, IndexConfig, MakeIndex, Store,
    Stored,
};
use life::{Model, SPACE, key, live, open_in_vain, reopen};
use media::{Shape, Stream};
use medium::Cells;
use reactor::Reactor;
use std::sync::Arc;

/// Opens the same remains by checkpoint and by a scan, and compares the stores. Returns how the
/// first was opened.
fn compare(cells: &Arc<Cells>, config: &dyn Fn() -> Config, what: &str) -> (How, u64) {
    let (mut seen, recovery) = reopen(&cells.copy(1), config, what);
    let damaged = cells.copy(2);
    damaged.pages_of(Stream::Index).into_iter().for_each(|page| damaged.damage(page));
    let (mut scanned, scan) = reopen(&damaged, config, what);
    assert_eq!(scan.how, How::Scan, "{what}: no page of the checkpoint can be read");
    assert_eq!(scan.lost_pages, 0, "{what}");
    // The checkpoint leaves out extents that were being erased when it was made; a scan finds them.
    assert!(seen.usage.tombstones.records <= scanned.usage.tombstones.records, "{what}");
    let erased = scanned.usage.tombstones.records - seen.usage.tombstones.records;
    scanned.usage.tombstones = seen.usage.tombstones;
    assert_eq!(seen.usage, scanned.usage, "{what}: both ways of opening count the same");
    // Where both a record and its copy exist, a checkpoint may know either.
    for seen in [&mut seen, &mut scanned] {
        let live = std::mem::take(&mut seen.live);
        assert_eq!(life::sum(&live), seen.usage.values, "{what}: the sum over extents");
    }
    assert!(seen == scanned, "{what}: and find the same");
    (recovery.how, erased)
}

fn lives(seed: u64) -> (Vec<(How, u64)>, u64) {
    let mut rng = Rng::new(seed);
    let shape = life::shape(&mut rng);
    let choice = rng.next_u64();
    let config = || life::config(&mut Rng::new(choice), &shape);
    let cells = Cells::new(shape, seed);
    let mut model = Model::default();
    let mut ways = Vec::new();
    for number in 0..6 {
        model = live(&cells, model, seed << 8 | number, &config, number == 0);
        while rng.below(3) == 0 {
            open_in_vain(&cells, &config, Nanos(rng.below(20_000_000)));
        }
        ways.push(compare(&cells, &config, &format!("seed {seed}, life {number}")));
    }
    (ways, model.checkpoints)
}

#[test]
fn a_store_is_the_same_by_its_checkpoint_and_by_a_scan_after_a_power_cut_at_any_instant() {
    let (mut ways, mut checkpoints) = (Vec::new(), 0);
    for seed in 0..60 {
        let (of_seed, made) = lives(seed);
        ways.extend(of_seed);
        checkpoints += made;
    }
    let by_checkpoint = ways.iter().filter(|(how, _)| *how == How::Checkpoint).count();
    assert!(by_checkpoint > 200, "{by_checkpoint} of {}", ways.len());
    let unequal = ways.iter().filter(|(_, erased)| *erased > 0).count();
    assert!(unequal * 50 < ways.len(), "{unequal} times tombstones were counted in two ways");
    assert!(checkpoints > 200, "{checkpoints} checkpoints");
}

/// Returns a store with `count` keys in its first key space, after a checkpoint.
async fn filled(cells: &Arc<Cells>, config: Config, count: u64) -> Arc<Store> {
    let store = Store::format(cells.power(), config);
    store.create_key_space(SPACE).await.expect("there is room for it");
    for number in 0..count {
        put(&store, number, 1_000).await.expect("there is room for a pair");
    }
    store.checkpoint().await.expect("there is room for a checkpoint");
    store
}

async fn put(store: &Arc<Store>, number: u64, len: u32) -> Result<Stored, Error> {
    let value = Buf::phantom(len, number + 1);
    store.put(SPACE, &key(number), &value, Condition::Always.into(), store.announce()).await
}

fn plenty(shape: &Shape) -> Config {
    Config { checkpoint_bytes: 0, ..life::config(&mut Rng::new(1), shape) }
}

const SHAPE: Shape = Shape {
    page_bytes: 4_096,
    spare_bytes: 200,
    pages_per_extent: 32,
    extents: 40,
    parallelism: 4,
    frames: None,
};

#[test]
fn opening_by_a_checkpoint_reads_the_checkpoint_and_what_was_written_since() {
    let cells = Cells::new(SHAPE, 1);
    let written = Reactor::new(None).run(async {
        let store = filled(&cells, plenty(&SHAPE), 80).await;
        let before = cells.pages_of(Stream::Host).len();
        put(&store, 7, 1_000).await.unwrap();
        store.delete(SPACE, &key(8), store.announce()).await.unwrap();
        cells.pages_of(Stream::Host).len() - before
    });
    let tables = cells.pages_of(Stream::Index).len();
    Reactor::new(None).run(async {
        let (store, recovery) = life::open(&cells.power(), plenty(&SHAPE), "it").await;
        assert_eq!((recovery.how, recovery.replayed_extents), (How::Checkpoint, 1));
        assert_eq!((recovery.records, recovery.lost_pages), (2, 0));
        // A page of the table, one of the image, and the root, read twice: for its name, too. Of
        // the host's extent the last page is looked at for a summary. Two keys have an older
        // record, and the key space two.
        assert_eq!(tables, 3);
        let reads = tables + 1 + 1 + written + 2 + 2;
        assert_eq!(recovery.pages_read, reads as u64);
        assert_eq!(store.usage().index_entries, 79 + 2);
    });
}

#[test]
fn a_damaged_value_after_a_checkpoint_costs_its_own_keys_alone() {
    let cells = Cells::new(SHAPE, 2);
    Reactor::new(None).run(filled_and_dropped(&cells));
    let page = cells.pages_of(Stream::Host)[20];
    cells.damage(page);
    Reactor::new(None).run(async {
        let (store, recovery) = life::open(&cells.power(), plenty(&SHAPE), "it").await;
        assert_eq!(recovery.how, How::Checkpoint);
        let mut lost = Vec::new();
        for number in 0..120 {
            match store.get(SPACE, &key(number)).await {
                Ok(value) => assert_eq!(value.len(), 1_000),
                Err(error) => {
                    assert_eq!(error, Error::Unrecovered);
                    lost.push(number);
                }
            }
        }
        assert!((1..=4).contains(&lost.len()), "those of a page: {lost:?}");
        for number in lost {
            assert_eq!(store.exist(SPACE, &key(number)).await, Ok(true), "its summary tells");
            assert_eq!(put(&store, number, 900).await, Ok(Stored::Overwrote));
            assert_eq!(store.get(SPACE, &key(number)).await.unwrap().len(), 900);
        }
    });
}

/// The checkpoint points to the older value, whose page has no summary; the newer is in the log.
#[test]
fn a_value_outlives_damage_to_the_one_that_it_replaced() {
    let indexes: [MakeIndex; 2] = [
        |_, lanes| Box::new(HashIndex::new(lanes)),
        |config, _| Box::new(CachedHashIndex::new(config)),
    ];
    for (number, index) in indexes.into_iter().enumerate() {
        let index_config = IndexConfig { dram_bytes: 0, keys_max: 100 };
        let config = || Config { index, index_config, ..plenty(&SHAPE) };
        let cells = Cells::new(SHAPE, 7);
        Reactor::new(None).run(async {
            let store = filled(&cells, config(), 50).await;
            store.checkpoint().await.unwrap();
            let older = *cells.pages_of(Stream::Host).last().unwrap();
            put(&store, 49, 900).await.unwrap();
            cells.damage(older);
        });
        let counted = |power: &str| {
            Reactor::new(None).run(async {
                let what = format!("index {number}, {power}");
                let (store, recovery) = life::open(&cells.power(), config(), &what).await;
                let read = store.get(SPACE, &key(49)).await.map(|value| value.len());
                assert_eq!(read, Ok(900), "{what}");
                let mut there = 0;
                for number in 0..50 {
                    there += u64::from(store.get(SPACE, &key(number)).await.is_ok());
                }
                let (usage, own) = (store.usage(), 2);
                assert_eq!(usage.values.records, there + own, "{what}");
                assert_eq!(usage.index_entries, there + own, "{what}");
                assert_eq!(put(&store, 49, 900).await, Ok(Stored::Overwrote), "{what}");
                recovery.how
            })
        };
        assert_eq!(counted("opened"), How::Scan);
        counted("opened again");
    }
}

async fn filled_and_dropped(cells: &Arc<Cells>) {
    drop(filled(cells, plenty(&SHAPE), 120).await);
}

#[test]
fn any_damaged_page_of_a_checkpoint_makes_opening_scan_or_use_the_one_before() {
    let cells = Cells::new(SHAPE, 3);
    Reactor::new(None).run(filled_and_dropped(&cells));
    let pages = cells.pages_of(Stream::Index);
    let mut scans = 0;
    for page in &pages {
        let damaged = cells.copy(4);
        damaged.damage(*page);
        let (seen, recovery) = reopen(&damaged, &|| plenty(&SHAPE), "damaged");
        assert_eq!(seen.usage.index_entries, 120 + 2, "{page}");
        scans += u64::from(recovery.how == How::Scan);
    }
    assert_eq!(scans, pages.len() as u64, "there is but one checkpoint");
}

#[test]
fn a_root_that_was_cut_off_leaves_the_checkpoint_before() {
    let cells = Cells::new(SHAPE, 6);
    Reactor::new(None).run(async {
        let store = filled(&cells, plenty(&SHAPE), 50).await;
        put(&store, 50, 1_000).await.unwrap();
        store.checkpoint().await.unwrap();
    });
    let root = *cells.pages_of(Stream::Index).last().unwrap();
    cells.damage(root);
    let (seen, recovery) = reopen(&cells, &|| plenty(&SHAPE), "cut off");
    assert_eq!((recovery.how, seen.usage.index_entries), (How::Checkpoint, 51 + 2));
    assert!(recovery.records > 0, "what was stored since the one before is replayed");
}

/// Small values, so that the table is a tenth of them.
#[test]
fn a_checkpoint_gives_way_to_records() {
    let cells = Cells::new(SHAPE, 5);
    let room = SHAPE.extent_bytes() * u64::from(SHAPE.extents - 6);
    Reactor::new(None).run(async {
        let config = Config { capacity_bytes: room * 98 / 100, ..plenty(&SHAPE) };
        let store = filled(&cells, config, 10).await;
        let mut number = 0;
        while put(&store, number * 4, 20).await.is_ok() {
            number += 1;
            if number.is_multiple_of(2_000) {
                // There may be no room for it.
                let _ = store.checkpoint().await;
            }
        }
        let full = store.usage().values.bytes;
        assert!(full + 5_000 > room * 98 / 100, "{full} of {room} bytes");
    });
}
