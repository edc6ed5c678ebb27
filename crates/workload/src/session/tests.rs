mod blocks;
mod replay;
mod ycsb;

use super::*;
use crate::chooser::Distribution;
use crate::plan::Operation;
use crate::plan::tests::PLAN;
use crate::tally::Tally;
use crate::value::{Payload, ValueGenerator, checksum_of};
use crate::value_sizes::ValueSizes;
use base::{BufMut, Key, Rng};
use spec::{ListWriter, Opcode, Status};
use std::collections::BTreeMap;

/// A device that executes outstanding commands in any order, each between its submission and its
/// completion.
struct Model {
    pairs: BTreeMap<Vec<u8>, Buf>,
    /// The content of a namespace of blocks.
    blocks: Option<blocks::Model>,
    rng: Rng,
    outstanding: Vec<(Submission, Completion, bool)>,
    next_id: u64,
    now: u64,
    /// Falsifies a completion.
    fault: fn(&mut Completion),
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            pairs: BTreeMap::new(),
            blocks: None,
            rng: Rng::new(seed),
            outstanding: Vec::new(),
            next_id: 70,
            now: 0,
            fault: |_| (),
        }
    }

    fn submit(&mut self, submission: Submission) -> u64 {
        let completion = Completion {
            id: self.next_id,
            opcode: submission.command.opcode(),
            status: Status::SUCCESS,
            result: 0,
            data: Buf::phantom(0, 0),
            submitted: Nanos(self.now),
            completed: Nanos(self.now),
            stages: Stages::default(),
        };
        self.outstanding.push((submission, completion, false));
        self.next_id += 1;
        self.next_id - 1
    }

    /// Advances time until a command completes.
    fn next(&mut self) -> Completion {
        loop {
            self.now += 1;
            let count = self.outstanding.len() as u64;
            let chosen = usize::try_from(self.rng.below(count)).unwrap();
            let (submission, completion, is_done) = &mut self.outstanding[chosen];
            if *is_done {
                let (_, mut completion, _) = self.outstanding.swap_remove(chosen);
                completion.completed = Nanos(self.now);
                let latency = completion.completed - completion.submitted;
                completion.stages.add(Stage::Array, latency);
                (self.fault)(&mut completion);
                return completion;
            }
            *is_done = true;
            match &mut self.blocks {
                Some(blocks) => blocks.carry_out(submission, completion),
                None => carry_out(&mut self.pairs, submission, completion),
            }
        }
    }
}

fn key_of(submission: &Submission) -> Vec<u8> {
    let command = &submission.command;
    let len = usize::from(command.key_length());
    let inline = command.inline_key();
    let long = submission.long_key.as_ref().map(Key::as_bytes);
    long.unwrap_or_else(|| &inline[..len]).to_vec()
}

fn carry_out(
    pairs: &mut BTreeMap<Vec<u8>, Buf>,
    submission: &Submission,
    completion: &mut Completion,
) {
    let (key, size) = (key_of(submission), submission.command.size());
    let is_there = pairs.contains_key(&key);
    assert_eq!(submission.command.nsid(), PLAN.nsid);
    match completion.opcode {
        Opcode::STORE => {
            assert_eq!(size, submission.data.len());
            pairs.insert(key, submission.data.clone());
            return;
        }
        Opcode::RETRIEVE if is_there => {
            completion.data = pairs[&key].clone();
            completion.result = completion.data.len().into();
            assert!(size >= completion.data.len(), "there is room for the value");
        }
        Opcode::LIST => {
            let mut buffer = BufMut::unpooled(size as usize);
            let mut writer = ListWriter::new(buffer.as_mut()).unwrap();
            pairs.range(key..).all(|(key, _)| writer.push(key));
            let len = u32::try_from(writer.len()).unwrap();
            completion.data = buffer.freeze().slice(0..len);
            return;
        }
        Opcode::DELETE => drop(pairs.remove(&key)),
        _ => (),
    }
    if !is_there {
        completion.status = Status::KEY_DOES_NOT_EXIST;
    }
}

