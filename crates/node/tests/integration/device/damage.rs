//! Bits that turn over in the flash.

use crate::device::client::{Client, Refused};
use crate::device::host::{Host, ROOM, exist, key, list, listed, retrieve};
use crate::device::machine::{again, log, moke, on, try_again};
use crate::device::model::Model;
use base::{Key, Nanos, Rng};
use clock::Stage;
use nand::{BlockId, Cells, DieId, Ppa};
use node::Profile;
use node::profile::GcVictims;
use spec::Status;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The keys that come and go.
const KEYS: u64 = 200;

/// Pages of a block; an extent is a block on each of two dies.
const PAGES: u32 = 33;

/// Which bits of each page turn over: of every data segment and of the beginning of the spare area,
/// where that is one of up to four parts, and further back in the spare area, where headers are.
const BITS: [u64; 8] = [0, 1, 2, 3, 1_203, 2_703, 4_503, 1_202];

/// 8 extents of 66 pages, of which hosts see little: so few pages that each can be tried.
fn profile() -> Profile {
    with_extents("8", "0.006")
}

fn with_extents(extents: &str, size_gb: &str) -> Profile {
    moke(&[
        ("channels", "2"),
        ("dies_per_channel", "1"),
        ("blocks_per_plane", extents),
        ("pages_per_block", &PAGES.to_string()),
        ("page_bytes", "65536"),
        ("spare_bytes", "1024"),
        ("size_gb", size_gb),
    ])
}

/// Values of a third of a page, of a few bytes, of nothing, and longer than a page.
fn size(number: u64) -> u32 {
    [20_000, 25, 21_000, 0, 19_000, 100_000, 18_000][(number % 7) as usize]
}

fn blocks(cells: &Cells) -> impl Iterator<Item = BlockId> + use<> {
    let (dies, blocks) = (cells.geometry().dies(), cells.geometry().blocks_per_die());
    (0..dies).flat_map(move |die| (0..blocks).map(move |block| BlockId { die: DieId(die), block }))
}

/// Every programmed page.
fn pages(cells: &Cells) -> Vec<Ppa> {
    let of = |block| (0..cells.programmed(block)).map(move |page| Ppa { block, page });
    blocks(cells).flat_map(of).collect()
}

fn erases(cells: &Cells) -> u64 {
    blocks(cells).map(|block| u64::from(cells.erase_count(block))).sum()
}

/// Returns a device that was filled, changed until every extent was cleaned, and reopened until the
/// cleaner had no work left. Otherwise the cleaner would erase damaged pages before their repair.
fn populated(profile: &Profile, whole: bool) -> (Arc<Cells>, Model) {
    let (cells, model) = on(profile, async |device| {
        let mut client = Client::new(device, Model { whole, ..Model::default() });
        let mut rng = Rng::new(4);
        for number in 0.. {
            if device.figures().store.victims > 8 {
                break;
            }
            let number = if number < KEYS { number } else { rng.below(KEYS) };
            if number.is_multiple_of(8) && client.model.pairs.contains_key(&key(number, 16)) {
                client.delete(&key(number, 16)).await;
            } else {
                client.store(&key(number, 16), size(number)).await;
            }
        }
        client.finish().await;
        assert_eq!(client.refused, Refused::default());
        client.model.check(device, profile).await;
        // A page whose program is cut off has no bit to turn over.
        clock::sleep(Nanos::from_secs(1), Stage::Core).await;
        (device.cells().clone(), client.model)
    });
    let mut before = u64::MAX;
    while before != erases(&cells) {
        before = erases(&cells);
        again(profile, &cells, async |_| clock::sleep(Nanos::from_secs(1), Stage::Core).await);
    }
    (cells, model)
}

/// Keys whose retrieve is right. All others' are Unrecovered Error.
async fn healthy(host: &Host, model: &Model, what: &str) -> BTreeSet<Key> {
    let mut healthy = BTreeSet::new();
    let keys: Vec<Key> = (0..KEYS).map(|number| key(number, 16)).collect();
    let retrieved = host.each(keys.iter().map(|key| retrieve(key, ROOM))).await;
    for (key, retrieved) in keys.iter().zip(&retrieved) {
        if retrieved.status != Status::UNRECOVERED_ERROR {
            assert!(model.holds(key, retrieved), "{what}: {key:?} gave {:?}", retrieved.status);
            healthy.insert(key.clone());
        }
    }
    healthy
}

