//! Namespaces of all kinds on one flash array: what each holds is its own, the time is not.

use crate::device::host::key;
use base::limits::BLOCK_BYTES;
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use controller::{Completion, QueuePair, Submission};
use ftl::ZonesShape;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions, ZoneSendAction};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Five namespaces on 4 dies of 44 blocks: rows of 4 MiB, of which they have 12, 10, 12 (those of
/// keys together 18), 10 and 6.
const PROFILE: &str = r#"
description = "Namespaces of all kinds"
[nand]
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 44
pages_per_block = 64
page_bytes = 16384
read_us = 45
program_us = 660
erase_us = 3500
registers = 1
model = "staged"
channel_mb_per_s = 800
[link]
mb_per_s = 3200
transfer_us = 1
[firmware]
handlers = 64
t_read_us = 4.2
t_write_us = 4.4
t_delete_us = 4.4
t_exist_us = 4.2
[log]
stripe = "all"
ack = "program"
gc_victims = "greedy"
[index]
kind = "hash"
[[namespace]]
kind = "kv"
size_gb = 0.02
over_provisioning = 1.5
[[namespace]]
kind = "block"
size_gb = 0.032
over_provisioning = 0.3
ack = "buffer"
buffer_kib = 512
gc_victims = "greedy"
[[namespace]]
kind = "zoned"
size_gb = 0.025
over_provisioning = 0.2
stripe = "die"
max_open = 6
max_active = 9
buffer_kib = 512
[[namespace]]
kind = "kv"
size_gb = 0.01
over_provisioning = 1.0
[[namespace]]
kind = "block"
size_gb = 0.02
over_provisioning = 0.3
ack = "program"
gc_victims = "cost-benefit"
"#;

fn profile() -> Profile {
    Profile::parse("namespaces", PROFILE).expect("a valid profile")
}

/// A host with a queue pair of its own, one command at a time, on namespace `nsid`.
pub(crate) struct Host {
    queue: QueuePair,
    nsid: u32,
    rng: Rng,
    /// Says what the host wrote last.
    writes: u64,
}

impl Host {
    pub(crate) fn new(device: &Device, nsid: u32) -> Self {
        let queue = device.controller().queue_pair();
        Self { queue, nsid, rng: Rng::new(nsid.into()), writes: 0 }
    }

    pub(crate) async fn one(&self, command: Command, data: Buf) -> Completion {
        self.queue.submit(Submission { command, long_key: None, data });
        self.queue.next().await
    }

    /// Carries out a command that must succeed.
    pub(crate) async fn done(&self, command: Command, data: Buf) -> Completion {
        let completion = self.one(command, data).await;
        assert_eq!(completion.status, Status::SUCCESS, "{:?}", command.opcode());
        completion
    }

    pub(crate) async fn read(&self, lba: u64, blocks: u32) -> Completion {
        self.done(Command::read(self.nsid, lba, blocks), Buf::phantom(0, 0)).await
    }

    pub(crate) async fn write(&self, lba: u64, data: Buf) -> Completion {
        let blocks = data.len() / BLOCK_BYTES;
        self.done(Command::write(self.nsid, lba, blocks), data).await
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// The names of the next `blocks` writes.
    pub(crate) fn names(&mut self, blocks: u64) -> Vec<u64> {
        let first = self.writes + 1;
        self.writes += blocks;
        (first..first + blocks).collect()
    }

    /// What the blocks of these names hold: nothing that another namespace ever writes.
    pub(crate) fn content(&self, names: &[u64]) -> Buf {
        let mut bytes = vec![0; names.len() * BLOCK_BYTES as usize];
        for (name, block) in names.iter().zip(bytes.chunks_exact_mut(BLOCK_BYTES as usize)) {
            if *name > 0 {
                Rng::new(u64::from(self.nsid) << 40 | name).fill(block);
            }
        }
        Buf::copy_from(&bytes)
    }

    pub(crate) async fn assert_holds(&self, lba: u64, names: &[u64]) {
        for (at, names) in (lba..).step_by(64).zip(names.chunks(64)) {
            let read = self.read(at, u32::try_from(names.len()).expect("a few")).await;
            let expected = self.content(names);
            assert!(
                read.data.bytes() == expected.bytes(),
                "{} blocks from {at} of namespace {} are not as they were written",
                names.len(),
                self.nsid
            );
        }
    }
}

/// A namespace of blocks and what it must hold: a name for each block, 0 for none.
async fn live_with_blocks(mut host: Host, size_bytes: u64, operations: u64) -> (Host, Vec<u64>) {
    let blocks = size_bytes / u64::from(BLOCK_BYTES);
    let mut model = vec![0; usize::try_from(blocks).expect("a small device")];
    for _ in 0..operations {
        let count = 1 + host.below(12);
        let lba = host.below(blocks - count);
        let (first, end) = (index(lba), index(lba + count));
        match host.below(20) {
            0..13 => {
                let names = host.names(count);
                host.write(lba, host.content(&names)).await;
                model[first..end].copy_from_slice(&names);
            }
            13..18 => host.assert_holds(lba, &model[first..end]).await,
            18 => {
                let blocks = u32::try_from(count).expect("a few");
                let command = Command::deallocate(host.nsid, 1);
                host.done(command, range(lba, blocks)).await;
                model[first..end].fill(0);
            }
            _ => drop(host.done(Command::flush(host.nsid), Buf::phantom(0, 0)).await),
        }
    }
    (host, model)
}

/// A range of a Dataset Management (NVM 1.1): attributes, length, first block.
fn range(lba: u64, blocks: u32) -> Buf {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&blocks.to_le_bytes());
    bytes[8..].copy_from_slice(&lba.to_le_bytes());
    Buf::copy_from(&bytes)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index")
}

/// A namespace of zones and what it must hold: for each zone the names of its blocks.
async fn live_with_zones(
    mut host: Host,
    shape: ZonesShape,
    operations: u64,
) -> (Host, Vec<Vec<u64>>) {
    let mut model = vec![Vec::new(); shape.zones as usize];
    for _ in 0..operations {
        // So few zones that no more are active than may be, and that each is reset at times.
        let zone = index(host.below(6));
        let start = zone as u64 * shape.zone_blocks;
        let written = model[zone].len() as u64;
        match host.below(20) {
            0..13 if written < shape.zone_capacity => {
                let count = (1 + host.below(12)).min(shape.zone_capacity - written);
                let names = host.names(count);
                let blocks = u32::try_from(count).expect("a few");
                let command = Command::zone_append(host.nsid, start, blocks);
                let appended = host.done(command, host.content(&names)).await;
                assert_eq!(appended.result, start + written, "appended at the write pointer");
                model[zone].extend(names);
            }
            0..16 if written > 0 => {
                let at = host.below(written);
                let count = (1 + host.below(12)).min(written - at);
                let names = &model[zone][index(at)..index(at + count)];
                host.assert_holds(start + at, names).await;
            }
            19 if host.below(8) == 0 => {
                let reset = Command::zone_management_send(host.nsid, start, ZoneSendAction::Reset);
                host.done(reset, Buf::phantom(0, 0)).await;
                model[zone].clear();
            }
            _ => {}
        }
    }
    (host, model)
}

/// A namespace of keys and values and what it must hold: the names that values stand for, and their
/// lengths.
async fn live_with_keys(mut host: Host, operations: u64) -> (Host, BTreeMap<Key, (u64, u32)>) {
    let mut model = BTreeMap::new();
    for _ in 0..operations {
        // The same keys in each namespace.
        let key = key(host.below(300), 16);
        match host.below(20) {
            0..13 => {
                let name = host.names(1)[0];
                let len = u32::try_from(host.below(40_000)).expect("below 40,000");
                let data = value(host.nsid, name, len);
                let command = Command::store(host.nsid, key.as_bytes(), len, StoreOptions::NONE);
                host.done(command, data).await;
                model.insert(key, (name, len));
            }
            13..18 => assert_has(&host, &key, model.get(&key)).await,
            _ => {
                host.one(Command::delete(host.nsid, key.as_bytes()), Buf::phantom(0, 0)).await;
                model.remove(&key);
            }
        }
    }
    (host, model)
}

fn value(nsid: u32, name: u64, len: u32) -> Buf {
    Buf::phantom(len, u64::from(nsid) << 40 | name)
}

async fn assert_has(host: &Host, key: &Key, expected: Option<&(u64, u32)>) {
    let command = Command::retrieve(host.nsid, key.as_bytes(), 1 << 20);
    let retrieved = host.one(command, Buf::phantom(0, 0)).await;
    match expected {
        None => assert_eq!(retrieved.status, Status::KEY_DOES_NOT_EXIST),
        Some(&(name, len)) => {
            assert_eq!((retrieved.status, retrieved.result), (Status::SUCCESS, len.into()));
            let expected = value(host.nsid, name, len);
            assert_eq!(retrieved.data.checksum(), expected.checksum(), "{key:?} of {}", host.nsid);
        }
    }
}

/// What a task will have given when it has ended.
type Ending<T> = Rc<Cell<Option<T>>>;

fn started<T: 'static>(work: impl Future<Output = T> + 'static) -> Ending<T> {
    let ending = Ending::default();
    let given = ending.clone();
    clock::spawn(async move { given.set(Some(work.await)) });
    ending
}

