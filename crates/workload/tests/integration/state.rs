//! A run whose device is saved in the middle, and restored elsewhere, is the run that only paused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use node::state::{Origin, Problem};
use node::{Device, FaultPlan, Figures, Profile, SavedDevice};
use reactor::Reactor;
use workload::{
    Distribution, Load, Operation, Outcome, Paused, Payload, Plan, Space, Until, ValueSizes, Ycsb,
    Zoning,
};

const PROFILE: &str = include_str!("../../../cli/tests/black_box/blocks.toml");
const SEED: u64 = 5;

const PLAN: Plan = Plan {
    operation: Operation::Mixed { read_percent: 20 },
    until: Until::Operations(24_000),
    load: Load::QueueDepth(16),
    nsid: 1,
    space: Space::Pairs,
    key_bytes: 16,
    values: ValueSizes::Fixed(3_000),
    keys: 4_000,
    is_filled: false,
    seed: 9,
    distribution: Distribution::Zipfian,
    payload: Payload::None,
};

const BLOCKS: Plan = Plan {
    operation: Operation::RandWrite,
    until: Until::Operations(40_000),
    nsid: 2,
    space: Space::Blocks,
    values: ValueSizes::Fixed(4_096),
    keys: 15_000,
    distribution: Distribution::Uniform,
    ..PLAN
};

fn profile(changes: &[(&str, &str)]) -> Profile {
    let text = changes.iter().fold(PROFILE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    Profile::parse("changed.toml", &text).unwrap()
}

fn origin(profile: &Profile, shuffle: bool) -> Origin<'_> {
    Origin { profile, seed: SEED, shuffle }
}

fn reactor(shuffle: bool) -> Reactor {
    Reactor::new(shuffle.then_some(SEED))
}

/// Runs `plan` on a new device for half of its operations, until no command is outstanding.
fn first_half(profile: &Profile, shuffle: bool, plan: &Plan) -> (Reactor, Device, Paused) {
    let mut reactor = reactor(shuffle);
    let cells = Device::manufacture(profile, SEED);
    let device = Device::format(profile, cells, SEED, FaultPlan::default());
    let device = reactor.run(device).unwrap();
    let queue = device.controller().queue_pair();
    if plan.needs_fill() {
        reactor.run(workload::fill(&queue, plan, |_, _| ())).unwrap();
    }
    let Until::Operations(operations) = plan.until else { panic!("a number of them") };
    let half = workload::run_to_pause(&queue, plan, None, operations / 2, |_, _| ());
    let paused = reactor.run(half);
    assert_eq!(paused.completed(), operations / 2);
    reactor.run(device.flush()).unwrap();
    reactor.settle();
    (reactor, device, paused)
}

fn second_half(
    reactor: &mut Reactor,
    device: &Device,
    plan: &Plan,
    paused: Paused,
) -> (Outcome, Figures, base::Nanos) {
    let queue = device.controller().queue_pair();
    let finished = reactor.run(workload::finish(&queue, plan, paused, |_, _| ()));
    reactor.run(device.flush()).unwrap();
    reactor.settle();
    (finished.outcome, device.figures(), reactor.run(async { clock::now() }))
}

fn saved(
    reactor: &mut Reactor,
    device: &Device,
    origin: Origin<'_>,
    load: &[u8],
) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    reactor.run(async { device.save(origin, 0, load, &mut bytes) })?;
    Ok(bytes)
}

fn restored(origin: Origin<'_>, mut bytes: &[u8]) -> (Reactor, Device, Vec<u8>) {
    let saved = SavedDevice::read(origin, &mut bytes).unwrap();
    let load = saved.load().to_vec();
    let mut reactor = reactor(origin.shuffle);
    let device = reactor.run(async { Device::restore(origin, saved) }).unwrap();
    reactor.settle();
    (reactor, device, load)
}

/// Checks that a run with a save equals one without, and returns the device's figures.
fn is_the_same(profile: &Profile, shuffle: bool, plan: &Plan) -> Figures {
    let (mut reactor, device, paused) = first_half(profile, shuffle, plan);
    let unbroken = second_half(&mut reactor, &device, plan, paused);
    drop((reactor, device));

    let (mut reactor, device, paused) = first_half(profile, shuffle, plan);
    let origin = origin(profile, shuffle);
    let bytes = saved(&mut reactor, &device, origin, &paused.save(plan)).unwrap();
    let before = device.figures();
    drop((reactor, device, paused));
    let (mut reactor, device, load) = restored(origin, &bytes);
    assert_eq!(device.figures(), before);
    let again = saved(&mut reactor, &device, origin, &load).unwrap();
    assert!(again == bytes, "what was restored is what was saved");
    let paused = Paused::restore(plan, &load).unwrap().unwrap();
    let broken = second_half(&mut reactor, &device, plan, paused);

    assert_eq!(broken.1, unbroken.1);
    assert_eq!(broken.2, unbroken.2);
    let [a, b] = [&unbroken.0, &broken.0];
    assert_eq!((a.digest(&[]), a.operations(), a.errors()), (b.digest(&[]), b.operations(), 0));
    assert_eq!((a.elapsed(), a.timeline()), (b.elapsed(), b.timeline()));
    for kind in workload::Kind::ALL {
        let figures = |outcome: &Outcome| {
            let tally = outcome.tally(kind)?;
            let quantiles: Vec<_> = tally.quantiles().collect();
            Some((tally.count(), tally.max(), tally.mean_ns().to_bits(), quantiles))
        };
        assert_eq!(figures(a), figures(b), "{kind:?}");
    }
    unbroken.1
}

