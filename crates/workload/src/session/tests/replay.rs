use super::*;
use crate::replay::{Pace, Replay, Trace};
use std::fmt::Write;
use std::sync::Arc;

fn plan(text: &str) -> ReplayPlan {
    let trace = Trace::parse("t.csv", text.as_bytes(), None, |_| ()).unwrap();
    ReplayPlan {
        replay: Replay::new(Arc::new(trace), Pace::Full),
        queue_depth: 1,
        nsid: PLAN.nsid,
        seed: 1,
        payload: Payload::None,
    }
}

/// Fills a model and does the trace again on it at `depth`.
fn replayed(model: &mut Model, plan: &ReplayPlan, depth: u64) -> Outcome {
    let filled = drive(model, Session::filling_replay(plan, Nanos(model.now)), 64, |_| ());
    assert_eq!(filled.errors(), 0);
    drive(model, Session::replaying(plan, Nanos(model.now)), depth, |_| ())
}

/// A trace of 2,000 operations on 20 keys, which are stored and deleted again and again, and the
/// number of retrieves, exists and deletes whose key is not there when they are carried out one by
/// one. A key that is asked for before it is stored is there from the start.
fn trace(seed: u64) -> (String, u64) {
    let mut rng = Rng::new(seed);
    let mut text = "time,operation,key,size\n".to_owned();
    let (mut there, mut missing) = (BTreeMap::new(), 0);
    for time in 0..2_000 {
        let key = rng.below(20);
        let size = 1 + rng.below(3_000);
        let operation = ["store", "retrieve", "retrieve", "exist", "delete"]
            [usize::try_from(rng.below(5)).unwrap()];
        let is_there = there.entry(key).or_insert(operation != "store");
        missing += u64::from(operation != "store" && !*is_there);
        match operation {
            "store" => *is_there = true,
            "delete" => *is_there = false,
            _ => (),
        }
        writeln!(text, "{time},{operation},key{key},{size}").unwrap();
    }
    (text, missing)
}

#[test]
fn a_right_device_makes_no_errors_in_whatever_order_it_works() {
    for seed in 0..20 {
        let plan = plan(&trace(seed).0);
        for depth in [2, 13, 200] {
            let outcome = replayed(&mut Model::new(seed), &plan, depth);
            assert_eq!(outcome.errors_by_status(), BTreeMap::new(), "seed {seed}, depth {depth}");
            assert_eq!(outcome.operations(), 2_000);
        }
    }
}

#[test]
fn one_by_one_what_misses_is_what_the_trace_does_not_have() {
    for seed in 0..20 {
        let (text, missing) = trace(seed);
        let outcome = replayed(&mut Model::new(seed), &plan(&text), 1);
        assert_eq!((outcome.errors(), outcome.misses()), (0, Some(missing)), "seed {seed}");
        assert!(missing > 300);
    }
}

#[test]
fn only_keys_that_are_there_before_the_trace_are_stored_before_it() {
    let text = "time,operation,key,size\n0,retrieve,old,70\n1,store,new,8\n2,retrieve,new,8\n";
    let plan = plan(text);
    let mut model = Model::new(1);
    let session = Session::filling_replay(&plan, Nanos(0));
    assert_eq!(session.progress(Nanos(0)), (0, 1));
    let filled = drive(&mut model, session, 9, |_| ());
    assert_eq!((filled.operations(), model.pairs.len()), (1, 1));
    assert_eq!(model.pairs[&b"old"[..]].len(), 70);
    let outcome = drive(&mut model, Session::replaying(&plan, Nanos(0)), 1, |_| ());
    assert_eq!((outcome.errors(), outcome.misses()), (0, Some(0)));
    assert_eq!(model.pairs[&b"new"[..]].len(), 8);
}

/// A trace whose key is there, and then is not.
const STORED_AND_DELETED: &str = "time,operation,key,size\n\
    0,store,key,9\n1,retrieve,key,9\n2,exist,key,9\n3,delete,key,\n\
    4,retrieve,key,9\n5,exist,key,9\n6,delete,key,\n";

#[test]
fn what_the_trace_does_not_allow_is_an_error() {
    // By submission: which status a device that lies returns instead of its own.
    let missing = |completion: &mut Completion| {
        completion.status = Status::KEY_DOES_NOT_EXIST;
        completion.data = Buf::phantom(0, 0);
    };
    let found = |completion: &mut Completion| {
        completion.status = Status::SUCCESS;
        completion.data = ValueGenerator::new(1, Payload::None).value(0, 1, 9);
        completion.result = 9;
    };
    let outcome_with = |place: u64, lie: &dyn Fn(&mut Completion)| {
        let plan = plan(STORED_AND_DELETED);
        let mut model = Model::new(1);
        let mut session = Session::replaying(&plan, Nanos(0));
        while session.has_more(Nanos(model.now)) {
            session.submit(Nanos(model.now), |submission| model.submit(submission));
            let mut completion = model.next();
            if completion.id == 70 + place {
                lie(&mut completion);
            }
            session.complete(&completion, completion.completed, |_| unreachable!());
        }
        let outcome = session.into_outcome();
        (outcome.errors_by_status(), outcome.misses())
    };
    let right = (BTreeMap::new(), Some(3));
    assert_eq!(outcome_with(99, &missing), right);
    for place in [1, 2, 3] {
        let (errors, misses) = outcome_with(place, &missing);
        let expected = BTreeMap::from([("KV Key Does Not Exist".to_owned(), 1)]);
        assert_eq!((errors, misses), (expected, Some(3)), "operation {place}");
    }
    for place in [4, 5] {
        let (errors, misses) = outcome_with(place, &found);
        let expected = BTreeMap::from([("Wrong Value".to_owned(), 1)]);
        assert_eq!((errors, misses), (expected, Some(2)), "operation {place}");
    }
}

#[test]
fn either_order_of_two_outstanding_operations_is_right() {
    let text = "time,operation,key,size\n0,store,key,9\n1,delete,key,\n2,delete,key,\n";
    let plan = plan(text);
    // All are outstanding together: either delete may find the key, or not.
    for seed in 0..50 {
        let outcome = replayed(&mut Model::new(seed), &plan, 3);
        assert_eq!(outcome.errors(), 0, "seed {seed}");
        assert!((1..=2).contains(&outcome.misses().unwrap()), "seed {seed}");
    }
}

#[test]
fn digests_tell_seeds_and_keys_apart() {
    let digest = |seed, text: &str| {
        replayed(&mut Model::new(1), &ReplayPlan { seed, ..plan(text) }, 4).digest(&[])
    };
    let (one, other) = (trace(1).0, trace(2).0);
    assert_eq!(digest(1, &one), digest(1, &one));
    assert_ne!(digest(1, &one), digest(2, &one));
    assert_ne!(digest(1, &one), digest(1, &other));
    assert_ne!(
        digest(1, "time,operation,key,size\n0,store,a,9\n1,delete,a,\n2,delete,a,\n"),
        digest(1, "time,operation,key,size\n0,store,a,9\n1,delete,a,\n2,delete,b,\n"),
    );
}
