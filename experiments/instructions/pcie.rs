//! A guest's commands over vfio-user: a session without its socket, mapped guest memory, and
//! doorbells that the function polls.

mod attached;
mod doorbells;

use crate::aside::aside;
use crate::commands::{KEYS, key};
use crate::drives;
use attached::Attached;
use base::Nanos;
use clock::Stage;
use controller::Controller;
use doorbells::PolledDoorbells;
use experiments::loopback::target::IDEAL_BLOCKS;
use guest::Queue;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use spec::{Command, StoreOptions};
use std::sync::Arc;

/// How a guest uses its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// It uses one of them, and has mapped its doorbells. The function is awake.
    One,
    /// It submits to four queues, then to the next four, and writes shadow doorbells. After each
    /// four the function asks for real doorbells, as it does before its reactor sleeps.
    InTurn,
}

/// Outstanding commands, which arrive together.
const DEPTH: u16 = 32;

/// Outstanding commands of each queue if four queues share them.
const PART: u16 = DEPTH / 4;

const ENTRIES: u16 = 64;

const VALUE_BYTES: u32 = 64;

/// Retrieves `operations` values by a guest with `queues` I/O queues.
pub(crate) fn run(usage: Usage, queues: u16, operations: u64) {
    let store = |number| Command::store(1, key(number).as_bytes(), VALUE_BYTES, StoreOptions::NONE);
    let retrieve = |number| Command::retrieve(1, key(number).as_bytes(), VALUE_BYTES);
    Reactor::new(None).run(async {
        let drive = drives::in_memory().await;
        let mut load = Load::new(drive.controller(), usage, queues).await;
        load.run(KEYS, store).await;
        load.run(operations, retrieve).await;
    });
}

/// Reads `operations` blocks of 4 KiB by a guest with 4 I/O queues, of which it uses one, from
/// emulated flash without delays.
pub(crate) fn read_blocks(operations: u64) {
    let profile = Profile::parse("ideal-blocks.toml", IDEAL_BLOCKS).expect("it is a profile");
    let profile = profile.without_delays();
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default());
        let device = device.await.expect("it is a whole device");
        let mut load = Load::new(device.controller(), Usage::One, 4).await;
        load.run(KEYS, |number| Command::write(1, number, 1)).await;
        load.run(operations, |number| Command::read(1, number, 1)).await;
    });
}

struct Load {
    attached: Attached,
    queues: Vec<Queue<PolledDoorbells>>,
    usage: Usage,
    /// The place of the queue that is used next.
    next: usize,
}

impl Load {
    async fn new(controller: &Arc<Controller>, usage: Usage, queues: u16) -> Self {
        let attached = Attached::new(controller, usage == Usage::One).await;
        let mut load = Self { attached, queues: Vec::new(), usage, next: 0 };
        for id in 1..=queues {
            load.queues.push(load.attached.queue(id, ENTRIES).await);
        }
        load
    }

    /// Executes `operations`, [`DEPTH`] at a time, on one key or block after the other.
    async fn run(&mut self, operations: u64, command: fn(u64) -> Command) {
        for first in (0..operations).step_by(usize::from(DEPTH)) {
            let used = aside(|| self.submit(first, command));
            self.attached.function.look();
            let mut left = usize::from(DEPTH);
            while left > 0 {
                clock::sleep(Nanos(1), Stage::Queue).await;
                left -= aside(|| self.take(&used));
            }
            if self.usage == Usage::InTurn {
                self.attached.function.arm();
            }
            self.attached.function.look();
        }
    }

    /// Submits [`DEPTH`] commands. Returns the places of the queues that have them.
    fn submit(&mut self, first: u64, command: fn(u64) -> Command) -> Vec<usize> {
        let (count, part) = match self.usage {
            Usage::One => (1, DEPTH),
            Usage::InTurn => (4, PART),
        };
        let used: Vec<usize> = (0..count).map(|at| (self.next + at) % self.queues.len()).collect();
        for (place, first) in used.iter().zip((first..).step_by(part.into())) {
            for id in 0..part {
                // 7 is odd, so each one has its turn.
                let number = (first + u64::from(id)) * 7 % KEYS;
                self.queues[*place].push(id, command(number));
            }
            self.queues[*place].ring_tail();
        }
        if self.usage == Usage::InTurn {
            self.next = (self.next + count) % self.queues.len();
        }
        used
    }

    /// Takes completions. Returns how many there were.
    fn take(&mut self, used: &[usize]) -> usize {
        let mut taken = 0;
        for place in used {
            let queue = &mut self.queues[*place];
            let before = taken;
            while queue.take().is_some() {
                taken += 1;
            }
            if taken > before {
                queue.ring_head();
            }
        }
        taken
    }
}
