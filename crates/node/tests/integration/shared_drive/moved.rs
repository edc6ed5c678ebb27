//! Open connections that move to less busy reactors.

use crate::shared_drive::peer::Peer;
use crate::shared_drive::scene::{File, Scene, serve_memory_balanced};
use balance::{Policy, Settings};
use base::Nanos;
use node::server::{BalanceConfig, Status};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Many times what a server needs to move a connection on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) fn config(policy: Policy) -> BalanceConfig {
    let window = Nanos::from_millis(20);
    let settings = Settings { overload: 0.05, spread: 0.1, window, ..Settings::default() };
    BalanceConfig { policy, settings }
}

/// Moves as many connections as the mover can.
pub(crate) fn eager(policy: Policy) -> BalanceConfig {
    let window = Nanos::from_millis(1);
    let settings = Settings { overload: 0.0, spread: 0.0, window, ..Settings::default() };
    BalanceConfig { policy, settings }
}

pub(crate) fn moved(status: &Status) -> u64 {
    status.reactors.iter().map(|reactor| reactor.connections_moved).sum()
}

fn commands(status: &Status) -> Vec<u64> {
    status.reactors.iter().map(|reactor| reactor.commands).collect()
}

/// Waits until a condition of the server's status holds, and returns the status.
pub(crate) fn wait_for(scene: &Scene, condition: impl Fn(&Status) -> bool) -> Status {
    let begin = Instant::now();
    loop {
        let status = scene.status();
        if condition(&status) {
            return status;
        }
        assert!(begin.elapsed() < TIMEOUT, "{:?}", status.reactors);
    }
}

/// Stores and retrieves pairs of its own, and checks what it reads, until `is_over` or the
/// connection has ended. Returns the number of replies.
pub(crate) fn hammer(peer: &Peer, name: u8, is_over: &AtomicBool) -> u64 {
    let (mut value, begin) = (vec![name; 2_000], Instant::now());
    for round in 0.. {
        if is_over.load(Relaxed) || begin.elapsed() > 2 * TIMEOUT {
            return round;
        }
        value[0] = round.to_le_bytes()[0];
        let key = [name, round.to_le_bytes()[0] % 16];
        let Some(status) = peer.store(&key, &value) else { return round };
        assert!(status.is_success(), "{status}");
        peer.send(spec::Command::retrieve(1, &key, 4_096), &[]);
        let Some(answer) = peer.next() else { return round };
        assert!(answer.data == value, "round {round} of {name}");
    }
    unreachable!("the rounds have no end")
}

/// Returns for each of `peers` the number of the reactor that serves it.
fn reactors_of(scene: &Scene, peers: &[Peer]) -> Vec<usize> {
    let serving = |peer: &Peer| {
        let before = commands(&scene.status());
        (0..50).for_each(|_| _ = peer.exists(b"key"));
        let grown = |status: &Status| {
            let after = commands(status);
            (0..before.len()).find(|&it| after[it] >= before[it] + 50)
        };
        grown(&wait_for(scene, |status| grown(status).is_some())).expect("it has grown")
    };
    peers.iter().map(serving).collect()
}

/// Connects until there are two I/O queues on one reactor, or with `apart` on two. Returns them,
/// and what keeps their association.
fn two_queues(scene: &Scene, apart: bool) -> ([Peer; 2], Peer) {
    let (admin, controller) = Peer::admin(scene.address(), 0);
    let mut peers: Vec<Peer> =
        (1..=4).map(|id| Peer::io(scene.address(), controller, id)).collect();
    let of = reactors_of(scene, &peers);
    let pairs = (0..4).flat_map(|first| (first + 1..4).map(move |second| (first, second)));
    let (first, second) =
        pairs.into_iter().find(|&(a, b)| (of[a] != of[b]) == apart).expect("4 are on 2 reactors");
    let second = peers.remove(second);
    ([peers.remove(first), second], admin)
}

