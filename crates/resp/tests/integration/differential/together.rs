//! What several clients do at once, and what is copied: no other server is needed to know that.

use crate::differential::answer::Answer;
use crate::differential::generate::{Words, encoded};
use crate::differential::ours::{Client, door, failing_door, pass, slow_door};
use base::mix;
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

fn line(line: &str) -> Vec<u8> {
    encoded(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

#[test]
fn what_many_add_at_once_is_all_there() {
    for seed in 0..10 {
        Reactor::new(Some(seed)).run(async {
            // Readers wait for writers, and so do other writers.
            let door = slow_door(seed).await;
            let done = Rc::new(Cell::new(0));
            for number in 0..6 {
                let (mut client, done) = (Client::connect(&door, number), done.clone());
                clock::spawn(async move {
                    for _ in 0..10 {
                        let both = ["multi", "incr a", "append log x", "incr b", "exec"];
                        let both: Vec<u8> = both.into_iter().flat_map(line).collect();
                        client.ask(&both, 5).await;
                        client.ask(&[line("incr a"), line("incrby b 2")].concat(), 2).await;
                    }
                    done.set(done.get() + 1);
                });
            }
            while done.get() < 6 {
                pass(1).await;
            }
            let mut client = Client::connect(&door, 9);
            let got = client.ask(&[line("mget a b"), line("strlen log")].concat(), 2).await;
            let (a, b) = (Answer::Bulk(b"120".to_vec()), Answer::Bulk(b"180".to_vec()));
            assert_eq!(got, [Answer::Array(vec![a, b]), Answer::Integer(60)], "seed {seed}");
        });
    }
}

/// Lets six clients send lines that each picks by its turn.
async fn crowd(
    door: &Arc<resp::Door>,
    turns: u64,
    line_of: impl Fn(u64, u64) -> String + Copy + 'static,
) {
    let done = Rc::new(Cell::new(0));
    for number in 0..6 {
        let (mut client, done) = (Client::connect(door, number), done.clone());
        clock::spawn(async move {
            for turn in 0..turns {
                client.ask(&line(&line_of(number, turn)), 1).await;
            }
            done.set(done.get() + 1);
        });
    }
    for _ in 0..10_000 {
        if done.get() == 6 {
            return;
        }
        pass(1).await;
    }
    panic!("they wait for each other");
}

#[test]
fn what_many_put_into_a_hash_at_once_is_all_there() {
    for seed in 0..4 {
        Reactor::new(Some(seed)).run(async {
            let door = slow_door(seed).await;
            crowd(&door, 30, |client, turn| match turn % 3 {
                0 => "hincrby h sum 1".to_owned(),
                1 => format!("hset h f{client}.{turn} {turn:0>200}"),
                _ => format!("zadd z {turn} {client:0>200}.{turn}"),
            })
            .await;
            let mut client = Client::connect(&door, 9);
            let lines = ["hget h sum", "hlen h", "zcard z", "zcount z 5 5"].map(line).concat();
            let got = client.ask(&lines, 4).await;
            let sum = Answer::Bulk(b"60".to_vec());
            assert_eq!(got, [sum, Answer::Integer(61), Answer::Integer(60), Answer::Integer(6)]);
        });
    }
}

#[test]
fn a_key_is_a_string_or_a_hash_and_never_both() {
    let mut kinds = [0, 0];
    for seed in 0..200 {
        Reactor::new(Some(seed)).run(async {
            let door = slow_door(seed).await;
            crowd(&door, 1 + seed % 4, move |client, turn| {
                match mix(seed * 999 + client * 31 + turn) % 8 {
                    0..=2 => "set k v".to_owned(),
                    3 | 4 => "del k".to_owned(),
                    5 if turn % 5 == 0 => "flushdb".to_owned(),
                    _ => format!("hset k f{client} {turn:0>1800}"),
                }
            })
            .await;
            let mut client = Client::connect(&door, 9);
            let got = client.ask(&["get k", "hlen k"].map(line).concat(), 2).await;
            let is_string = matches!(got[0], Answer::Bulk(_));
            let is_hash = matches!(got[1], Answer::Integer(1..));
            assert!(!(is_string && is_hash), "seed {seed}: {got:?}");
            kinds[0] += u32::from(is_string);
            kinds[1] += u32::from(is_hash);
            let last = client.ask(&["del k", "get k", "hlen k"].map(line).concat(), 3).await;
            assert_eq!(last[1..], [Answer::NullBulk, Answer::Integer(0)]);
        });
    }
    assert!(kinds.iter().all(|count| *count > 2), "both happened: {kinds:?}");
}

/// Of a key that the transaction itself does not touch, only the commit can know it.
#[test]
fn what_is_done_to_a_watched_key_keeps_a_transaction_from_happening() {
    Reactor::new(None).run(async {
        let door = door(2).await;
        let (mut one, mut other) = (Client::connect(&door, 1), Client::connect(&door, 2));
        one.ask(&[line("set a 1"), line("set c 1")].concat(), 2).await;
        let cases = [("set a 2", false), ("del a", false), ("hset a f v", false), ("del a", false)];
        one.ask(&line("hset other f v"), 1).await;
        for (number, (between, goes)) in cases.into_iter().enumerate() {
            one.ask(&line("watch a"), 1).await;
            other.ask(&line(between), 1).await;
            let set = format!("set b {number}");
            let exec = ["multi", &set, "exec"].map(line).concat();
            let answers = one.ask(&exec, 3).await;
            assert_eq!(answers[2] != Answer::NullArray, goes, "{between}: {answers:?}");
            let stored = one.ask(&line("get b"), 1).await.remove(0);
            assert_eq!(stored != Answer::NullBulk, goes, "{between}: {stored:?}");
        }
    });
}

/// Each client reads what the other has just stored. The reply is known only once the other's write
/// has ended, whatever that waits for.
#[test]
fn what_another_client_failed_to_store_is_not_there() {
    for seed in 0..50 {
        Reactor::new(Some(seed)).run(async {
            let (door, medium) = failing_door(seed).await;
            let mut clients = [1, 2].map(|number| Client::connect(&door, seed + number));
            for client in &mut clients {
                client.ask(&line("ping"), 1).await;
            }
            medium.fail(true);
            let [one, other] = &mut clients;
            one.say(&["set a 1", "get b"].map(line).concat());
            let other = other.ask(&["set b 1", "get a"].map(line).concat(), 2).await;
            let both = [one.ask(b"", 2).await, other];
            for answers in both {
                assert!(matches!(answers[0], Answer::Error(_)), "seed {seed}: {answers:?}");
                assert_eq!(answers[1], Answer::NullBulk, "seed {seed}");
            }
        });
    }
}

/// The words of a typed line are copied, and values of SETs before it stay where they arrived.
#[test]
fn a_typed_line_leaves_the_values_before_it_as_they_are() {
    for typed in ["ping", "set c zzzz ex 100", "set c zzzz", "get nosuch", "incr n", "nonsense"] {
        for seed in 0..8 {
            Reactor::new(Some(seed)).run(async {
                let door = door(seed).await;
                let mut client = Client::connect(&door, seed);
                let sets = ["set a hello", "set b a_longer_value"].map(line).concat();
                client.ask(&[&sets[..], typed.as_bytes(), b"\r\n"].concat(), 3).await;
                let got = client.ask(&["get a", "get b"].map(line).concat(), 2).await;
                let values = ["hello", "a_longer_value"].map(|it| Answer::Bulk(it.into()));
                assert_eq!(got, values, "after {typed}, seed {seed}");
            });
        }
    }
}

#[test]
fn a_value_is_sent_without_a_copy() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let mut client = Client::connect(&door, 1);
        let set: Words = vec![b"set".to_vec(), b"a".to_vec(), vec![b'v'; 8_192]];
        client.ask(&encoded(&set), 1).await;
        let before = door.counters().copied_bytes();
        assert!(before <= 1_024, "{before} bytes of a value that came alone were copied");
        for _ in 0..10 {
            let got = client.ask(&line("get a").repeat(16), 16).await;
            assert!(got.iter().all(|got| *got == Answer::Bulk(vec![b'v'; 8_192])));
        }
        assert_eq!(door.counters().copied_bytes(), before);
    });
}
