//! Runs against a controller whose only cost is a single request handler, where every latency has a
//! closed form.

use base::Nanos;
use clock::{Class, CodeCosts, Cores, Gate, Group, LocalFuture, Stage};
use controller::{
    Completion, Config, Controller, Emulation, FirmwareCosts, LinkTiming, Namespace, Queue,
    QueuePair, Submission,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{
    Error, ExtentId, ExtentInfo, Label, Media, Memory, Page, PageId, Select, Shape, Span, Victims,
};
use reactor::{Reactor, Remote};
use spec::Status;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use workload::{
    DeviceFigures, Distribution, Fill, FillError, Keys, Kind, Load, Operation, Outcome, Pace,
    Payload, Plan, Replay, ReplayPlan, Report, Space, Tally, Trace, Until, ValueSizes, Ycsb,
    expected_tag, fill, fill_replay, replay, run,
};

const PLAN: Plan = Plan {
    operation: Operation::Retrieve,
    until: Until::Operations(9_000),
    load: Load::QueueDepth(8),
    nsid: 1,
    space: Space::Pairs,
    key_bytes: 16,
    values: ValueSizes::Fixed(100),
    keys: 500,
    is_filled: false,
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
    device_on(extents, COST, |memory| Arc::new(memory)).await
}

/// As [`device`], on the medium that `medium` makes of the memory, with commands that cost `cost`.
async fn device_on(
    extents: u32,
    cost: Nanos,
    medium: impl FnOnce(Memory) -> Arc<dyn Media>,
) -> Arc<Controller> {
    let shape = Shape {
        page_bytes: 4_096,
        spare_bytes: 256,
        pages_per_extent: 16,
        extents,
        parallelism: 1,
        frames: None,
    };
    let group = Group::new();
    let config = engine::Config {
        capacity_bytes: shape.extent_bytes() * u64::from(extents / 2),
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group,
        seed: 1,
    };
    let store = Store::format(medium(Memory::new(shape)), config);
    let created = store.create_key_space(KeySpaceId(1)).await;
    created.expect("there is room for a key space");
    let costs = FirmwareCosts {
        t_read: cost,
        t_write: cost,
        t_delete: cost,
        t_exist: cost,
        ..FirmwareCosts::default()
    };
    let config = Config {
        emulation: Some(Emulation {
            group,
            link: LinkTiming { bytes_per_second: 0, transfer: Nanos::ZERO },
            handlers: 1,
            costs,
            cores: Cores::new(group, 1, CodeCosts::default()),
            gate: Arc::new(Gate::new()),
        }),
        has_volatile_cache: false,
    };
    let controller = Controller::new(vec![Namespace::Kv(store)], config);
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

/// Returns mean and maximum latency of retrieves in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "latencies here are far below 2^53")]
fn latency(outcome: &Outcome) -> (f64, f64) {
    let tally = outcome.tally(Kind::Retrieve).expect("a retrieve succeeded");
    (tally.mean_ns(), tally.max().0 as f64)
}

#[test]
fn at_a_queue_depth_each_operation_waits_for_earlier_ones() {
    for depth in [1, 2, 8, 64] {
        let (_, outcome) = outcome(Plan { load: Load::QueueDepth(depth), ..PLAN });
        assert_eq!(outcome.elapsed(), Nanos(9_000 * COST.0));
        // The first `depth` arrive together. Each later one finds `depth - 1` others at the
        // handler.
        let (depth, operations, cost) = (f64::from(depth), 9_000.0, 10_000.0);
        let sum = cost * (depth * (depth + 1.0) / 2.0 + (operations - depth) * depth);
        let (mean, max) = latency(&outcome);
        assert!((mean - sum / operations).abs() < 1e-6, "depth {depth}: {mean}");
        assert!((max - depth * cost).abs() < 1e-6, "depth {depth}: {max}");
    }
}

#[test]
fn at_a_rate_below_capacity_no_operation_waits() {
    let (_, outcome) =
        outcome(Plan { load: Load::Rate { per_second: 80_000, outstanding: None }, ..PLAN });
    assert_eq!(latency(&outcome), (10_000.0, 10_000.0));
    // The last is due after 8,999 intervals of 12.5 us.
    assert_eq!(outcome.elapsed(), Nanos(8_999 * 12_500 + COST.0));
}

#[test]
fn at_a_rate_above_capacity_latency_grows_with_the_queue() {
    // Operations are due every 8 us and take 10 us, so operation i takes 10 us plus 2 us for each
    // earlier one. A submitter that waits for completions would measure 10 us.
    let (_, outcome) =
        outcome(Plan { load: Load::Rate { per_second: 125_000, outstanding: None }, ..PLAN });
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
        Operation::Ycsb(Ycsb::D),
        Operation::Ycsb(Ycsb::F),
    ] {
        let [free, bounded] =
            [None, Some(8)].map(|outstanding| Load::Rate { per_second: 150_000, outstanding });
        for load in [Load::QueueDepth(32), free, bounded] {
            for key_bytes in [4, 16, 40] {
                let operations = if operation == Operation::Delete { 500 } else { 9_000 };
                let until = Until::Operations(operations);
                let plan = Plan { operation, until, load, key_bytes, ..MIXED };
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
            let until = Until::Operations(500);
            outcome(Plan { operation, until, seed, payload, ..MIXED }).1.digest(&[])
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
        for load in [Load::QueueDepth(3), Load::Rate { per_second: 90_000, outstanding: None }] {
            let plan = Plan { load, ..PLAN };
            let (mut filling, mut running) = (Vec::new(), Vec::new());
            fill(&queue, &plan, |done, total| filling.push((done, total))).await.unwrap();
            run(&queue, &plan, |done, total| running.push((done, total))).await;
            assert_eq!(filling, [(500, 500)]);
            assert_eq!(running, [(4_096, 9_000), (8_192, 9_000), (9_000, 9_000)]);
            running.clear();
            let plan = Plan { until: Until::Operations(4_096), ..plan };
            run(&queue, &plan, |done, total| running.push((done, total))).await;
            assert_eq!(running, [(4_096, 4_096)], "the end is reported once");
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

/// Scans and their retrieves at a queue depth, and their stages.
#[test]
fn a_scan_takes_its_list_and_its_slowest_retrieve() {
    let operation = Operation::Ycsb(Ycsb::E);
    let until = Until::Operations(300);
    let load = Load::QueueDepth(1);
    for key_bytes in [4, 16, 40] {
        let (_, outcome) = outcome(Plan { operation, until, load, key_bytes, ..MIXED });
        assert_eq!((outcome.operations(), outcome.errors()), (300, 0));
        let (scans, stores) = (tally(&outcome, Kind::Scan), tally(&outcome, Kind::Store));
        assert_eq!(scans.count() + stores.count(), 300);
        // One handler at 10 us: the list, then up to 100 retrieves one after the other, of which
        // the last waits for all before it.
        assert!(scans.max() <= Nanos(101 * COST.0) && scans.max() > Nanos(90 * COST.0));
        let (mean, handling) = (scans.mean_ns(), scans.stage_mean_ns(Stage::Index));
        assert!((handling - 20_000.0).abs() < 1e-6, "the list and the last retrieve: {handling}");
        let waiting = scans.stage_mean_ns(Stage::Handler);
        assert!((mean - handling - waiting).abs() < 1e-6, "{mean}");
        // Scans are of 1 to 100 keys, fewer at the end of the order of 500 or so: n take n + 1
        // times 10 us.
        assert!((400_000.0..560_000.0).contains(&mean), "{mean}");
        let elapsed = f64::from(u32::try_from(outcome.elapsed().0).unwrap());
        let total = mean * count(scans) + stores.mean_ns() * count(stores);
        assert!((total - elapsed).abs() < 1e-3, "one after the other: {total} of {elapsed}");
    }
}

fn tally(outcome: &Outcome, kind: Kind) -> &Tally {
    outcome.tally(kind).expect("such an operation succeeded")
}

fn count(tally: &Tally) -> f64 {
    u32::try_from(tally.count()).expect("few operations").into()
}

#[test]
fn a_read_modify_write_takes_the_time_of_both() {
    let plan = Plan { operation: Operation::Ycsb(Ycsb::F), load: Load::QueueDepth(1), ..MIXED };
    let (_, outcome) = outcome(plan);
    assert_eq!(outcome.errors(), 0);
    let both = tally(&outcome, Kind::ReadModifyWrite);
    assert_eq!((both.max(), both.latency(0.0)), (Nanos(2 * COST.0), Nanos(2 * COST.0)));
    assert!((both.stage_mean_ns(Stage::Index) - 20_000.0).abs() < 1e-6);
    assert_eq!(tally(&outcome, Kind::Retrieve).max(), COST);
}

#[test]
fn a_run_for_a_time_has_what_fits_it() {
    for (load, operations) in [
        // The last operation begins before the end and completes after it.
        (Load::QueueDepth(1), 1_001),
        (Load::QueueDepth(4), 1_004),
        // Due at 0 us, 12.5 us and so on, below 10,005 us.
        (Load::Rate { per_second: 80_000, outstanding: None }, 801),
    ] {
        let mut seen = Vec::new();
        let until = Until::Time(Nanos::from_micros(10_005));
        let plan = Plan { until, load, ..PLAN };
        let outcome = Reactor::new(None).run(async {
            let queue = device(64).await.queue_pair();
            fill(&queue, &plan, |_, _| ()).await.expect("the keys fit");
            run(&queue, &plan, |done, total| seen.push((done, total))).await
        });
        assert_eq!((outcome.operations(), outcome.errors()), (operations, 0), "{load:?}");
        assert_eq!(seen, [(10_005_000, 10_005_000)]);
    }
}

#[test]
fn a_long_run_for_a_time_reports_how_much_of_it_has_passed() {
    let mut seen = Vec::new();
    let plan = Plan { until: Until::Time(Nanos::from_millis(100)), ..PLAN };
    Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        fill(&queue, &plan, |_, _| ()).await.expect("the keys fit");
        run(&queue, &plan, |done, total| seen.push((done, total))).await
    });
    let total = 100_000_000;
    assert_eq!(seen, [(4_096 * COST.0, total), (8_192 * COST.0, total), (total, total)]);
}

/// Memory that stalls all reads between two instants.
struct Stalling {
    memory: Memory,
    from: Nanos,
    to: Nanos,
}

impl Media for Stalling {
    fn shape(&self) -> Shape {
        self.memory.shape()
    }

    fn free_extents(&self) -> u32 {
        self.memory.free_extents()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        self.memory.open(label)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.append(at, page, class)
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        Box::pin(async move {
            if clock::now() >= self.from {
                clock::sleep_until(self.to, Stage::Array).await;
            }
            self.memory.read(span, select, class).await
        })
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.reset(extent, class)
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.memory.extents()
    }
}

/// Runs retrieves that cost `cost` for a second, in which the medium stalls from 300 to 400 ms
/// after the start.
fn stalled(load: Load, cost: Nanos) -> Outcome {
    Reactor::new(None).run(async {
        let start = Nanos::from_secs(1);
        let (from, to) = (start + Nanos::from_millis(300), start + Nanos::from_millis(400));
        let medium = |memory| Arc::new(Stalling { memory, from, to }) as Arc<dyn Media>;
        let queue = device_on(64, cost, medium).await.queue_pair();
        let plan = Plan { load, until: Until::Time(Nanos::from_secs(1)), ..PLAN };
        fill(&queue, &plan, |_, _| ()).await.expect("the keys fit");
        clock::sleep_until(start, Stage::Queue).await;
        run(&queue, &plan, |_, _| ()).await
    })
}

#[test]
fn at_a_rate_a_stall_shows_in_all_percentiles_that_it_touches() {
    let load = Load::Rate { per_second: 10_000, outstanding: None };
    let outcome = stalled(load, Nanos::ZERO);
    assert_eq!((outcome.operations(), outcome.errors()), (10_000, 0));
    let tally = tally(&outcome, Kind::Retrieve);
    // Operations due 0, 0.1, 0.2 and so on to 99.9 ms into the stall wait for its rest: 100, 99.9,
    // 99.8 and so on to 0.1 ms. They are a tenth of all.
    assert_eq!(tally.max(), Nanos::from_millis(100));
    assert_eq!(tally.latency(0.9), Nanos::ZERO);
    for (quantile, millis) in [(0.95, 50), (0.99, 90), (0.999, 99), (0.9999, 100)] {
        let (found, exact) = (tally.latency(quantile).0, Nanos::from_millis(millis).0);
        assert!(found.abs_diff(exact) <= exact / 1_000, "{quantile}: {found}, not {exact}");
    }
    let sum_micros = (1..=1_000).map(|k| f64::from(k) * 100.0).sum::<f64>();
    assert!((tally.mean_ns() - sum_micros * 1e3 / 1e4).abs() < 1e-6, "{}", tally.mean_ns());
    // No operation completes during the stall, and all of them do at its end.
    let timeline = outcome.timeline();
    assert_eq!(timeline.width(), Nanos::from_micros(512));
    let bin = |micros: usize| timeline.counts()[micros / 512];
    assert_eq!(timeline.counts()[300_000 / 512 + 1..400_000 / 512].iter().sum::<u64>(), 0);
    assert!((1_000..=1_006).contains(&bin(400_000)), "{}", bin(400_000));
    assert_eq!(timeline.counts().iter().sum::<u64>(), 10_000);
}

#[test]
fn at_queue_depth_1_a_stall_shows_in_the_maximum_only() {
    let outcome = stalled(Load::QueueDepth(1), COST);
    // 10 us each for 300 ms and for 600 ms; the one between them met the stall.
    assert_eq!((outcome.operations(), outcome.errors()), (90_000, 0));
    let tally = tally(&outcome, Kind::Retrieve);
    assert!((tally.latency(0.9999).0).abs_diff(COST.0) <= 10);
    assert_eq!(tally.max(), Nanos::from_millis(100) + COST);
}

/// A trace of stores and retrieves of one key each.
fn trace(pace: Pace) -> ReplayPlan {
    let text = "time,operation,key,size\n\
        0,retrieve,a,9\n0.000003,store,b,2000\n0.000004,retrieve,b,2000\n\
        0.5,delete,a,\n0.75,retrieve,a,9\n0.75,exist,b,\n";
    let trace = Trace::parse("t.csv", text.as_bytes(), None, |_| ()).expect("a trace");
    ReplayPlan {
        replay: Replay::new(Arc::new(trace), pace),
        queue_depth: 2,
        nsid: 1,
        seed: 1,
        payload: Payload::Full,
    }
}

fn replayed(plan: &ReplayPlan) -> (Fill, Outcome, Vec<(u64, u64)>) {
    Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        let fill = fill_replay(&queue, plan, |_, _| ()).await.expect("the keys fit");
        let mut seen = Vec::new();
        let outcome = replay(&queue, plan, |done, total| seen.push((done, total))).await;
        (fill, outcome, seen)
    })
}

#[test]
fn a_replay_at_its_recorded_pace_counts_latency_from_the_recorded_times() {
    for (pace, last) in [("recorded", 750_000_000), ("10x", 75_000_000)] {
        let (fill, outcome, seen) = replayed(&trace(pace.parse().expect("a pace")));
        assert_eq!((fill.keys, seen), (1, vec![(6, 6)]));
        assert_eq!((outcome.operations(), outcome.errors(), outcome.misses()), (6, 0, Some(1)));
        // The last two are due together, and the handler takes 10 us for each.
        assert_eq!(outcome.elapsed(), Nanos(last + 2 * COST.0), "{pace}");
    }
    let (_, outcome, _) = replayed(&trace(Pace::Recorded));
    // Done at 10 us, 20 us and 30 us, due at 0, 3 and 4 us; the later one of b meets its value.
    assert_eq!(tally(&outcome, Kind::Store).max(), Nanos(17_000));
    assert_eq!(tally(&outcome, Kind::Retrieve).max(), Nanos(26_000));
}

#[test]
fn a_replay_at_full_speed_keeps_a_queue_depth() {
    let (_, outcome, _) = replayed(&trace(Pace::Full));
    assert_eq!((outcome.operations(), outcome.errors()), (6, 0));
    assert_eq!(outcome.elapsed(), Nanos(6 * COST.0));
    assert_eq!(tally(&outcome, Kind::Delete).max(), Nanos(2 * COST.0));
}

#[test]
fn in_real_time_every_latency_is_the_sum_of_its_stages_too() {
    for operation in [Operation::Ycsb(Ycsb::E), Operation::Ycsb(Ycsb::F)] {
        for load in [Load::QueueDepth(4), Load::Rate { per_second: 2_000, outstanding: None }] {
            let until = Until::Operations(100);
            let plan = Plan { operation, until, load, ..MIXED };
            let (outcome, _) = Reactor::new(None).run_in_real_time(async {
                let queue = device(64).await.queue_pair();
                fill(&queue, &plan, |_, _| ()).await.expect("the keys fit");
                run(&queue, &plan, |_, _| ()).await
            });
            // Each operation asserts that its stages add up.
            assert_eq!((outcome.operations(), outcome.errors()), (100, 0));
            for tally in Kind::ALL.into_iter().filter_map(|kind| outcome.tally(kind)) {
                assert!(
                    tally.lateness(1.0).expect("the host sees each completion late") > Nanos::ZERO
                );
                assert!(tally.stage_mean_ns(Stage::Late) > 0.0);
                assert!(tally.max() > COST, "the device takes 10 us");
            }
        }
    }
}

/// Another writes all keys with values of its own, and then removes one after the other.
#[test]
fn the_first_mismatch_tells_key_and_values() {
    let mismatch = |others: Plan| {
        let outcome = Reactor::new(None).run(async {
            let queue = device(64).await.queue_pair();
            fill(&queue, &PLAN, |_, _| ()).await.unwrap();
            if others.operation == Operation::Store {
                fill(&queue, &others, |_, _| ()).await.unwrap();
            } else {
                let plan = Plan { is_filled: true, ..others };
                assert_eq!(run(&queue, &plan, |_, _| ()).await.errors(), 0);
            }
            run(&queue, &Plan { is_filled: true, ..PLAN }, |_, _| ()).await
        });
        assert_eq!(outcome.errors(), outcome.operations());
        outcome.mismatch().unwrap().clone()
    };
    let until = Until::Operations(PLAN.keys);
    let stored = mismatch(Plan { operation: Operation::Store, until, seed: 2, ..PLAN });
    let keys = Keys::new(16, PLAN.keys).unwrap();
    let hex = |bytes: &[u8]| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    };
    let is_key =
        |number: &u64| stored.place == format!("key {}", hex(keys.key(*number).as_bytes()));
    let number = (0..PLAN.keys).find(is_key).unwrap_or_else(|| panic!("{stored}"));
    let value = |seed| {
        let tag = expected_tag(seed, number, 0, 100);
        format!("100 bytes that begin with {}", hex(&tag.to_le_bytes()))
    };
    assert_eq!(stored.expected, format!("version 0, {}", value(1)));
    assert_eq!(stored.found, value(2));
    let deleted = mismatch(Plan { operation: Operation::Delete, until, ..PLAN });
    assert_eq!(deleted.found, "no value");
    assert!(deleted.to_string().contains(": expected version 0, 100 bytes"), "{deleted}");
}

/// A queue whose target is gone after so many completions.
#[derive(Clone)]
struct Leaving {
    queue: QueuePair,
    left: Rc<Cell<u32>>,
}

impl Queue for Leaving {
    fn submit(&self, submission: Submission) -> u64 {
        self.queue.submit(submission)
    }

    async fn next(&self) -> Completion {
        let completion = self.queue.next().await;
        match self.left.get() {
            0 => Completion { status: Status::HOST_PATHING_ERROR, ..completion },
            left => {
                self.left.set(left - 1);
                completion
            }
        }
    }
}

#[test]
fn a_run_submits_no_more_commands_to_a_lost_target() {
    Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        fill(&queue, &PLAN, |_, _| ()).await.unwrap();
        let leaving = Leaving { queue, left: Rc::new(Cell::new(100)) };
        let outcome = run(&leaving, &PLAN, |_, _| ()).await;
        let figures = DeviceFigures::default();
        let report = Report::new("retrieve", "gone", &outcome, 1.0, &figures, None);
        // Those that were outstanding, of 9,000.
        assert_eq!((report.ops, report.errors), (108, 8));
    });
}