/// Exist and List are right, or Unrecovered Error if one of the keys that they are about is not
/// `healthy`.
async fn assert_lookups(host: &Host, model: &Model, healthy: &BTreeSet<Key>, what: &str) {
    let there = host.each(model.pairs.keys().map(exist)).await;
    for (key, there) in model.pairs.keys().zip(&there) {
        let is_damaged = there.status == Status::UNRECOVERED_ERROR && !healthy.contains(key);
        let is_right = there.status == Status::SUCCESS;
        assert!(is_right || is_damaged, "{what}: exist of {key:?} gave {:?}", there.status);
    }
    let all = host.one(list(None, ROOM)).await;
    if all.status == Status::UNRECOVERED_ERROR {
        assert!((healthy.len() as u64) < KEYS, "{what}: the list gave {:?}", all.status);
    } else {
        let keys: BTreeSet<Key> = listed(&all).into_iter().collect();
        assert!(keys.iter().eq(model.pairs.keys()), "{what}: all keys are listed, and no other");
    }
}

#[test]
fn any_flipped_bit_gives_right_data_or_an_error() {
    let profile = profile();
    for whole in [false, true] {
        let (cells, model) = populated(&profile, whole);
        again(&profile, &cells, async |device| {
            let host = Host::new(device);
            let pages = pages(&cells);
            let mut harmless = 0;
            for ppa in &pages {
                let mut lost = 0;
                for bit in BITS {
                    cells.flip_bit(*ppa, bit);
                    let what = format!("bit {bit} of {ppa}");
                    let healthy = healthy(&host, &model, &what).await;
                    assert_lookups(&host, &model, &healthy, &what).await;
                    lost += KEYS - healthy.len() as u64;
                    cells.flip_bit(*ppa, bit);
                }
                harmless += usize::from(lost == 0);
            }
            assert!(harmless * 2 < pages.len(), "{harmless} of {} pages mattered not", pages.len());
            assert_eq!(healthy(&host, &model, "repaired").await.len() as u64, KEYS);
        });
    }
}

/// Keys whose retrieve is right while each of the bits of each page is turned over in turn.
fn healthy_by_bit(profile: &Profile, cells: &Arc<Cells>, model: &Model) -> Vec<Vec<BTreeSet<Key>>> {
    again(profile, cells, async |device| {
        let host = Host::new(device);
        let mut by_page = Vec::new();
        for ppa in pages(cells) {
            let mut by_bit = Vec::new();
            for bit in BITS {
                cells.flip_bit(ppa, bit);
                by_bit.push(healthy(&host, model, "not opened again").await);
                cells.flip_bit(ppa, bit);
            }
            by_page.push(by_bit);
        }
        by_page
    })
}

/// What is damaged is known to be, also to a device that was opened by scan: by the summary of a
/// sealed extent, by mending the headers of another. Nothing deleted or overwritten comes back.
#[test]
fn what_is_not_damaged_is_served_after_a_scan() {
    let profile = profile();
    let (cells, model) = populated(&profile, false);
    let before = erases(&cells);
    let by_page = healthy_by_bit(&profile, &cells, &model);
    let mut unopened = 0;
    for (ppa, by_bit) in pages(&cells).into_iter().zip(&by_page) {
        for (bit, expected) in BITS.into_iter().zip(by_bit) {
            cells.flip_bit(ppa, bit);
            let opened = try_again(&profile, &cells, async |device| {
                let host = Host::new(device);
                let what = format!("scanned with bit {bit} of {ppa}");
                let healthy = healthy(&host, &model, &what).await;
                assert_lookups(&host, &model, &healthy, &what).await;
                let retrieved = host.each(expected.iter().map(|key| retrieve(key, ROOM))).await;
                for (key, retrieved) in expected.iter().zip(&retrieved) {
                    let is_right = model.holds(key, retrieved);
                    assert!(is_right, "{what}: {key:?} gave {:?}", retrieved.status);
                }
            });
            unopened += u64::from(opened.is_err());
            cells.flip_bit(ppa, bit);
        }
    }
    assert_eq!(unopened, 0, "bits kept the device from being opened");
    assert_eq!(before, erases(&cells), "what was tried is what was there");
}

