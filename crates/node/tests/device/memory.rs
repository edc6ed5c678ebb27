//! A drive in memory.

use crate::host::{key, retrieve, store};
use base::Buf;
use node::MemoryDrive;
use reactor::Reactor;
use spec::Status;

const MIB: u64 = 1 << 20;

#[test]
fn a_memory_drive_takes_its_size_in_values_again_and_again_and_then_says_that_it_is_full() {
    Reactor::new(None).run(async {
        let drive = MemoryDrive::format(16 * MIB, 1).await.unwrap();
        let queue = drive.controller().queue_pair();
        assert_eq!(drive.store().value_bytes_max(), 2 << 20, "the longest value there is");
        let one = async |submission| {
            queue.submit(submission);
            queue.next().await
        };
        // With its header in the spare bytes a value of 4 KiB takes a quarter of a page.
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
