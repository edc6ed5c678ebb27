use super::compare::is_named;
use super::generate::{Generator, Words};
use super::host_command::HostCommand;
use super::request::Request;
use super::side::{CLIENTS, HOSTS, REDIS_CLIENTS};
use base::{Rng, mix};
use std::time::Duration;

/// Keys of random commands, as hosts name them.
const KEYS: [&str; 14] =
    ["k0", "k1", "k2", "k3", "k4", "k5", "h0", "h1", "z0", "z1", "w0", "w1", "w2", "f0"];

/// Commands that [`Generator`] does not make.
const MORE: [&str; 16] = [
    "keys *",
    "dbsize",
    "client id",
    "info keyspace",
    "object encoding k0",
    "memory usage k1",
    "set k2 new ifeq 12",
    "set k3 12",
    "hello 2",
    "hello 3",
    "select 0",
    "select 1",
    "flushdb",
    "exists k0 k1 k2 h0 h1 z0 z1",
    "mget w0 w1 w2 k0",
    "del h0 z0 k5",
];

/// What another client does to the watched key w1. Some of it changes nothing.
const CHANGES: [&str; 12] = [
    "set w1 theirs",
    "append w1 x",
    "del w1",
    "hset w1 f v",
    "zadd w1 1 m",
    "expire w1 100",
    "persist w1",
    "rename w1 w2",
    "get w1",
    "setnx w1 x",
    "flushdb",
    "set w0 x",
];

const SCANS: [&str; 7] = [
    "scan CURSOR count 3",
    "scan CURSOR count 5 match k*",
    "scan CURSOR type hash",
    "hscan h0 CURSOR count 4",
    "hscan h1 CURSOR",
    "zscan z0 CURSOR count 4",
    "zscan z1 CURSOR match m*",
];

/// The clients make a step after the other, and each reply is awaited.
pub(crate) enum Step {
    /// A client sends a pipeline.
    Ask(usize, Vec<Request>),
    /// A client reads all that a SCAN, HSCAN or ZSCAN returns.
    Scan(usize, String),
    Pause(Duration),
}

/// Makes steps from a seed.
pub(crate) struct Scenes {
    random: Generator,
}

