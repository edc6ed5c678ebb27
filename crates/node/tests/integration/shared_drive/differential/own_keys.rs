use super::compare::is_named;
use super::generate::{Generator, Words};
use super::host_command::HostCommand;
use super::request::{Request, Round};
use super::scenes::{depends_on_duration, lines};
use super::side::{CLIENTS, REDIS_CLIENTS};
use base::{Rng, mix};
use std::collections::BTreeSet;

/// Pipelines that a client sends one after the other in a round.
const PIPELINES: usize = 5;
/// Requests of a pipeline at most.
const REQUESTS: usize = 12;

/// Commands that another client's could make reply differently, in any database.
const SHARED: [&str; 8] =
    ["select", "flushall", "reset", "config", "slowlog", "latency", "client", "swapdb"];
/// Commands on all keys of a database.
const WHOLE_DATABASE: [&str; 5] = ["keys", "scan", "randomkey", "dbsize", "flushdb"];

/// Makes requests of clients, each for keys of its own, from a seed.
///
/// There is a set of keys for each client. A round assigns the sets to other clients than the one
/// before. A set has keys of database 0, which hosts use too, and a whole database of its own.
pub(crate) struct OwnKeys {
    random: Generator,
    rounds: usize,
}

impl OwnKeys {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Generator(Rng::new(mix(!seed))), rounds: 0 }
    }

    pub(crate) fn round(&mut self) -> Round {
        self.rounds += 1;
        let rounds = self.rounds;
        let sets = (0..CLIENTS).map(|client| (client, (client + rounds) % CLIENTS));
        let pipelines = sets.map(|(client, set)| {
            let pipelines = (0..PIPELINES).map(|_| {
                if client < REDIS_CLIENTS { self.of_redis_client(set) } else { self.of_host(set) }
            });
            pipelines.collect()
        });
        pipelines.collect()
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.0.below(bound as u64)).unwrap()
    }

    /// Begins with what ends a transaction, forgets keys that the client watches, which may be
    /// another client's now, and selects the database.
    fn of_redis_client(&mut self, set: usize) -> Vec<Request> {
        let database = if self.below(2) == 0 { 0 } else { set + 1 };
        let select = format!("select {database}");
        let mut requests = lines(&["discard", "unwatch", &select]);
        let is_transaction = self.below(3) == 0;
        if is_transaction {
            requests.extend(lines(&[&format!("watch w0:{set} h0:{set}"), "multi"]));
        }
        let len = requests.len() + 1 + self.below(REQUESTS);
        while requests.len() < len {
            let words = self.random.command();
            let shares = |names: &[&str]| names.iter().any(|name| is_named(&words, name));
            let copies_to = is_named(&words, "copy") && words.len() > 3;
            let is_shared = shares(&SHARED) || database == 0 && shares(&WHOLE_DATABASE);
            if !is_shared && !copies_to && !depends_on_duration(&words) {
                requests.push(Request::Redis(of_set(words, set)));
            }
        }
        if is_transaction {
            requests.push(Request::line("exec"));
        }
        requests
    }

    /// Each of a different key: commands of a host that are in flight have no order.
    fn of_host(&mut self, set: usize) -> Vec<Request> {
        let keys: BTreeSet<String> = (0..=self.below(8))
            .map(|_| format!("{}{}:{set}", ["k", "h", "z", "w", "f"][self.below(5)], self.below(3)))
            .collect();
        let rng = &mut self.random.0;
        keys.into_iter()
            .map(|key| Request::Host(HostCommand::of_key(key.into_bytes(), rng)))
            .collect()
    }
}

/// Returns the command with keys of a set.
fn of_set(mut words: Words, set: usize) -> Words {
    for word in &mut words[1..] {
        if let [b'k' | b'h' | b'z' | b'w' | b'f', b'0'..=b'9'] = word[..] {
            word.extend_from_slice(format!(":{set}").as_bytes());
        }
    }
    words
}
