//! Many clients that change the same keys at once: they share commits, and each command is one
//! step. The medium takes its time, and fails in some tests.

use crate::differential::answer::Answer;
use crate::differential::generate::encoded;
use crate::differential::ours::{Client, beside_hosts, failing_door, pass, slow_door};
use base::{Buf, Key, Rng};
use engine::{Condition, KeySpaceId, Store};
use reactor::Reactor;
use resp::Door;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const COMMANDS_EACH: u64 = 20;

fn lines(lines: &[&str]) -> Vec<u8> {
    let words = |line: &&str| encoded(&line.split(' ').map(Into::into).collect());
    lines.iter().flat_map(words).collect()
}

async fn ask(client: &mut Client, line: &str) -> Answer {
    client.ask(&lines(&[line]), 1).await.remove(0)
}

/// What `client` runs before all have ended.
async fn run_all<F: Future<Output = ()> + 'static>(clients: u64, run: impl Fn(u64) -> F) {
    let left = Rc::new(Cell::new(clients));
    for number in 0..clients {
        let (client, left) = (run(number), left.clone());
        clock::spawn(async move {
            client.await;
            left.set(left.get() - 1);
        });
    }
    for _ in 0..100_000 {
        if left.get() == 0 {
            return;
        }
        pass(1).await;
    }
    panic!("{} clients wait without end", left.get());
}

/// What commands cost; the polls are those of the tasks that serve the clients.
#[derive(Debug)]
struct Cost {
    commands: u64,
    executions: u64,
    batches: u64,
    polls: u64,
}

fn cost(clients: u64, command: fn(&mut Rng) -> String) -> Cost {
    Reactor::new(Some(clients)).run(async move {
        let (door, polls) = (slow_door(1).await, Rc::new(Cell::new(0)));
        // Key spaces of collections are created first.
        let mut first = Client::connect(&door, 1_000);
        ask(&mut first, "hset other f v").await;
        let before = (door.counters().executions(), door.counters().batches());
        let (shared, counted) = (door.clone(), polls.clone());
        run_all(clients, move |number| {
            let mut client = Client::connect_counted(&shared, number, counted.clone());
            async move {
                let mut rng = Rng::new(number);
                for _ in 0..COMMANDS_EACH {
                    let answer = ask(&mut client, &command(&mut rng)).await;
                    assert!(!matches!(answer, Answer::Error(_)), "{answer}");
                }
            }
        })
        .await;
        let counters = door.counters();
        Cost {
            commands: clients * COMMANDS_EACH,
            executions: counters.executions() - before.0,
            batches: counters.batches() - before.1,
            polls: polls.get(),
        }
    })
}

#[test]
fn commands_on_one_key_share_batches_and_execute_once() {
    let commands: [fn(&mut Rng) -> String; 5] = [
        |_| "incr k".to_owned(),
        |rng| format!("zadd z {} m{}", rng.below(100_000), rng.below(2_000)),
        |rng| format!("hset h f{} {}", rng.below(2_000), rng.below(1_000)),
        |_| "hincrby h sum 1".to_owned(),
        |_| "setrange s 3 abc".to_owned(),
    ];
    for command in commands {
        let name = command(&mut Rng::new(1));
        let alone = cost(1, command);
        for clients in [4, 16, 50, 200] {
            let cost = cost(clients, command);
            let commands = cost.commands;
            let told = format!("{name} of {clients} clients: {cost:?}, alone {alone:?}");
            assert!(cost.executions * 100 <= commands * 101, "{told}");
            assert!(cost.batches * clients <= commands * 4, "{told}");
            // Three polls for a command more than one client alone takes.
            let polls_max = (alone.polls + 3 * alone.commands) * commands;
            assert!(cost.polls * alone.commands <= polls_max, "{told}");
        }
    }
}

#[test]
fn transactions_on_the_same_keys_share_batches() {
    Reactor::new(Some(1)).run(async {
        let door = slow_door(1).await;
        let shared = door.clone();
        run_all(50, move |number| {
            let mut client = Client::connect(&shared, number);
            async move {
                for _ in 0..COMMANDS_EACH {
                    let all = ["multi", "incr b", "get a", "incr a", "exec"];
                    client.ask(&lines(&all), 5).await;
                    client.ask(&lines(&["mset a 1 b 1"]), 1).await;
                }
            }
        })
        .await;
        let (commands, counters) = (2 * 50 * COMMANDS_EACH, door.counters());
        assert!(counters.executions() <= commands * 11 / 10, "{counters:?}");
        assert!(counters.batches() <= commands / 10, "{counters:?}");
    });
}

