//! What the status says of the work of each reactor.

use crate::shared_drive::peer::Peer;
use crate::shared_drive::redis::Client;
use crate::shared_drive::scene::{File, Scene, serve_memory};
use controller::EngineFigures;
use node::server::{ReactorStatus, Status};
use spec::{Command, Status as Answered};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Many times what anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The server makes a new document when the last one is so old.
const DOCUMENT_AGE: Duration = Duration::from_millis(150);

fn scenes(reactors: u16) -> [Scene; 2] {
    [File::formatted().serve(reactors), serve_memory(reactors)]
}

/// An admin queue, and an I/O queue in each of two reactors.
fn hosts(scene: &Scene) -> (Peer, [Peer; 2]) {
    let (admin, controller) = Peer::admin(scene.address(), 0);
    // Of two connections in turn each reactor gets one: these are the second two.
    let [_, first, second] = [1, 2, 3].map(|id| Peer::io(scene.address(), controller, id));
    (admin, [first, second])
}

/// Returns a counter of all reactors.
fn sum(status: &Status, counter: fn(&ReactorStatus) -> u64) -> u64 {
    status.reactors.iter().map(counter).sum()
}

/// The drive's own counters.
fn figures(admin: &Peer) -> EngineFigures {
    let bytes = u32::try_from(size_of::<EngineFigures>()).unwrap();
    let page = Command::get_log_page(EngineFigures::LOG_PAGE, 0, bytes);
    EngineFigures::read_from_bytes(&admin.answer(page, &[]).data).unwrap()
}

/// The status at an instant at which the drive does nothing, and the drive's own counters then.
fn at_rest(scene: &Scene, admin: &Peer) -> (Status, EngineFigures) {
    let began = Instant::now();
    let mut before = figures(admin);
    loop {
        thread::sleep(DOCUMENT_AGE);
        let status = scene.status();
        let after = figures(admin);
        if after == before {
            return (status, after);
        }
        assert!(began.elapsed() < TIMEOUT, "the drive does not come to rest");
        before = after;
    }
}

/// Stores the values of `keys` again, all at once.
fn store(queue: &Peer, keys: std::ops::Range<u8>, value: &[u8]) {
    keys.clone().for_each(|key| {
        queue.send_store(&[b'k', key], value);
    });
    assert!(keys.into_iter().all(|_| queue.next().unwrap().entry.status() == Answered::SUCCESS));
}

#[track_caller]
fn check_sums(status: &Status, figures: &EngineFigures) {
    let stored = sum(status, |it| it.bytes_stored);
    let cleaned = sum(status, |it| it.extents_cleaned);
    let moved = sum(status, |it| it.records_moved);
    let expected = (figures.host_bytes.get(), figures.victims.get(), figures.records_moved.get());
    assert_eq!((stored, cleaned, moved), expected);
    let redis = status.devices[0].redis.as_ref().unwrap().commands;
    assert_eq!(sum(status, |it| it.redis_commands), redis);
    assert_eq!(sum(status, |it| it.commands), status.devices[0].work.commands);
}

#[test]
fn each_reactor_shows_the_bytes_that_its_hosts_stored() {
    for scene in scenes(2) {
        let (admin, queues) = hosts(&scene);
        let before = at_rest(&scene, &admin).0;
        store(&queues[0], 0..10, &[1; 100]);
        store(&queues[1], 10..30, &[2; 300]);
        let (after, figures) = at_rest(&scene, &admin);
        let reactors = before.reactors.iter().zip(&after.reactors);
        let done = |(before, after): (&ReactorStatus, &ReactorStatus)| {
            (after.commands - before.commands, after.bytes_stored - before.bytes_stored)
        };
        let mut done: Vec<_> = reactors.map(done).collect();
        done.sort_unstable();
        // Keys of two bytes.
        assert_eq!(done, [(10, 10 * 102), (20, 20 * 302)]);
        check_sums(&after, &figures);
        scene.server.stop().unwrap();
    }
}

#[test]
fn each_reactor_shows_the_commands_of_its_redis_clients_and_what_they_stored() {
    for scene in scenes(2) {
        let (admin, _) = Peer::admin(scene.address(), 0);
        let before = at_rest(&scene, &admin).0;
        let mut clients = [(); 2].map(|()| Client::of(&scene));
        for (client, commands) in clients.iter_mut().zip([10, 20]) {
            for number in 0..commands {
                assert_eq!(client.ask(&format!("SET key{number} {}", "x".repeat(200))), "+OK");
            }
        }
        let shown = |status: &Status| {
            let reactors = before.reactors.iter().zip(&status.reactors);
            let mut shown: Vec<_> = reactors
                .map(|(old, new)| {
                    let bytes = new.bytes_stored - old.bytes_stored;
                    assert!(bytes >= 10 * 204, "{bytes} bytes");
                    new.redis_commands - old.redis_commands
                })
                .collect();
            shown.sort_unstable();
            shown
        };
        let (status, figures) = at_rest(&scene, &admin);
        // Each has sent a PING first.
        assert_eq!(shown(&status), [11, 21]);
        check_sums(&status, &figures);
        // The commands of clients that have left still count.
        drop(clients);
        let began = Instant::now();
        while sum(&scene.status(), |it| it.redis_clients) > 0 {
            assert!(began.elapsed() < TIMEOUT, "the clients do not leave");
        }
        let (status, figures) = at_rest(&scene, &admin);
        assert_eq!(shown(&status), [11, 21]);
        check_sums(&status, &figures);
        scene.server.stop().unwrap();
    }
}