/// Without the records of its namespace a device does not know whether its keys are of a namespace
/// that was deleted, so it must not let them go. There are two, on its first two pages.
#[test]
fn a_device_whose_namespace_is_unreadable_keeps_its_keys() {
    let profile = profile();
    let (cells, model) = on(&profile, async |device| {
        let mut client = Client::new(device, Model::default());
        for number in 0..20 {
            client.store(&key(number, 16), 1_000).await;
        }
        client.finish().await;
        (device.cells().clone(), client.model)
    });
    // Neighbours lie on neighbouring dies.
    let pages = pages(&cells);
    let first: Vec<Ppa> = pages.into_iter().filter(|ppa| ppa.page == 0).take(2).collect();
    let first_two = [first[0], first[1]];
    for bit in 0..600 {
        for ppa in first_two {
            cells.flip_bit(ppa, bit);
            let opened = try_again(&profile, &cells, async |device| {
                let host = Host::new(device);
                healthy(&host, &model, &format!("bit {bit}")).await;
            });
            assert!(opened.is_ok(), "its keys tell that the namespace is there");
        }
        for ppa in first_two {
            cells.flip_bit(ppa, bit);
        }
    }
}

/// Damaged records are overwritten, deleted or kept where they are; cleaning runs over them several
/// times. Whatever was served before is served after, and nothing else than before.
#[test]
fn cleaning_damaged_pages_loses_nothing_more() {
    for seed in 0..8 {
        let profile = with_extents("24", "0.012");
        let (cells, model) = populated(&profile, false);
        let mut rng = Rng::new(seed);
        again(&profile, &cells, async |device| {
            let pages = pages(&cells);
            let host = Host::new(device);
            let what = format!("seed {seed}");
            let mut served = healthy(&host, &model, &what).await;
            let mut damaged = 0;
            while damaged < 12 {
                let page = rng.below(pages.len() as u64);
                let ppa = pages[usize::try_from(page).expect("an index")];
                let bit = BITS[usize::try_from(rng.below(8)).expect("an index")];
                cells.flip_bit(ppa, bit);
                let left = healthy(&host, &model, &what).await;
                if left.len() < served.len() {
                    damaged += 1;
                    served = left;
                } else {
                    cells.flip_bit(ppa, bit);
                }
            }
            let mut client = Client::new(device, model);
            // Of the keys that are not served, some are left alone.
            let untouched = |number: u64| number.is_multiple_of(3);
            while device.figures().store.victims < 100 {
                let number = rng.below(KEYS);
                let key = key(number, 16);
                if untouched(number) && !served.contains(&key) {
                    continue;
                }
                if number.is_multiple_of(8) && client.model.pairs.contains_key(&key) {
                    client.delete(&key).await;
                } else {
                    client.store(&key, size(number)).await;
                }
            }
            client.finish().await;
            assert_eq!((client.refused.stores, client.refused.deletes), (0, 0), "{what}");
            let after = healthy(&client.host, &client.model, &what).await;
            assert!(served.is_subset(&after), "{what}: what was served is served");
            assert_lookups(&client.host, &client.model, &after, &what).await;
        });
    }
}

/// Cleaning moves a damaged value with the checksum of what was stored.
#[test]
fn a_damaged_value_that_was_moved_is_still_known_as_damaged() {
    let mut profile = with_extents("24", "0.012");
    log(&mut profile).gc_victims = GcVictims::Fifo;
    on(&profile, async |device| {
        let mut client = Client::new(device, Model::default());
        let (damaged, host) = (key(0, 16), Host::new(device));
        client.store(&damaged, 20_000).await;
        client.finish().await;
        for ppa in pages(device.cells()) {
            device.cells().flip_bit(ppa, 0);
            if host.retrieve(&damaged).await.status == Status::UNRECOVERED_ERROR {
                break;
            }
            device.cells().flip_bit(ppa, 0);
        }
        let mut number = 0;
        while device.figures().store.victims < 48 {
            number += 1;
            client.store(&key(1 + number % 100, 16), 20_000).await;
        }
        client.finish().await;
        let retrieved = host.retrieve(&damaged).await;
        assert_eq!(retrieved.status, Status::UNRECOVERED_ERROR, "after two rounds of cleaning");
        assert_eq!(host.exist(&damaged).await.status, Status::SUCCESS, "its key is known");
    });
}
