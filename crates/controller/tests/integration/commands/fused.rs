//! Compare and Write from hosts in the process: it is one operation, whatever else writes the block
//! (Base 2.1, Fused Operations; NVM 1.1, Fused Operation).

use crate::commands::host::{BLOCK_BYTES, nothing};
use crate::commands::slow::Slow;
use base::{Buf, Nanos, Rng};
use clock::{CodeCosts, Cores, Gate, Group, Stage};
use controller::{
    Config, Controller, Emulation, FirmwareCosts, LinkTiming, Namespace, QueuePair, Submission,
};
use media::BlocksShape;
use reactor::Reactor;
use spec::{BlockRange, Command, CopyRange, Fuse, Status};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The namespace.
const NSID: u32 = 1;

/// The block that all want.
const WANTED: u64 = 5;

fn run(seed: u64, test: impl AsyncFnOnce(Arc<Controller>)) {
    Reactor::new(Some(seed)).run(async {
        let group = Group::new();
        let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks: 64, parallelism: 1 };
        let config = Config {
            emulation: Some(Emulation {
                group,
                link: LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) },
                handlers: 4,
                costs: FirmwareCosts::default(),
                cores: Cores::new(group, 1, CodeCosts::default()),
                gate: Arc::new(Gate::new()),
            }),
            has_volatile_cache: false,
        };
        let namespaces = vec![Namespace::Block(Arc::new(Slow::new(shape, seed)))];
        test(Controller::new(namespaces, config)).await;
    });
}

/// A block that begins with `number`.
fn block(number: u64) -> Buf {
    let mut bytes = vec![0; BLOCK_BYTES as usize];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Buf::copy_from(&bytes)
}

fn number(block: &Buf) -> u64 {
    let bytes = block.bytes().expect("blocks are of bytes");
    u64::from_le_bytes(bytes[..8].try_into().expect("there are 8"))
}

fn submit(queue: &QueuePair, command: Command, data: Buf) -> u64 {
    queue.submit(Submission { command, long_key: None, data })
}

async fn answer(queue: &QueuePair, command: Command, data: Buf) -> Status {
    submit(queue, command, data);
    queue.next().await.status
}

/// Compares the block with `old` and writes `new`.
async fn exchange(queue: &QueuePair, old: u64, new: u64) -> [Status; 2] {
    let first = Command::compare(NSID, WANTED, 1).with_fuse(Fuse::First);
    let second = Command::write(NSID, WANTED, 1).with_fuse(Fuse::Second);
    let ids = [submit(queue, first, block(old)), submit(queue, second, block(new))];
    let ended = [queue.next().await, queue.next().await];
    assert_eq!([ended[0].id, ended[1].id], ids, "in the order of their submission");
    ended.map(|ended| ended.status)
}

async fn read(queue: &QueuePair) -> u64 {
    submit(queue, Command::read(NSID, WANTED, 1), nothing());
    number(&queue.next().await.data)
}

#[test]
fn a_counter_of_many_hosts_counts_each_success_once() {
    for seed in 0..8 {
        run(seed, async |controller| {
            let counted = Rc::new(RefCell::new(BTreeSet::new()));
            let hosts = (0..6).map(|_| {
                let (queue, counted) = (controller.queue_pair(), counted.clone());
                async move {
                    let mut left = 10;
                    while left > 0 {
                        let old = read(&queue).await;
                        match exchange(&queue, old, old + 1).await {
                            [Status::SUCCESS, Status::SUCCESS] => {
                                assert!(counted.borrow_mut().insert(old + 1), "{old} went twice");
                                left -= 1;
                            }
                            failed => assert_eq!(
                                failed,
                                [Status::COMPARE_FAILURE, Status::FAILED_FUSED_COMMAND]
                            ),
                        }
                    }
                }
            });
            clock::join_all(hosts.collect()).await;
            assert_eq!(*counted.borrow(), (1..=60).collect());
            assert_eq!(read(&controller.queue_pair()).await, 60);
        });
    }
}

