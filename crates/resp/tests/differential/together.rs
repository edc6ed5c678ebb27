//! What several clients do at once, and what is copied: no other server is needed to know that.

use crate::answer::Answer;
use crate::generate::{Words, encoded};
use crate::ours::{Client, door, door_that, pass};
use engine::Ack;
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;

fn line(line: &str) -> Vec<u8> {
    encoded(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

#[test]
fn what_many_add_at_once_is_all_there() {
    for seed in 0..10 {
        Reactor::new(Some(seed)).run(async {
            // Whoever reads waits for whoever writes, and so do others.
            let door = door_that(seed, Ack::Program).await;
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

/// Of a key that the transaction itself does not touch, only the commit can know it.
#[test]
fn what_is_done_to_a_watched_key_keeps_a_transaction_from_happening() {
    Reactor::new(None).run(async {
        let door = door(2).await;
        let (mut one, mut other) = (Client::connect(&door, 1), Client::connect(&door, 2));
        one.ask(&[line("set a 1"), line("set c 1")].concat(), 2).await;
        let cases = [("set a 2", false), ("del a", false), ("set a 3", false), ("get a", true)];
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