/// Commands of a pipeline that arrive together and change one key are one batch. The network cuts
/// what is sent into pieces.
#[test]
fn a_pipeline_on_one_key_shares_batches() {
    let (mut executions, mut batches) = (0, 0);
    for seed in 0..20 {
        Reactor::new(Some(seed)).run(async {
            let door = slow_door(seed).await;
            let mut client = Client::connect(&door, seed);
            let all = ["incr k", "incr k", "append k x", "incr k", "get k", "hset k f v", "del k"];
            let answers = client.ask(&lines(&all), 7).await;
            let numbers = [0, 1, 2, 6].map(|at| integer(&answers[at]));
            assert_eq!(numbers, [1, 2, 2, 1], "{answers:?}");
            assert_eq!(answers[4], Answer::Bulk(b"2x".to_vec()));
            assert!(matches!((&answers[3], &answers[5]), (Answer::Error(_), Answer::Error(_))));
            let counters = door.counters();
            client.ask(&lines(&["incr k"; 32]), 32).await;
            assert_eq!(counters.commands(), 7 + 32);
            executions += counters.executions();
            batches += counters.batches();
        });
    }
    // Two of the first seven, and two of those that follow, unless they are cut.
    assert!(batches <= 20 * 8, "{batches}");
    assert_eq!(executions, batches);
}

/// A string that clients append to is the order of their commands.
#[test]
fn each_append_is_where_its_reply_says() {
    for seed in 0..6 {
        Reactor::new(Some(seed)).run(async move {
            let (door, medium) = failing_door(seed).await;
            let (shared, done) = (door.clone(), Rc::new(RefCell::new(Vec::new())));
            let (told, fails) = (done.clone(), seed % 2 == 1);
            run_all(12, move |number| {
                let mut client = Client::connect(&shared, number);
                let (told, medium) = (told.clone(), medium.clone());
                async move {
                    for turn in 0..COMMANDS_EACH {
                        let token = format!("<{number}.{turn}>");
                        if fails && number == 0 {
                            medium.fail(turn % 3 == 1);
                        }
                        match ask(&mut client, &format!("append log {token}")).await {
                            end @ Answer::Integer(_) => {
                                told.borrow_mut().push((integer(&end), token));
                            }
                            Answer::Error(text) if fails => {
                                assert!(text.starts_with(b"ERR I/O"), "{}", text.escape_ascii());
                            }
                            other => panic!("{other}"),
                        }
                    }
                    medium.fail(false);
                }
            })
            .await;
            let mut done = done.take();
            done.sort();
            assert_eq!((done.len() as u64) < 12 * COMMANDS_EACH, fails, "seed {seed}");
            let mut log = String::new();
            for (end, token) in done {
                log += &token;
                assert_eq!(log.len() as u64, end, "seed {seed}: {token} in {log}");
            }
            let mut client = Client::connect(&door, 99);
            assert_eq!(ask(&mut client, "get log").await, Answer::Bulk(log.into()), "seed {seed}");
        });
    }
}

/// Three counters that only transactions change, together: their replies are equal. What else the
/// clients do is counted and compared at the end.
#[derive(Default)]
struct Model {
    increments: u64,
    swaps: u64,
    fields: BTreeSet<String>,
    members: BTreeMap<String, u64>,
    singles: BTreeSet<u64>,
    /// Replies 1 to INCR of a key that is also deleted and expires.
    restarts: u64,
    resets: u64,
}

fn integer(answer: &Answer) -> u64 {
    match answer {
        Answer::Integer(number) => u64::try_from(*number).expect("it is not negative"),
        Answer::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        Answer::NullBulk => 0,
        other => panic!("{other} is no number"),
    }
}