impl Scenes {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Generator(Rng::new(mix(seed))) }
    }

    /// Returns the next steps, which belong together.
    pub(crate) fn next(&mut self) -> Vec<Step> {
        match self.below(60) {
            0..=5 => self.watched(),
            6..=9 => self.seen_by_all(),
            10..=12 => self.scanned(),
            13 => self.expired(),
            14..=29 => vec![self.of_host()],
            _ => vec![self.pipeline()],
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.0.below(bound as u64)).unwrap()
    }

    fn pick(&mut self, all: &[&str]) -> String {
        all[self.below(all.len())].to_owned()
    }

    /// Returns two different Redis clients.
    fn two(&mut self) -> (usize, usize) {
        let one = self.below(REDIS_CLIENTS);
        (one, (one + 1 + self.below(REDIS_CLIENTS - 1)) % REDIS_CLIENTS)
    }

    fn host(&mut self) -> usize {
        REDIS_CLIENTS + self.below(HOSTS)
    }

    fn pipeline(&mut self) -> Step {
        let count = 1 + self.below(8);
        let mut requests = Vec::new();
        while requests.len() < count {
            if self.below(8) == 0 {
                requests.push(Request::line(&self.pick(&MORE)));
                continue;
            }
            let words = self.random.command();
            if !depends_on_duration(&words) {
                requests.push(Request::Redis(words));
            }
        }
        Step::Ask(self.below(REDIS_CLIENTS), requests)
    }

    fn of_host(&mut self) -> Step {
        let key = self.pick(&KEYS).into_bytes();
        let command = if self.below(8) == 0 {
            let start = if self.below(2) == 0 { Vec::new() } else { key };
            HostCommand::List { start, len: [4_096, 40, 4][self.below(3)] }
        } else {
            HostCommand::of_key(key, &mut self.random.0)
        };
        Step::Ask(self.host(), vec![Request::Host(command)])
    }

    /// A client watches a key, another one changes it or does not, and the first one executes.
    fn watched(&mut self) -> Vec<Step> {
        let (watcher, other) = self.two();
        let change = match self.below(4) {
            0 => {
                let command = HostCommand::of_key(b"w1".to_vec(), &mut self.random.0);
                Step::Ask(self.host(), vec![Request::Host(command)])
            }
            1 => Step::Ask(watcher, lines(&[&self.pick(&["unwatch", "get w1", "set w1 mine"])])),
            _ => Step::Ask(other, lines(&["discard", "select 0", &self.pick(&CHANGES)])),
        };
        let first = ["discard", "unwatch", "select 0", "watch w1 k5"];
        let last = ["multi", "append w1 y", "incr k0", "get w1", "hset h0 f1 v", "exec"];
        vec![
            Step::Ask(watcher, lines(&first)),
            change,
            Step::Ask(watcher, lines(&last)),
            Step::Ask(other, lines(&["mget w1 k0", "hget h0 f1"])),
        ]
    }

    /// A client changes keys, and all other clients read them.
    fn seen_by_all(&mut self) -> Vec<Step> {
        let (writer, number) = (self.below(CLIENTS), self.below(1_000));
        let change = if writer < REDIS_CLIENTS {
            let fill = format!("mset k0 {number} k1 {number}");
            let change = ["del k0", "append k1 x", "flushdb", "rename k1 k0", "expire k0 100"];
            lines(&["discard", "select 0", &fill, &self.pick(&change)])
        } else {
            vec![Request::Host(HostCommand::of_key(b"k0".to_vec(), &mut self.random.0))]
        };
        let mut steps = vec![Step::Ask(writer, change)];
        for reader in 0..CLIENTS {
            let reads = if reader < REDIS_CLIENTS {
                lines(&["discard", "select 0", "get k0", "mget k0 k1", "dbsize"])
            } else {
                vec![Request::Host(HostCommand::Retrieve { key: b"k0".to_vec(), len: 100 })]
            };
            steps.push(Step::Ask(reader, reads));
        }
        steps
    }

    fn scanned(&mut self) -> Vec<Step> {
        let client = self.below(REDIS_CLIENTS);
        let scan = self.pick(&SCANS);
        vec![Step::Ask(client, lines(&["discard"])), Step::Scan(client, scan)]
    }

    /// A key expires, which other clients must see. Its record is replaced and deleted at the end,
    /// because a server counts an expired key for up to 0.1 s. One pipeline would do neither: its
    /// writes of one key execute together.
    fn expired(&mut self) -> Vec<Step> {
        let (setter, other) = self.two();
        let exist = HostCommand::Exist { key: b"k1".to_vec() };
        let mut steps = vec![
            Step::Ask(setter, lines(&["discard", "select 0", "set k1 brief px 20"])),
            Step::Pause(Duration::from_millis(30)),
            Step::Ask(self.host(), vec![Request::Host(exist)]),
            Step::Ask(other, lines(&["discard", "select 0", "get k1", "exists k1"])),
        ];
        steps.extend(["setnx k1 again", "del k1"].map(|line| Step::Ask(other, lines(&[line]))));
        steps
    }
}

/// Returns whether a reply depends on how long commands take. GT and LT may compare the date with
/// that of a command of the same millisecond; SLOWLOG GET returns the commands that took long.
pub(crate) fn depends_on_duration(words: &Words) -> bool {
    let is_relative = ["expire", "pexpire"].iter().any(|name| is_named(words, name));
    let compares = |word: &Vec<u8>| matches!(&word[..], b"gt" | b"lt");
    is_relative && words.iter().any(compares)
        || is_named(words, "slowlog") && words.get(1).is_some_and(|word| word == b"get")
}

/// Returns the Redis commands of lines.
pub(crate) fn lines(lines: &[&str]) -> Vec<Request> {
    lines.iter().map(|line| Request::line(line)).collect()
}