/// Returns how long the reactors were busy in each stage, by its name. Checks each reactor's sum.
#[track_caller]
fn stages(status: &Status) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for reactor in &status.reactors {
        let times = reactor.stages.named();
        assert_eq!(times.iter().map(|(_, time)| time).sum::<u64>(), reactor.busy_ns, "{reactor:?}");
        for (name, time) in times {
            *all.entry(name).or_default() += time;
        }
    }
    all
}

#[test]
fn stages_of_stores_add_up_to_the_busy_time() {
    for (scene, is_file) in scenes(2).into_iter().zip([true, false]) {
        let (admin, queues) = hosts(&scene);
        let before = stages(&at_rest(&scene, &admin).0);
        store(&queues[0], 0..100, &[1; 4_000]);
        store(&queues[1], 100..200, &[2; 4_000]);
        let after = at_rest(&scene, &admin).0;
        for (name, time) in stages(&after) {
            let is_used = is_file || name != "submit";
            assert!(!is_used || time > before[name], "{name} of {after:#?}");
        }
        let mut client = Client::of(&scene);
        let before = stages(&at_rest(&scene, &admin).0);
        (1..=20).for_each(|count| assert_eq!(client.ask("INCR key"), format!(":{count}")));
        let after = stages(&at_rest(&scene, &admin).0);
        for name in ["receive", "kv", "complete"] {
            assert!(after[name] > before[name], "{name}: {before:?} and {after:?}");
        }
        scene.server.stop().unwrap();
    }
}

#[test]
fn cleaned_extents_are_shown_by_reactors() {
    for scene in scenes(2) {
        let (admin, queues) = hosts(&scene);
        let began = Instant::now();
        // These pairs stay while all others are replaced.
        store(&queues[0], 0..100, &[1; 4_000]);
        while figures(&admin).victims.get() == 0 {
            assert!(began.elapsed() < TIMEOUT, "nothing is cleaned");
            for _ in 0..10 {
                for queue in &queues {
                    store(queue, 100..200, &[2; 4_000]);
                }
            }
        }
        let (status, figures) = at_rest(&scene, &admin);
        check_sums(&status, &figures);
        assert!(sum(&status, |it| it.extents_cleaned) > 0);
        assert!(status.reactors.iter().all(|it| it.bytes_stored > 100 * 4_002));
        scene.server.stop().unwrap();
    }
}

#[test]
fn waits_for_locks_are_shown_where_reactors_share_a_drive() {
    let scene = serve_memory(2);
    let (_admin, queues) = hosts(&scene);
    let is_over = AtomicBool::new(false);
    let status = thread::scope(|scope| {
        for queue in queues {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    store(&queue, 0..100, b"value");
                }
            });
        }
        let began = Instant::now();
        let status = loop {
            let status = scene.status();
            if sum(&status, |it| it.lock_waits) > 0 || began.elapsed() > TIMEOUT {
                break status;
            }
        };
        is_over.store(true, Relaxed);
        status
    });
    assert!(sum(&status, |it| it.lock_waits) > 0, "no reactor waits: {status:#?}");
    for reactor in &status.reactors {
        assert_eq!(reactor.lock_waits > 0, reactor.lock_wait_ns > 0, "{reactor:?}");
        assert!(reactor.lock_wait_ns <= reactor.busy_ns, "{reactor:?}");
    }
    scene.server.stop().unwrap();
}

#[test]
fn a_reactor_alone_waits_for_no_lock() {
    for scene in scenes(1) {
        let (admin, controller) = Peer::admin(scene.address(), 0);
        let queue = Peer::io(scene.address(), controller, 1);
        store(&queue, 0..100, &[1; 1_000]);
        let (status, figures) = at_rest(&scene, &admin);
        check_sums(&status, &figures);
        let [reactor] = &status.reactors[..] else { panic!("there is one") };
        assert!(reactor.bytes_stored >= 100 * 1_002);
        assert_eq!((reactor.lock_waits, reactor.lock_wait_ns), (0, 0));
        scene.server.stop().unwrap();
    }
}
