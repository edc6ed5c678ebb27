use super::QueueKey;
use crate::door::Door;
use crate::failure::Failure;
use crate::transaction::Transaction;
use crate::transaction::tests::{SPACE, door, key};
use base::{Buf, BufMut, Nanos};
use clock::Stage;
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const COMMANDS: usize = 20;

fn keys(names: &[&str]) -> Vec<QueueKey> {
    names.iter().map(|name| (SPACE, key(name))).collect()
}

async fn number(transaction: &mut Transaction, name: &str) -> Result<u8, Failure> {
    let held = transaction.get(SPACE, &key(name)).await?;
    Ok(held.map_or(0, |held| held.value.bytes().expect("bytes")[0]))
}

async fn add_one(transaction: &mut Transaction, name: &str) -> Result<u8, Failure> {
    let sum = number(transaction, name).await? + 1;
    transaction.put(SPACE, &key(name), Buf::copy_from(&[sum]), None);
    Ok(sum)
}

/// Executes `work` for each of as many commands that arrive in one poll. Returns their outcomes in
/// the order of arrival, and how many executions and batches that took.
async fn arrive_together<T: 'static>(
    door: &Arc<Door>,
    names: &'static [&'static str],
    work: impl AsyncFn(usize, &mut Transaction) -> Result<T, Failure> + Copy + 'static,
) -> (Vec<Result<T, Failure>>, [u64; 2]) {
    let outcomes = Rc::new(RefCell::new(BTreeMap::new()));
    for command in 0..COMMANDS {
        let (door, outcomes) = (door.clone(), outcomes.clone());
        clock::spawn(async move {
            let work = async |transaction: &mut Transaction| work(command, transaction).await;
            let outcome = door.in_turn(keys(names), false, work).await;
            outcomes.borrow_mut().insert(command, outcome);
        });
    }
    clock::sleep(Nanos::from_micros(1_000), Stage::Core).await;
    let counted = [door.counters().executions(), door.counters().batches()];
    let outcomes: Vec<_> = outcomes.take().into_values().collect();
    assert_eq!(outcomes.len(), COMMANDS, "some wait without end");
    assert!(!door.key_queues().has(SPACE, &key(names[0])), "a queue is left");
    (outcomes, counted)
}

#[test]
fn commands_that_arrive_in_one_poll_are_one_batch() {
    Reactor::new(None).run(async {
        for names in [&["a"][..], &["b", "a", "b"]] {
            let door = Arc::new(door().await);
            let work = async |_, transaction: &mut Transaction| add_one(transaction, "a").await;
            let (outcomes, counted) = arrive_together(&door, names, work).await;
            let sums: Vec<_> = outcomes.into_iter().map(|sum| sum.expect("it is done")).collect();
            assert_eq!(sums, (1..=20).collect::<Vec<u8>>(), "in the order of arrival");
            assert_eq!(counted, [20, 1]);
            assert_eq!(number(&mut door.transaction(), "a").await.ok(), Some(20));
        }
    });
}

#[test]
fn a_command_that_fails_leaves_the_others_of_its_batch() {
    Reactor::new(None).run(async {
        let work = async |command, transaction: &mut Transaction| {
            let sum = add_one(transaction, "a").await?;
            if command % 2 == 1 { Err(Failure::SYNTAX) } else { Ok(sum) }
        };
        let door = Arc::new(door().await);
        let (outcomes, counted) = arrive_together(&door, &["a"], work).await;
        let sums: Vec<_> = outcomes.into_iter().filter_map(Result::ok).collect();
        assert_eq!(sums, (1..=10).collect::<Vec<u8>>());
        assert_eq!(counted, [20, 1]);
        assert_eq!(number(&mut door.transaction(), "a").await.ok(), Some(10));
    });
}