/// What the block is before each round, and what another block is that a Copy reads.
const BEFORE: u64 = 7;
const OTHER: u64 = 8;

/// Starts another write of the block, and returns what it leaves there: of one block, of several,
/// of all, with and without data.
fn other_write(queue: &QueuePair, kind: u64) -> u64 {
    match kind {
        0 => {
            submit(queue, Command::write(NSID, WANTED, 1), block(OTHER));
            OTHER
        }
        1 => {
            submit(queue, Command::write_zeroes(NSID, WANTED - 1, 3), nothing());
            0
        }
        2 => {
            submit(queue, Command::write_zeroes(NSID, 0, 60).with_deallocation(), nothing());
            0
        }
        3 => {
            let range = Buf::copy_from(BlockRange::new(WANTED, 2).as_bytes());
            submit(queue, Command::deallocate(NSID, 1), range);
            0
        }
        _ => {
            let range = Buf::copy_from(CopyRange::new(60, 1).as_bytes());
            submit(queue, Command::copy(NSID, WANTED, 1), range);
            OTHER
        }
    }
}

/// The other write comes before the exchange, which fails then, or after it: in both cases what it
/// wrote is there in the end. Between compare and write it would be lost.
#[test]
fn no_write_of_any_kind_comes_between_compare_and_write() {
    let (mut succeeded, mut failed) = (0, 0);
    for seed in 0..10 {
        run(seed, async |controller| {
            let (writer, exchanger) = (controller.queue_pair(), controller.queue_pair());
            let write = async |lba, number| {
                let ended = answer(&writer, Command::write(NSID, lba, 1), block(number)).await;
                assert_eq!(ended, Status::SUCCESS);
            };
            write(60, OTHER).await;
            let mut rng = Rng::new(seed);
            for round in 0..60 {
                write(WANTED, BEFORE).await;
                let first = Command::compare(NSID, WANTED, 1).with_fuse(Fuse::First);
                let second = Command::write(NSID, WANTED, 1).with_fuse(Fuse::Second);
                submit(&exchanger, first, block(BEFORE));
                submit(&exchanger, second, block(1_000 + round));
                clock::sleep(Nanos(rng.below(60_000)), Stage::Queue).await;
                let left = other_write(&writer, round % 5);
                let compared = exchanger.next().await.status;
                let exchanged = exchanger.next().await.status;
                assert_eq!(writer.next().await.status, Status::SUCCESS);
                match (compared, exchanged) {
                    (Status::SUCCESS, Status::SUCCESS) => succeeded += 1,
                    (Status::COMPARE_FAILURE, Status::FAILED_FUSED_COMMAND) => failed += 1,
                    other => panic!("{other:?}"),
                }
                assert_eq!(read(&writer).await, left, "round {round}");
            }
        });
    }
    assert!(succeeded > 100 && failed > 10, "{succeeded} and {failed}: both orders are met");
}

#[test]
fn a_part_alone_is_refused_when_the_next_command_shows_it() {
    run(1, async |controller| {
        let queue = controller.queue_pair();
        let first = Command::compare(NSID, WANTED, 1).with_fuse(Fuse::First);
        let missed = submit(&queue, first, block(0));
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        assert!(queue.try_next().is_none());
        let flush = submit(&queue, Command::flush(NSID), nothing());
        let second = Command::write(NSID, WANTED, 1).with_fuse(Fuse::Second);
        let late = submit(&queue, second, block(1));
        let mut ended = [queue.next().await, queue.next().await, queue.next().await];
        ended.sort_by_key(|ended| ended.id);
        let missing = Status::MISSING_FUSED_COMMAND;
        assert_eq!(ended.each_ref().map(|it| it.id), [missed, flush, late]);
        assert_eq!(ended.each_ref().map(|it| it.status), [missing, Status::SUCCESS, missing]);
        assert_eq!(read(&queue).await, 0);
        assert_eq!(queue.outstanding(), 0);
    });
}
