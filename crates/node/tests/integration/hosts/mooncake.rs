//! Mooncake's NVMe-KV backend on /dev/ng0n1, by the kernel's passthrough.

use crate::hosts::attach::Host;
use crate::hosts::entry::Entry;
use crate::hosts::line::Line;
use crate::hosts::linux::V6_12;
use crate::hosts::namespace::find_namespace;
use crate::hosts::passthrough::{size, value};
use crate::hosts::world::{NQN, World, play};

/// Its commands move multiples of this.
const UNIT: u32 = 4_096;

/// What it stores at most under one key, unless it is told otherwise, and the most that it can be
/// told.
const VALUE_MAX: u32 = 270_336;
const PROTOCOL_MAX: u32 = 512 << 10;

/// How many of its commands are under way at a time.
const CONCURRENT: u32 = 18;

#[test]
fn mooncake_stores_what_is_absent_and_finds_it() {
    play(&async |world| session(world).await);
}

pub(crate) async fn session(world: &World) {
    let mut host = Host::attach(world, V6_12, NQN, 5_000).await;
    assert!(host.transfer_max >= PROTOCOL_MAX.into(), "the kernel refuses to move more");
    host.connect_queues(world, 1).await;
    find_namespace(&mut host).await;
    let line = &mut host.queues[0];
    one_object(line).await;
    chunks(line).await;
    host.detach(world).await;
}

/// A key of two hashes, made into one that is its own only in 15 bytes: byte 11 says which command
/// set it is. And CDW12, reserved, is how many blocks of 512 bytes move, less one.
fn dressed(entry: Entry) -> Entry {
    let mut last = [0; 4];
    last.copy_from_slice(&entry.bytes()[56..60]);
    last[3] = 0x01;
    let entry = entry.dword(14, u32::from_le_bytes(last));
    if entry.len() == 0 { entry } else { entry.dword(12, entry.len() / 512 - 1) }
}

fn key(number: u32) -> [u8; 16] {
    let mut key = *b"....hash and has";
    key[..4].copy_from_slice(&number.to_be_bytes());
    key
}

/// Store-if-not-exists of a value that is padded with zeros.
fn store(number: u32, value: &[u8]) -> Entry {
    dressed(Entry::store(&key(number), size(value)).options(1 << 1))
}

fn retrieve(number: u32, room: u32) -> Entry {
    dressed(Entry::retrieve(&key(number), room))
}

/// `len` bytes, up to a multiple of what it moves.
fn padded(len: usize, seed: u64) -> Vec<u8> {
    let mut value = value(len, seed);
    value.resize(len.next_multiple_of(UNIT as usize), 0);
    value
}

async fn one_object(line: &mut Line) {
    line.ask("Retrieve of none", retrieve(1, UNIT)).await.fails(0x4087);
    let value = padded(20_001, 1);
    line.give("Store", store(1, &value), &value).await.ok();
    // Another object of the same hash: it tries the next of 64 slots.
    for other in [padded(20_001, 2), padded(100, 3)] {
        line.give("Store of another", store(1, &other), &other).await.fails(0x4089);
    }
    // It does not know how long the value is: from the first bytes, and DW0, it learns.
    let prefix = line.ask("Retrieve", retrieve(1, UNIT)).await.ok();
    let prefix = prefix.needs(
        "DW0",
        |answer| answer.result == value.len() as u64,
        "It reads the length from the object's header, or fails to read",
    );
    assert!(prefix.data == value[..UNIT as usize]);
    let again = u32::try_from(prefix.result).expect("a length");
    let whole = line.ask("Retrieve, again", retrieve(1, again)).await.ok();
    assert!(whole.data == value, "the value comes back");
    // The key is what went over the wire, byte 11 included.
    let plain = line.ask("its own key", Entry::exist(&key(1))).await;
    plain.fails(0x4087);
    line.ask("Delete", dressed(Entry::delete(&key(1)))).await.ok();
    line.ask("Retrieve of none", retrieve(1, UNIT)).await.fails(0x4087);
}

/// A large object: chunks under keys of their own, as many at a time as there may be, and then a
/// manifest.
async fn chunks(line: &mut Line) {
    let len = |number: u32| if number == 0 { PROTOCOL_MAX } else { VALUE_MAX } as usize;
    let mut ids = Vec::new();
    for number in 0..CONCURRENT {
        let chunk = padded(len(number), number.into());
        ids.push(line.start("Store of a chunk", store(100 + number, &chunk), &chunk).await);
    }
    for id in ids.drain(..) {
        line.finish(id).await.ok();
    }
    let manifest = padded(300, 4_711);
    line.give("Store of the manifest", store(99, &manifest), &manifest).await.ok();
    let found = line.ask("Retrieve of the manifest", retrieve(99, UNIT)).await.ok();
    assert!(found.data == manifest);
    for number in 0..CONCURRENT {
        let room = u32::try_from(len(number)).expect("512 KiB at most");
        ids.push(line.start("Retrieve of a chunk", retrieve(100 + number, room), &[]).await);
    }
    for (number, id) in (0..).zip(ids) {
        let chunk = line.finish(id).await.ok();
        assert!(chunk.data == padded(len(number), number.into()), "chunk {number}");
    }
}