/// Each writes as much as a third of what the store takes at once, to a key of its own.
#[test]
fn what_does_not_fit_a_batch_begins_the_next_one() {
    Reactor::new(None).run(async {
        let door = Arc::new(door().await);
        let max = usize::try_from(door.store().batch_bytes_max()).expect("it is small");
        let work = async move |command: usize, transaction: &mut Transaction| {
            let long = BufMut::unpooled(max / 3 - 100).freeze();
            transaction.put(SPACE, &key(&format!("long{}", command % 4)), long, None);
            add_one(transaction, "a").await
        };
        let (outcomes, [executions, batches]) = arrive_together(&door, &["a"], work).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(number(&mut door.transaction(), "a").await.ok(), Some(20));
        assert!((5..=10).contains(&batches), "{batches} batches");
        assert!(executions <= 40, "{executions} executions");
    });
}

/// One of them writes more than is free on the drive: it alone is refused.
#[test]
fn a_command_that_the_store_refuses_leaves_the_others_of_its_batch() {
    const LEN: usize = 100_000;
    Reactor::new(None).run(async {
        let door = Arc::new(door().await);
        for number in 0.. {
            let mut transaction = door.transaction();
            let name = key(&format!("full{number}"));
            transaction.put(SPACE, &name, BufMut::unpooled(LEN).freeze(), None);
            if transaction.commit().await.is_err() {
                break;
            }
        }
        let work = async |command, transaction: &mut Transaction| {
            if command == 7 {
                let long = BufMut::unpooled(LEN).freeze();
                transaction.put(SPACE, &key("long"), long, None);
            }
            add_one(transaction, "a").await
        };
        let (outcomes, [executions, batches]) = arrive_together(&door, &["a"], work).await;
        let refused: Vec<_> = (0..COMMANDS).filter(|at| outcomes[*at].is_err()).collect();
        assert_eq!(refused, [7], "{outcomes:?}");
        assert_eq!(number(&mut door.transaction(), "a").await.ok(), Some(19));
        assert_eq!([executions, batches], [40, 20]);
    });
}

/// Another transaction, which does not queue, changes the key while the batch executes.
#[test]
fn a_batch_that_is_overtaken_executes_again() {
    Reactor::new(None).run(async {
        let work = async |command, transaction: &mut Transaction| {
            let sum = add_one(transaction, "a").await?;
            if command == 5 && sum == 6 {
                let mut other = transaction.another();
                other.put(SPACE, &key("a"), Buf::copy_from(&[100]), None);
                other.commit().await?;
            }
            Ok(sum)
        };
        let door = Arc::new(door().await);
        let (outcomes, counted) = arrive_together(&door, &["a"], work).await;
        let sums: Vec<_> = outcomes.into_iter().map(|sum| sum.expect("it is done")).collect();
        assert_eq!(sums, (101..=120).collect::<Vec<u8>>());
        assert_eq!(number(&mut door.transaction(), "a").await.ok(), Some(120));
        assert_eq!(counted, [40, 2], "half of the batch, and then the rest");
    });
}

/// Commands of more keys are begun as soon as those ahead of them in each queue have ended.
#[test]
fn commands_of_several_keys_take_their_turns() {
    Reactor::new(None).run(async {
        let (door, left) = (Arc::new(door().await), Rc::new(RefCell::new(0)));
        let all = [&["a"][..], &["a", "b"], &["b"], &["b", "c"], &["a", "b", "c"], &["c", "a"]];
        for round in 0..10 {
            for names in all.iter().cycle().skip(round).take(all.len()) {
                let (door, left, names) = (door.clone(), left.clone(), *names);
                *left.borrow_mut() += 1;
                clock::spawn(async move {
                    let work = async |transaction: &mut Transaction| {
                        for name in names {
                            add_one(transaction, name).await?;
                        }
                        Ok(())
                    };
                    let done = door.in_turn(keys(names), names.len() == 3, work).await;
                    done.expect("nothing keeps it from that");
                    *left.borrow_mut() -= 1;
                });
            }
        }
        clock::sleep(Nanos::from_micros(1_000), Stage::Core).await;
        assert_eq!(*left.borrow(), 0, "some wait without end");
        assert_eq!(door.counters().executions(), 60);
        for (name, sum) in [("a", 40), ("b", 40), ("c", 30)] {
            assert_eq!(number(&mut door.transaction(), name).await.ok(), Some(sum), "{name}");
        }
    });
}
