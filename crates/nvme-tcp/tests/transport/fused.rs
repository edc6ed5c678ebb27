//! Fused operations: their two commands reach the queue as one, however their data comes (Base 2.1,
//! Fused Operations).

use crate::host::{Came, Host, QUICK, exist, rough, run, value};
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, Nanos};
use clock::Stage;
use nvme_tcp::pdu::{CapsuleCmd, Digests};
use nvme_tcp::target::Budget;
use spec::{Command, DataPointer, Fuse, Status};
use std::collections::BTreeMap;
use std::rc::Rc;

const DATA_DIGEST: Digests = Digests { header: false, data: true };

/// The Compare or the Write of an operation, with data of `len` bytes that is to be asked for.
fn part(fuse: Fuse, id: u16, len: u32) -> Command {
    let command = match fuse {
        Fuse::First => Command::compare(1, 0, 1),
        _ => Command::write(1, 0, 1),
    };
    let command = command.with_fuse(fuse).with_command_id(id);
    command.with_data_pointer(DataPointer::Transport { len })
}

impl Host {
    /// Queues a part of an operation with its data in the capsule.
    fn part_inside(&mut self, fuse: Fuse, id: u16, data: &Buf) {
        let inside = DataPointer::InCapsule { offset: 0, len: data.len() };
        let command = part(fuse, id, 0).with_data_pointer(inside);
        self.outbox.push_with_data(&CapsuleCmd::new(command), data.clone());
    }

    fn part_outside(&mut self, fuse: Fuse, id: u16, len: u32) {
        self.outbox.push(&CapsuleCmd::new(part(fuse, id, len)));
    }

    /// The requests for data that come next, by the ids of their commands.
    async fn asked(&mut self, count: usize) -> BTreeMap<u16, (u16, u32)> {
        let mut asked = BTreeMap::new();
        for _ in 0..count {
            let Came::Ready { id, tag, len, .. } = self.next().await else { panic!("no R2T") };
            asked.insert(id, (tag, len));
        }
        asked
    }

    fn fused(&self) -> Vec<(u16, u16)> {
        self.shelf.fused.borrow().clone()
    }
}

#[test]
fn both_commands_reach_the_queue_when_the_data_of_both_has_come() {
    for order in [[1, 2], [2, 1]] {
        run(async move {
            let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
            host.part_outside(Fuse::First, 1, 20_000);
            host.part_outside(Fuse::Second, 2, 20_000);
            host.outbox.push(&CapsuleCmd::new(exist(3)));
            host.flush().await;
            let mut asked = host.asked(2).await;
            let Came::Response(entry) = host.next().await else { panic!("no response") };
            assert_eq!((entry.command_id(), host.fused()), (3, vec![]), "others do not wait");
            let data = value(20_000, 1);
            for id in order {
                assert_eq!(host.fused(), [], "data is missing");
                let (tag, _) = asked.remove(&id).unwrap();
                host.give(id, tag, &data, 7_000);
                host.flush().await;
                if id == order[0] {
                    // The next answer is that of a command behind this data.
                    host.outbox.push(&CapsuleCmd::new(exist(4)));
                    host.flush().await;
                    host.collect(1, &BTreeMap::new()).await;
                }
            }
            host.collect(2, &BTreeMap::new()).await;
            assert_eq!(host.fused(), [(1, 2)]);
            assert_eq!(*host.shelf.came.borrow(), [3, 4, 1, 2]);
        });
    }
}

#[test]
fn operations_of_all_lengths_and_places_of_data_are_paired_in_any_splitting() {
    for seed in 0..6 {
        run(async move {
            let digests = if seed % 2 == 0 { Digests::NONE } else { DATA_DIGEST };
            let mut host = Host::open(seed, rough(3_000), digests, 4).await;
            let mut values = BTreeMap::new();
            for id in (0..40).step_by(2) {
                let len = 512 * (1 + u32::from(id) % 24);
                for (id, fuse) in [(id, Fuse::First), (id + 1, Fuse::Second)] {
                    let data = value(len, u64::from(id));
                    if (u64::from(id) + seed) % 3 == 0 && len <= 8_192 {
                        host.part_inside(fuse, id, &data);
                    } else {
                        host.part_outside(fuse, id, len);
                    }
                    values.insert(id, data);
                }
            }
            host.flush().await;
            host.collect(40, &values).await;
            let mut fused = host.fused();
            fused.sort_unstable();
            let expected: Vec<_> = (0..40).step_by(2).map(|id| (id, id + 1)).collect();
            assert_eq!(fused, expected);
            assert_eq!(host.shelf.moved.get(), values.values().map(|it| u64::from(it.len())).sum());
        });
    }
}

