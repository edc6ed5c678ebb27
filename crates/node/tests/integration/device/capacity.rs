//! A device that is full, or nearly so, for a long time.

use crate::device::client::{Client, Refused};
use crate::device::host::{Host, ROOM, exist, key, store};
use crate::device::machine::{extents, moke, on};
use crate::device::model::{Model, footprint};
use base::{Buf, Key, Rng};
use engine::SPARE_EXTENTS_MIN;
use node::profile::Handlers;
use node::{Device, Profile};
use spec::Status;
use std::collections::{BTreeMap, BTreeSet};

/// The policies that choose what is cleaned.
const VICTIMS: [&str; 5] = ["greedy", "cost-benefit", "random", "fifo", "d-choices"];

/// Stripes over four dies, with the blocks of a die that make 32 extents and the pages that make
/// extents of 4.3 MB.
const STRIPES: [[&str; 3]; 3] =
    [["die", "8", "264"], ["channel", "16", "132"], ["all", "32", "66"]];

/// `moke` with four dies in 32 extents, 138 MB, of which hosts see as many as can be.
fn small([stripe, blocks, pages]: [&str; 3], victims: &str) -> Profile {
    let mut profile = moke(&[
        ("channels", "2"),
        ("dies_per_channel", "2"),
        ("blocks_per_plane", blocks),
        ("pages_per_block", pages),
        ("stripe", &format!("\"{stripe}\"")),
        ("gc_victims", &format!("\"{victims}\"")),
        ("size_gb", "0.08"),
    ]);
    let (extents, extent_bytes) = extents(&profile);
    profile.namespaces[0].size_bytes = (extents - u64::from(SPARE_EXTENTS_MIN)) * extent_bytes;
    profile
}

/// The same with so few extents that hosts see 3.
fn tiny(stripe: [&str; 3], victims: &str) -> Profile {
    let mut profile = small(stripe, victims);
    let (_, extent_bytes) = extents(&profile);
    profile.nand.blocks_per_plane = 1;
    while extents(&profile).0 < u64::from(3 + SPARE_EXTENTS_MIN) {
        profile.nand.blocks_per_plane += 1;
    }
    profile.namespaces[0].size_bytes = 3 * extent_bytes;
    profile
}

/// The sizes of values, in turn. Values of one size fill a device as far as their footprints say;
/// of others it may take fewer.
type Sizes = &'static [u32];

/// Sizes that take some time to fill a device with.
const SMALL_VALUES: [Sizes; 2] = [&[1], &[100]];

const MIXES: [Sizes; 8] = [
    &[4_096],
    &[8_200],
    &[ROOM],
    &[40_000],
    &[8_200, 100],
    &[16_384, 0],
    &[ROOM, 16_300, 1],
    &[2, 300_000, 5_000, 17, 16_385, 0, 70_000, 12_000, 1_025, 130_000],
];

/// The size of value `number`.
fn size(sizes: Sizes, number: u64) -> u32 {
    sizes[index(number % sizes.len() as u64)]
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index")
}

/// New keys from number `first` on with values of a mix, until one is refused.
async fn fill(client: &mut Client, first: u64, sizes: Sizes) {
    let refused = client.refused.stores;
    for number in first.. {
        if client.refused.stores > refused {
            break;
        }
        client.store(&key(number, 16), size(sizes, number)).await;
    }
    client.finish().await;
}

async fn assert_reads_go_on(host: &Host, model: &Model) {
    let mut all = host.list_all(ROOM).await;
    all.sort_unstable();
    assert!(all.iter().eq(model.pairs.keys()), "each key is listed once, and no other");
    let there = host.each(model.pairs.keys().map(exist)).await;
    assert!(there.iter().all(|completion| completion.status.is_success()));
}

/// Half of all is deleted, and as much is stored under other keys.
async fn replace_half(client: &mut Client, first: u64) -> u64 {
    let keys: Vec<(Key, u32)> =
        client.model.pairs.iter().map(|(key, (_, len))| (key.clone(), *len)).step_by(2).collect();
    for (key, _) in &keys {
        client.delete(key).await;
    }
    client.finish().await;
    assert_eq!(client.refused.deletes, 0, "deletes go on");
    for (number, (_, len)) in (first..).zip(&keys) {
        client.store(&key(number, 16), *len).await;
    }
    client.finish().await;
    first + keys.len() as u64
}

async fn overwrite_all(client: &mut Client) {
    let pairs = client.model.pairs.clone();
    for (key, (_, len)) in pairs {
        client.store(&key, len).await;
    }
    client.finish().await;
}