/// Runs the session at `depth`, calling `seen` with each submission.
fn drive(
    model: &mut Model,
    mut session: Session,
    depth: u64,
    mut seen: impl FnMut(&Submission),
) -> Outcome {
    loop {
        while session.has_more(Nanos(model.now)) && session.outstanding() < depth {
            if session.is_held() {
                break;
            }
            session.submit(Nanos(model.now), |submission| {
                seen(&submission);
                model.submit(submission)
            });
        }
        if session.outstanding() == 0 {
            return session.into_outcome();
        }
        let completion = model.next();
        session.complete(&completion, completion.completed, |submission| {
            seen(&submission);
            model.submit(submission)
        });
    }
}

fn run(model: &mut Model, plan: Plan) -> Outcome {
    if plan.needs_fill() {
        let filled = drive(model, Session::filling(&plan, Nanos(0)), 64, |_| ());
        assert_eq!((filled.operations(), filled.errors()), (plan.keys, 0));
        assert_eq!(model.pairs.len() as u64, plan.keys);
    }
    drive(model, Session::new(&plan, Nanos(model.now)), 13, |_| ())
}

const MIXED: Operation = Operation::Mixed { read_percent: 50 };

const MANY: Until = Until::Operations(20_000);

const PLANS: [Plan; 11] = [
    PLAN,
    Plan { operation: MIXED, until: MANY, keys: 40, ..PLAN },
    Plan {
        operation: MIXED,
        until: MANY,
        distribution: Distribution::Zipfian,
        values: ValueSizes::Fixed(8),
        ..PLAN
    },
    Plan {
        operation: Operation::Store,
        until: Until::Operations(90),
        values: ValueSizes::Fixed(0),
        ..PLAN
    },
    Plan { operation: Operation::Store, until: Until::Operations(3_000), key_bytes: 40, ..PLAN },
    Plan { operation: Operation::Delete, until: Until::Operations(90), key_bytes: 1, ..PLAN },
    Plan { operation: Operation::Exist, distribution: Distribution::Zipfian, ..PLAN },
    Plan { operation: MIXED, values: ValueSizes::Uniform { min: 0, max: 20 }, ..PLAN },
    Plan { operation: MIXED, values: ValueSizes::Zipfian { min: 1, max: 300 }, ..PLAN },
    Plan { operation: MIXED, distribution: Distribution::Latest, ..PLAN },
    Plan { distribution: Distribution::Sequential, key_bytes: 9, ..PLAN },
];

fn operations(plan: &Plan) -> u64 {
    match plan.until {
        Until::Operations(operations) => operations,
        Until::Time(_) => panic!("the plan is for a time"),
    }
}

#[test]
fn a_right_device_makes_no_errors_in_whatever_order_it_works() {
    for plan in PLANS {
        for seed in 0..10 {
            let outcome = run(&mut Model::new(seed), plan);
            assert_eq!(outcome.errors_by_status(), BTreeMap::new(), "{plan:?}, seed {seed}");
            assert_eq!(outcome.operations(), operations(&plan));
        }
    }
}

#[test]
fn digests_are_those_of_the_seed_in_every_payload_mode() {
    for plan in PLANS {
        let digest =
            |seed, payload| run(&mut Model::new(1), Plan { seed, payload, ..plan }).digest(&[]);
        let known = digest(1, Payload::None);
        assert_eq!(known, digest(1, Payload::None), "{plan:?}");
        assert_eq!(known, digest(1, Payload::Checksum), "{plan:?}");
        assert_eq!(known, digest(1, Payload::Full), "{plan:?}");
        // Values without a byte are all the same.
        assert_eq!(plan.values.max() == 0, known == digest(2, Payload::None), "{plan:?}");
    }
}

#[test]
fn a_wrong_value_is_an_error_in_every_payload_mode() {
    let faults: [fn(&mut Completion); 4] = [
        // Of another key or version.
        |completion| completion.data = ValueGenerator::new(1, Payload::Full).value(99, 9, 100),
        |completion| completion.data = completion.data.with_flipped_bit(0),
        |completion| completion.data = completion.data.slice(0..99),
        |completion| completion.result += 1,
    ];
    for payload in [Payload::Full, Payload::None] {
        for operation in [Operation::Retrieve, Operation::Mixed { read_percent: 100 }] {
            for fault in faults {
                let plan = Plan { operation, payload, keys: 50, ..PLAN };
                let mut model = Model::new(1);
                let filled = drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
                assert_eq!(filled.errors(), 0);
                model.fault = fault;
                let outcome = drive(&mut model, Session::new(&plan, Nanos(0)), 4, |_| ());
                let expected = [("Wrong Value".to_owned(), operations(&plan))];
                assert_eq!(outcome.errors_by_status(), BTreeMap::from(expected));
            }
        }
    }
}

