//! A connection past a limit is closed, and no other connection is.

use crate::differential::answer::Answer;
use crate::differential::generate::{Words, encoded};
use crate::differential::ours::{Client, door, pass};
use reactor::Reactor;
use resp::Door;
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn line(line: &str) -> Vec<u8> {
    encoded(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

fn set(name: &str, value: &str) -> Vec<u8> {
    encoded(&["config", "set", name, value].map(|word| word.as_bytes().to_vec()).to_vec())
}

async fn text(client: &mut Client, asked: &str) -> String {
    match client.ask(&line(asked), 1).await.remove(0) {
        Answer::Bulk(text) => String::from_utf8(text).expect("it is a text"),
        other => panic!("no text: {other:?}"),
    }
}

/// A figure of INFO.
async fn figure(client: &mut Client, name: &str) -> u64 {
    let info = text(client, "info").await;
    let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.expect("INFO has it").parse().expect("it is a number")
}

/// What CLIENT LIST says of one who calls itself `name`.
async fn listed(client: &mut Client, name: &str) -> Option<String> {
    let list = text(client, "client list").await;
    list.lines().find(|line| line.contains(&format!(" name={name} "))).map(str::to_owned)
}

fn field(line: &str, name: &str) -> usize {
    let found = line.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.expect("there is such a field").parse().expect("it is a number")
}

/// One client that looks, and one that has stored a value of a MiB and asks for it a hundred
/// times, without ever reading an answer.
async fn greedy(door: &Arc<Door>, limit: &str) -> (Client, Client) {
    let (mut looks, mut asks) = (Client::connect(door, 1), Client::connect(door, 2));
    looks.ask(&set("client-output-buffer-limit", limit), 1).await;
    let value: Words = vec![b"set".to_vec(), b"a".to_vec(), vec![b'v'; MIB]];
    asks.ask(&[line("client setname greedy"), encoded(&value)].concat(), 2).await;
    asks.say(&line("get a").repeat(100));
    (looks, asks)
}

#[test]
fn who_does_not_read_is_closed_at_the_limit_and_others_go_on() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut looks, mut asks) = greedy(&door, "normal 4mb 0 0").await;
        pass(100).await;
        assert_eq!(listed(&mut looks, "greedy").await, None);
        assert_eq!(figure(&mut looks, "client_output_buffer_limit_disconnections").await, 1);
        assert_eq!(looks.ask(&line("strlen a"), 1).await, [Answer::Integer(1 << 20)]);
        pass(100).await;
        assert!(asks.is_over());
    });
}

#[test]
fn who_does_not_read_is_waited_for_below_the_limit() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut looks, mut asks) = greedy(&door, "normal 0 0 0").await;
        for _ in 0..3 {
            pass(10_000).await;
            let line = listed(&mut looks, "greedy").await.expect("it is there");
            let waiting = field(&line, "omem");
            assert!((15 * MIB..=33 * MIB).contains(&waiting), "{line}");
            assert!(field(&line, "tot-mem") >= waiting);
        }
        let commands = figure(&mut looks, "total_commands_processed").await;
        assert!(commands < 50, "{commands} commands were done for who does not read");
        assert_eq!(figure(&mut looks, "client_output_buffer_limit_disconnections").await, 0);
        let answers = asks.ask(b"", 100).await;
        assert!(answers.iter().all(|got| *got == Answer::Bulk(vec![b'v'; MIB])));
        let line = listed(&mut looks, "greedy").await.expect("it is there");
        assert_eq!((field(&line, "omem"), field(&line, "qbuf")), (0, 0), "{line}");
    });
}

#[test]
fn too_much_for_too_long_is_too_much() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut looks, mut asks) = greedy(&door, "normal 0 8mb 5").await;
        pass(4_500).await;
        assert!(listed(&mut looks, "greedy").await.is_some());
        pass(1_500).await;
        assert_eq!(listed(&mut looks, "greedy").await, None);
        assert_eq!(figure(&mut looks, "client_output_buffer_limit_disconnections").await, 1);
        assert!(asks.is_over());
    });
}

