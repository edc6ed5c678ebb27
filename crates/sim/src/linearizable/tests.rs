use super::*;
use base::{Nanos, Rng};

const A: Version = Version(1);
const B: Version = Version(2);
const C: Version = Version(3);

fn moment(order: u64) -> Moment {
    Moment { at: Nanos(order * 10), order }
}

fn answered(from: u64, to: u64, call: Call, outcome: Outcome) -> Operation {
    let (invoked, returned) = (moment(from), moment(to));
    Operation { call, invoked, returned, outcome: Some(outcome) }
}

fn cut_off(from: u64, at: u64, call: Call) -> Operation {
    Operation { call, invoked: moment(from), returned: moment(at), outcome: None }
}

fn store(from: u64, to: u64, version: Version) -> Operation {
    answered(from, to, Call::Store(version, Condition::None), Outcome::Done)
}

fn create(from: u64, to: u64, version: Version, outcome: Outcome) -> Operation {
    answered(from, to, Call::Store(version, Condition::MustNotExist), outcome)
}

fn read(from: u64, to: u64, version: Version) -> Operation {
    answered(from, to, Call::Retrieve, Outcome::Value(version))
}

fn miss(from: u64, to: u64) -> Operation {
    answered(from, to, Call::Retrieve, Outcome::NotFound)
}

fn delete(from: u64, to: u64, outcome: Outcome) -> Operation {
    answered(from, to, Call::Delete, outcome)
}

fn check_all(operations: &[Operation]) -> Result<(), Violation> {
    check(&History::of(operations.to_vec()))
}

fn assert_legal(operations: &[Operation]) {
    if let Err(violation) = check_all(operations) {
        panic!("{violation}");
    }
}

/// Also that `core` is what is shown of it.
fn assert_illegal(operations: &[Operation], core: &[Operation]) {
    assert_eq!(check_all(operations).unwrap_err().operations(), core);
}

#[test]
fn operations_one_after_the_other_are_legal_as_they_are() {
    assert_legal(&[
        miss(0, 1),
        delete(2, 3, Outcome::NotFound),
        store(4, 5, A),
        read(6, 7, A),
        create(8, 9, B, Outcome::Exists),
        answered(10, 11, Call::Store(B, Condition::MustExist), Outcome::Done),
        answered(12, 13, Call::Exist, Outcome::Done),
        delete(14, 15, Outcome::Done),
        answered(16, 17, Call::Exist, Outcome::NotFound),
        answered(18, 19, Call::Store(C, Condition::MustExist), Outcome::NotFound),
        answered(20, 21, Call::Store(C, Condition::MustNotExist), Outcome::Full),
        create(22, 23, C, Outcome::Done),
        read(24, 25, C),
    ]);
}

#[test]
fn overlapping_operations_may_take_either_order() {
    for seen in [A, B] {
        assert_legal(&[store(0, 3, A), store(1, 2, B), read(4, 5, seen)]);
    }
    assert_legal(&[store(0, 5, A), miss(1, 2), read(3, 4, A)]);
}

#[test]
fn a_stale_read_is_found() {
    let stale = [store(0, 1, A), store(2, 3, B), read(6, 7, A)];
    assert_illegal(&stale, &stale);
    let noise = [store(8, 9, C), read(10, 11, C), miss(12, 13)];
    assert_illegal(&[&stale[..], &noise[..]].concat(), &stale);
    let seen = [store(0, 1, A), store(2, 3, B), read(4, 5, B), read(6, 7, A)];
    assert_illegal(&seen, &seen);
}

#[test]
fn two_reads_of_overlapping_stores_agree_on_their_order() {
    let stores = [store(0, 9, A), store(1, 8, B)];
    assert_legal(&[&stores[..], &[read(2, 3, A), read(4, 5, B)]].concat());
    let core = [store(0, 9, A), read(2, 3, A), read(4, 5, B), read(6, 7, A)];
    let all = [&stores[..], &core[1..]].concat();
    assert!(check_all(&all).is_err());
}

#[test]
fn a_lost_update_is_found() {
    let lost = [store(0, 1, A), delete(2, 3, Outcome::Done), miss(4, 5)];
    assert_legal(&lost);
    assert_illegal(&[store(0, 1, A), miss(2, 3)], &[store(0, 1, A), miss(2, 3)]);
    let update = answered(2, 3, Call::Store(B, Condition::MustExist), Outcome::Done);
    assert_illegal(
        &[store(0, 1, A), update, read(4, 5, A)],
        &[store(0, 1, A), update, read(4, 5, A)],
    );
}

