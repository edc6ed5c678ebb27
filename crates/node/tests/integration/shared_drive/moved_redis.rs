//! Open connections of Redis clients that move to less busy reactors.

use crate::shared_drive::moved::{TIMEOUT, config, eager, hammer, moved, wait_for};
use crate::shared_drive::peer::Peer;
use crate::shared_drive::redis::Client;
use crate::shared_drive::scene::{File, Scene, serve_memory_balanced};
use balance::Policy;
use node::server::Status;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

fn commands(status: &Status) -> Vec<u64> {
    status.reactors.iter().map(|reactor| reactor.redis_commands).collect()
}

/// Returns the number of the reactor that serves `client`.
fn reactor_of(scene: &Scene, client: &mut Client) -> usize {
    let before = commands(&scene.status());
    (0..50).for_each(|_| assert_eq!(client.ask("PING"), "+PONG"));
    let grown = |status: &Status| {
        let after = commands(status);
        (0..before.len()).find(|&it| after[it] >= before[it] + 50)
    };
    grown(&wait_for(scene, |status| grown(status).is_some())).expect("it has grown")
}

/// Returns clients of one reactor, of which none moves.
fn clients_of_one_reactor(scene: &Scene, reactors: usize, count: usize) -> Vec<Client> {
    scene.server.ruler().set_balance(eager(Policy::None));
    let dealt_in_turn: Vec<Client> = (0..reactors * count).map(|_| Client::of(scene)).collect();
    dealt_in_turn.into_iter().step_by(reactors).collect()
}

/// Adds to counters until `is_over` or the connection has ended: to one of its own, and to `sum`.
/// Returns how often it added to each.
fn add(client: &mut Client, name: usize, is_over: &AtomicBool) -> u64 {
    let begin = Instant::now();
    for round in 1.. {
        if is_over.load(Relaxed) || begin.elapsed() > 2 * TIMEOUT {
            return round - 1;
        }
        // Both are received together, so the client cannot move between them.
        let requests = format!("INCR own{name}\r\nINCR sum\r\n");
        let Some(own) = client.try_ask(&requests) else { return round - 1 };
        assert_eq!(own, format!(":{round}"), "{name}");
        let Some(sum) = client.try_ask("") else { return round - 1 };
        assert!(sum.starts_with(':'), "{sum}");
    }
    unreachable!("the rounds have no end")
}

#[test]
fn one_of_two_hot_redis_clients_moves_to_the_idle_reactor() {
    for policy in [Policy::Connections, Policy::Auto] {
        let scene = serve_memory_balanced(2, Some(config(Policy::None)));
        let mut clients: Vec<Client> = (0..4).map(|_| Client::of(&scene)).collect();
        clients.retain_mut(|client| reactor_of(&scene, client) == 0);
        assert_eq!(clients.len(), 2, "clients are dealt in turn");
        for (name, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.ask(&format!("CLIENT SETNAME client{name}")), "+OK");
        }
        let ids: Vec<String> = clients.iter_mut().map(|client| client.ask("CLIENT ID")).collect();
        let is_over = &AtomicBool::new(false);
        let sum: u64 = scope(|threads| {
            let adding: Vec<_> = (0..)
                .zip(&mut clients)
                .map(|(name, client)| threads.spawn(move || add(client, name, is_over)))
                .collect();
            sleep(Duration::from_millis(500));
            assert_eq!(moved(&scene.status()), 0, "the policy is none");
            scene.server.ruler().set_balance(config(policy));
            wait_for(&scene, |status| moved(status) > 0);
            is_over.store(true, Relaxed);
            adding.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        scene.server.ruler().set_balance(config(Policy::None));
        let of: Vec<usize> = clients.iter_mut().map(|client| reactor_of(&scene, client)).collect();
        assert_ne!(of[0], of[1], "{policy:?}");
        for (name, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.get("sum"), Some(sum.to_string()));
            assert_eq!(client.ask("CLIENT ID"), ids[name]);
            assert_eq!(client.ask("CLIENT GETNAME"), "$7");
            assert_eq!(client.line(), format!("client{name}"));
        }
        let status = scene.status();
        let here: Vec<u64> = status.reactors.iter().map(|it| it.redis_clients).collect();
        let redis = status.devices[0].redis.as_ref().unwrap();
        assert_eq!((&here[..], redis.clients, redis.connections), (&[1, 1][..], 2, 4));
        assert_eq!(commands(&status).iter().sum::<u64>(), redis.commands);
        scene.server.stop().unwrap();
    }
}

