//! FEMU's black-box device after long use, and hosts that read while others write.

use crate::output::Failure;
use crate::rig::device_failure;
use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos, Rng};
use clock::Stage;
use controller::{Completion, QueuePair, Submission};
use node::profile::{GcBlocking, NamespaceKind};
use node::{Device, FaultPlan, Figures, Profile};
use reactor::Reactor;
use spec::{Command, Opcode, Status};

const TEXT: &str = include_str!("black_box.toml");

pub(super) const SEED: u64 = 1;

/// Overwrites of a burst: 4 for each plane.
pub(super) const BURST_WRITES: u64 = 256;

/// Time from one burst to the next.
pub(super) const PERIOD: Nanos = Nanos::from_millis(700);

pub(super) const BURSTS: u64 = 128;

/// Reads per second: a tenth of the planes' maximum, so that reads seldom wait for each other.
pub(super) const READS_PER_SECOND: u64 = 10_000;

/// Commands in flight during the overwrites before the measurement.
const WEAR_DEPTH: usize = 256;

/// Write amplification is steady when it changes by less than this share from one overwrite of the
/// whole space to the next.
const STEADY: f64 = 0.01;

/// Most overwrites of the whole space until it must be steady.
const ROUNDS_MAX: u32 = 10;

/// Use of the device before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The whole space, until write amplification is steady.
    Steady,
    /// A quarter of the space, once.
    Little,
}

/// Result of the measurement.
#[derive(Clone, Debug)]
pub(super) struct Went {
    /// Latencies of reads in nanoseconds, ascending.
    latencies: Vec<u64>,
    pub(super) host_writes: u64,
    pub(super) moved_pages: u64,
}

impl Went {
    /// Returns the latency in nanoseconds that the share `quantile` of the reads did not exceed.
    pub(super) fn latency_ns(&self, quantile: f64) -> f64 {
        #[expect(clippy::cast_possible_truncation, reason = "less than the reads")]
        #[expect(clippy::cast_sign_loss, reason = "quantiles are not below zero")]
        let rank = (quantile * float(self.latencies.len() as u64)).ceil() as usize;
        let last = self.latencies.len() - 1;
        float(self.latencies[rank.saturating_sub(1).min(last)])
    }
}

/// Returns the device, whose cleaning blocks as much as `blocking` says.
pub(super) fn profile(blocking: GcBlocking) -> Profile {
    let mut profile =
        Profile::parse("femu-black-box", TEXT).expect("the profile of the experiment is one");
    for namespace in &mut profile.namespaces {
        if let NamespaceKind::Block(block) = &mut namespace.kind {
            block.gc_blocking = blocking;
        }
    }
    profile
}

/// Measures reads beside overwrites on a device after use as `used` says.
pub(super) fn measure(blocking: GcBlocking, used: Use) -> Result<Went, Failure> {
    let worn_in = profile(GcBlocking::Nothing);
    let cells = Device::manufacture(&worn_in, SEED);
    let mut reactor = Reactor::new(None);
    let all = worn_in.namespaces[0].size_bytes / u64::from(BLOCK_BYTES);
    let blocks = if used == Use::Little { all / 4 } else { all };
    reactor.run(async {
        let device = Device::format(&worn_in, cells.clone(), SEED, FaultPlan::default())
            .await
            .map_err(device_failure)?;
        wear_in(&device, blocks, used).await?;
        device.flush().await.map_err(|error| broken(&error.to_string()))?;
        // Waits until cleaning has ended.
        clock::sleep(PERIOD, Stage::Queue).await;
        Ok::<(), Failure>(())
    })?;
    let profile = profile(blocking);
    reactor.run(async {
        let opened = Device::open(&profile, cells, SEED, FaultPlan::default()).await;
        let (device, _) = opened.map_err(device_failure)?;
        let before = device.figures();
        let mut latencies = drive(&device.controller().queue_pair(), blocks).await?;
        device.flush().await.map_err(|error| broken(&error.to_string()))?;
        latencies.sort_unstable();
        if latencies.last().is_some_and(|longest| *longest >= PERIOD.0) {
            return Err(broken("cleaning was not over before the next burst"));
        }
        let Figures { blocks: counts, .. } = device.figures();
        Ok(Went {
            latencies,
            host_writes: counts.host_blocks - before.blocks.host_blocks,
            moved_pages: counts.moved_blocks - before.blocks.moved_blocks,
        })
    })
}

