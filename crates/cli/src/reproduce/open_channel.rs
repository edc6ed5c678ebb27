//! The open-channel drive of FEMU, section 3.2.3, its host's translation layer, and threads that
//! keep it busy.
//!
//! The translation layer is pblk, of Linux's `LightNVM` (`drivers/lightnvm` of Linux 4.12 to 5.14;
//! M. Bjorling, J. Gonzalez, P. Bonnet, "`LightNVM`: The Linux Open-Channel SSD Subsystem", FAST
//! 2017). pblk keeps written data in a ring buffer in the host's memory and answers writes from
//! there (pblk-cache.c). It answers a write with `REQ_PREFLUSH` when all earlier writes are on the
//! flash (`pblk_rb_may_write_flush`); for that it pads the last page (`pblk_rb_read_to_bio`).

use super::fresh::fresh;
use crate::device;
use crate::output::Failure;
use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos, human_bytes};
use controller::{Completion, QueuePair, Submission};
use node::profile::{Ack, Block, GcBlocking, GcFrontier, GcVictims, Namespace, NamespaceKind};
use node::{Device, Profile};
use reactor::Reactor;
use spec::{Command, Status};

/// The profile's name.
const NAME: &str = "cnex-oc";

/// Blocks of each plane. Hosts see one of them; overwrites go to the others, so that no cleaning
/// runs during an experiment.
const BLOCKS_PER_PLANE: u32 = 32;

/// Most logical blocks of a command: 64 sectors, as `NVM_MAX_VLBA` of Linux's lightnvm.h.
pub(super) const COMMAND_BLOCKS_MAX: u32 = 64;

/// Pages of each plane for which pblk's buffer has room: `NVM_MEM_PAGE_WRITE` of pblk.h.
const BUFFER_PAGES: u64 = 8;

/// Fewest logical blocks of pblk's buffer: `pblk_rb_calculate_size`.
const BUFFER_BLOCKS_MIN: u64 = 128;

/// Warm-up operations: one for this many measured operations.
const WARM_UP: u64 = 10;

pub(super) const SEED: u64 = 1;

/// A request of a host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) direction: Direction,
    /// The first logical block.
    pub(super) first: u64,
    /// Number of blocks, at most [`COMMAND_BLOCKS_MAX`].
    pub(super) blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// A drive whose whole space was written once, in order.
pub(super) struct Drive {
    reactor: Reactor,
    device: Device,
    /// Logical blocks that hosts see.
    blocks: u64,
    /// Whether threads wait for a flush after each write.
    flushes: bool,
}

/// Returns the drive of the paper with this many channels, and planes on each.
pub(super) fn profile(channels: u32, planes: u32) -> Result<Profile, Failure> {
    let mut profile = device::load(NAME)?;
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel, nand.planes_per_die) = (channels, planes, 1);
    nand.blocks_per_plane = BLOCKS_PER_PLANE;
    let size_bytes = nand.raw_bytes() / u64::from(BLOCKS_PER_PLANE);
    let buffer_bytes = buffer_bytes(&profile);
    profile.namespaces = vec![Namespace {
        kind: NamespaceKind::Block(Block {
            ack: Ack::Buffer { bytes: buffer_bytes },
            gc_victims: GcVictims::Greedy,
            gc_blocking: GcBlocking::Channel,
            gc_frontier: GcFrontier::Own,
            gc_free_blocks: 2,
            wear_gap: 0,
        }),
        size_bytes,
        over_provisioning: f64::from(BLOCKS_PER_PLANE - 1),
    }];
    Ok(profile)
}

/// Returns the size of pblk's buffer: entries for the pages of all planes, a power of two.
fn buffer_bytes(profile: &Profile) -> u64 {
    let nand = &profile.nand;
    let page_blocks = u64::from(nand.page_bytes / BLOCK_BYTES);
    let blocks = BUFFER_PAGES * page_blocks * u64::from(nand.units());
    blocks.next_power_of_two().max(BUFFER_BLOCKS_MIN) * u64::from(BLOCK_BYTES)
}

/// Returns the time of a page of `profile` on a channel.
pub(super) fn transfer(profile: &Profile) -> Nanos {
    let nand = &profile.nand;
    Nanos::for_bytes(nand.page_bytes.into(), nand.channel_bytes_per_second)
}

