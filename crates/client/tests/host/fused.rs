//! Compare and Write over NVMe/TCP, by hosts that race for one block. Each operation is atomic,
//! whatever the network and the device do (Base 2.1, Fused Operations).

use crate::slow::Slow;
use crate::world::{BLOCKS, NQN, ROUGH, World, host, run_on};
use base::{Buf, Nanos, Rng};
use client::{IoQueue, Reads, Settings};
use clock::Stage;
use controller::{Queue, Submission};
use media::BlocksShape;
use net::End;
use nvme_tcp::pdu::Digests;
use spec::{Command, Fuse, Status};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// The block that all hosts write.
const WANTED: u64 = 3;

/// In the capsule, and by R2T.
const BLOCK_BYTES: [u32; 2] = [512, 16_384];

fn run(seed: u64, block_bytes: u32, test: impl AsyncFnOnce(World)) {
    let shape = BlocksShape { block_bytes, blocks: 20, parallelism: 1 };
    run_on(Arc::new(Slow::new(shape, seed)), seed, ROUGH, test);
}

/// One host's queue, with one other command in addition to the fused ones.
struct Racer {
    queue: IoQueue<End>,
    block_bytes: u32,
}

impl Racer {
    async fn new(world: &World, number: u8, block_bytes: u32) -> Self {
        let is_odd = !number.is_multiple_of(2);
        let digests = Digests { header: is_odd, data: !number.is_multiple_of(3) };
        let flow_control = is_odd;
        let settings = Settings { digests, flow_control, ..Settings::new(host(number), NQN) };
        let queues = 1 + usize::from(number % 3);
        let reads = Reads::Blocks(block_bytes);
        let (association, queue) = world.connect_reading(settings, queues, reads).await;
        // It lives as long as its queue is used.
        clock::spawn(async move {
            clock::sleep(Nanos::from_secs(60), Stage::Queue).await;
            drop(association);
        });
        Self { queue, block_bytes }
    }

    fn block(&self, number: u64) -> Buf {
        let mut bytes = vec![number.to_le_bytes()[0]; self.block_bytes as usize];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Buf::copy_from(&bytes)
    }

    async fn read(&self) -> u64 {
        let room = Buf::phantom(0, 0);
        let command = Command::read(BLOCKS, WANTED, 1);
        self.queue.submit(Submission { command, long_key: None, data: room });
        let data = self.queue.next().await.data;
        let bytes = data.bytes().expect("it is read");
        let number = u64::from_le_bytes(bytes[..8].try_into().expect("there are 8"));
        assert_eq!(bytes, self.block(number).bytes().unwrap(), "a block is of one write");
        number
    }

    async fn write(&self, number: u64) {
        let command = Command::write(BLOCKS, WANTED, 1);
        let data = self.block(number);
        self.queue.submit(Submission { command, long_key: None, data });
        assert_eq!(self.queue.next().await.status, Status::SUCCESS);
    }

