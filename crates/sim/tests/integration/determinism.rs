//! Equal seeds give equal runs: of one process, of debug and release builds, with and without
//! bytes.

use node::profile::{Ack, Handlers, Index};
use node::{Device, FaultPlan, INDEXES, Profile};
use reactor::Reactor;
use sim::Scenario;
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes, fill, run};

/// The digest of [`plan`] with seed 1, in every build and on every machine. It changes when the
/// device or the load does something else or at another time, and then only.
const DIGEST_OF_SEED_1: u64 = 0x327b_9113_a95e_2012;

const PLAN: Plan = Plan {
    operation: Operation::Mixed { read_percent: 50 },
    until: Until::Operations(20_000),
    load: Load::QueueDepth(64),
    nsid: Device::NAMESPACE,
    space: Space::Pairs,
    key_bytes: 20,
    values: ValueSizes::Fixed(1_900),
    keys: 4_200,
    is_filled: false,
    seed: 1,
    distribution: Distribution::Zipfian,
    payload: Payload::None,
};

/// The profile `moke` with less flash, so that the load makes it clean.
fn profile() -> Profile {
    let mut profile = Profile::load("moke").expect("a built-in profile");
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel, nand.pages_per_block) = (2, 2, 16);
    (nand.blocks_per_plane, nand.page_bytes, nand.spare_bytes) = (48, 4_096, 256);
    profile.firmware.handlers = Handlers::Count(2);
    profile.log.as_mut().expect("moke has a log").ack = Ack::Program;
    profile.namespaces[0].size_bytes = 10_000_000;
    profile
}

/// The digest of `plan`, with ties at one instant broken by `shuffle` if there is one.
fn digest(plan: &Plan, shuffle: Option<u64>) -> u64 {
    digest_of(&profile(), plan, shuffle)
}

fn digest_of(profile: &Profile, plan: &Plan, shuffle: Option<u64>) -> u64 {
    Reactor::new(shuffle).run(async {
        let cells = Device::manufacture(profile, plan.seed);
        let device = Device::format(profile, cells, plan.seed, FaultPlan::default())
            .await
            .expect("it is large enough");
        let queue = device.controller().queue_pair();
        fill(&queue, plan, |_, _| {}).await.expect("the keys fit");
        let outcome = run(&queue, plan, |_, _| {}).await;
        assert_eq!(outcome.errors(), 0);
        let figures = device.figures();
        assert!(figures.store.victims > 10, "the load makes the device clean: {figures:?}");
        outcome.digest(&figures.nand.words())
    })
}

#[test]
fn a_seed_gives_one_digest_in_every_build() {
    let digest = digest(&PLAN, None);
    assert_eq!(digest, DIGEST_OF_SEED_1, "the digest is {digest:#018x}");
}

#[test]
fn equal_seeds_give_equal_digests() {
    for shuffle in [None, Some(7)] {
        assert_eq!(digest(&PLAN, shuffle), digest(&PLAN, shuffle));
    }
}

#[test]
fn equal_seeds_give_equal_digests_with_every_index() {
    for (name, _) in INDEXES {
        let mut profile = profile();
        profile.index = Index::named(name);
        if *name == "cached-hash" {
            // The flash has to keep the table, with room for all keys of the plan.
            profile.index = profile.index.map(|index| Index { keys_max: Some(8_000), ..index });
            profile.namespaces[0].size_bytes = 9_000_000;
        }
        let digest = || digest_of(&profile, &PLAN, None);
        assert_eq!(digest(), digest(), "{name}");
    }
}

#[test]
fn the_digest_is_the_same_with_and_without_the_bytes_of_values() {
    let none = digest(&PLAN, None);
    for payload in [Payload::Full, Payload::Checksum] {
        assert_eq!(digest(&Plan { payload, ..PLAN }, None), none, "{payload:?}");
    }
}

#[test]
fn another_seed_gives_another_digest() {
    let digests = [1, 2, 3].map(|seed| digest(&Plan { seed, ..PLAN }, None));
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    let shuffled = digest(&PLAN, Some(1));
    assert_ne!(shuffled, digests[0], "ties are broken another way");
}

#[test]
fn equal_seeds_give_equal_digests_over_a_network() {
    give_equal_digests(Scenario::Remote);
}

#[test]
fn equal_seeds_give_equal_digests_over_pcie() {
    give_equal_digests(Scenario::Pcie);
}

#[test]
fn equal_seeds_give_equal_digests_of_blocks_over_pcie() {
    give_equal_digests(Scenario::PcieBlock);
}

#[test]
fn equal_seeds_give_equal_digests_of_zones_over_pcie() {
    give_equal_digests(Scenario::PcieZoned);
}

fn give_equal_digests(scenario: Scenario) {
    let tallies: Vec<_> = (0..4).map(|seed| scenario.run(seed)).collect();
    for (seed, tally) in (0..).zip(&tallies) {
        assert_eq!(scenario.run(seed), *tally);
        assert!(tallies.iter().filter(|other| other.digest == tally.digest).count() == 1);
    }
}