#[test]
fn one_of_two_hot_connections_moves_to_the_idle_reactor() {
    for policy in [Policy::Connections, Policy::Auto] {
        let scene = serve_memory_balanced(2, Some(config(Policy::None)));
        let (mut peers, _admin) = two_queues(&scene, false);
        let is_over = &AtomicBool::new(false);
        scope(|threads| {
            for (name, peer) in (0..).zip(&mut peers) {
                threads.spawn(move || hammer(peer, name, is_over));
            }
            sleep(Duration::from_millis(500));
            assert_eq!(moved(&scene.status()), 0, "the policy is none");
            scene.server.ruler().set_balance(config(policy));
            wait_for(&scene, |status| moved(status) > 0);
            is_over.store(true, Relaxed);
        });
        let of = reactors_of(&scene, &peers);
        assert_ne!(of[0], of[1], "{policy:?}");
        let connections: u64 = scene.status().reactors.iter().map(|it| it.connections).sum();
        assert_eq!(connections, 3);
        scene.server.stop().unwrap();
    }
}

#[test]
fn hot_connections_of_two_reactors_stay() {
    let scene = serve_memory_balanced(2, Some(config(Policy::None)));
    let (mut peers, _admin) = two_queues(&scene, true);
    let of = reactors_of(&scene, &peers);
    let is_over = &AtomicBool::new(false);
    // A machine that runs other work can keep one of the threads of the server from running.
    let mut conn = config(Policy::Connections);
    conn.settings.spread = 0.5;
    scene.server.ruler().set_balance(conn);
    scope(|threads| {
        for (name, peer) in (0..).zip(&mut peers) {
            threads.spawn(move || hammer(peer, name, is_over));
        }
        sleep(Duration::from_secs(2));
        is_over.store(true, Relaxed);
    });
    assert_eq!(moved(&scene.status()), 0);
    assert_eq!(reactors_of(&scene, &peers), of);
    scene.server.stop().unwrap();
}

/// Connections move all the time while hosts use them, leave and are reset.
#[test]
fn hosts_come_and_go_while_connections_move() {
    let file = File::formatted();
    for scene in [
        serve_memory_balanced(3, Some(eager(Policy::Connections))),
        file.serve_balanced(2, Some(eager(Policy::Auto))),
    ] {
        let is_over = &AtomicBool::new(false);
        scope(|threads| {
            let host = |host: u8| {
                let address = scene.address();
                move || {
                    for round in 0_u8.. {
                        let (admin, controller) = Peer::admin(address, 0);
                        let mut io = [1, 2].map(|id| Peer::io(address, controller, id));
                        let is_enough = AtomicBool::new(false);
                        scope(|threads| {
                            let (is_enough, io) = (&is_enough, &mut io);
                            for (at, io) in (0_u8..).zip(io) {
                                threads.spawn(move || hammer(io, 2 * host + at, is_enough));
                            }
                            sleep(Duration::from_millis(30 + 7 * u64::from(host)));
                            if round % 2 == 0 {
                                admin.set_configuration(0);
                            } else {
                                is_enough.store(true, Relaxed);
                            }
                        });
                        if is_over.load(Relaxed) {
                            return;
                        }
                    }
                }
            };
            for number in 0..3 {
                threads.spawn(host(number));
            }
            wait_for(&scene, |status| moved(status) > 5);
            is_over.store(true, Relaxed);
        });
        wait_for(&scene, |status| status.reactors.iter().all(|it| it.connections == 0));
        // The places of new connections are those of the counted ones.
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        assert!(!Peer::io(scene.address(), controller, 1).exists(b"absent"));
        scene.server.stop().unwrap();
    }
}

#[test]
fn server_stops_while_connections_move() {
    for round in 0..12 {
        let reactors = 2 + round % 2;
        let scene = serve_memory_balanced(reactors, Some(eager(Policy::None)));
        let (admin, controller) = Peer::admin(scene.address(), 0);
        let io = |id| Peer::io(scene.address(), controller, id);
        // Connections are dealt in turn. Those of one reactor are hot, so some of them move.
        let mut peers: Vec<Peer> = (1..=3 * reactors).map(io).collect();
        let hot = (0..).zip(peers.iter_mut().step_by(reactors.into()));
        scene.server.ruler().set_balance(eager(Policy::Connections));
        let never = &AtomicBool::new(false);
        scope(|threads| {
            for (name, peer) in hot {
                threads.spawn(move || hammer(peer, name, never));
            }
            wait_for(&scene, |status| moved(status) > 0);
            sleep(Duration::from_millis(u64::from(round) * 3));
            scene.server.stop().unwrap();
        });
        drop(admin);
    }
}
