//! Keys and values by Linux's passthrough: `nvme io-passthru /dev/ng0n1`.

use crate::hosts::attach::Host;
use crate::hosts::entry::Entry;
use crate::hosts::line::{IN_CAPSULE_MAX, Line};

const MIB: usize = 1 << 20;

/// MAXH2CDATA of the target.
const H2C_DATA_MAX: usize = 256 << 10;

/// Where Linux changes how it sends a value: the capsule's limit, one data PDU or more. And odd
/// lengths, and the most that MDTS allows.
const SIZES: [usize; 9] = [
    1,
    4_095,
    IN_CAPSULE_MAX,
    IN_CAPSULE_MAX + 1,
    20_001,
    H2C_DATA_MAX,
    H2C_DATA_MAX + 1,
    MIB - 3,
    2 * MIB,
];

/// What is kept from one session to the next.
const KEPT: (&[u8], usize) = (b"kept", 20_001);

/// `len` bytes that no other `seed` has.
pub(crate) fn value(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = base::Rng::new(seed);
    let words = std::iter::repeat_with(|| rng.next_u64().to_le_bytes());
    words.flatten().take(len).collect()
}

/// As many as the length of data says.
pub(crate) fn size(value: &[u8]) -> u32 {
    u32::try_from(value.len()).expect("2 MiB at most")
}

/// Values of all sizes come back as they were.
pub(crate) async fn values(host: &mut Host) {
    let (has_flow_control, transfer_max) = (host.linux.has_flow_control, host.transfer_max);
    for (seed, len) in (0..).zip(SIZES) {
        let line = &mut host.queues[seed % 2];
        let value = value(len, seed as u64);
        assert!(value.len() as u64 <= transfer_max, "the kernel refuses to move more");
        let stored = line.give("Store", Entry::store(b"abcd", size(&value)), &value).await.ok();
        let asked_for = usize::from(len > IN_CAPSULE_MAX);
        assert_eq!((stored.result, stored.asked_for), (0, asked_for), "{}", stored.step);
        let retrieve = Entry::retrieve(b"abcd", size(&value));
        let retrieved = line.ask("Retrieve", retrieve).await.ok();
        assert_eq!(retrieved.result, value.len() as u64, "DW0: the length of the value");
        assert!(!retrieved.is_elided, "DW0 of a Retrieve has to come, without flow control too");
        assert_eq!(retrieved.pieces, usize::from(len > 0), "one C2HData");
        assert!(retrieved.data == value, "a value of {len} bytes comes back");
    }
    // Without flow control what has no result comes without a response behind its data.
    let list = host.queues[0].ask("List", Entry::list(b"", 4_096)).await.ok();
    assert_eq!(list.is_elided, !has_flow_control);
}

/// Values that do not fit, that are empty; keys that are and are not there.
pub(crate) async fn keys(host: &mut Host) {
    let line = &mut host.queues[0];
    let long = value(20_001, 77);
    line.give("Store", Entry::store(b"long", size(&long)), &long).await.ok();
    for room in [512, 24_576] {
        let got = line.ask("Retrieve", Entry::retrieve(b"long", room)).await.ok();
        assert_eq!(got.result, 20_001, "DW0 is the whole length, whatever the room");
        assert!(got.data == long[..long.len().min(room as usize)], "the first bytes of the value");
    }
    line.ask("Store of no bytes", Entry::store(b"empty", 0)).await.ok();
    let empty = line.ask("Retrieve of no bytes", Entry::retrieve(b"empty", 4_096)).await.ok();
    assert_eq!((empty.result, empty.data.len()), (0, 0));

    line.ask("Exist", Entry::exist(b"long")).await.ok();
    line.ask("Exist of none", Entry::exist(b"none")).await.fails(0x4087);
    line.ask("Retrieve of none", Entry::retrieve(b"none", 4_096)).await.fails(0x4087);
    line.ask("Delete of none", Entry::delete(b"none")).await.ok();
    line.ask("Exist without a key", Entry::exist(b"")).await.fails(0x4086);
    for new in [&b"sixteen bytes it"[..], &long] {
        let store = Entry::store(b"long", size(new)).options(1 << 1);
        line.give("Store if absent", store, new).await.fails(0x4089);
    }
    let keys = line.ask("List", Entry::list(b"", 4_096)).await.ok();
    assert_eq!(listed(&keys.data), [&b"abcd"[..], b"empty", b"long"]);
    line.ask("Delete", Entry::delete(b"long")).await.ok();
    line.ask("Exist", Entry::exist(b"long")).await.fails(0x4087);
}

/// The keys of a List in the order of their bytes (KV 1.0d, List): a count, then each key behind
/// its length and padded to 4 bytes.
pub(crate) fn listed(list: &[u8]) -> Vec<Vec<u8>> {
    let (count, mut rest) = list.split_at(4);
    let count = u32::from_le_bytes(count.try_into().expect("there are 4"));
    let mut keys = Vec::new();
    for _ in 0..count {
        let len = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
        keys.push(rest[2..2 + len].to_vec());
        rest = &rest[(2 + len).next_multiple_of(4)..];
    }
    assert!(rest.is_empty(), "nothing is behind the keys");
    keys.sort();
    keys
}

/// A crowd of commands on each queue at a time, values in capsules and by R2T among them.
pub(crate) async fn crowd(host: &mut Host) {
    let len = |number: usize| [100, 8_192, 8_193, 65_536][number % 4];
    for (seed, line) in host.queues.iter_mut().enumerate() {
        let key = |number: usize| format!("queue {seed}, {number:03}");
        let value = |number: usize| value(len(number), (1_000 * seed + number) as u64);
        let mut ids = Vec::new();
        for number in 0..96 {
            let value = value(number);
            let store = Entry::store(key(number).as_bytes(), size(&value));
            ids.push(line.start("Store of a crowd", store, &value).await);
        }
        for id in ids.drain(..).rev() {
            line.finish(id).await.ok();
        }
        for number in 0..96 {
            let retrieve = Entry::retrieve(key(number).as_bytes(), 65_536);
            ids.push(line.start("Retrieve of a crowd", retrieve, &[]).await);
        }
        for (number, id) in ids.into_iter().enumerate() {
            let got = line.finish(id).await.ok();
            assert!(got.data == value(number), "value {number} of a crowd");
            assert_eq!(got.result, len(number) as u64);
        }
    }
}

/// Stores what [`find`] looks for.
pub(crate) async fn keep(line: &mut Line) {
    let value = value(KEPT.1, 4_711);
    line.give("Store", Entry::store(KEPT.0, size(&value)), &value).await.ok();
}

pub(crate) async fn find(line: &mut Line) {
    let found = line.ask("Retrieve", Entry::retrieve(KEPT.0, 24_576)).await.ok();
    assert!(found.data == value(KEPT.1, 4_711), "what was stored by an earlier association");
}
