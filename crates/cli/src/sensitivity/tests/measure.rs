//! Measurements of the cases: times in microseconds, rates in operations per second.

use super::drive::{Drive, read, store, write, zone};
use crate::args::Clock;
use crate::progress::Progress;
use crate::rig::{Measured, Rig, Setup};
use crate::sensitivity::SEED;
use base::Nanos;
use controller::{Completion, Submission};
use nand::{BlockId, DieId};
use node::Profile;
use spec::{Status, ZoneSendAction};
use workload::{
    Distribution, Kind, Load, Operation, Payload, Plan, Space, Tally, Until, ValueSizes, Zoning,
};

/// Logical blocks, or pairs, of a load: whole flash blocks, and fewer than the namespace has.
const USED: u64 = 640;

const PROGRAM_US: u64 = 500;

const ONE: Load = Load::QueueDepth(1);

fn rig(profile: &Profile) -> Rig<'_> {
    let rig = Rig::new(Setup {
        profile,
        seed: SEED,
        shuffle: false,
        faults: None,
        clock: Clock::Virtual,
        timeline: None,
        progress: Progress::new(true),
    });
    rig.unwrap()
}

/// One operation at a time on the namespace's pairs or blocks.
fn plan(rig: &Rig<'_>, operation: Operation, operations: u64) -> Plan {
    let space = match (rig.device().kv(), rig.device().zones(1)) {
        (Some(_), _) => Space::Pairs,
        (_, Some(zones)) => {
            let (zone_blocks, capacity_blocks) =
                (zones.shape().zone_blocks, zones.shape().zone_capacity);
            Space::Zones(Zoning { zone_blocks, capacity_blocks })
        }
        _ => Space::Blocks,
    };
    Plan {
        operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(1),
        nsid: 1,
        space,
        key_bytes: 16,
        values: ValueSizes::Fixed(4_096),
        keys: USED,
        is_filled: false,
        seed: SEED,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

/// Fills, if necessary, and measures.
fn went(rig: &mut Rig<'_>, plan: &Plan) -> Measured {
    plan.validate().unwrap();
    if plan.needs_fill() {
        rig.fill(plan).unwrap();
    }
    let measured = rig.measure(plan).unwrap();
    assert_eq!(measured.outcome.errors(), 0);
    measured
}

fn tally(measured: &Measured) -> &Tally {
    Kind::ALL.into_iter().find_map(|kind| measured.outcome.tally(kind)).expect("some operation")
}

fn mean(profile: &Profile, operation: Operation) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, operation, USED);
    tally(&went(&mut rig, &plan)).mean_ns() / 1e3
}

/// Every page of some blocks, once.
pub(super) fn read_mean(profile: &Profile) -> f64 {
    mean(profile, Operation::Read)
}

/// The same, often enough for a stable mean of random events.
pub(super) fn read_often_mean(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, Operation::Read, 20 * USED);
    tally(&went(&mut rig, &plan)).mean_ns() / 1e3
}

/// Difference between the shortest and the longest read.
pub(super) fn read_spread(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, Operation::Read, USED);
    let measured = went(&mut rig, &plan);
    let tally = tally(&measured);
    micros(tally.max()) - micros(tally.latency(0.0))
}

pub(super) fn write_mean(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, Operation::Write, 200);
    tally(&went(&mut rig, &plan)).mean_ns() / 1e3
}

pub(super) fn store_mean(profile: &Profile) -> f64 {
    mean(profile, Operation::Store)
}

/// Keys that are stored twice.
pub(super) fn store_twice_mean(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, Operation::Store, 2 * USED);
    tally(&went(&mut rig, &plan)).mean_ns() / 1e3
}

pub(super) fn retrieve_mean(profile: &Profile) -> f64 {
    mean(profile, Operation::Retrieve)
}

pub(super) fn delete_mean(profile: &Profile) -> f64 {
    mean(profile, Operation::Delete)
}

pub(super) fn exist_mean(profile: &Profile) -> f64 {
    mean(profile, Operation::Exist)
}