#[test]
fn a_part_whose_other_one_is_missing_is_submitted_alone_and_its_data_not_asked_for() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        host.part_outside(Fuse::First, 1, 20_000);
        host.flush().await;
        host.outbox.push(&CapsuleCmd::new(exist(2)));
        host.part_outside(Fuse::Second, 3, 20_000);
        host.part_outside(Fuse::First, 4, 20_000);
        host.part_inside(Fuse::First, 5, &value(100, 1));
        host.part_inside(Fuse::Second, 6, &value(100, 2));
        host.flush().await;
        host.collect(6, &BTreeMap::new()).await;
        assert_eq!(*host.shelf.came.borrow(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(host.fused(), [(5, 6)]);
    });
}

#[test]
fn a_held_first_command_is_withdrawn_by_its_id() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        host.part_outside(Fuse::First, 1, 20_000);
        host.flush().await;
        host.outbox.push(&CapsuleCmd::new(exist(2)));
        host.flush().await;
        host.part_outside(Fuse::First, 3, 20_000);
        host.flush().await;
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        let responses = host.shelf.responses.borrow().clone().expect("the queue is open");
        assert!(responses.withdraw(1).is_none(), "it is submitted");
        assert_eq!(responses.withdraw(3), Some(part(Fuse::First, 3, 20_000)));
        assert!(responses.withdraw(3).is_none());
        host.part_inside(Fuse::Second, 4, &value(100, 2));
        host.flush().await;
        host.collect(3, &BTreeMap::new()).await;
        assert_eq!((host.fused(), host.shelf.came.borrow().clone()), (vec![], vec![1, 2, 4]));
    });
}

#[test]
fn damaged_data_of_one_command_fails_both() {
    for (damaged, other) in [(1, 2), (2, 1)] {
        run(async move {
            let mut host = Host::open(1, QUICK, DATA_DIGEST, 4).await;
            for (id, fuse) in [(1, Fuse::First), (2, Fuse::Second)] {
                if id == damaged {
                    let inside = DataPointer::InCapsule { offset: 0, len: 4 };
                    let command = part(fuse, id, 0).with_data_pointer(inside);
                    host.say(&capsule_with_digest(command, [1, 2, 3, 4], 0xdead_beef)).await;
                } else {
                    host.part_inside(fuse, id, &value(100, 2));
                    host.flush().await;
                }
            }
            let results = host.collect(2, &BTreeMap::new()).await;
            let status = |id: u16| results.done[&id].unwrap().status();
            assert_eq!(status(damaged), Status::TRANSIENT_TRANSPORT_ERROR);
            assert_eq!(status(other), Status::FAILED_FUSED_COMMAND);
            assert_eq!(*host.shelf.came.borrow(), []);
        });
    }
}

/// A capsule with four bytes of data behind this digest (TCP 1.1, `CapsuleCmd`: PDU type 04h, flag
/// DDGSTF in bit 1, HLEN 72, PDO 72, PLEN).
fn capsule_with_digest(command: Command, data: [u8; 4], digest: u32) -> Vec<u8> {
    let entry: [u8; 64] = zerocopy::transmute!(command);
    let mut bytes = vec![0x04, 0b10, 72, 72, 80, 0, 0, 0];
    bytes.extend(entry);
    bytes.extend(data);
    bytes.extend(digest.to_le_bytes());
    bytes
}

#[test]
fn more_data_than_one_command_moves_is_not_asked_for() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        host.part_outside(Fuse::First, 1, VALUE_BYTES_MAX / 2 + 512);
        host.part_outside(Fuse::Second, 2, VALUE_BYTES_MAX / 2 + 512);
        host.flush().await;
        host.collect(2, &BTreeMap::new()).await;
        assert_eq!((host.fused(), host.shelf.moved.get()), (vec![(1, 2)], 0));
    });
}

#[test]
fn operations_end_under_the_least_budget() {
    run(async {
        let budget = Rc::new(Budget::new(Budget::BYTES_MIN));
        let mut host = Host::connect_with(budget, 1, QUICK).opened(Digests::NONE, 4).await;
        let half = VALUE_BYTES_MAX / 2;
        let values: BTreeMap<u16, Buf> = (0..6).map(|id| (id, value(half, id.into()))).collect();
        for id in [0, 2, 4] {
            host.part_outside(Fuse::First, id, half);
            host.part_outside(Fuse::Second, id + 1, half);
        }
        host.flush().await;
        host.collect(6, &values).await;
        assert_eq!(host.fused(), [(0, 1), (2, 3), (4, 5)]);
    });
}