#[test]
fn two_winners_of_one_creation_are_found() {
    let winners = [create(0, 3, A, Outcome::Done), create(1, 2, B, Outcome::Done)];
    assert_illegal(&winners, &winners);
    assert_legal(&[winners[0], create(1, 2, B, Outcome::Exists)]);
    assert_legal(&[winners[0], winners[1], delete(0, 4, Outcome::Done)].map(|mut operation| {
        operation.invoked = moment(0);
        operation
    }));
}

#[test]
fn a_deleted_value_that_comes_back_is_found() {
    let history = [store(0, 1, A), delete(2, 3, Outcome::Done), read(6, 7, A)];
    assert_illegal(&history, &history);
    let seen = [history[0], history[1], miss(4, 5), history[2]];
    assert_illegal(&seen, &[seen[0], seen[2], seen[3]]);
}

#[test]
fn a_read_from_the_future_is_found() {
    assert_illegal(&[read(0, 1, A), store(2, 3, A)], &[read(0, 1, A)]);
    assert_legal(&[read(0, 3, A), store(1, 2, A)]);
}

#[test]
fn answers_that_no_call_can_have_are_found() {
    for (call, outcome) in [
        (Call::Exist, Outcome::Full),
        (Call::Delete, Outcome::Full),
        (Call::Retrieve, Outcome::Done),
        (Call::Store(A, Condition::None), Outcome::NotFound),
        (Call::Store(A, Condition::MustExist), Outcome::Exists),
        (Call::Store(A, Condition::MustNotExist), Outcome::NotFound),
    ] {
        let operation = answered(0, 1, call, outcome);
        assert_illegal(&[operation], &[operation]);
    }
}

#[test]
fn an_operation_that_was_cut_off_happened_before_or_never() {
    let cut = cut_off(2, 3, Call::Store(B, Condition::None));
    assert_legal(&[store(0, 1, A), cut, read(4, 5, A), read(6, 7, A)]);
    assert_legal(&[store(0, 1, A), cut, read(4, 5, B), read(6, 7, B)]);
    let wavering = [store(0, 1, A), cut, read(4, 5, A), read(6, 7, B)];
    assert_illegal(&wavering, &wavering);
}

#[test]
fn cut_off_operations_happen_in_any_order_and_number() {
    let cut = [
        cut_off(0, 9, Call::Store(A, Condition::MustNotExist)),
        cut_off(1, 9, Call::Delete),
        cut_off(2, 9, Call::Store(B, Condition::MustExist)),
        cut_off(3, 9, Call::Retrieve),
    ];
    for last in [miss(10, 11), read(10, 11, A), read(10, 11, B)] {
        assert_legal(&[&cut[..], &[last]].concat());
    }
    assert!(check_all(&[cut[1], cut[2], read(10, 11, B)]).is_err(), "nothing creates the key");
}

#[test]
fn equal_values_may_come_from_any_of_their_stores() {
    assert_legal(&[store(0, 1, A), store(2, 3, B), store(4, 5, A), read(6, 7, A)]);
    assert!(check_all(&[store(0, 1, A), store(2, 3, A), store(4, 5, B), read(6, 7, A)]).is_err());
}

fn lost(from: u64, to: u64) -> Operation {
    answered(from, to, Call::Retrieve, Outcome::Lost)
}

/// A fault between two moments takes a value for good, or that there is none, and nothing without a
/// fault does.
#[test]
fn a_lost_value_stays_lost_until_it_is_stored_again() {
    let fault = cut_off(2, 5, Call::Lose);
    let exists = answered(8, 9, Call::Exist, Outcome::Done);
    assert_legal(&[store(0, 1, A), fault, read(3, 4, A), lost(6, 7), exists, lost(10, 11)]);
    assert_legal(&[store(0, 1, A), fault, lost(6, 7), store(8, 9, B), read(10, 11, B)]);
    assert_legal(&[store(0, 1, A), fault, lost(6, 7), delete(8, 9, Outcome::Done), miss(10, 11)]);
    let back = [store(0, 1, A), fault, lost(6, 7), read(8, 9, A)];
    assert!(check_all(&back).is_err(), "a value does not come back");
    assert!(check_all(&[store(0, 1, A), lost(6, 7)]).is_err(), "nothing took the value");
    let gone = delete(2, 3, Outcome::Done);
    assert_legal(&[store(0, 1, A), gone, cut_off(4, 5, Call::Lose), lost(6, 7)]);
}

#[test]
fn what_worn_flash_refuses_has_changed_nothing() {
    let stores = |outcome| answered(2, 3, Call::Store(B, Condition::None), outcome);
    for refused in [answered(2, 3, Call::Delete, Outcome::Full), stores(Outcome::Lost)] {
        let without = |after| {
            let history = History::of(vec![store(0, 1, A), refused, after]);
            assert!(check(&history).is_err());
            check(&history.on_bad_blocks())
        };
        assert_eq!(without(read(4, 5, A)), Ok(()));
        assert!(without(read(4, 5, B)).is_err());
        assert!(without(answered(4, 5, Call::Retrieve, Outcome::NotFound)).is_err());
    }
}