/// Describes the drive of the experiment.
pub(super) fn setup(profile: &Profile) -> String {
    let nand = &profile.nand;
    let times = |times: &[Nanos]| {
        let times: Vec<String> = times.iter().map(Nanos::to_string).collect();
        times.join(" / ")
    };
    format!(
        "profile {NAME}: pages of {}, read {}, program {}, transfer {}, page map {}; seed {SEED}, \
         virtual time",
        human_bytes(nand.page_bytes.into()),
        times(&nand.levels.read),
        times(&nand.levels.program),
        transfer(profile),
        nand.levels.page_map,
    )
}

/// Returns the assumptions of `profile` about `keys`, followed by those of all experiments on this
/// drive, and `own`.
pub(super) fn assumptions(profile: &Profile, keys: &[&str], own: &[&str]) -> Vec<String> {
    let of_profile = keys.iter().map(|&key| {
        let found = profile.assumptions().iter().find(|assumption| assumption.key == key);
        let assumption = found.unwrap_or_else(|| panic!("{NAME} assumes nothing of {key}"));
        format!("{key} of the profile: {}", assumption.sentence.trim_end_matches('.'))
    });
    let own = SHARED_ASSUMPTIONS.iter().chain(own).map(|&own| own.to_owned());
    of_profile.chain(own).collect()
}

const SHARED_ASSUMPTIONS: [&str; 5] = [
    "a plane of the paper is a die with one plane: it works on its own and shares its channel",
    "planes and channels serve in order of arrival, as in the paper's models: no read goes before \
     a write that came earlier",
    "hosts see one block of each plane, of which there are 32, through the page-mapped FTL; \
     garbage collection does not run",
    "the FTL is in the host, and is pblk of Linux's LightNVM (FAST 2017; drivers/lightnvm): the \
     paper's drive has none and is managed by LightNVM, though the paper does not name the target. \
     A write is answered when it is in pblk's buffer in host memory, of 8 pages for each plane and \
     at least 128 blocks of 4 KiB; a flush pads the last page and waits for the flash",
    "unlike pblk, which has one write at a time at each plane, this FTL passes on each page as it \
     gets full: a read may stand behind as many programs as the buffer has pages for its plane; \
     what has landed is read from the flash, where pblk may still have it in its buffer",
];

impl Drive {
    /// Returns a drive of `profile`.
    pub(super) fn new(profile: &Profile) -> Result<Self, Failure> {
        let (reactor, device) = fresh(profile, SEED)?;
        let blocks = profile.namespaces[0].size_bytes / u64::from(BLOCK_BYTES);
        let mut drive = Self { reactor, device, blocks, flushes: false };
        drive.fill()?;
        Ok(drive)
    }

    /// The same; if `flushes`, threads wait for a flush after each write.
    pub(super) fn with_flushes(self, flushes: bool) -> Self {
        Self { flushes, ..self }
    }

    /// Returns the logical blocks that hosts see.
    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Writes all blocks in order, one command at a time, so that each page has consecutive blocks.
    fn fill(&mut self) -> Result<(), Failure> {
        let queue = self.device.controller().queue_pair();
        let blocks = self.blocks;
        self.reactor.run(async move {
            for first in (0..blocks).step_by(COMMAND_BLOCKS_MAX as usize) {
                let rest = u32::try_from(blocks - first).unwrap_or(u32::MAX);
                let blocks = rest.min(COMMAND_BLOCKS_MAX);
                queue.submit(Io { direction: Direction::Write, first, blocks }.submission());
                latency(&queue.next().await)?;
            }
            queue.submit(flush());
            latency(&queue.next().await).map(drop)
        })
    }

    /// Returns the latencies of `ios`, which arrive together, in the order of completion.
    pub(super) fn together(&mut self, ios: &[Io]) -> Result<Vec<Nanos>, Failure> {
        let queue = self.device.controller().queue_pair();
        self.reactor.run(async move {
            for io in ios {
                queue.submit(io.submission());
            }
            let mut latencies = Vec::new();
            for _ in ios {
                latencies.push(latency(&queue.next().await)?);
            }
            Ok(latencies)
        })
    }

    /// Returns the mean latency in nanoseconds of `operations` operations by `threads` threads.
    /// Each thread has one operation in flight, which `next` chooses.
    pub(super) fn mean_ns(
        &mut self,
        threads: usize,
        operations: u64,
        next: impl FnMut(usize) -> Io,
    ) -> Result<f64, Failure> {
        let queue = self.device.controller().queue_pair();
        let flushes = self.flushes;
        let total = self.reactor.run(total(&queue, threads, operations, flushes, next))?;
        let moved = self.device.figures().blocks.moved_blocks;
        if moved > 0 {
            return Err(Failure::Broken(format!("garbage collection moved {moved} blocks")));
        }
        Ok(total / count(operations))
    }
}