#[test]
fn who_says_nothing_is_closed_after_its_time() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut asks, mut silent) = (Client::connect(&door, 1), Client::connect(&door, 2));
        silent.ask(&line("ping"), 1).await;
        asks.ask(&set("timeout", "10"), 1).await;
        for second in [9, 12] {
            for _ in 0..3 {
                pass(3_000).await;
                asks.ask(&line("ping"), 1).await;
            }
            assert_eq!(silent.is_over(), second > 10, "after {second} s and more");
        }
        assert_eq!(figure(&mut asks, "connected_clients").await, 1);
        // A command that takes longer is no silence.
        asks.ask(&set("timeout", "1"), 1).await;
        let slow = asks.ask(&line("debug sleep 5"), 1).await;
        assert_eq!(slow, [Answer::Status(b"OK".to_vec())]);
    });
}

#[test]
fn a_request_that_takes_too_much_memory_ends_its_connection_alone() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut asks, mut looks) = (Client::connect(&door, 1), Client::connect(&door, 2));
        let request = encoded(&vec![b"echo".to_vec(), vec![b'v'; MIB + MIB / 2]]);
        asks.ask(&request, 1).await;
        // It counts also for those that are connected already.
        looks.ask(&set("client-query-buffer-limit", "1mb"), 1).await;
        let told = asks.ask(&request, 1).await.remove(0).to_string();
        assert_eq!(told, "ERR Protocol error: a request takes at most 1048576 bytes");
        pass(10).await;
        assert!(asks.is_over());
        assert_eq!(figure(&mut looks, "client_query_buffer_limit_disconnections").await, 1);
    });
}

#[test]
fn there_are_as_many_clients_as_there_may_be() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut one, mut other) = (Client::connect(&door, 1), Client::connect(&door, 2));
        one.ask(&set("maxclients", "2"), 1).await;
        let full = Answer::Error(b"ERR max number of clients reached".to_vec());
        let mut third = Client::connect(&door, 3);
        assert_eq!(third.ask(b"", 1).await, [full]);
        assert!(third.is_over());
        assert_eq!(figure(&mut one, "rejected_connections").await, 1);
        other.ask(&line("quit"), 1).await;
        pass(1).await;
        let mut fourth = Client::connect(&door, 4);
        assert_eq!(fourth.ask(&line("ping"), 1).await, [Answer::Status(b"PONG".to_vec())]);
        let told = one.ask(&set("maxclients", "10001"), 1).await.remove(0).to_string();
        assert!(told.ends_with("number of clients, try with 10000"), "{told}");
    });
}

/// That there are collections makes no string shorter, whatever stores it.
#[test]
fn the_longest_string_may_be_stored_by_any_command_beside_collections() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let mut client = Client::connect(&door, 1);
        let max = text_after(&mut client, "config get proto-max-bulk-len").await;
        let max: usize = max.parse().expect("it is a number");
        client.ask(&line("hset h f v"), 1).await;
        let value = || vec![b'v'; max];
        let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let with = |before: &[&str], after: &[&str]| {
            let mut all: Words = words(before);
            all.push(value());
            all.extend::<Words>(words(after));
            encoded(&all)
        };
        let stored = [
            with(&["set", "a"], &[]),
            with(&["setnx", "b"], &[]),
            with(&["setex", "c", "100"], &[]),
            with(&["set", "d"], &["NX"]),
            with(&["append", "e"], &[]),
            with(&["mset", "f"], &[]),
            line("rename f g"),
            with(&["set", "h"], &[]),
            with(&["getset", "i"], &[]),
        ];
        for (asked, key) in stored.into_iter().zip(["a", "b", "c", "d", "e", "f", "g", "h", "i"]) {
            let answer = client.ask(&asked, 1).await.remove(0);
            assert!(!matches!(answer, Answer::Error(_)), "{key}: {answer}");
            let len = client.ask(&line(&format!("strlen {key}")), 1).await.remove(0);
            assert_eq!(len, Answer::Integer(i64::try_from(max).expect("it is small")), "{key}");
            // There is room for few of them.
            if key != "f" {
                client.ask(&line(&format!("del {key}")), 1).await;
            }
        }
        let mut one_more: Words = words(&["hset", "h2", "f"]);
        one_more.push(vec![b'v'; max - 1_024]);
        assert_eq!(client.ask(&encoded(&one_more), 1).await, [Answer::Integer(1)]);
    });
}

/// The second of two that are answered.
async fn text_after(client: &mut Client, asked: &str) -> String {
    match client.ask(&line(asked), 1).await.remove(0) {
        Answer::Array(mut pair) => match pair.pop() {
            Some(Answer::Bulk(text)) => String::from_utf8(text).expect("it is a text"),
            other => panic!("no text: {other:?}"),
        },
        other => panic!("no pair: {other:?}"),
    }
}