/// Writes `blocks` logical blocks in order, and overwrites them at random until write amplification
/// is steady.
async fn wear_in(device: &Device, blocks: u64, used: Use) -> Result<(), Failure> {
    let queue = device.controller().queue_pair();
    write_all(&queue, blocks, |at| at).await?;
    if used == Use::Little {
        return Ok(());
    }
    let mut rng = Rng::new(SEED);
    let mut before = f64::INFINITY;
    for _ in 0..ROUNDS_MAX {
        let moved = device.figures().blocks.moved_blocks;
        write_all(&queue, blocks, |_| rng.below(blocks)).await?;
        let moved = device.figures().blocks.moved_blocks - moved;
        let amplification = 1.0 + float(moved) / float(blocks);
        if (amplification / before - 1.0).abs() < STEADY {
            return Ok(());
        }
        before = amplification;
    }
    Err(broken("write amplification does not get steady"))
}

/// Writes `blocks` times, each time the block that `choose` returns.
async fn write_all(
    queue: &QueuePair,
    blocks: u64,
    mut choose: impl FnMut(u64) -> u64,
) -> Result<(), Failure> {
    let mut outstanding = 0;
    for at in 0..blocks {
        queue.submit(write(choose(at)));
        outstanding += 1;
        if outstanding == WEAR_DEPTH {
            checked(queue.next().await)?;
            outstanding -= 1;
        }
    }
    for _ in 0..outstanding {
        checked(queue.next().await)?;
    }
    Ok(())
}

/// Issues reads evenly, each at a random moment, and bursts of overwrites, independently of the
/// commands in flight. Returns the latencies of the reads in nanoseconds.
async fn drive(queue: &QueuePair, blocks: u64) -> Result<Vec<u64>, Failure> {
    let start = clock::now();
    let (mut reads, mut writes) = (Rng::fork(SEED, 1), Rng::fork(SEED, 2));
    let interval = 1_000_000_000 / READS_PER_SECOND;
    let reads_per_burst = PERIOD.0 / interval;
    let mut latencies = Vec::new();
    for burst in 0..BURSTS {
        let at = start + Nanos(burst * PERIOD.0);
        clock::sleep_until(at, Stage::Queue).await;
        for _ in 0..BURST_WRITES {
            queue.submit(write(writes.below(blocks)));
        }
        for read in 0..reads_per_burst {
            let at = at + Nanos(read * interval + 1 + reads.below(interval - 1));
            clock::sleep_until(at, Stage::Queue).await;
            let command = Command::read(Device::NAMESPACE, reads.below(blocks), 1);
            queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
            while let Some(completion) = queue.try_next() {
                take(completion, &mut latencies)?;
            }
        }
    }
    while queue.outstanding() > 0 {
        take(queue.next().await, &mut latencies)?;
    }
    while let Some(completion) = queue.try_next() {
        take(completion, &mut latencies)?;
    }
    Ok(latencies)
}

fn write(block: u64) -> Submission {
    let command = Command::write(Device::NAMESPACE, block, 1);
    Submission { command, long_key: None, data: Buf::phantom(BLOCK_BYTES, block) }
}

/// Records the latency of a read.
fn take(completion: Completion, latencies: &mut Vec<u64>) -> Result<(), Failure> {
    let completion = checked(completion)?;
    if completion.opcode == Opcode::READ {
        latencies.push((completion.completed - completion.submitted).0);
    }
    Ok(())
}

/// Panics if an operation fails: all figures would be worthless.
fn checked(completion: Completion) -> Result<Completion, Failure> {
    match completion.status {
        Status::SUCCESS => Ok(completion),
        status => Err(broken(&format!("{:?} failed: {status:?}", completion.opcode))),
    }
}

fn broken(what: &str) -> Failure {
    Failure::Broken(format!("the experiment went wrong: {what}"))
}

#[expect(clippy::cast_precision_loss, reason = "latencies and counts are far below 2^53")]
const fn float(count: u64) -> f64 {
    count as f64
}