const PAGE_LOG: &[(&str, &str)] = &[(
    "stripe = \"all\"\nack = \"program\"\ngc_victims",
    "ftl = \"page\"\nack = \"program\"\ngc_victims",
)];
const SCALAR: &[(&str, &str)] = &[("\"staged\"", "\"scalar\"")];
const BUFFERED: &[(&str, &str)] = &[("ack = \"program\"", "ack = \"buffer\"\nbuffer_kib = 4096")];
const CHECKPOINTS: &[(&str, &str)] = &[("[log]", "[log]\ncheckpoint_mib = 4")];
const BTREE: &[(&str, &str)] = &[("kind = \"hash\"", "kind = \"btree\"")];

#[test]
fn pairs_on_a_log_resume_unchanged() {
    for (changes, shuffle) in
        [(&[][..], true), (SCALAR, false), (BUFFERED, true), (CHECKPOINTS, false), (BTREE, false)]
    {
        let figures = is_the_same(&profile(changes), shuffle, &PLAN);
        assert!(figures.store.victims > 5, "{changes:?}: {figures:?}");
    }
}

/// Half of the table fits in memory.
#[test]
fn an_index_under_a_budget_resumes_unchanged() {
    let sizes = "size_gb = 0.02\nover_provisioning = 1";
    let roomy = (sizes, "size_gb = 0.012\nover_provisioning = 3");
    let budget = "kind = \"cached-hash\"\ndram_kib = 66\nkeys_max = 12000";
    for (more, shuffle) in [(&[][..], false), (CHECKPOINTS, true)] {
        let changes = [&[("kind = \"hash\"", budget), roomy], more].concat();
        let until = Until::Operations(40_000);
        let plan = Plan { keys: 12_000, values: ValueSizes::Fixed(600), until, ..PLAN };
        let figures = is_the_same(&profile(&changes), shuffle, &plan);
        let counts = figures.index;
        assert!(figures.store.victims > 2, "{figures:?}");
        assert!(counts.misses > 1_000 && counts.page_writes > 100, "{counts:?}");
    }
}

#[test]
fn pairs_on_blocks_resume_unchanged() {
    for shuffle in [false, true] {
        let figures = is_the_same(&profile(PAGE_LOG), shuffle, &PLAN);
        assert!(figures.store.victims > 5 && figures.blocks.host_blocks > 0, "{figures:?}");
    }
}

#[test]
fn every_workload_of_pairs_resumes_where_it_stopped() {
    let profile = profile(&[]);
    let ycsb = |ycsb: Ycsb| (Operation::Ycsb(ycsb), ycsb.distribution());
    for (operation, distribution) in [
        (Operation::Store, Distribution::Sequential),
        (Operation::Retrieve, Distribution::Zipfian),
        (Operation::Exist, Distribution::Uniform),
        (Operation::Delete, Distribution::Uniform),
        ycsb(Ycsb::D),
        ycsb(Ycsb::E),
        ycsb(Ycsb::F),
    ] {
        let until = Until::Operations(2_000);
        is_the_same(&profile, false, &Plan { operation, distribution, until, ..PLAN });
    }
    is_the_same(
        &profile,
        false,
        &Plan { load: Load::Rate { per_second: 2_000, outstanding: None }, ..PLAN },
    );
}

#[test]
fn blocks_resume_unchanged() {
    for (changes, shuffle) in [(&[][..], true), (SCALAR, false), (BUFFERED, false)] {
        let figures = is_the_same(&profile(changes), shuffle, &BLOCKS);
        assert!(figures.blocks.victims > 5, "{changes:?}: {figures:?}");
    }
    let operation = Operation::Mixed { read_percent: 50 };
    is_the_same(&profile(&[]), false, &Plan { operation, ..BLOCKS });
}

#[test]
fn zones_resume_unchanged() {
    let profile = profile(&[]);
    let space = Space::Zones(zoning(&profile));
    let write = Plan { nsid: 3, space, operation: Operation::Write, keys: 14_000, ..BLOCKS };
    // In the middle of the run an open page is in protected memory.
    let write = Plan { until: Until::Operations(33_333), load: Load::QueueDepth(1), ..write };
    let figures = is_the_same(&profile, false, &write);
    assert!(figures.nand.erases > 0, "{figures:?}");
    let read = Plan { operation: Operation::RandRead, until: Until::Operations(2_000), ..write };
    is_the_same(&profile, true, &read);
}