async fn ended<T>(ending: &Ending<T>) -> T {
    loop {
        if let Some(given) = ending.take() {
            return given;
        }
        clock::sleep(Nanos::from_millis(1), Stage::Core).await;
    }
}

/// Each namespace is changed at random and compared with its own model, all at the same time, while
/// three layers clean; and at the end all of it.
#[test]
fn namespaces_of_all_kinds_never_share_data() {
    let profile = profile();
    Reactor::new(Some(1)).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default())
            .await
            .expect("it is large enough");
        let sizes: Vec<u64> = profile.namespaces.iter().map(|one| one.size_bytes).collect();
        let hosts: Vec<Host> = (1..=5).map(|nsid| Host::new(&device, nsid)).collect();
        let Ok([one, two, three, four, five]) = <[Host; 5]>::try_from(hosts) else {
            panic!("five namespaces")
        };
        let shape = device.zones(3).expect("it is zoned").shape();
        let keys = [started(live_with_keys(one, 6_000)), started(live_with_keys(four, 3_000))];
        let blocks = [
            started(live_with_blocks(two, sizes[1], 6_000)),
            started(live_with_blocks(five, sizes[4], 4_000)),
        ];
        let zones = started(live_with_zones(three, shape, 6_000));
        let keys = [ended(&keys[0]).await, ended(&keys[1]).await];
        let blocks = [ended(&blocks[0]).await, ended(&blocks[1]).await];
        let (host, zones) = ended(&zones).await;
        let figures = device.figures();
        assert!(figures.store.victims > 10, "the log is cleaned: {figures:?}");
        assert!(figures.blocks.victims > 100, "blocks are cleaned: {figures:?}");
        for (host, model) in &keys {
            for number in 0..300 {
                let key = key(number, 16);
                assert_has(host, &key, model.get(&key)).await;
            }
        }
        for (host, model) in &blocks {
            host.assert_holds(0, model).await;
        }
        for (zone, names) in (0..).zip(&zones) {
            host.assert_holds(zone * shape.zone_blocks, names).await;
        }
    });
}