async fn race(client: &mut Client, number: u64, rng: &mut Rng, model: &RefCell<Model>) {
    match rng.below(10) {
        0 => {
            let all = ["multi", "incr a", "hincrby b sum 1", "zincrby c 1 sum", "exec"];
            if let Answer::Array(three) = client.ask(&lines(&all), 5).await.remove(4) {
                assert_eq!(integer(&three[0]), integer(&three[1]));
                assert_eq!(integer(&three[0]), integer(&three[2]));
            }
        }
        1 if rng.below(4) == 0 => {
            client.ask(&lines(&["del a b c"]), 1).await;
        }
        2 | 3 => {
            let reply = ask(client, "incr sum").await;
            if matches!(reply, Answer::Integer(_)) {
                let sum = integer(&reply);
                let mut model = model.borrow_mut();
                model.increments += 1;
                assert!(model.singles.insert(sum), "two clients are told {sum}");
            }
        }
        4 => {
            client.ask(&lines(&["watch w"]), 1).await;
            let next = integer(&ask(client, "get w").await) + 1;
            let all = ["multi", &format!("set w {next}"), "exec"];
            if let Answer::Array(_) = client.ask(&lines(&all), 3).await.remove(2) {
                model.borrow_mut().swaps += 1;
            }
        }
        5 => {
            let field = format!("f{number}.{}", rng.below(40));
            if let Answer::Integer(new) =
                ask(client, &format!("hset h {field} {number:0>99}")).await
            {
                let is_new = model.borrow_mut().fields.insert(field.clone());
                // A field that a failed command may not have set is known by the next reply.
                assert_eq!(new == 1, is_new, "{field}");
            }
        }
        6 => {
            let (member, score) = (format!("m{number}.{}", rng.below(40)), rng.below(1_000));
            let reply = ask(client, &format!("zadd z {score} {member}")).await;
            if let Answer::Integer(_) = reply {
                model.borrow_mut().members.insert(member, score);
            }
        }
        7 => {
            if let Answer::Integer(sum) = ask(client, "incr e").await {
                model.borrow_mut().restarts += u64::from(sum == 1);
            }
        }
        8 => {
            let line = ["del e", "pexpire e 1", "getdel e"]
                [usize::from(rng.below(2) == 0) + usize::from(rng.below(4) == 0)];
            ask(client, line).await;
            model.borrow_mut().resets += 1;
        }
        _ => {
            let all = ["incr h", "hset sum f v", "zadd w 1 m", "incr sum x"];
            for refused in client.ask(&lines(&all), 4).await {
                assert!(matches!(refused, Answer::Error(_) | Answer::Integer(_)), "{refused}");
            }
        }
    }
}

async fn compare(door: &Arc<Door>, model: &Model, seed: u64) {
    let mut client = Client::connect(door, 999);
    let sum = ask(&mut client, "get sum").await;
    assert_eq!(integer(&sum), model.increments, "seed {seed}");
    let expected: BTreeSet<u64> = (1..=model.increments).collect();
    assert_eq!(model.singles, expected, "seed {seed}");
    let [fields, members] = [model.fields.len(), model.members.len()].map(|len| len as u64);
    assert_eq!(integer(&ask(&mut client, "hlen h").await), fields, "seed {seed}");
    assert_eq!(integer(&ask(&mut client, "zcard z").await), members, "seed {seed}");
    for (member, score) in &model.members {
        let told = integer(&ask(&mut client, &format!("zscore z {member}")).await);
        assert_eq!(told, *score, "seed {seed}: {member}");
    }
    assert!(model.restarts <= model.resets + 1, "seed {seed}");
    let swaps = integer(&ask(&mut client, "get w").await);
    assert_eq!(swaps, model.swaps, "seed {seed}");
}

fn race_all(seed: u64, fails: bool) {
    Reactor::new(Some(seed)).run(async move {
        let (door, medium) = failing_door(seed).await;
        // Strings and collections that commands of the other kind are refused for.
        let mut first = Client::connect(&door, 1_000);
        first.ask(&lines(&["hset h f0 v", "incr sum", "set w 0"]), 3).await;
        let model = Rc::new(RefCell::new(Model::default()));
        {
            let mut model = model.borrow_mut();
            model.fields.insert("f0".to_owned());
            model.singles.insert(1);
            model.increments = 1;
        }
        let (shared, all) = (door.clone(), model.clone());
        run_all(24, move |number| {
            let mut client = Client::connect(&shared, number);
            let (model, medium) = (all.clone(), medium.clone());
            async move {
                let mut rng = Rng::new(seed * 100 + number);
                for turn in 0..30 {
                    if fails && number == 0 {
                        medium.fail(turn % 4 == 1);
                    }
                    race(&mut client, number, &mut rng, &model).await;
                }
                medium.fail(false);
            }
        })
        .await;
        let model = model.take();
        compare(&door, &model, seed).await;
    });
}

#[test]
fn racing_clients_match_the_model() {
    (0..12).for_each(|seed| race_all(seed, false));
}

#[test]
fn racing_clients_match_the_model_when_the_medium_fails() {
    (0..12).for_each(|seed| race_all(seed, true));
}