/// The target is lost while the next operation is not yet due, and the run then ends at once.
#[test]
fn a_run_at_a_rate_ends_when_its_target_is_lost() {
    let load = Load::Rate { per_second: 1_000, outstanding: None };
    let (outcome, end) = Reactor::new(None).run(async {
        let queue = device(64).await.queue_pair();
        fill(&queue, &PLAN, |_, _| ()).await.unwrap();
        let leaving = Leaving { queue, left: Rc::new(Cell::new(100)) };
        let start = clock::host_now();
        let outcome = run(&leaving, &Plan { load, ..PLAN }, |_, _| ()).await;
        (outcome, clock::host_now() - start)
    });
    let report = Report::new("retrieve", "gone", &outcome, 1.0, &DeviceFigures::default(), None);
    assert_eq!((report.ops, report.errors), (101, 1));
    let last_due = Nanos::from_millis(100);
    assert!((last_due..last_due + Nanos::from_millis(1)).contains(&end), "{end:?}");
}

/// A queue with slow submissions that counts the most outstanding commands.
#[derive(Clone)]
struct Watched {
    queue: QueuePair,
    submitting: Duration,
    outstanding: Rc<Cell<u64>>,
    most: Rc<Cell<u64>>,
}

impl Watched {
    fn new(queue: QueuePair, submitting: Duration) -> Self {
        Self { queue, submitting, outstanding: Rc::default(), most: Rc::default() }
    }
}