/// Of each kind.
const KINDS: [(u32, &str); 3] = [(1, "kv"), (2, "block"), (3, "zoned")];

/// Puts 1 MiB into namespace `nsid`, which reads are of.
async fn prepare(host: &Host, zone_start: u64) {
    for part in 0..16 {
        let data = Buf::phantom(16 * BLOCK_BYTES, part);
        if host.nsid == 1 {
            let key = key(part, 16);
            let command = Command::store(1, key.as_bytes(), data.len(), StoreOptions::NONE);
            host.done(command, data).await;
        } else {
            host.write(zone_start + 16 * part, data).await;
        }
    }
}

/// Mean latency in nanoseconds of 300 reads, one after the other, of what was put there.
async fn read_latency(host: &mut Host) -> u64 {
    let mut sum = 0;
    for _ in 0..300 {
        let at = host.below(16);
        let read = if host.nsid == 1 {
            let key = key(at, 16);
            host.done(Command::retrieve(1, key.as_bytes(), 1 << 20), Buf::phantom(0, 0)).await
        } else {
            host.read(16 * at, 1).await
        };
        sum += read.latency().0;
    }
    sum / 300
}

/// Writes to namespace `nsid` of a kind, one after the other, until `stop`.
async fn disturb(host: Host, lane: u64, zone_blocks: u64, stop: Rc<Cell<bool>>) {
    for number in 0.. {
        if stop.get() {
            return;
        }
        let data = Buf::phantom(16 * BLOCK_BYTES, number);
        match host.nsid {
            1 => {
                let key = key(1_000 + 100 * lane + number % 20, 16);
                let command = Command::store(1, key.as_bytes(), data.len(), StoreOptions::NONE);
                host.done(command, data).await;
            }
            2 => drop(host.write(1_000 + 500 * lane + 16 * (number % 30), data).await),
            _ => {
                let start = (1 + lane) * zone_blocks;
                let end = host.one(Command::zone_append(3, start, 16), data).await.status;
                if end == Status::ZONE_IS_FULL || end == Status::ZONE_BOUNDARY_ERROR {
                    let action = ZoneSendAction::Reset;
                    let reset = Command::zone_management_send(3, start, action);
                    host.done(reset, Buf::phantom(0, 0)).await;
                } else {
                    assert_eq!(end, Status::SUCCESS);
                }
            }
        }
    }
}