/// True when by what the device counts there is no room for a value of `next` bytes.
async fn is_full(device: &Device, profile: &Profile, next: u32) -> bool {
    let used = device.store().usage().values.bytes;
    used + footprint(profile, 16, next).await > profile.namespaces[0].size_bytes
}

fn fill_to_the_brim(sizes: Sizes, stripe: [&str; 3]) {
    let what = format!("values of {sizes:?} bytes, extents of {}", stripe[0]);
    let profile = tiny(stripe, "greedy");
    on(&profile, async |device| {
        let mut client = Client::new(device, Model::default());
        fill(&mut client, 0, sizes).await;
        let mut next = client.model.pairs.len() as u64 + 64;
        let packs = sizes.len() == 1;
        let is_full = is_full(device, &profile, sizes[0]).await;
        assert!(is_full || !packs, "{what}: refused before the device was full");
        client.model.check(device, &profile).await;
        assert_reads_go_on(&client.host, &client.model).await;
        for _ in 0..3 {
            let refused = client.refused.stores;
            next = replace_half(&mut client, next).await;
            overwrite_all(&mut client).await;
            let more = client.refused.stores - refused;
            assert!(more == 0 || !packs, "{what}: {more} did not fit in the place of as many");
            client.model.check_usage(device, &profile).await;
        }
        assert_reads_go_on(&client.host, &client.model).await;
        client.model.check(device, &profile).await;
    });
}

#[test]
fn a_full_device_refuses_stores_and_nothing_else() {
    for sizes in MIXES {
        for stripe in STRIPES {
            fill_to_the_brim(sizes, stripe);
        }
    }
}

#[test]
fn a_device_full_of_small_values_refuses_stores_and_nothing_else() {
    for (sizes, stripe) in SMALL_VALUES.into_iter().zip(STRIPES) {
        fill_to_the_brim(sizes, stripe);
    }
}

/// Keys and the sizes of their values, which stand for 90 % of what hosts see; and by size for how
/// much each stands.
async fn nine_tenths(profile: &Profile, sizes: Sizes) -> (Vec<(Key, u32)>, BTreeMap<u32, u64>) {
    let mut footprints = BTreeMap::new();
    for len in sizes {
        footprints.insert(*len, footprint(profile, 16, *len).await);
    }
    let (mut pairs, mut bytes) = (Vec::new(), 0);
    for number in 0.. {
        let len = size(sizes, number);
        bytes += footprints[&len];
        if bytes > profile.namespaces[0].size_bytes * 9 / 10 {
            break;
        }
        pairs.push((key(number, 16), len));
    }
    (pairs, footprints)
}

/// Uniform overwrites of keys whose values keep their sizes, of ten times the capacity.
fn overwrite(profile: &Profile, sizes: Sizes, what: &str) {
    on(profile, async |device| {
        let mut client = Client::new(device, Model::default());
        let (pairs, footprints) = nine_tenths(profile, sizes).await;
        for (key, len) in &pairs {
            client.store(key, *len).await;
        }
        client.finish().await;
        let before = device.figures();
        let (mut rng, mut stored) = (Rng::new(9), 0);
        while stored < 10 * profile.namespaces[0].size_bytes {
            let (key, len) = &pairs[index(rng.below(pairs.len() as u64))];
            client.store(key, *len).await;
            stored += footprints[len];
        }
        client.finish().await;
        assert_eq!(client.refused, Refused::default(), "{what}");
        client.model.check(device, profile).await;
        let after = device.figures();
        let flash = after.nand.bytes_programmed - before.nand.bytes_programmed;
        let host = after.store.host_bytes - before.store.host_bytes;
        println!("{what}: {flash} bytes programmed for {host} stored");
        assert!((host..host * 10).contains(&flash), "{what}: {flash} bytes for {host}");
    });
}

#[test]
fn overwriting_at_90_percent_never_runs_full_with_any_policy() {
    for (victims, stripe) in VICTIMS.into_iter().zip(STRIPES.into_iter().cycle()) {
        let what = format!("{victims}, extents of {}", stripe[0]);
        overwrite(&small(stripe, victims), &[16_000], &what);
    }
}

#[test]
fn overwriting_values_of_many_sizes_never_runs_full() {
    for (sizes, stripe) in
        [&[4_000, 100, 3_900, 12_000], &[20_000, 0, 300_000, 16_384]].into_iter().zip(STRIPES)
    {
        let what = format!("values of {sizes:?} bytes, extents of {}", stripe[0]);
        overwrite(&small(stripe, "greedy"), sizes, &what);
    }
}