impl Queue for Watched {
    fn submit(&self, submission: Submission) -> u64 {
        let start = Instant::now();
        while start.elapsed() < self.submitting {}
        self.outstanding.set(self.outstanding.get() + 1);
        self.most.set(self.most.get().max(self.outstanding.get()));
        self.queue.submit(submission)
    }

    async fn next(&self) -> Completion {
        let completion = self.queue.next().await;
        self.outstanding.set(self.outstanding.get() - 1);
        completion
    }
}

#[test]
fn a_device_has_its_turns_while_the_load_is_late() {
    let operations = 5_000;
    let plan = Plan {
        operation: Operation::Store,
        until: Until::Operations(operations),
        load: Load::Rate { per_second: 1_000_000, outstanding: None },
        ..PLAN
    };
    let served = Reactor::new(None).serve(&Remote::new().unwrap(), async move {
        let controller = device_on(64, Nanos::ZERO, |memory| Arc::new(memory)).await;
        // Longer than the rate allows.
        let queue = Watched::new(controller.queue_pair(), Duration::from_micros(20));
        (run(&queue, &plan, |_, _| {}).await.operations(), queue.most.get())
    });
    let (done, most) = served.unwrap().0;
    assert_eq!(done, operations);
    assert!(most < operations / 10, "{most} at once");
}

#[test]
fn due_operations_wait_in_the_host_at_the_outstanding_limit() {
    let load = Load::Rate { per_second: 125_000, outstanding: Some(8) };
    let (outcome, most) = Reactor::new(None).run(async {
        let queue = Watched::new(device(64).await.queue_pair(), Duration::ZERO);
        fill(&queue, &PLAN, |_, _| ()).await.expect("the keys fit");
        queue.most.set(0);
        (run(&queue, &Plan { load, ..PLAN }, |_, _| ()).await, queue.most.get())
    });
    assert_eq!(most, 8);
    // One handler serves all in order, wherever they wait, so latency is as without a limit.
    let (mean, max) = latency(&outcome);
    assert!((mean - (10_000.0 + 2_000.0 * 8_999.0 / 2.0)).abs() < 1e-3, "{mean}");
    assert!((max - (10_000.0 + 2_000.0 * 8_999.0)).abs() < 1e-3, "{max}");
}