/// A delete whose tombstone could not be programmed, and a concurrent store that found the key
/// gone.
#[test]
fn a_concurrent_change_may_have_seen_a_refused_one() {
    let refused = answered(2, 6, Call::Delete, Outcome::Lost);
    let create =
        |from, to| answered(from, to, Call::Store(B, Condition::MustNotExist), Outcome::Done);
    let with = |create| check(&History::of(vec![store(0, 1, A), refused, create]).on_bad_blocks());
    assert_eq!(with(create(3, 5)), Ok(()));
    assert_eq!(with(create(5, 8)), Ok(()));
    assert!(with(create(7, 8)).is_err(), "the delete had failed by then");
}

#[test]
fn losses_are_added_for_the_answers_that_tell_of_them() {
    let history = |operations: &[Operation]| History::of(operations.to_vec());
    let once = history(&[store(0, 1, A), lost(2, 3), lost(4, 5)]);
    assert!(check(&once).is_err());
    assert_eq!(check(&once.with_faults(&[], &[])), Ok(()));
    let back = history(&[store(0, 1, A), store(2, 3, B), lost(4, 5), read(8, 9, B)]);
    assert!(check(&back.with_faults(&[], &[])).is_err(), "not without a loss of power");
    assert_eq!(check(&back.with_faults(&[moment(7)], &[])), Ok(()), "an older copy was found");
    let older = history(&[store(0, 1, A), store(2, 3, B), lost(4, 5), read(8, 9, A)]);
    assert!(check(&older.with_faults(&[moment(7)], &[])).is_err(), "of the same value only");
}

#[test]
fn what_is_older_may_be_back_where_faults_have_cut_off_the_end() {
    let history =
        |last| History::of(vec![store(0, 1, A), store(2, 3, B), delete(4, 5, Outcome::Done), last]);
    for last in [read(8, 9, A), read(8, 9, B)] {
        assert!(check(&history(last).with_faults(&[moment(7)], &[])).is_err());
        assert_eq!(check(&history(last).with_faults(&[], &[moment(7)])), Ok(()));
    }
    assert!(check(&history(read(8, 9, C)).with_faults(&[], &[moment(7)])).is_err(), "never there");
}

/// Stores of A and B, a loss of power that forgets operations after `since`, and a read.
fn forgetful(since: u64, last: fn(u64, u64) -> Operation) -> Result<(), Violation> {
    let mut history = History::of(vec![store(0, 1, A), store(2, 3, B), store(6, 7, C)]);
    history.forget(moment(since), Nanos(80));
    let (from, to) = (history.now(Nanos(90)).order, history.now(Nanos(90)).order);
    let mut operations = history.operations().to_vec();
    operations.push(last(from, to));
    check_all(&operations)
}

#[test]
fn memory_that_is_not_saved_forgets_what_was_not_flushed() {
    let [a, b, c]: [fn(u64, u64) -> Operation; 3] =
        [|from, to| read(from, to, A), |from, to| read(from, to, B), |from, to| read(from, to, C)];
    for last in [b, c] {
        assert_eq!(forgetful(5, last), Ok(()), "C was not flushed");
    }
    assert!(forgetful(5, a).is_err() && forgetful(5, miss).is_err(), "B was");
    for last in [a, b, c, miss] {
        assert_eq!(forgetful(0, last), Ok(()), "nothing was");
    }
    assert!(forgetful(8, b).is_err() && forgetful(8, c).is_ok(), "all was");
}

/// A key as a test model: what is there, if anything.
type Model = Option<Version>;

/// The answer of a call, and the state after it, as the specification has them.
fn execute(model: Model, call: Call) -> (Outcome, Model) {
    match (call, model) {
        (
            Call::Store(_, Condition::MustExist) | Call::Retrieve | Call::Exist | Call::Delete,
            None,
        ) => (Outcome::NotFound, None),
        (Call::Store(_, Condition::MustNotExist), Some(_)) => (Outcome::Exists, model),
        (Call::Store(version, _), _) => (Outcome::Done, Some(version)),
        (Call::Retrieve, Some(Version::LOST)) => (Outcome::Lost, model),
        (Call::Retrieve, Some(version)) => (Outcome::Value(version), model),
        (Call::Exist, Some(_)) => (Outcome::Done, model),
        (Call::Delete, Some(_)) | (Call::Clear, _) => (Outcome::Done, None),
        (Call::Revert(state), _) => (Outcome::Done, state),
        (Call::Lose, _) => (Outcome::Done, Some(Version::LOST)),
    }
}