    /// Returns whether the block was `old`, and thus is now `new`.
    async fn exchange(&self, old: u64, new: u64) -> bool {
        let commands = [
            Command::compare(BLOCKS, WANTED, 1).with_fuse(Fuse::First),
            Command::write(BLOCKS, WANTED, 1).with_fuse(Fuse::Second),
        ];
        for (command, number) in commands.into_iter().zip([old, new]) {
            let data = self.block(number);
            self.queue.submit(Submission { command, long_key: None, data });
        }
        let mut ended = [self.queue.next().await, self.queue.next().await];
        ended.sort_by_key(|ended| ended.id);
        match ended.map(|ended| ended.status) {
            [Status::SUCCESS, Status::SUCCESS] => true,
            [Status::COMPARE_FAILURE, Status::FAILED_FUSED_COMMAND] => false,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_counter_counts_each_success_of_many_hosts_once() {
    for (seed, block_bytes) in (0..3).flat_map(|seed| BLOCK_BYTES.map(|bytes| (seed, bytes))) {
        run(seed, block_bytes, async |world| {
            let counted = Rc::new(RefCell::new(BTreeSet::new()));
            let mut hosts = Vec::new();
            for number in 1..=6 {
                let racer = Racer::new(&world, number, block_bytes).await;
                let counted = counted.clone();
                hosts.push(async move {
                    let mut left = 6;
                    while left > 0 {
                        let old = racer.read().await;
                        if racer.exchange(old, old + 1).await {
                            assert!(counted.borrow_mut().insert(old + 1), "{old} went twice");
                            left -= 1;
                        }
                    }
                });
            }
            clock::join_all(hosts).await;
            assert_eq!(*counted.borrow(), (1..=36).collect());
            assert_eq!(Racer::new(&world, 7, block_bytes).await.read().await, 36);
        });
    }
}

/// An operation of a host, with its start and end.
#[derive(Clone, Copy, Debug)]
struct Event {
    did: Did,
    begun: Nanos,
    ended: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum Did {
    Read(u64),
    Write(u64),
    Exchange { old: u64, new: u64, is_done: bool },
}

impl Did {
    /// Returns the value after the event, if it is possible when the block holds `now`.
    fn after(self, now: u64) -> Option<u64> {
        match self {
            Self::Read(found) => (found == now).then_some(now),
            Self::Write(new) => Some(new),
            Self::Exchange { old, new, is_done: true } => (old == now).then_some(new),
            Self::Exchange { old, is_done: false, .. } => (old != now).then_some(now),
        }
    }
}

/// Returns whether some order gives each event its effect between its start and its end (Herlihy
/// and Wing, 1990), by trying all.
fn is_linearizable(events: &[Event], left: &mut Vec<usize>, now: u64) -> bool {
    if left.is_empty() {
        return true;
    }
    let first_end = left.iter().map(|&at| events[at].ended).min().expect("there is one");
    for place in 0..left.len() {
        let at = left[place];
        if events[at].begun > first_end {
            continue;
        }
        if let Some(after) = events[at].did.after(now) {
            left.remove(place);
            if is_linearizable(events, left, after) {
                return true;
            }
            left.insert(place, at);
        }
    }
    false
}

#[test]
fn what_hosts_see_of_one_block_is_linearizable() {
    let mut exchanged = 0;
    for seed in 0..24 {
        let block_bytes = BLOCK_BYTES[usize::from(seed % 2 > 0)];
        run(seed, block_bytes, async |world| {
            let events = Rc::new(RefCell::new(Vec::new()));
            let mut hosts = Vec::new();
            for number in 1..=4_u8 {
                let racer = Racer::new(&world, number, block_bytes).await;
                let (events, mut rng) = (events.clone(), Rng::new(seed * 9 + u64::from(number)));
                hosts.push(async move {
                    let mut seen = 0;
                    for step in 1..=5 {
                        // Each value is written once at most.
                        let new = u64::from(number) * 1_000 + step;
                        let begun = clock::now();
                        let did = match rng.below(4) {
                            0 => Did::Read(racer.read().await),
                            1 => {
                                racer.write(new).await;
                                Did::Write(new)
                            }
                            _ => {
                                let is_done = racer.exchange(seen, new).await;
                                Did::Exchange { old: seen, new, is_done }
                            }
                        };
                        events.borrow_mut().push(Event { did, begun, ended: clock::now() });
                        seen = match did {
                            Did::Read(found) => found,
                            Did::Write(new) | Did::Exchange { new, is_done: true, .. } => new,
                            Did::Exchange { .. } => {
                                let begun = clock::now();
                                let did = racer.read().await;
                                let ended = clock::now();
                                events.borrow_mut().push(Event {
                                    did: Did::Read(did),
                                    begun,
                                    ended,
                                });
                                did
                            }
                        };
                    }
                });
            }
            clock::join_all(hosts).await;
            let events = events.borrow();
            let is_done = |event: &&Event| matches!(event.did, Did::Exchange { is_done: true, .. });
            exchanged += events.iter().filter(is_done).count();
            let mut all: Vec<usize> = (0..events.len()).collect();
            assert!(is_linearizable(&events, &mut all, 0), "seed {seed}: {events:?}");
        });
    }
    assert!(exchanged > 50, "{exchanged} exchanges succeeded");
}

#[test]
fn a_queue_of_one_command_at_a_time_takes_no_fused_operation() {
    run(1, 512, async |world| {
        let settings = Settings { queue_entries: 2, ..Settings::new(host(1), NQN) };
        let (_association, queue) = world.connect(settings, 1).await;
        let command = Command::compare(BLOCKS, WANTED, 1).with_fuse(Fuse::First);
        queue.submit(Submission { command, long_key: None, data: Buf::copy_from(&[0; 512]) });
        assert_eq!(queue.next().await.status, Status::INVALID_FIELD);
    });
}

#[test]
fn hosts_that_leave_in_the_middle_leave_the_old_block_or_the_new_one() {
    for seed in 0..20 {
        run(seed, 16_384, async |world| {
            let racer = Racer::new(&world, 1, 16_384).await;
            let queue = racer.queue.clone();
            clock::spawn(async move {
                clock::sleep(Nanos::from_micros(40 * seed), Stage::Queue).await;
                queue.close();
            });
            let commands = [
                Command::compare(BLOCKS, WANTED, 1).with_fuse(Fuse::First),
                Command::write(BLOCKS, WANTED, 1).with_fuse(Fuse::Second),
            ];
            for (command, number) in commands.into_iter().zip([0, 5]) {
                let data = racer.block(number);
                racer.queue.submit(Submission { command, long_key: None, data });
            }
            let ended = [racer.queue.next().await.status, racer.queue.next().await.status];
            clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
            let found = Racer::new(&world, 2, 16_384).await.read().await;
            let is_done = ended == [Status::SUCCESS; 2];
            assert!(found == 5 || found == 0 && !is_done, "{found} after {ended:?}");
        });
    }
}