fn rate(profile: &Profile, operation: Operation, keys: u64, operations: u64) -> f64 {
    let mut rig = rig(profile);
    let plan = Plan { keys, load: Load::QueueDepth(64), ..plan(&rig, operation, operations) };
    let elapsed = went(&mut rig, &plan).outcome.elapsed();
    float(operations) / elapsed.as_secs_f64()
}

/// Sequential reads of blocks, 64 in flight.
pub(super) fn read_rate(profile: &Profile) -> f64 {
    rate(profile, Operation::Read, USED, 10 * USED)
}

/// Sequential writes of blocks, many times around, so that erased blocks have no live data. All
/// flash was written before.
pub(super) fn write_rate(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let operations = 20 * USED;
    let load = Load::QueueDepth(64);
    let plan = Plan { load, is_filled: true, ..plan(&rig, Operation::Write, operations) };
    for _ in 0..4 {
        rig.fill_by(async |queue, _| workload::fill(queue, &plan, |_, _| ()).await).unwrap();
    }
    float(operations) / went(&mut rig, &plan).outcome.elapsed().as_secs_f64()
}

pub(super) fn zone_write_rate(profile: &Profile) -> f64 {
    rate(profile, Operation::Write, 2_048, 2_048)
}

/// Values as long as a page, as many in flight as there are dies.
pub(super) fn store_rate(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let (keys, load) = (4_096, Load::QueueDepth(profile.nand.dies()));
    let values = ValueSizes::Fixed(profile.nand.page_bytes);
    let plan = Plan { keys, load, values, ..plan(&rig, Operation::Store, keys) };
    float(keys) / went(&mut rig, &plan).outcome.elapsed().as_secs_f64()
}

/// Blocks or pairs programmed for each one written, after enough writes to be steady.
fn steady(profile: &Profile, distribution: Distribution, load: Load) -> Measured {
    let mut rig = rig(profile);
    let is_pairs = rig.device().kv().is_some();
    let size = rig.namespace(1).size_bytes / 4_096;
    let operation = if is_pairs { Operation::Store } else { Operation::RandWrite };
    // Keys and headers need space too.
    let keys = if is_pairs { size * 95 / 100 } else { size };
    let plan = Plan { keys, distribution, load, ..plan(&rig, operation, 1) };
    rig.fill_by(async |queue, _| workload::fill(queue, &plan, |_, _| ()).await).unwrap();
    let plan = Plan { is_filled: true, ..plan };
    for (seed, rounds) in [(2, 3), (3, 4)] {
        let until = Until::Operations(rounds * plan.keys);
        let measured = went(&mut rig, &Plan { until, seed, ..plan });
        if seed == 3 {
            return measured;
        }
    }
    unreachable!("the last round is measured")
}

fn amplified(measured: &Measured) -> f64 {
    let written = tally(measured).count() * 4_096;
    measured.window.amplification_of(written).expect("something was written")
}

/// Blocks that are overwritten at random, all of them.
pub(super) fn amplification(profile: &Profile) -> f64 {
    amplified(&steady(profile, Distribution::Uniform, ONE))
}

/// The same with pauses in which background cleaning reaches its goal.
pub(super) fn paced_amplification(profile: &Profile) -> f64 {
    amplified(&steady(
        profile,
        Distribution::Uniform,
        Load::Rate { per_second: 50, outstanding: None },
    ))
}

/// The same with some blocks overwritten much more often.
pub(super) fn skewed_amplification(profile: &Profile) -> f64 {
    amplified(&steady(profile, Distribution::Zipfian, ONE))
}

/// The same for a store, filled up to its limit with headers and keys.
pub(super) fn store_amplification(profile: &Profile) -> f64 {
    amplified(&steady(profile, Distribution::Zipfian, Load::QueueDepth(64)))
}

/// Small pairs that are stored once.
pub(super) fn fresh_amplification(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let values = ValueSizes::Fixed(1_000);
    let plan = plan(&rig, Operation::Store, 10_000);
    let plan = Plan { keys: 10_000, values, load: Load::QueueDepth(64), ..plan };
    went(&mut rig, &plan).window.write_amplification().expect("something was stored")
}

