//! A drive in memory.

use crate::device::host::{delete, key, retrieve, store};
use base::{Buf, Rng};
use node::{MemoryDrive, MemoryKind};
use reactor::Reactor;
use spec::Status;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

#[test]
fn a_memory_drive_takes_its_size_in_values_again_and_again_and_then_says_that_it_is_full() {
    Reactor::new(None).run(async {
        let drive = MemoryDrive::format(MemoryKind::Kv, 16 * MIB, 1, 1).await.unwrap();
        let queue = drive.controller().queue_pair();
        assert_eq!(drive.kv().unwrap().value_bytes_max(), 2 << 20, "the longest value there is");
        let one = async |submission| {
            queue.submit(submission);
            queue.next().await
        };
        // With its header in the spare bytes a value of 4 KiB takes a sixteenth of a page.
        let fitting = 16 * MIB / (4_096 + 64);
        for round in 0..4 {
            for number in 0..fitting {
                let value = Buf::phantom(4_096, round * fitting + number);
                let stored = one(store(&key(number, 16), &value)).await;
                assert_eq!(stored.status, Status::SUCCESS, "key {number} of round {round}");
            }
        }
        for number in 0..fitting {
            let got = one(retrieve(&key(number, 16), 4_096)).await;
            assert_eq!(got.data.checksum(), 3 * fitting + number);
        }
        let mut more = fitting..;
        let refused = loop {
            let number = more.next().unwrap();
            assert!(number < 2 * fitting, "it is full by now");
            let stored = one(store(&key(number, 16), &Buf::phantom(4_096, number))).await;
            if stored.status != Status::SUCCESS {
                break stored.status;
            }
        };
        assert_eq!(refused, Status::CAPACITY_EXCEEDED);
    });
}

/// Sizes around a page's, a connection's and the largest, in turn with what takes no room in a page
/// that is full: tombstones, and values of no bytes.
#[test]
fn pairs_of_all_sizes_come_and_go_in_memory() {
    let sizes: [u32; 12] = [
        64 << 10,
        0,
        (64 << 10) - 1,
        (64 << 10) + 1,
        1,
        32 << 10,
        (32 << 10) + 1,
        4_096,
        60 << 10,
        2 << 20,
        16_000,
        (2 << 20) - 1,
    ];
    Reactor::new(None).run(async {
        let drive = MemoryDrive::format(MemoryKind::Kv, 32 * MIB, 1, 1).await.unwrap();
        let queue = drive.controller().queue_pair();
        let one = async |submission| {
            queue.submit(submission);
            queue.next().await
        };
        let mut model = BTreeMap::new();
        let mut rng = Rng::new(7);
        for step in 0..4_000_u64 {
            let number = rng.below(12);
            let key = key(number, 16);
            if rng.below(3) == 0 {
                model.remove(&number);
                assert_eq!(one(delete(&key)).await.status, Status::SUCCESS);
            } else {
                let len = sizes[usize::try_from(rng.below(12)).unwrap()];
                let byte = u8::try_from(step % 251).unwrap();
                let value = Buf::copy_from(&vec![byte; len as usize]);
                model.insert(number, (byte, len));
                let stored = one(store(&key, &value)).await;
                assert_eq!(stored.status, Status::SUCCESS, "{len} bytes in step {step}");
            }
            let any = model.range(rng.below(12)..).next();
            let Some((&number, &(byte, len))) = any else { continue };
            let got = one(retrieve(&crate::device::host::key(number, 16), 2 << 20)).await;
            assert_eq!((got.status, got.data.len()), (Status::SUCCESS, len), "step {step}");
            assert!(got.data.bytes().unwrap_or_default().iter().all(|found| *found == byte));
        }
    });
}

#[test]
fn a_memory_drive_takes_most_of_its_size_in_the_largest_values() {
    Reactor::new(None).run(async {
        let drive = MemoryDrive::format(MemoryKind::Kv, 32 * MIB, 1, 1).await.unwrap();
        let queue = drive.controller().queue_pair();
        let mut taken = 0;
        loop {
            queue.submit(store(&key(taken, 16), &Buf::phantom(2 << 20, taken)));
            match queue.next().await.status {
                Status::SUCCESS => taken += 1,
                full => break assert_eq!(full, Status::CAPACITY_EXCEEDED),
            }
        }
        assert!((13..=16).contains(&taken), "{taken} values of 2 MiB in 32 MiB");
    });
}
