use crate::args::Clock;
use crate::flash::Window;
use crate::number::{quotient, to_u64};
use crate::output::Failure;
use crate::progress::Progress;
use crate::rig::{Measured, Rig, Setup};
use base::Nanos;
use base::limits::{BLOCK_BYTES, VALUE_BYTES_MAX};
use clock::{Stage, sleep};
use node::Profile;
use node::profile::{Ack, NamespaceKind};
use serde::Serialize;
use workload::{
    Distribution, Kind, Load, Operation, Outcome, Payload, Plan, Space, Tally, Until, ValueSizes,
    Zoning,
};

/// Measurements by load, in the same order for all profiles with the same namespaces.
pub(super) type Loads = Vec<Measurement>;

/// A load and its result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    /// Workload, namespace and depth.
    pub(super) load: String,
    pub(super) figures: Figures,
}

/// Result of a load.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figures {
    pub(super) mean_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) per_second: f64,
    /// Data bytes programmed for each byte that hosts wrote. None if they wrote nothing, or
    /// overwrote less than an aged device holds.
    pub(super) write_amplification: Option<f64>,
}

/// Operations at depth 1 and at depth 64.
const FEW: u64 = 500;
const MANY: u64 = 4_000;

const DEPTH: u32 = 64;

/// Most pairs or blocks that age a device; larger devices get larger ones.
const AGED_MAX: u64 = 1 << 17;

/// Largest share of values in a store's capacity; keys and headers come on top.
const STORE_FILL: f64 = 0.9;

/// Sizes of the loads, equal for a profile and all its changes, so that their figures compare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    /// Pairs that are stored on an empty device.
    stored: u64,
    /// Bytes of the values that age a store.
    value_bytes: u64,
    /// Bytes of the blocks that age a namespace of blocks.
    block_bytes: u64,
}

impl Amounts {
    /// Returns the sizes for `profile`.
    pub(super) fn of(profile: &Profile) -> Self {
        let capacity = profile.kv_bytes();
        let buffered = match profile.log.as_ref().map(|log| &log.ack) {
            Some(Ack::Buffer { bytes }) => *bytes,
            _ => 0,
        };
        let most = capacity / 4 / u64::from(BLOCK_BYTES);
        let blocks = profile.namespaces.iter().filter(|namespace| is_block(&namespace.kind));
        let page = u64::from(profile.nand.page_bytes);
        Self {
            // Several times the bytes of the buffers.
            stored: (4 * buffered / u64::from(BLOCK_BYTES)).clamp(MANY, most.max(MANY)),
            value_bytes: aged_bytes(capacity),
            block_bytes: blocks.map(|one| aged_bytes(one.size_bytes).min(page)).next().unwrap_or(0),
        }
    }
}

fn is_block(kind: &NamespaceKind) -> bool {
    matches!(kind, NamespaceKind::Block(_))
}

/// Longer than an idle device continues to clean.
const SETTLED: Nanos = Nanos::from_secs(10);

/// Measures `profile` under the loads of each kind of namespace that it has, in the first of each
/// kind. `seed` is the random seed of the device and its loads.
pub(super) fn run(profile: &Profile, amounts: &Amounts, seed: u64) -> Result<Loads, Failure> {
    let mut loads = Vec::new();
    let first = |is_kind: fn(&NamespaceKind) -> bool| {
        (1..).zip(&profile.namespaces).find(|(_, namespace)| is_kind(&namespace.kind))
    };
    if let Some((nsid, _)) = first(NamespaceKind::is_kv) {
        Bench::new(profile, nsid, seed, &mut loads).pairs(amounts)?;
    }
    if let Some((nsid, namespace)) = first(is_block) {
        let mut bench = Bench::new(profile, nsid, seed, &mut loads);
        bench.blocks(namespace.size_bytes, amounts.block_bytes)?;
    }
    if let Some((nsid, _)) = first(|kind| matches!(kind, NamespaceKind::Zoned(_))) {
        Bench::new(profile, nsid, seed, &mut loads).zones()?;
    }
    Ok(loads)
}

/// The measurements of one namespace.
struct Bench<'a> {
    profile: &'a Profile,
    nsid: u32,
    seed: u64,
    loads: &'a mut Loads,
}

impl<'a> Bench<'a> {
    fn new(profile: &'a Profile, nsid: u32, seed: u64, loads: &'a mut Loads) -> Self {
        Self { profile, nsid, seed, loads }
    }