#[test]
fn an_overwritten_value_is_an_error() {
    let plan = Plan { operation: MIXED, keys: 10, ..PLAN };
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let before = model.pairs.clone();
    let mut session = Session::new(&plan, Nanos(0));
    let (mut overwritten, mut wrong) = (std::collections::BTreeSet::new(), 0);
    while session.has_more(Nanos(model.now)) {
        let mut asked = None;
        session.submit(Nanos(model.now), |submission| {
            asked = Some((submission.command.opcode(), key_of(&submission)));
            model.submit(submission)
        });
        let (opcode, key) = asked.unwrap();
        let mut completion = model.next();
        if opcode == Opcode::STORE {
            overwritten.insert(key);
        } else {
            completion.data = before[&key].clone();
            wrong += u64::from(overwritten.contains(&key));
        }
        session.complete(&completion, completion.completed, |_| unreachable!());
    }
    assert!(wrong > 400, "{wrong} of about 500");
    let expected = [("Wrong Value".to_owned(), wrong)];
    assert_eq!(session.into_outcome().errors_by_status(), BTreeMap::from(expected));
}

#[test]
fn a_missing_key_is_an_error_wherever_it_is_needed() {
    for operation in [Operation::Retrieve, Operation::Delete, Operation::Exist] {
        let plan = Plan { operation, until: Until::Operations(60), ..PLAN };
        let outcome = drive(&mut Model::new(1), Session::new(&plan, Nanos(0)), 4, |_| ());
        let expected = [("KV Key Does Not Exist".to_owned(), 60)];
        assert_eq!(outcome.errors_by_status(), BTreeMap::from(expected));
    }
}

#[test]
fn stores_and_deletes_take_each_key_once_and_stores_then_overwrite() {
    for (operation, operations) in [(Operation::Store, 400), (Operation::Delete, 100)] {
        let plan = Plan { operation, until: Until::Operations(operations), ..PLAN };
        let mut model = Model::new(1);
        if plan.needs_fill() {
            drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
        }
        let mut keys = Vec::new();
        let session = Session::new(&plan, Nanos(0));
        let outcome = drive(&mut model, session, 4, |submission| keys.push(key_of(submission)));
        assert_eq!(outcome.errors(), 0);
        assert_eq!(keys.len() as u64, operations);
        assert!(!keys[..100].is_sorted());
        keys[..100].sort();
        keys[..100].iter().zip(&keys[1..100]).for_each(|(key, next)| assert!(key < next));
        assert_eq!(model.pairs.len(), if operation == Operation::Delete { 0 } else { 100 });
    }
}

#[test]
fn a_mixture_has_the_share_of_retrieves_that_was_asked_for() {
    for read_percent in [0, 1, 30, 95, 100] {
        let operation = Operation::Mixed { read_percent };
        let plan = Plan { operation, until: MANY, ..PLAN };
        let outcome = run(&mut Model::new(1), plan);
        let retrieves = outcome.tally(Kind::Retrieve).map_or(0, Tally::count);
        let stores = outcome.tally(Kind::Store).map_or(0, Tally::count);
        assert_eq!(retrieves + stores, 20_000);
        // Four standard deviations of a fair draw of 20,000, at most 283.
        let expected = u64::from(read_percent) * 200;
        let slack = if read_percent % 100 == 0 { 0 } else { 283 };
        assert!(retrieves.abs_diff(expected) <= slack, "{retrieves} at {read_percent} %");
    }
}

#[test]
fn a_fill_stops_at_the_first_store_that_fails() {
    let mut model = Model::new(1);
    model.fault = |completion| {
        if completion.id >= 70 + 30 {
            completion.status = Status::CAPACITY_EXCEEDED;
        }
    };
    let outcome = drive(&mut model, Session::filling(&PLAN, Nanos(0)), 8, |_| ());
    assert_eq!(outcome.failure(), Some(Status::CAPACITY_EXCEEDED));
    assert_eq!(outcome.operations() - outcome.errors(), 30);
    assert!(outcome.operations() <= 30 + 2 * 8 + 8, "{} operations", outcome.operations());
}