/// Connections of both protocols move all the time while clients come, go and are ended.
#[test]
fn redis_clients_come_and_go_while_connections_move() {
    let file = File::formatted();
    for scene in [
        serve_memory_balanced(3, Some(eager(Policy::Connections))),
        file.serve_balanced(2, Some(eager(Policy::Auto))),
    ] {
        let is_over = &AtomicBool::new(false);
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        let mut host = Peer::io(scene.address(), controller, 1);
        let (address, begin) = (scene.server.resp_address(0).unwrap(), Instant::now());
        let sum: u64 = scope(|threads| {
            let host = &mut host;
            threads.spawn(move || hammer(host, 1, is_over));
            let clients = |name: usize| {
                move || {
                    let (mut sum, mut round) = (0, 0);
                    while !is_over.load(Relaxed) && begin.elapsed() < 2 * TIMEOUT {
                        let mut client = Client::to(address);
                        let (adds, is_enough) = (&mut client, &AtomicBool::new(false));
                        sum += scope(|threads| {
                            let adding = threads.spawn(move || add(adds, name, is_enough));
                            sleep(Duration::from_millis(20 + 7 * name as u64));
                            is_enough.store(true, Relaxed);
                            adding.join().unwrap()
                        });
                        assert_eq!(client.ask("PING"), "+PONG", "it is still connected");
                        assert!(
                            Client::to(address).ask(&format!("DEL own{name}")).starts_with(':')
                        );
                        round += 1;
                    }
                    (sum, round)
                }
            };
            let all: Vec<_> = (0..4).map(|name| threads.spawn(clients(name))).collect();
            wait_for(&scene, |status| moved(status) > 5);
            is_over.store(true, Relaxed);
            let all: Vec<(u64, u64)> = all.into_iter().map(|it| it.join().unwrap()).collect();
            assert!(all.iter().all(|(_, rounds)| *rounds > 0));
            all.into_iter().map(|(sum, _)| sum).sum()
        });
        assert!(!host.exists(b"absent"), "the host is still connected");
        assert_eq!(Client::of(&scene).get("sum"), Some(sum.to_string()));
        let is_alone = |status: &Status| status.reactors.iter().all(|it| it.redis_clients == 0);
        let status = wait_for(&scene, is_alone);
        assert_eq!(status.devices[0].redis.as_ref().unwrap().clients, 0);
        scene.server.stop().unwrap();
    }
}

#[test]
fn a_redis_client_that_moves_is_ended_by_its_id() {
    let scene = serve_memory_balanced(2, Some(eager(Policy::None)));
    let never = &AtomicBool::new(false);
    let mut other = Client::of(&scene);
    for _ in 0..10 {
        let mut clients = clients_of_one_reactor(&scene, 2, 3);
        let ids: Vec<String> =
            clients.iter_mut().map(|it| it.ask("CLIENT ID").split_off(1)).collect();
        assert!(other.ask("DEL own0 own1 own2").starts_with(':'));
        let before = moved(&scene.status());
        scene.server.ruler().set_balance(eager(Policy::Connections));
        scope(|threads| {
            for (name, client) in clients.iter_mut().enumerate() {
                threads.spawn(move || add(client, name, never));
            }
            wait_for(&scene, |status| moved(status) > before);
            for id in ids {
                assert_eq!(other.ask(&format!("CLIENT KILL ID {id}")), ":1");
            }
        });
        for client in &mut clients {
            assert_eq!(client.try_ask("PING\r\n"), None, "it was ended");
        }
    }
    drop(other);
    let is_alone = |status: &Status| status.reactors.iter().all(|it| it.redis_clients == 0);
    wait_for(&scene, is_alone);
    scene.server.stop().unwrap();
}

#[test]
fn server_stops_while_redis_clients_move() {
    for round in 0..8 {
        let reactors = 2 + round % 2;
        let scene = serve_memory_balanced(reactors, Some(eager(Policy::None)));
        let mut clients = clients_of_one_reactor(&scene, reactors.into(), 3);
        scene.server.ruler().set_balance(eager(Policy::Connections));
        let never = &AtomicBool::new(false);
        scope(|threads| {
            for (name, client) in clients.iter_mut().enumerate() {
                threads.spawn(move || add(client, name, never));
            }
            wait_for(&scene, |status| moved(status) > 0);
            sleep(Duration::from_millis(u64::from(round) * 3));
            scene.server.stop().unwrap();
        });
    }
}