/// Tries every order of every choice of operations, with no thought at all.
fn some_order_explains(left: &[Operation], model: Model) -> bool {
    left.iter().all(|operation| operation.outcome.is_none())
        || (0..left.len()).any(|at| {
            let operation = left[at];
            let others = [&left[..at], &left[at + 1..]].concat();
            if others.iter().any(|other| other.returned < operation.invoked) {
                return false;
            }
            let (outcome, after) = execute(model, operation.call);
            let fits = match operation.outcome {
                Some(Outcome::Full) => matches!(operation.call, Call::Store(..)),
                Some(answer) => answer == outcome,
                None => true,
            };
            let after = if operation.outcome == Some(Outcome::Full) { model } else { after };
            (fits && some_order_explains(&others, after))
                || (operation.outcome.is_none() && some_order_explains(&others, model))
        })
}

fn random_call(rng: &mut Rng, versions: u64) -> Call {
    let version = Version(u32::try_from(rng.below(versions)).unwrap());
    match rng.below(11) {
        0..2 => Call::Store(version, Condition::None),
        2 => Call::Store(version, Condition::MustExist),
        3..5 => Call::Store(version, Condition::MustNotExist),
        5..8 => Call::Retrieve,
        8 => Call::Exist,
        9 => Call::Clear,
        _ => Call::Delete,
    }
}

fn random_outcome(rng: &mut Rng, versions: u64) -> Option<Outcome> {
    Some(match rng.below(8) {
        0 => Outcome::NotFound,
        1 => Outcome::Exists,
        2 => Outcome::Full,
        3..5 => Outcome::Done,
        5..7 => Outcome::Value(Version(u32::try_from(rng.below(versions)).unwrap())),
        _ => return None,
    })
}

/// Operations that happened 10 apart and were seen as taking up to `spread` before and after.
fn random_history(rng: &mut Rng, count: u64, versions: u64, spread: u64) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut model = None;
    for turn in 0..count {
        let call = random_call(rng, versions);
        let (outcome, after) = execute(model, call);
        model = after;
        let happened = 1_000 + turn * 10;
        let (from, to) = (happened - 1 - rng.below(spread), happened + 1 + rng.below(spread));
        // Unlike each other, also where two ends fall on one instant.
        operations.push(answered(
            from * 1_000 + 2 * turn,
            to * 1_000 + 2 * turn + 1,
            call,
            outcome,
        ));
    }
    operations
}

#[test]
fn random_histories_of_a_sequential_key_are_legal_however_they_overlap() {
    let mut rng = Rng::new(1);
    for round in 0..100 {
        let versions = 2 + round % 200;
        // Up to 64 operations are open at a time.
        let spread = 1 + rng.below(320);
        assert_legal(&random_history(&mut rng, 300, versions, spread));
    }
}

#[test]
fn the_search_agrees_with_trying_every_order() {
    let mut rng = Rng::new(2);
    let mut illegal = 0;
    for round in 0..20_000 {
        let (count, spread) = (1 + rng.below(7), 1 + rng.below(40));
        let mut operations = random_history(&mut rng, count, 3, spread);
        for _ in 0..round % 3 {
            let at = usize::try_from(rng.below(count)).unwrap();
            operations[at].outcome = random_outcome(&mut rng, 3);
        }
        let legal = some_order_explains(&operations, None);
        assert_eq!(check_all(&operations).is_ok(), legal, "round {round}: {operations:?}");
        illegal += u32::from(!legal);
    }
    assert!((4_000..12_000).contains(&illegal), "{illegal} of 20000 were illegal");
}

#[test]
fn a_violation_is_shown_by_a_few_operations_that_are_impossible_by_themselves() {
    let mut rng = Rng::new(3);
    let mut shown = 0;
    for _ in 0..200 {
        let mut operations = random_history(&mut rng, 200, 1_000_000, 40);
        let at = 50 + usize::try_from(rng.below(100)).unwrap();
        operations[at].outcome = random_outcome(&mut rng, 1_000_000);
        if let Err(violation) = check_all(&operations) {
            assert!(check_all(violation.operations()).is_err(), "{violation}");
            assert!(violation.operations().len() <= 40, "{violation}");
            shown += 1;
        }
    }
    assert!(shown > 100, "{shown}");
}

#[test]
fn sixty_four_at_a_time_are_decided_also_when_they_are_illegal() {
    let mut operations: Vec<_> = (0..64)
        .map(|turn| store(turn, 64 + turn, Version(u32::try_from(turn).unwrap())))
        .chain((0..64).map(|turn| miss(200 + turn, 300 + turn)))
        .collect();
    assert!(check_all(&operations).is_err());
    operations.insert(0, answered(0, 150, Call::Delete, Outcome::Done));
    operations[0].invoked = moment(100);
    operations[1].returned = moment(99);
    assert_legal(&operations);
}