/// First in, first out, of `blocks` blocks of 32 pages of which `free` are free: when a block is
/// cleaned its share `u` is live, where `fill = (1 - u) / -ln(u)` (Desnoyers, 2012).
pub(super) fn fifo(pages: f64, blocks: f64, free: f64) -> f64 {
    let fill = pages / ((blocks - free) * 32.0);
    let (mut low, mut high) = (1e-9_f64, 1.0 - 1e-9);
    for _ in 0..100 {
        let u = f64::midpoint(low, high);
        if (1.0 - u) / -u.ln() < fill { low = u } else { high = u }
    }
    1.0 / (1.0 - low)
}

/// Difference in erases between the most and the least worn block, when only an eighth of the
/// written blocks is overwritten.
pub(super) fn erase_spread(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let size = rig.namespace(1).size_bytes / 4_096;
    let all = Plan { keys: size, ..plan(&rig, Operation::RandWrite, 1) };
    rig.fill_by(async |queue, _| workload::fill(queue, &all, |_, _| ()).await).unwrap();
    let keys = size / 8;
    let some = Plan { keys, until: Until::Operations(200 * keys), is_filled: true, ..all };
    went(&mut rig, &some);
    let cells = rig.device().cells();
    let blocks = 0..profile.nand.blocks_per_plane;
    let erases = blocks.map(|block| cells.erase_count(BlockId { die: DieId(0), block }));
    let (least, most) =
        erases.fold((u32::MAX, 0), |(low, high), one| (low.min(one), high.max(one)));
    f64::from(most - least)
}

/// The 99th percentile of reads, mixed with as many writes.
pub(super) fn mixed_p99(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let keys = rig.namespace(1).size_bytes / 4_096;
    let writes = Plan { keys, load: Load::QueueDepth(8), ..plan(&rig, Operation::RandWrite, 1) };
    rig.fill_by(async |queue, _| workload::fill(queue, &writes, |_, _| ()).await).unwrap();
    rig.fill_by(async |queue, _| workload::overwrite(queue, &writes, 0, 2 * keys, |_, _| ()).await)
        .unwrap();
    let operation = Operation::Mixed { read_percent: 50 };
    let until = Until::Operations(10 * keys);
    let measured = went(&mut rig, &Plan { operation, until, is_filled: true, ..writes });
    micros(measured.outcome.tally(Kind::Read).expect("there are reads").latency(0.99))
}

/// Pages moved within their plane.
pub(super) fn copybacks(profile: &Profile) -> f64 {
    let measured = steady(profile, Distribution::Uniform, ONE);
    float(measured.window.after.nand.copybacks)
}

pub(super) fn index_bytes(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = plan(&rig, Operation::Store, USED);
    went(&mut rig, &plan);
    float(rig.device().store().usage().index_bytes)
}

/// Pages of the index's table that retrieves of many pairs read.
pub(super) fn index_reads(profile: &Profile) -> f64 {
    let mut rig = rig(profile);
    let plan = Plan { keys: 24_000, ..plan(&rig, Operation::Retrieve, 24_000) };
    let window = went(&mut rig, &plan).window;
    float(window.after.index.page_reads - window.before.index.page_reads)
}

/// Pairs that a device stores before it reports that it is full.
pub(super) fn pairs_taken(profile: &Profile) -> f64 {
    let commands: Vec<_> = (0..4_096).map(|number| (Nanos::ZERO, store(number))).collect();
    let ended = Drive::new(profile).run(&commands);
    float(ended.iter().filter(|completion| completion.status == Status::SUCCESS).count() as u64)
}

/// Stores answered before the first program, of many submitted at once.
pub(super) fn stores_answered(profile: &Profile) -> f64 {
    answered(profile, (0..4_096).map(store))
}

/// Writes answered before the first program, of many submitted at once.
pub(super) fn writes_answered(profile: &Profile) -> f64 {
    answered(profile, (0..512).map(write))
}