    fn rig(&self) -> Result<Rig<'a>, Failure> {
        Rig::new(Setup {
            profile: self.profile,
            seed: self.seed,
            shuffle: false,
            faults: None,
            clock: Clock::Virtual,
            timeline: None,
            // The figure shows the steps between knobs.
            progress: Progress::new(true),
        })
    }

    /// Returns a plan of [`FEW`] retrieves at depth 1, on all of `keys`.
    fn plan(&self, space: Space, keys: u64, bytes: u64) -> Plan {
        Plan {
            operation: Operation::Retrieve,
            until: Until::Operations(FEW),
            load: Load::QueueDepth(1),
            nsid: self.nsid,
            space,
            key_bytes: 16,
            values: ValueSizes::Fixed(u32::try_from(bytes).unwrap_or(VALUE_BYTES_MAX)),
            keys,
            is_filled: true,
            seed: self.seed,
            distribution: Distribution::Uniform,
            payload: Payload::None,
        }
    }

    /// Measures one load; only operations of `kind` count.
    fn load(
        &mut self,
        rig: &mut Rig<'a>,
        name: &str,
        kind: Kind,
        plan: Plan,
    ) -> Result<(), Failure> {
        plan.validate().map_err(Failure::refused)?;
        let measured = rig.measure(&plan)?;
        let tally = measured.outcome.tally(kind).filter(|_| measured.outcome.errors() == 0);
        let Some(tally) = tally else {
            return Err(Failure::Refused(format!("of {name} operations fail")));
        };
        let figures = Figures::new(&measured, tally, &plan);
        let load = format!("{}{name}", self.prefix());
        self.loads.push(Measurement { load, figures });
        Ok(())
    }

    /// Names the namespace if there are several.
    fn prefix(&self) -> String {
        if self.profile.namespaces.len() > 1 { format!("{}:", self.nsid) } else { String::new() }
    }

    fn pairs(&mut self, amounts: &Amounts) -> Result<(), Failure> {
        let &Amounts { stored, value_bytes, .. } = amounts;
        let fresh = self.plan(Space::Pairs, stored, BLOCK_BYTES.into());
        let fresh = Plan { operation: Operation::Store, is_filled: false, ..fresh };
        let few = Plan { keys: FEW, ..fresh };
        self.load(&mut self.rig()?, "write QD1", Kind::Store, few)?;
        let mut rig = self.rig()?;
        self.load(&mut rig, "write QD64", Kind::Store, deep(fresh, stored))?;
        let of = |operation| Plan { operation, is_filled: true, ..fresh };
        self.load(&mut rig, "read QD1", Kind::Retrieve, of(Operation::Retrieve))?;
        self.load(&mut rig, "read QD64", Kind::Retrieve, deep(of(Operation::Retrieve), MANY))?;
        self.load(&mut rig, "exist QD1", Kind::Exist, of(Operation::Exist))?;
        self.load(&mut rig, "delete QD1", Kind::Delete, of(Operation::Delete))?;
        self.cleaning(value_bytes)
    }

    /// Overwrites of a store that is almost full.
    fn cleaning(&mut self, bytes: u64) -> Result<(), Failure> {
        let mut rig = self.rig()?;
        let capacity = self.profile.kv_bytes();
        let keys = to_u64(STORE_FILL * float(capacity) / float(bytes + 128));
        let plan = Plan { operation: Operation::Store, ..self.plan(Space::Pairs, keys, bytes) };
        age(&mut rig, &plan, keys)?;
        self.load(&mut rig, "clean QD64", Kind::Store, deep(plan, keys.max(MANY)))
    }

    fn blocks(&mut self, capacity: u64, bytes: u64) -> Result<(), Failure> {
        let mut rig = self.rig()?;
        let keys = capacity / bytes;
        let plan = self.plan(Space::Blocks, keys, bytes);
        age(&mut rig, &plan, keys)?;
        let of = |operation| Plan { operation, ..plan };
        self.load(&mut rig, "read QD1", Kind::Read, of(Operation::RandRead))?;
        self.load(&mut rig, "read QD64", Kind::Read, deep(of(Operation::RandRead), MANY))?;
        if bytes == u64::from(BLOCK_BYTES) {
            let mixed = of(Operation::Mixed { read_percent: 50 });
            self.load(&mut rig, "mixed QD64", Kind::Read, deep(mixed, 2 * MANY))?;
        }
        self.load(&mut rig, "write QD1", Kind::Write, of(Operation::RandWrite))?;
        let write = deep(of(Operation::RandWrite), keys.max(MANY));
        self.load(&mut rig, "write QD64", Kind::Write, write)
    }

    fn zones(&mut self) -> Result<(), Failure> {
        let mut rig = self.rig()?;
        let shape = rig.device().zones(self.nsid).expect("the namespace is of zones").shape();
        let (zone_blocks, capacity_blocks) = (shape.zone_blocks, shape.zone_capacity);
        let space = Space::Zones(Zoning { zone_blocks, capacity_blocks });
        let keys = u64::from(shape.zones) * capacity_blocks;
        let plan = self.plan(space, keys, BLOCK_BYTES.into());
        rig.fill_by(async |queue, _| workload::fill(queue, &plan, |_, _| ()).await)?;
        let of = |operation| Plan { operation, ..plan };
        self.load(&mut rig, "read QD1", Kind::Read, of(Operation::RandRead))?;
        self.load(&mut rig, "read QD64", Kind::Read, deep(of(Operation::RandRead), MANY))?;
        let write = Plan { is_filled: false, ..of(Operation::Write) };
        self.load(&mut self.rig()?, "write QD1", Kind::Write, write)?;
        // More than once around, so that zones are reset.
        self.load(&mut self.rig()?, "write QD64", Kind::Write, deep(write, keys + keys / 4))
    }
}

