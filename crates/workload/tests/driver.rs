//! Runs against a controller whose only cost is a single request handler, where every latency has a
//! closed form.

use base::Nanos;
use clock::{CodeCosts, Cores, Group, Stage};
use controller::{Config, Controller, FirmwareCosts, LinkTiming};
use engine::{Ack, HashIndex, KeySpaceId, Store, Victims};
use media::{Memory, Shape};
use reactor::Reactor;
use std::sync::Arc;
use workload::{
    DeviceFigures, Distribution, Fill, FillError, Kind, Load, Operation, Outcome, Payload, Plan,
    Report, fill, run,
};

const PLAN: Plan = Plan {
    operation: Operation::Retrieve,
    operations: 9_000,
    load: Load::QueueDepth(8),
    nsid: 1,
    key_bytes: 16,
    value_bytes: 100,
    keys: 500,
    seed: 1,
    distribution: Distribution::Uniform,
    payload: Payload::None,
};

const MIXED: Plan = Plan {
    operation: Operation::Mixed { read_percent: 50 },
    distribution: Distribution::Zipfian,
    ..PLAN
};

const COST: Nanos = Nanos::from_micros(10);

/// Formats a device of `extents` extents of 16 pages of 4 KiB, in memory, of which it offers half.
async fn device(extents: u32) -> Arc<Controller> {
    let shape = Shape {
        page_bytes: 4_096,
        spare_bytes: 256,
        pages_per_extent: 16,
        extents,
        parallelism: 1,
    };
    let group = Group::new();
    let config = engine::Config {
        capacity_bytes: shape.extent_bytes() * u64::from(extents / 2),
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: || Box::new(HashIndex::default()),
        group,
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(shape)), config);
    let created = store.create_key_space(KeySpaceId(1)).await;
    created.expect("there is room for a key space");
    let costs = FirmwareCosts { t_read: COST, t_write: COST, t_delete: COST, t_exist: COST };
    let config = Config {
        group,
        link: LinkTiming { bytes_per_second: 0, transfer: Nanos::ZERO },
        handlers: 1,
        costs,
        cores: Cores::new(group, 1, CodeCosts::default()),
    };
    let controller = Controller::new(store, config);
    controller.set_delete_reports_missing(true);
    controller
}

fn outcome(plan: Plan) -> (Option<Fill>, Outcome) {
    Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        let mut filled = None;
        if plan.needs_fill() {
            filled = Some(fill(&queue, &plan, |_, _| ()).await.expect("the keys fit"));
        }
        (filled, run(&queue, &plan, |_, _| ()).await)
    })
}

/// Mean and maximum latency of retrieves in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "latencies here are far below 2^53")]
fn latency(outcome: &Outcome) -> (f64, f64) {
    let tally = outcome.tally(Kind::Retrieve).expect("a retrieve succeeded");
    (tally.mean_ns(), tally.max().0 as f64)
}

#[test]
fn at_a_queue_depth_everyone_waits_for_those_before() {
    for depth in [1, 2, 8, 64] {
        let (_, outcome) = outcome(Plan { load: Load::QueueDepth(depth), ..PLAN });
        assert_eq!(outcome.elapsed(), Nanos(9_000 * COST.0));
        // The first `depth` arrive together; each later one when the handler has `depth - 1` before
        // it.
        let (depth, operations, cost) = (f64::from(depth), 9_000.0, 10_000.0);
        let sum = cost * (depth * (depth + 1.0) / 2.0 + (operations - depth) * depth);
        let (mean, max) = latency(&outcome);
        assert!((mean - sum / operations).abs() < 1e-6, "depth {depth}: {mean}");
        assert!((max - depth * cost).abs() < 1e-6, "depth {depth}: {max}");
    }
}

#[test]
fn at_a_rate_below_capacity_nobody_waits() {
    let (_, outcome) = outcome(Plan { load: Load::Rate { per_second: 80_000 }, ..PLAN });
    assert_eq!(latency(&outcome), (10_000.0, 10_000.0));
    // The last is due after 8,999 intervals of 12.5 us.
    assert_eq!(outcome.elapsed(), Nanos(8_999 * 12_500 + COST.0));
}

