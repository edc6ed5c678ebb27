//! Connections that the target moves between reactors while a host uses them.

use crate::end_to_end::{BOTH, key, settings, use_many_pairs, use_pairs, value};
use crate::world::{KV, Moves, ROUGH, run_moving};
use base::Nanos;
use client::{Error, Pairs, Settings};
use clock::Stage;
use controller::{Queue, Submission};
use net::Conditions;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::{Command, Status, StoreOptions};

/// A connection is asked to move each 100 ns, and is on its way for 700 ns.
fn always() -> Moves {
    Moves { every: Some(Nanos(100)), pause: Nanos(700), ..Moves::default() }
}

/// A connection is on its way for so long that the association can end.
fn slow() -> Moves {
    Moves { every: Some(Nanos::from_millis(1)), pause: Nanos::from_secs(20), ..Moves::default() }
}

#[test]
fn pairs_of_all_lengths_come_back_over_moves() {
    let cases = [
        (Digests::NONE, None, false, 1),
        (BOTH, None, false, 2),
        (Digests::NONE, None, true, 1),
        (BOTH, Some(DataDigest::Padded), false, 2),
        (BOTH, Some(DataDigest::Exact), true, 1),
    ];
    for (seed, (digests, data_digest, flow_control, queues)) in (0..).zip(cases) {
        for conditions in [Conditions::CALM, ROUGH] {
            let moves = always();
            run_moving(seed, conditions, moves.clone(), async |world| {
                let settings = Settings { digests, data_digest, flow_control, ..settings() };
                use_pairs(world, settings, queues).await;
            });
            assert!(moves.count.get() > 60, "{} moves", moves.count.get());
        }
    }
}

#[test]
fn concurrent_commands_return_the_stored_values_over_moves() {
    for (seed, every) in (0..12).zip([50, 100, 2_000, 50_000].into_iter().cycle()) {
        let moves = Moves { every: Some(Nanos(every)), ..always() };
        run_moving(seed, ROUGH, moves.clone(), async |world| use_many_pairs(&world, seed).await);
        assert!(moves.count.get() > 10, "{} moves with seed {seed}", moves.count.get());
    }
}

/// The host always owes the data of a command: without a pause of what is requested, no instant
/// would suit a move.
#[test]
fn connection_with_large_stores_under_way_moves() {
    for conditions in [Conditions::CALM, ROUGH] {
        let moves = always();
        run_moving(1, conditions, moves.clone(), async |world| {
            let (_association, queue) = world.connect(settings(), 1).await;
            let stored = value(1, 100_000);
            let store = |number: u64| {
                let name = key(&(number % 16).to_le_bytes());
                let len = stored.len();
                let command = Command::store(KV, name.as_bytes(), len, StoreOptions::NONE);
                queue.submit(Submission::with_data(command, &name, stored.clone()));
            };
            (0..8).for_each(store);
            for number in 8..200 {
                assert_eq!(queue.next().await.status, Status::SUCCESS);
                store(number);
            }
            for _ in 0..8 {
                assert_eq!(queue.next().await.status, Status::SUCCESS);
            }
            let found = Pairs::new(queue.clone(), KV).retrieve(&key(&3_u64.to_le_bytes())).await;
            assert_eq!(found.map(|found| found.bytes() == stored.bytes()), Ok(true));
        });
        assert!(moves.count.get() >= 10, "{} moves", moves.count.get());
    }
}

#[test]
fn association_that_ends_while_a_connection_moves_ends_it() {
    for keeps_alive in [false, true] {
        let moves = slow();
        run_moving(1, Conditions::CALM, moves.clone(), async |world| {
            let keep_alive = if keeps_alive { Nanos::from_secs(5) } else { Nanos::ZERO };
            let settings = Settings { keep_alive, timeout: Nanos::from_secs(60), ..settings() };
            let (association, queue) = world.connect(settings, 1).await;
            let name = key(b"key");
            let pairs = Pairs::new(queue.clone(), KV);
            clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
            assert_eq!(pairs.exist(&name).await, Ok(false));
            clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
            assert_eq!(moves.count.get(), 1);
            if keeps_alive {
                drop(association);
            } else {
                association.shut_down().await.unwrap();
            }
            assert!(pairs.exist(&name).await.is_err());
            assert!(matches!(queue.failure(), Some(Error::Ended)), "{:?}", queue.failure());
            clock::sleep(Nanos::from_secs(60), Stage::Queue).await;
            assert!(world.network.open().is_empty(), "every connection has ended");
        });
    }
}

#[test]
fn host_that_leaves_while_its_connection_moves_ends_it() {
    let moves = slow();
    run_moving(1, Conditions::CALM, moves.clone(), async |world| {
        let (association, queue) = world.connect(settings(), 1).await;
        clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
        assert_eq!(Pairs::new(queue.clone(), KV).exist(&key(b"key")).await, Ok(false));
        clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
        assert_eq!(moves.count.get(), 1);
        queue.close();
        clock::sleep(Nanos::from_secs(30), Stage::Queue).await;
        association.shut_down().await.unwrap();
        clock::sleep(Nanos::from_millis(10), Stage::Queue).await;
        assert!(world.network.open().is_empty(), "every connection has ended");
    });
}
