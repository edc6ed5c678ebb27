//! New connections are placed by the load of the reactors.

use crate::shared_drive::redis::Client;
use crate::shared_drive::scene::{Scene, serve_emulated_balanced, serve_memory_balanced};
use balance::{Policy, Settings};
use base::Nanos;
use node::server::BalanceConfig;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const WINDOW: Nanos = Nanos::from_millis(20);

/// Many times what a server needs to see a connection on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

fn config(policy: Policy, spread: f64) -> BalanceConfig {
    BalanceConfig { policy, settings: Settings { spread, window: WINDOW, ..Settings::default() } }
}

/// Returns the open connections of each reactor, once there are `all`.
fn connections(scene: &Scene, all: u64) -> Vec<u64> {
    let begin = Instant::now();
    loop {
        let reactors = scene.status().reactors;
        let each = reactors.iter().map(|reactor| reactor.connections + reactor.redis_clients);
        let each: Vec<u64> = each.collect();
        if each.iter().sum::<u64>() == all {
            return each;
        }
        assert!(begin.elapsed() < TIMEOUT, "{each:?} are not {all}");
    }
}

/// Opens connections where `open` are open, and returns each with the number of its reactor.
fn connect<C>(
    scene: &Scene,
    count: u64,
    open: u64,
    connect: impl Fn(&Scene) -> C,
) -> Vec<(usize, C)> {
    let mut before = connections(scene, open);
    let connect = |number| {
        let connection = connect(scene);
        let now = connections(scene, open + number);
        let reactor = (0..now.len()).find(|&it| now[it] > before[it]).unwrap();
        before = now;
        (reactor, connection)
    };
    (1..=count).map(connect).collect()
}

/// Opens a connection that sends nothing.
fn nvme(scene: &Scene) -> TcpStream {
    TcpStream::connect(scene.address()).unwrap()
}

/// All connections of one of `reactors` close: it gets the next ones.
fn close_and_connect<C>(scene: Scene, reactors: Range<usize>, open: impl Fn(&Scene) -> C) {
    let count = reactors.len() as u64;
    let mut all = connect(&scene, 4 * count, 0, &open);
    for reactor in reactors {
        assert_eq!(all.iter().filter(|(of, _)| *of == reactor).count(), 4, "{reactor}");
        all.retain(|(of, _)| *of != reactor);
        let new = connect(&scene, 4, 4 * (count - 1), &open);
        assert!(new.iter().all(|(of, _)| *of == reactor), "{reactor}");
        all.extend(new);
    }
    scene.server.stop().unwrap();
}

/// A spread of 1 ignores the load.
#[test]
fn closed_connections_make_room_for_new_ones() {
    let conn = Some(config(Policy::Connections, 1_000.0));
    close_and_connect(serve_memory_balanced(3, conn), 0..3, nvme);
    close_and_connect(serve_memory_balanced(3, conn), 0..3, Client::of);
    close_and_connect(serve_emulated_balanced(3, conn), 1..3, nvme);
}

/// A busy Redis client fills its reactor. A reload sets the policy while it does.
#[test]
fn a_busy_reactor_gets_few_of_the_new_connections() {
    let scene = serve_memory_balanced(3, Some(config(Policy::None, 0.1)));
    let mut client = Client::of(&scene);
    for key in 0..2_000 {
        assert_eq!(client.ask(&format!("SET key{key} value")), "+OK");
    }
    let is_over = &AtomicBool::new(false);
    scope(|threads| {
        threads.spawn(move || {
            let begin = Instant::now();
            while !is_over.load(Relaxed) && begin.elapsed() < 2 * TIMEOUT {
                assert_eq!(client.ask("KEYS absent"), "*0");
            }
        });
        scene.server.ruler().set_balance(config(Policy::Connections, 0.1));
        let mut streams = Vec::new();
        for number in 1..=30 {
            sleep(Duration::from_nanos(3 * WINDOW.0));
            streams.extend(connect(&scene, 1, number, nvme));
        }
        is_over.store(true, Relaxed);
        let reactors = scene.status().reactors;
        let busy = (0..3).max_by_key(|&it| reactors[it].redis_commands).unwrap();
        let found = streams.iter().filter(|(of, _)| *of == busy).count();
        assert!(found < 5, "{found} of 30 connections: {reactors:?}");
    });
    scene.server.stop().unwrap();
}