/// The same at a depth of 64.
fn deep(plan: Plan, operations: u64) -> Plan {
    Plan { load: Load::QueueDepth(DEPTH), until: Until::Operations(operations), ..plan }
}

/// Returns the bytes of each pair or block that fill a capacity.
fn aged_bytes(capacity: u64) -> u64 {
    (capacity / AGED_MAX).next_power_of_two().clamp(BLOCK_BYTES.into(), 64 << 10)
}

/// Capacities to overwrite at random, besides the spare part of the flash. `bench --precondition`
/// finds write amplification steady after as many.
const AGED_CAPACITIES: f64 = 2.0;

/// Stores the keys of `plan`, and overwrites them at random until the device is steady.
fn age(rig: &mut Rig<'_>, plan: &Plan, keys: u64) -> Result<(), Failure> {
    rig.fill_by(async |queue, _| workload::fill(queue, plan, |_, _| ()).await)?;
    let over_provisioning = rig.namespace(plan.nsid).over_provisioning;
    let operations = to_u64(float(keys) * (over_provisioning + AGED_CAPACITIES));
    rig.fill_by(async |queue, _| {
        let aged = workload::overwrite(queue, plan, 0, operations, |_, _| ()).await;
        // Cleaning continues after the last overwrite. Its work must not count in the next
        // measurement.
        sleep(SETTLED, Stage::Queue).await;
        aged
    })?;
    Ok(())
}

impl Figures {
    fn new(measured: &Measured, tally: &Tally, plan: &Plan) -> Self {
        let count = |kind| measured.outcome.tally(kind).map_or(0, Tally::count);
        let written = count(Kind::Write) * u64::from(plan.values.max());
        let window: &Window = &measured.window;
        // With less than a capacity, the result would depend on which blocks are cleaned.
        let stored = written_units(&measured.outcome);
        let is_part = plan.is_filled && stored < plan.keys;
        let write_amplification = match plan.space {
            _ if is_part => None,
            Space::Pairs => window.write_amplification(),
            Space::Blocks | Space::Zones(_) => window.amplification_of(written),
        };
        let elapsed = measured.outcome.elapsed().as_secs_f64();
        let ended = quotient(measured.outcome.operations(), 1).unwrap_or(0.0);
        Self {
            mean_ns: tally.mean_ns(),
            p99_ns: float(tally.latency(0.99).0),
            per_second: if elapsed > 0.0 { ended / elapsed } else { 0.0 },
            write_amplification,
        }
    }
}

/// Returns the number of pairs or blocks written.
fn written_units(outcome: &Outcome) -> u64 {
    let count = |kind| outcome.tally(kind).map_or(0, Tally::count);
    count(Kind::Store) + count(Kind::Write)
}

#[expect(clippy::cast_precision_loss, reason = "sizes and times far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
