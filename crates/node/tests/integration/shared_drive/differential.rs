//! A server of one reactor and one of several get the same requests of Redis clients and NVMe
//! hosts, and must give the same replies.
//!
//! 1. [`pair`] starts both, each with a drive of its own, and compares each reply. A seed selects
//!    the kind of the drives, the number of reactors and all requests.
//! 2. One test sends one request at a time, so a client of a reactor must see what clients of other
//!    reactors have changed. [`scenes`] has its requests.
//! 3. In the other test all clients send at the same time, each for keys of its own. The next round
//!    gives the keys to other clients. [`own_keys`] has its requests.
//! 4. At the end both drives must hold the same keys, values, collections and dates of expiry, and
//!    the servers must have counted the same. A drive on a disk is read again by a new server.

#[path = "../../../../resp/tests/integration/differential/answer.rs"]
mod answer;
mod client;
mod compare;
mod covered;
#[path = "../../../../resp/tests/integration/differential/generate.rs"]
mod generate;
mod host_command;
mod own_keys;
mod pair;
mod request;
mod scenes;
mod side;
#[path = "../../../../sim/src/sweep.rs"]
mod sweep;

use own_keys::OwnKeys;
use pair::Pair;
use scenes::Scenes;
use std::time::{Duration, Instant};
use sweep::Sweep;

/// Scenes of a seed, about four requests each.
const SCENES: usize = 250;
/// Rounds of a seed in which all clients send at the same time.
const ROUNDS: usize = 20;
/// The longest time until connections of both protocols have moved: the load of a short round can
/// end before a move is due.
const MOVE_MAX: Duration = Duration::from_secs(30);

fn sweep(name: &str, count: u64) -> Sweep<'_> {
    Sweep { name, program: "-p kvasir-node --test integration", count, sharing: 2 }
}

#[test]
fn one_and_more_reactors_answer_one_request_at_a_time_alike() {
    let (_, covered) = sweep("one at a time", 12).run(|seed| {
        let (mut pair, mut scenes) = (Pair::start(seed), Scenes::new(seed));
        for _ in 0..SCENES {
            for step in scenes.next() {
                pair.step(&step);
            }
        }
        pair.end()
    });
    assert!(covered.errors > 0 && covered.transactions > 0, "{covered}");
    assert!(covered.diverted > 0, "{covered}");
    assert!(covered.refused_transactions > 0, "watched keys were changed: {covered}");
}

#[test]
fn one_and_more_reactors_answer_clients_at_once_alike() {
    let (_, covered) = sweep("at once", 10).run(|seed| {
        let (mut pair, mut own_keys) = (Pair::start(seed), OwnKeys::new(seed));
        let (mut rounds, began) = (0, Instant::now());
        while rounds < ROUNDS || pair.awaits_move() && began.elapsed() < MOVE_MAX {
            pair.at_once(&own_keys.round());
            rounds += 1;
        }
        pair.end()
    });
    assert!(covered.errors > 0 && covered.transactions > 0, "{covered}");
    assert!(covered.diverted > 0, "{covered}");
    assert!(covered.moved_hosts > 0 && covered.moved_clients > 0, "{covered}");
}