#[test]
fn a_value_of_another_versions_length_is_an_error() {
    let plan = Plan { values: ValueSizes::Uniform { min: 9, max: 4_000 }, keys: 50, ..PLAN };
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    // Its own tag, cut or drawn out to one byte more or less.
    model.fault = |completion| {
        let tag = checksum_of(&completion.data).unwrap();
        completion.result += 1;
        completion.data = Buf::phantom(completion.data.len() + 1, tag);
    };
    let outcome = drive(&mut model, Session::new(&plan, Nanos(0)), 4, |_| ());
    let expected = [("Wrong Value".to_owned(), 1_000)];
    assert_eq!(outcome.errors_by_status(), BTreeMap::from(expected));
}

#[test]
fn in_sequence_keys_rise_whatever_is_done_with_them() {
    for operation in [Operation::Store, Operation::Retrieve, Operation::Delete, MIXED] {
        let distribution = Distribution::Sequential;
        let until = Until::Operations(100);
        let plan = Plan { operation, distribution, until, key_bytes: 2, ..PLAN };
        let mut model = Model::new(1);
        let mut keys = Vec::new();
        drive(&mut model, Session::filling(&plan, Nanos(0)), 9, |asked| keys.push(key_of(asked)));
        let session = Session::new(&plan, Nanos(0));
        let outcome = drive(&mut model, session, 4, |asked| keys.push(key_of(asked)));
        assert_eq!(outcome.errors(), 0);
        let expected: Vec<Vec<u8>> = (0..100).chain(0..100).map(|number| vec![0, number]).collect();
        assert_eq!(keys, expected, "{operation:?}");
    }
}

#[test]
fn a_run_for_a_time_submits_until_then_and_waits_for_the_rest() {
    let duration = Nanos(5_000);
    let plan = Plan { until: Until::Time(duration), ..PLAN };
    let mut model = Model::new(3);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let start = model.now;
    let mut session = Session::new(&plan, Nanos(start));
    let mut last_due = 0;
    while session.has_more(Nanos(model.now)) {
        while session.outstanding() < 9 {
            last_due = model.now;
            session.submit(Nanos(model.now), |submission| model.submit(submission));
        }
        let completion = model.next();
        session.complete(&completion, completion.completed, |_| unreachable!());
    }
    assert_eq!(session.outstanding(), 8, "nothing more is submitted");
    assert!(last_due < start + 5_000 && model.now >= start + 5_000);
    assert_eq!(session.progress(Nanos(start + 2_000)), (2_000, 5_000));
    assert_eq!(session.progress(Nanos(start + 7_000)), (5_000, 5_000));
}

#[test]
fn deletes_end_when_keys_run_out() {
    let until = Until::Time(Nanos::from_secs(1));
    let plan = Plan { operation: Operation::Delete, until, ..PLAN };
    let outcome = run(&mut Model::new(1), plan);
    assert_eq!((outcome.operations(), outcome.errors()), (100, 0));
}

#[test]
fn late_completions_add_their_lateness_to_the_latency() {
    let plan = Plan { until: Until::Operations(1), ..PLAN };
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let due = Nanos(model.now);
    model.now += 70;
    let mut session = Session::new(&plan, due);
    session.submit(due, |submission| model.submit(submission));
    let completion = model.next();
    session.complete(&completion, completion.completed + Nanos(900), |_| unreachable!());
    let outcome = session.into_outcome();
    let tally = outcome.tally(Kind::Retrieve).unwrap();
    assert_eq!(tally.max(), completion.completed + Nanos(900) - due);
    assert!((tally.stage_mean_ns(Stage::Queue) - 70.0).abs() < 1e-9);
    assert!((tally.stage_mean_ns(Stage::Late) - 900.0).abs() < 1e-9);
    assert_eq!(tally.lateness(1.0), Some(Nanos(900)));
    assert_eq!(outcome.elapsed(), tally.max());
}

#[test]
#[should_panic(expected = "outstanding")]
fn a_completion_that_comes_twice_panics() {
    let mut model = Model::new(1);
    let mut session = Session::new(&Plan { operation: Operation::Store, ..PLAN }, Nanos(0));
    session.submit(Nanos(0), |submission| model.submit(submission));
    session.submit(Nanos(0), |submission| model.submit(submission));
    let completion = model.next();
    for _ in 0..2 {
        session.complete(&completion, completion.completed, |_| unreachable!());
    }
}