/// Mean latency of reads from `reader` while `writer` is written, or nothing is.
fn latency_beside(reader: u32, writer: Option<u32>) -> u64 {
    let profile = profile();
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default())
            .await
            .expect("it is large enough");
        let mut host = Host::new(&device, reader);
        prepare(&host, 0).await;
        device.flush().await.expect("nothing is damaged");
        let zone_blocks = device.zones(3).expect("it is zoned").shape().zone_blocks;
        let stop = Rc::new(Cell::new(false));
        for lane in writer.iter().flat_map(|_| 0..4) {
            let host = Host::new(&device, writer.expect("it is looked at here"));
            clock::spawn(disturb(host, lane, zone_blocks, stop.clone()));
        }
        clock::sleep(Nanos::from_millis(20), Stage::Core).await;
        let latency = read_latency(&mut host).await;
        stop.set(true);
        latency
    })
}

/// Writes hold dies for 660 us. A read that comes to one waits for what is left of that, so with a
/// fair part of the four dies busy it takes twice as long and more.
#[test]
fn writes_to_one_namespace_slow_down_reads_of_every_other() {
    for (reader, of) in KINDS {
        let alone = latency_beside(reader, None);
        for (writer, to) in KINDS.into_iter().filter(|(writer, _)| *writer != reader) {
            let beside = latency_beside(reader, Some(writer));
            println!("reads of {of}: {alone} ns alone, {beside} ns beside writes to {to}");
            assert!(
                beside > 2 * alone,
                "reads of {of} take {alone} ns alone and {beside} ns beside writes to {to}"
            );
        }
    }
}

/// What was written is there when the device is opened again: of every namespace its own. Stopped
/// or without power, what zones have in memory is saved.
#[test]
fn namespaces_are_opened_again_with_what_they_held() {
    for is_stopped in [true, false] {
        assert_opens_again(is_stopped);
    }
}