/// A command that a thread waits for.
struct Wait {
    id: u64,
    /// Whether a flush follows, for which the thread waits too.
    flushes: bool,
    /// Start of the write, if this command is its flush.
    since: Option<Nanos>,
}

/// Returns the sum of latencies in nanoseconds of `operations` operations, after the warm-up. A
/// write with a flush ends when the flush ends.
async fn total(
    queue: &QueuePair,
    threads: usize,
    operations: u64,
    flushes: bool,
    mut next: impl FnMut(usize) -> Io,
) -> Result<f64, Failure> {
    let mut ask = |thread| {
        let io = next(thread);
        let flushes = flushes && io.direction == Direction::Write;
        Wait { id: queue.submit(io.submission()), flushes, since: None }
    };
    let mut waits: Vec<Wait> = (0..threads).map(&mut ask).collect();
    let warm_up = operations / WARM_UP;
    let (mut done, mut total) = (0, Nanos::ZERO);
    while done < warm_up + operations {
        let completion = queue.next().await;
        latency(&completion)?;
        let thread = waits.iter().position(|wait| wait.id == completion.id);
        let thread = thread.expect("a thread waits for each command");
        let since = waits[thread].since.unwrap_or(completion.submitted);
        if waits[thread].flushes {
            let id = queue.submit(flush());
            waits[thread] = Wait { id, flushes: false, since: Some(since) };
            continue;
        }
        if done >= warm_up {
            total += completion.completed - since;
        }
        done += 1;
        waits[thread] = ask(thread);
    }
    for _ in waits {
        latency(&queue.next().await)?;
    }
    Ok(nanos(total))
}

impl Io {
    fn submission(self) -> Submission {
        let Self { direction, first, blocks } = self;
        let (command, data) = match direction {
            Direction::Read => (Command::read(Device::NAMESPACE, first, blocks), 0),
            Direction::Write => (Command::write(Device::NAMESPACE, first, blocks), blocks),
        };
        let data = Buf::phantom(data * BLOCK_BYTES, first);
        Submission { command, long_key: None, data }
    }
}

/// Flush: `fsync`, or the end of a write with `O_DSYNC`.
fn flush() -> Submission {
    let command = Command::flush(Device::NAMESPACE);
    Submission { command, long_key: None, data: Buf::phantom(0, 0) }
}

/// Returns the latency of the operation. Panics if it failed: all figures would be worthless.
fn latency(completion: &Completion) -> Result<Nanos, Failure> {
    match completion.status {
        Status::SUCCESS => Ok(completion.completed - completion.submitted),
        status => {
            Err(Failure::Broken(format!("an operation of the experiment failed: {status:?}")))
        }
    }
}

/// Converts a time for arithmetic with means.
#[expect(clippy::cast_precision_loss, reason = "sums of latencies are far below 2^53")]
pub(super) const fn nanos(time: Nanos) -> f64 {
    time.0 as f64
}

#[expect(clippy::cast_precision_loss, reason = "numbers of operations are far below 2^53")]
const fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_has_entries_for_eight_pages_of_each_plane_and_is_a_power_of_two() {
        let kib = |channels, planes| buffer_bytes(&profile(channels, planes).unwrap()) / 1_024;
        assert_eq!([kib(4, 4), kib(3, 3), kib(1, 4), kib(1, 1)], [2_048, 2_048, 512, 512]);
    }

    /// One thread writes one block at a time, as on a drive of one plane.
    fn mean_of_writes(operations: u64, flushes: bool) -> f64 {
        let mut drive = Drive::new(&profile(1, 1).unwrap()).unwrap().with_flushes(flushes);
        let io = |first| Io { direction: Direction::Write, first, blocks: 1 };
        let mut first = 0;
        let next = |_| {
            first += 1;
            io(first)
        };
        drive.mean_ns(1, operations, next).unwrap()
    }

    #[test]
    fn a_write_takes_no_time_and_with_a_flush_that_of_a_page() {
        assert!(mean_of_writes(100, false) < 1.0);
        // Each page of a block once; 260 of them are lower pages.
        let program = (260.0 * 900_000.0 + 252.0 * 2_400_000.0) / 512.0;
        let expected = program + 52_433.0;
        let mean = mean_of_writes(512, true);
        assert!((mean / expected - 1.0).abs() < 1e-4, "{mean}, not {expected}");
    }
}