/// What an NVMe host does: a conditional store of what follows from the value that it read.
async fn add(store: &Arc<Store>, key: &Key, by: u64) -> bool {
    const SPACE: KeySpaceId = KeySpaceId(1);
    let found = store.retrieve(SPACE, key).await.expect("it can be read");
    let text = String::from_utf8_lossy(found.value.bytes().expect("bytes")).into_owned();
    let sum = text.parse::<u64>().expect("a number") + by;
    let write = Condition::Unchanged(found.version).into();
    let value = Buf::copy_from(sum.to_string().as_bytes());
    store.put(SPACE, key, &value, write, store.announce()).await.is_ok()
}

#[test]
fn conditional_stores_of_hosts_and_increments_both_go_on() {
    for seed in 0..4 {
        Reactor::new(Some(seed)).run(async move {
            const BY_HOST: u64 = 1_000_000;
            let (door, store) = beside_hosts(seed).await;
            let mut client = Client::connect(&door, 99);
            ask(&mut client, "set k 0").await;
            let (shared, hosts) = (door.clone(), Rc::new(Cell::new(0)));
            let stored = hosts.clone();
            run_all(34, move |number| {
                let mut client = Client::connect(&shared, number);
                let (store, stored) = (store.clone(), stored.clone());
                async move {
                    let key = Key::new(b"k").expect("a short name");
                    for _ in 0..COMMANDS_EACH {
                        if number < 32 {
                            ask(&mut client, "incr k").await;
                        } else if add(&store, &key, BY_HOST).await {
                            stored.set(stored.get() + 1);
                        }
                    }
                }
            })
            .await;
            let increments = 32 * COMMANDS_EACH;
            let sum = integer(&ask(&mut client, "get k").await);
            assert_eq!(sum, increments + hosts.get() * BY_HOST, "seed {seed}");
            assert!(hosts.get() >= 5, "seed {seed}: {} of 40 stores", hosts.get());
            let executions = door.counters().executions();
            assert!(executions <= 2 * increments, "seed {seed}: {executions}");
        });
    }
}

/// Stores of hosts overtake commands, which then execute again.
#[test]
fn lookups_count_once_however_often_commands_execute() {
    let (mut executions, mut commands) = (0, 0);
    for seed in 0..4 {
        Reactor::new(Some(seed)).run(async {
            let (door, store) = beside_hosts(seed).await;
            let mut client = Client::connect(&door, 99);
            ask(&mut client, "set k 0").await;
            let shared = door.clone();
            run_all(10, move |number| {
                let mut client = Client::connect(&shared, number);
                let store = store.clone();
                async move {
                    let key = Key::new(b"k").expect("a short name");
                    for turn in 0..COMMANDS_EACH {
                        if number < 8 {
                            let getex = format!("getex k ex {}", 1_000 + turn);
                            let all = [&getex, "multi", &getex, "exists nosuch", "exec"];
                            client.ask(&lines(&all), 5).await;
                        } else {
                            add(&store, &key, 1).await;
                        }
                    }
                }
            })
            .await;
            let info = ask(&mut client, "info stats").await.to_string();
            let each = 8 * COMMANDS_EACH;
            for (name, count) in [("hits", 2 * each), ("misses", each)] {
                let line = format!("keyspace_{name}:{count}\\r");
                assert!(info.contains(&line), "seed {seed}: no {line} in {info}");
            }
            executions += door.counters().executions();
            commands += 2 * each;
        });
    }
    assert!(executions > commands, "no command of {commands} was overtaken");
}

/// Clients of another key do not wait behind the queue.
#[test]
fn other_keys_do_not_wait_behind_a_queue() {
    Reactor::new(Some(1)).run(async {
        let door = slow_door(1).await;
        let shared = door.clone();
        let longest = Rc::new(Cell::new(0));
        let told = longest.clone();
        run_all(201, move |number| {
            let mut client = Client::connect(&shared, number);
            let longest = told.clone();
            async move {
                for turn in 0..COMMANDS_EACH {
                    if number < 200 {
                        ask(&mut client, &format!("zadd z {turn} m{number}.{turn}")).await;
                        continue;
                    }
                    let began = clock::now();
                    ask(&mut client, "set other v").await;
                    longest.set(longest.get().max((clock::now() - began).0));
                }
            }
        })
        .await;
        // A program takes up to 20 us, and a store may wait for the one before it.
        assert!(longest.get() < 100_000, "{} ns", longest.get());
    });
}