fn assert_opens_again(is_stopped: bool) {
    let profile = profile();
    let sizes: Vec<u64> = profile.namespaces.iter().map(|one| one.size_bytes).collect();
    let cells = Device::manufacture(&profile, 1);
    let (keys, blocks, zones) = Reactor::new(None).run(async {
        let device = Device::format(&profile, cells.clone(), 1, FaultPlan::default())
            .await
            .expect("it is large enough");
        let host = |nsid| Host::new(&device, nsid);
        let shape = device.zones(3).expect("it is zoned").shape();
        let keys =
            [started(live_with_keys(host(1), 1_000)), started(live_with_keys(host(4), 1_000))];
        let blocks = [
            started(live_with_writes(host(2), sizes[1], 3_000)),
            started(live_with_writes(host(5), sizes[4], 1_000)),
        ];
        let zones = started(live_with_zones(host(3), shape, 1_000));
        let keys = [ended(&keys[0]).await.1, ended(&keys[1]).await.1];
        let blocks = [ended(&blocks[0]).await, ended(&blocks[1]).await];
        let (_, zones) = ended(&zones).await;
        if is_stopped {
            device.stop().await.expect("nothing is damaged");
        } else {
            let loss = device.lose_power().await;
            assert!(loss.saved_pages > 0 && loss.lost_pages == 0, "{loss:?}");
        }
        (keys, blocks, zones)
    });
    Reactor::new(None).run(async {
        let opened = Device::open(&profile, cells.clone(), 1, FaultPlan::default()).await;
        let (device, opened) = opened.expect("nothing is damaged");
        let recovery = opened.recovery.expect("there is a store");
        assert!(opened.time >= recovery.time && recovery.pages_read > 0, "{opened:?}");
        assert_eq!(opened.lost_pages, 0);
        for (nsid, model) in [1, 4].into_iter().zip(&keys) {
            let host = Host::new(&device, nsid);
            for number in 0..300 {
                let key = key(number, 16);
                assert_has(&host, &key, model.get(&key)).await;
            }
        }
        for (nsid, model) in [2, 5].into_iter().zip(&blocks) {
            Host::new(&device, nsid).assert_holds(0, model).await;
        }
        let shape = device.zones(3).expect("it is zoned").shape();
        for (zone, names) in (0..).zip(&zones) {
            Host::new(&device, 3).assert_holds(zone * shape.zone_blocks, names).await;
        }
    });
}

/// Writes alone: what was trimmed may be back after a loss of power.
async fn live_with_writes(mut host: Host, size_bytes: u64, operations: u64) -> Vec<u64> {
    let blocks = size_bytes / u64::from(BLOCK_BYTES);
    let mut model = vec![0; index(blocks)];
    for _ in 0..operations {
        let count = 1 + host.below(12);
        let lba = host.below(blocks - count);
        let names = host.names(count);
        host.write(lba, host.content(&names)).await;
        model[index(lba)..index(lba + count)].copy_from_slice(&names);
    }
    model
}

/// The sentence that a device of `profile` is refused with.
fn refusal(profile: &Profile) -> String {
    Reactor::new(None).run(async {
        let cells = Device::manufacture(profile, 1);
        let made = Device::format(profile, cells, 1, FaultPlan::default()).await;
        made.map(|_| ()).expect_err("it is refused").to_string()
    })
}

/// A profile counts with as many bad blocks as there are on average, so a plane may have more.
#[test]
fn a_device_with_too_many_bad_blocks_is_refused() {
    let mut bad = profile();
    bad.nand.factory_bad_ppm = 100_000;
    let sentence = refusal(&bad);
    let begin = "namespaces line 37: namespace 2 has 31997952 bytes, \
                 but its good blocks hold no more than ";
    assert!(sentence.starts_with(begin), "{sentence}");
    bad.namespaces[1].over_provisioning = 0.7;
    // Every block of its part is a zone.
    (bad.namespaces[2].size_bytes, bad.namespaces[2].over_provisioning) = (28 << 20, 0.0);
    let sentence = refusal(&bad);
    let begin = "namespaces line 44: namespace 3 has 29360128 bytes, \
                 but its good blocks hold no more than ";
    assert!(sentence.starts_with(begin), "{sentence}");
}