#[test]
fn at_a_rate_above_capacity_latency_grows_with_the_queue() {
    // Due every 8 us and done every 10 us: operation i takes 10 us and the 2 us that each of the i
    // before it was slower than they came. A submitter that waits for completions would see 10 us.
    let (_, outcome) = outcome(Plan { load: Load::Rate { per_second: 125_000 }, ..PLAN });
    let (mean, max) = latency(&outcome);
    assert!((mean - (10_000.0 + 2_000.0 * 8_999.0 / 2.0)).abs() < 1e-3, "{mean}");
    assert!((max - (10_000.0 + 2_000.0 * 8_999.0)).abs() < 1e-3, "{max}");
}

#[test]
fn every_operation_succeeds_and_its_stages_add_up() {
    for operation in [
        Operation::Store,
        Operation::Retrieve,
        Operation::Mixed { read_percent: 50 },
        Operation::Delete,
        Operation::Exist,
    ] {
        for load in [Load::QueueDepth(32), Load::Rate { per_second: 150_000 }] {
            for key_bytes in [4, 16, 40] {
                let operations = if operation == Operation::Delete { 500 } else { 9_000 };
                let plan = Plan { operation, operations, load, key_bytes, ..MIXED };
                let (filled, outcome) = outcome(plan);
                assert_eq!((outcome.operations(), outcome.errors()), (operations, 0), "{plan:?}");
                assert_eq!(filled.map_or(500, |fill| fill.keys), 500);
                let kinds = Kind::ALL.into_iter().filter_map(|kind| outcome.tally(kind));
                let count: u64 = kinds.clone().map(workload::Tally::count).sum();
                assert_eq!(count, operations);
                for tally in kinds {
                    let stages: f64 =
                        Stage::ALL.map(|stage| tally.stage_mean_ns(stage)).iter().sum();
                    assert!((stages / tally.mean_ns() - 1.0).abs() < 1e-9, "{plan:?}");
                }
            }
        }
    }
}

#[test]
fn a_seed_names_the_digest_in_every_payload_mode() {
    for operation in [Operation::Store, MIXED.operation, Operation::Delete, Operation::Exist] {
        let digest = |seed, payload| {
            let operations = 500;
            outcome(Plan { operation, operations, seed, payload, ..MIXED }).1.digest(&[])
        };
        let known = digest(1, Payload::None);
        for payload in [Payload::None, Payload::Checksum, Payload::Full] {
            assert_eq!(digest(1, payload), known, "{operation:?}, {payload:?}");
        }
        assert_ne!(digest(2, Payload::None), known, "{operation:?}");
    }
}

#[test]
fn a_fill_of_a_device_that_is_too_small_says_how_many_keys_fitted() {
    let plan = Plan { keys: 5_000, ..PLAN };
    Reactor::new(None).run(async {
        let device = device(16).await;
        let queue = device.queue_pair();
        let before = device.store().usage().values.records;
        let error = fill(&queue, &plan, |_, _| ()).await.unwrap_err();
        let stored = device.store().usage().values.records - before;
        let status = spec::Status::CAPACITY_EXCEEDED;
        assert_eq!(error, FillError { status, stored, keys: 5_000 });
        // Of 8 extents of 64 KiB that are offered, values take at least a half.
        assert!(stored * 100 > 8 * 65_536 / 2, "{stored} keys");
        assert_eq!(queue.outstanding(), 0);
    });
}

#[test]
fn progress_is_reported_in_order_and_to_the_end() {
    Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        for load in [Load::QueueDepth(3), Load::Rate { per_second: 90_000 }] {
            let plan = Plan { load, ..PLAN };
            let (mut filling, mut running) = (Vec::new(), Vec::new());
            fill(&queue, &plan, |done, total| filling.push((done, total))).await.unwrap();
            run(&queue, &plan, |done, total| running.push((done, total))).await;
            assert_eq!(filling, [(500, 500)]);
            assert_eq!(running, [(4_096, 9_000), (8_192, 9_000), (9_000, 9_000)]);
        }
    });
}

#[test]
fn rates_are_of_operations_that_succeeded_in_the_devices_time() {
    let (filled, outcome) = outcome(PLAN);
    let device = DeviceFigures::default();
    let report = Report::new("retrieve", "sim:memory", &outcome, 2.0, &device, filled);
    assert!((report.ops_per_second.unwrap() - 100_000.0).abs() < 1e-6);
    assert!((report.ops_per_wall_second - 4_500.0).abs() < 1e-9);
    let fill = report.fill.unwrap();
    assert_eq!(fill.keys, 500);
    assert!((fill.seconds - 500.0 * 10e-6).abs() < 1e-9);
}
