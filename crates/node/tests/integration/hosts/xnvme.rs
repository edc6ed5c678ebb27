//! xNVMe 0.7.5 on /dev/ng0n1: `kvs ... --be linux`, each call of which opens the device anew.

use crate::hosts::attach::Host;
use crate::hosts::entry::Entry;
use crate::hosts::line::Line;
use crate::hosts::linux::V6_12;
use crate::hosts::namespace::find_namespace;
use crate::hosts::passthrough::listed;
use crate::hosts::world::{NQN, NSID, World, play};

/// The buffer of every Retrieve and List.
const ROOM: u32 = 4_096;

#[test]
fn xnvme_opens_the_device_and_uses_keys() {
    play(&async |world| session(world).await);
}

pub(crate) async fn session(world: &World) {
    let mut host = Host::attach(world, V6_12, NQN, 5_000).await;
    host.connect_queues(world, 1).await;
    find_namespace(&mut host).await;
    limits(&mut host.admin).await;
    for call in 0..8 {
        open(&mut host.admin).await;
        kvs(&mut host.queues[0], call).await;
    }
    host.detach(world).await;
}

/// What it asks for when it opens a device: which command set it is of, of those that it knows.
async fn open(admin: &mut Line) {
    admin.ask("Identify controller", Entry::identify(0x01, 0)).await.whole();
    let namespace = admin.ask("Identify namespace", Entry::identify(0x00, NSID)).await.whole();
    namespace.needs(
        "NSZE and LBADS",
        |answer| answer.u64(0) > 0 && answer.data[130] >= 9,
        "If the command fails the device does not open; the geometry is of blocks",
    );
    for (step, set) in [("Identify controller of CSI 2", 0x02), ("of CSI 1Fh", 0x1f)] {
        // An error, or it takes the namespace for a zoned one or a file system.
        admin.ask(step, Entry::identify_of(0x06, 0, set)).await.fails(0x4002);
    }
    // It has asked for all but the set that the namespace is of, and calls it one of blocks.
    admin.ask("Identify controller of CSI 0", Entry::identify_of(0x06, 0, 0)).await.whole();
    let blocks = Entry::identify_of(0x05, NSID, 0);
    admin.ask("Identify namespace of CSI 0", blocks).await.fails(0x4002);
}

/// `kvs idfy-ns`: it shows NKVF formats, and takes the number to be 1's based.
async fn limits(admin: &mut Line) {
    open(admin).await;
    let pairs = Entry::identify_of(0x05, NSID, 1);
    let pairs = admin.ask("kvs idfy-ns", pairs).await.whole();
    assert_eq!((pairs.data[25], pairs.u16(72), pairs.u32(76)), (0, 16, 2 << 20));
}

/// Calls of the tool, one after the other.
async fn kvs(line: &mut Line, call: usize) {
    let (first, second) = (&b"marco"[..], &b"polo"[..]);
    match call {
        0 => {
            // `--value` is a string, of which it sends as many bytes as there are.
            line.give("kvs store", Entry::store(first, 5), b"hello").await.ok();
        }
        1 => {
            let got = line.ask("kvs retrieve", Entry::retrieve(first, ROOM)).await.ok();
            let seen = got.needs(
                "DW0",
                |answer| answer.result == 5,
                "It prints the buffer as a string, whatever is in it",
            );
            assert_eq!(seen.data, b"hello");
        }
        2 => {
            line.ask("kvs exist", Entry::exist(first)).await.ok();
            line.ask("kvs exist", Entry::exist(second)).await.fails(0x4087);
        }
        3 => {
            let add = Entry::store(first, 5).options(1 << 1);
            line.give("kvs store --only-add", add, b"other").await.fails(0x4089);
            let update = Entry::store(second, 5).options(1 << 0);
            line.give("kvs store --only-update", update, b"other").await.fails(0x4087);
            // Bit 2 is NO_COMPRESS: a device that compresses nothing takes it.
            let compress = Entry::store(second, 5).options(1 << 2);
            line.give("kvs store --compress", compress, b"other").await.ok();
        }
        4 => {
            let list = line.ask("kvs list", Entry::list(b"", ROOM)).await.ok();
            assert_eq!(listed(&list.data), [first, second]);
        }
        5 => {
            line.ask("kvs delete", Entry::delete(first)).await.ok();
            line.ask("kvs exist", Entry::exist(first)).await.fails(0x4087);
        }
        6 => {
            // The tool's buffer is what a capsule and a half would hold, and it may be full.
            let full = [b'v'; ROOM as usize];
            line.give("kvs store of 4096 bytes", Entry::store(first, ROOM), &full).await.ok();
            let got = line.ask("kvs retrieve", Entry::retrieve(first, ROOM)).await.ok();
            assert_eq!((got.result, got.data), (u64::from(ROOM), full.to_vec()));
        }
        _ => many(line).await,
    }
}

/// `xnvme_tests_kvs`: 128 keys, and keys that are too long.
async fn many(line: &mut Line) {
    let key = |number: usize| format!("key{number:03}");
    for number in 0..128 {
        let key = key(number);
        line.give("128 keys", Entry::store(key.as_bytes(), 6), key.as_bytes()).await.ok();
    }
    let list = line.ask("kvs list", Entry::list(b"", ROOM)).await.ok();
    let listed = listed(&list.data);
    assert!((0..128).all(|number| listed.contains(&key(number).into_bytes())));
    // 19 bytes: the length says so, and 16 of them fit the command.
    let long = |entry: Entry| entry.dword(11, 19);
    let store = long(Entry::store(b"a key of 16 byte", 5));
    line.give("a large key", store, b"value").await.fails(0x4086);
    line.ask("a large key", long(Entry::exist(b"a key of 16 byte"))).await.fails(0x4002);
}