fn zoning(profile: &Profile) -> Zoning {
    let cells = Device::manufacture(profile, SEED);
    let device = Device::format(profile, cells, SEED, FaultPlan::default());
    let device = Reactor::new(None).run(device).unwrap();
    let shape = device.zones(3).unwrap().shape();
    Zoning { zone_blocks: shape.zone_blocks, capacity_blocks: shape.zone_capacity }
}

/// Returns a saved device, and the start and name of each of its sections.
fn small_state() -> (Profile, Vec<u8>, Vec<(String, usize)>) {
    let profile = profile(&[]);
    let plan = Plan { until: Until::Operations(200), keys: 100, ..PLAN };
    let (mut reactor, device, paused) = first_half(&profile, false, &plan);
    let load = paused.save(&plan);
    let bytes = saved(&mut reactor, &device, origin(&profile, false), &load).unwrap();
    let (mut sections, mut at) = (Vec::new(), 12);
    while at < bytes.len() {
        let name = bytes[at..at + 16].iter().take_while(|byte| **byte > 0).copied().collect();
        sections.push((String::from_utf8(name).unwrap(), at));
        let len = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().unwrap());
        at += 32 + usize::try_from(len).unwrap();
    }
    (profile, bytes, sections)
}

fn problem(profile: &Profile, mut bytes: &[u8]) -> String {
    let read = SavedDevice::read(origin(profile, false), &mut bytes);
    read.expect_err("it is not what was saved").to_string()
}

#[test]
fn a_damaged_state_is_refused_with_the_section_that_is_damaged() {
    let (profile, bytes, sections) = small_state();
    let names: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    let fixed = ["flash", "keys", "namespaces", "features", "load", "end"];
    assert_eq!((names[0], names[1], names[2]), ("device", "clock", "die 0"));
    assert_eq!(names[names.len() - fixed.len()..], fixed);
    let ends = sections.iter().skip(1).map(|(_, at)| *at).chain([bytes.len()]);
    for ((name, start), end) in sections.iter().zip(ends) {
        let is_empty = end == start + 32;
        let content = if is_empty { start + 31 } else { (start + 32 + end) / 2 };
        // In the name, the checksum, and the content.
        for at in [*start, start + 24, content, end - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(problem(&profile, &damaged), format!("is damaged in its section {name:?}"));
        }
        for cut in [*start, start + 1, start + 31, end - 1] {
            let cut_off = problem(&profile, &bytes[..cut]);
            assert_eq!(cut_off, format!("ends in the middle of its section {name:?}"), "at {cut}");
        }
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(problem(&profile, &longer), "is damaged in its section \"end\"");
}

#[test]
fn an_invalid_state_or_one_of_another_device_is_refused() {
    let (profile, bytes, _) = small_state();
    assert_eq!(problem(&profile, b"PK\x03\x04 and more bytes"), "is not a saved device");
    assert_eq!(problem(&profile, &bytes[..8]), "is not a saved device");
    let mut newer = bytes.clone();
    newer[8..12].copy_from_slice(&7_u32.to_le_bytes());
    let expected = "has format 7, but this version of kvasir reads formats 5 and 6 only";
    assert_eq!(problem(&profile, &newer), expected);
    let faster = self::profile(&[("read_us = 45", "read_us = 44")]);
    let expected = "is of the profile changed.toml, which is not the same as changed.toml now";
    assert_eq!(problem(&faster, &bytes), expected);
    for (origin, expected) in [
        (Origin { seed: 6, ..origin(&profile, false) }, "is of a device with seed 5, not 6"),
        (origin(&profile, true), "is of a device with shuffle=0, not 1"),
    ] {
        let read = SavedDevice::read(origin, &mut bytes.as_slice());
        assert_eq!(read.unwrap_err().to_string(), expected);
    }
    // Names and descriptions do not affect a device.
    let words = self::profile(&[("A device with a namespace", "One with a namespace")]);
    assert!(SavedDevice::read(origin(&words, false), &mut bytes.as_slice()).is_ok());
}

#[test]
fn a_run_resumes_with_its_own_plan_only() {
    let (_, device, paused) = first_half(&profile(&[]), false, &PLAN);
    let saved = paused.save(&PLAN);
    drop(device);
    for (plan, expected) in [
        (Plan { keys: 4_001, ..PLAN }, "has --keys 4000, not 4001"),
        (Plan { seed: 10, ..PLAN }, "has --seed 9, not 10"),
        (Plan { key_bytes: 17, ..PLAN }, "has --key-size 16, not 17"),
        (Plan { operation: Operation::Exist, ..PLAN }, "has workload mixed, not exist"),
    ] {
        let differs = Paused::restore(&plan, &saved).unwrap().unwrap_err();
        assert_eq!(differs.to_string(), expected);
    }
    assert!(Paused::restore(&PLAN, b"nothing").is_none());
}