fn answered(profile: &Profile, commands: impl Iterator<Item = Submission>) -> f64 {
    let commands: Vec<_> = commands.map(|command| (Nanos::ZERO, command)).collect();
    let ended = Drive::new(profile).run(&commands);
    assert!(ended.iter().all(|completion| completion.status == Status::SUCCESS));
    let is_early = |completion: &&Completion| completion.latency() < Nanos::from_micros(PROGRAM_US);
    float(ended.iter().filter(is_early).count() as u64)
}

/// Pages saved from memory after a power loss, of many.
pub(super) fn pages_saved(profile: &Profile) -> f64 {
    let mut drive = Drive::new(profile);
    let stores: Vec<_> = (0..800).map(|number| (Nanos::ZERO, store(number))).collect();
    drive.run(&stores);
    let loss = drive.lose_power();
    assert!(loss.lost_pages > 0, "there is more in memory than is saved");
    float(loss.saved_pages)
}

/// A write, and 100 us later a read of an old block: the latency of each.
fn read_and_program(profile: &Profile) -> [f64; 2] {
    let mut drive = Drive::new(profile);
    drive.prepare(&[write(0), write(1)]);
    let ended = drive.run(&[(Nanos::ZERO, write(2)), (Nanos::from_micros(100), read(0))]);
    [micros(ended[1].latency()), micros(ended[0].latency())]
}

pub(super) fn read_amid_program(profile: &Profile) -> f64 {
    read_and_program(profile)[0]
}

pub(super) fn program_amid_read(profile: &Profile) -> f64 {
    read_and_program(profile)[1]
}

/// A read that is submitted 100 us after four writes.
pub(super) fn read_behind_writes(profile: &Profile) -> f64 {
    let mut drive = Drive::new(profile);
    drive.prepare(&[write(0), write(1)]);
    let mut commands: Vec<_> = (2..6).map(|lba| (Nanos::ZERO, write(lba))).collect();
    commands.push((Nanos::from_micros(100), read(0)));
    micros(drive.run(&commands)[4].latency())
}

/// A read that is submitted 100 us after the reset of a zone on its die.
pub(super) fn read_amid_erase(profile: &Profile) -> f64 {
    let mut drive = Drive::new(profile);
    let shape = drive.device().zones(1).expect("the device is of zones").shape();
    let start = |zone: u64| zone * shape.zone_blocks;
    drive.prepare(&[write(start(0)), write(start(1))]);
    let reset = zone(start(0), ZoneSendAction::Reset);
    let ended = drive.run(&[(Nanos::ZERO, reset), (Nanos::from_micros(100), read(start(1)))]);
    micros(ended[1].latency())
}

pub(super) fn zones(profile: &Profile) -> f64 {
    let drive = Drive::new(profile);
    f64::from(drive.device().zones(1).expect("the device is of zones").shape().zones)
}

/// Zones for which `actions` succeed, one zone after the other.
fn zones_that(profile: &Profile, actions: &[ZoneSendAction], refusal: Status) -> f64 {
    let mut drive = Drive::new(profile);
    let shape = drive.device().zones(1).expect("the device is of zones").shape();
    for number in 0..shape.zones {
        for action in actions {
            let command = zone(u64::from(number) * shape.zone_blocks, *action);
            let status = drive.run(&[(Nanos::ZERO, command)])[0].status;
            if status != Status::SUCCESS {
                assert_eq!(status, refusal);
                return f64::from(number);
            }
        }
    }
    f64::from(shape.zones)
}

pub(super) fn open_zones(profile: &Profile) -> f64 {
    zones_that(profile, &[ZoneSendAction::Open], Status::TOO_MANY_OPEN_ZONES)
}

pub(super) fn active_zones(profile: &Profile) -> f64 {
    let actions = [ZoneSendAction::Open, ZoneSendAction::Close];
    zones_that(profile, &actions, Status::TOO_MANY_ACTIVE_ZONES)
}

fn micros(time: Nanos) -> f64 {
    float(time.0) / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "counts and times of short runs")]
fn float(count: u64) -> f64 {
    count as f64
}