/// Sizes at which pages and extents are just full, just not, or hardly used.
const AWKWARD: [u32; 12] =
    [0, 1, 100, 8_200, 9_000, 15_400, 16_384, 16_385, 40_000, 300_000, 1 << 20, ROOM];

/// Random stores, overwrites with other sizes and deletes on a device that is full most of the
/// time.
fn churn(profile: &Profile, seed: u64) {
    on(profile, async |device| {
        let mut client = Client::new(device, Model::default());
        let mut rng = Rng::new(seed);
        let sizes: Vec<u32> = (0..2 + rng.below(3))
            .map(|_| AWKWARD[index(rng.below(AWKWARD.len() as u64))])
            .collect();
        let mut sum = 0;
        for size in &sizes {
            sum += footprint(profile, 16, *size).await;
        }
        let fits = profile.namespaces[0].size_bytes * sizes.len() as u64 / sum;
        let keys = (fits * (11 + rng.below(10)) / 10).clamp(40, 20_000);
        for _ in 0..keys * 4 {
            let number = rng.below(keys);
            let key = key(number, [16, 255, 8, 100][index(number % 4)]);
            if rng.below(4) == 0 {
                client.delete(&key).await;
            } else {
                client.store(&key, sizes[index(rng.below(sizes.len() as u64))]).await;
            }
        }
        client.finish().await;
        client.model.check(device, profile).await;
        let keys: Vec<Key> = client.model.pairs.keys().cloned().collect();
        for key in &keys {
            client.delete(key).await;
        }
        client.finish().await;
        assert_eq!(client.refused.deletes, 0, "seed {seed}: deletes go on");
        fill(&mut client, 0, &[4_096]).await;
        let is_full = is_full(device, profile, 4_096).await;
        assert!(is_full, "seed {seed}: all is room again when all was deleted");
        client.model.check(device, profile).await;
    });
}

#[test]
fn a_full_device_stays_in_order_whatever_is_stored() {
    for seed in 0..30 {
        let (stripe, victims) = (STRIPES[index(seed % 3)], VICTIMS[index(seed / 3 % 5)]);
        churn(&tiny(stripe, victims), seed);
    }
}

/// Values that end where the pages of an extent do, after so many small ones that the extent's
/// summary is about to need another page.
#[test]
fn a_long_value_fits_the_end_of_an_extent_whatever_stands_before_it() {
    let profile = tiny(STRIPES[0], "greedy");
    for before in 210..230 {
        for pages in 25..55 {
            on(&profile, async |device| {
                let mut client = Client::new(device, Model::default());
                for number in 0..before {
                    client.store(&key(number, 16), 1).await;
                    client.finish().await;
                }
                client.store(&key(before, 16), pages * 16_384).await;
                client.store(&key(before + 1, 16), pages * 16_384).await;
                client.finish().await;
                client.model.check(device, &profile).await;
            });
        }
    }
}

/// More stores at a time than the device has space for until it has cleaned, without end: none is
/// overtaken by as many as fill the device, which is what happens where each takes what it finds.
#[test]
fn stores_that_wait_for_space_are_not_overtaken_by_others() {
    const KEYS: u64 = 14_000;
    let device_full = usize::try_from(KEYS).expect("some thousands");
    let mut profile = small(STRIPES[0], "greedy");
    profile.firmware.handlers = Handlers::Count(u32::MAX);
    on(&profile, async |device| {
        let host = Host::new(device);
        let stores = |numbers: Vec<u64>| {
            numbers.into_iter().map(|number| store(&key(number, 16), &Buf::phantom(4_096, 1)))
        };
        host.all(stores((0..KEYS).collect()), 64).await;
        let mut rng = Rng::new(1);
        let mut overwrites = stores((0..4 * KEYS).map(|_| rng.below(KEYS)).collect());
        let first = host.queue.submit(overwrites.next().expect("there are many"));
        let (mut behind, mut most) = (BTreeSet::from([first]), 0);
        loop {
            // Faster than any device that cleans.
            for submission in overwrites.by_ref().take(3) {
                behind.insert(host.queue.submit(submission));
            }
            if behind.is_empty() {
                break;
            }
            let completion = host.queue.next().await;
            assert_eq!(completion.status, Status::SUCCESS);
            behind.remove(&completion.id);
            most = most.max(behind.range(..completion.id).count());
        }
        assert!(most < device_full, "{most} stores overtook one that waited");
    });
}
