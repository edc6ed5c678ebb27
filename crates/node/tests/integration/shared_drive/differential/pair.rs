use super::answer::Answer;
use super::compare::Comparer;
use super::covered::Covered;
use super::host_command::HostCommand;
use super::request::{Reply, Request, Round};
use super::scenes::Step;
use super::side::{CLIENTS, HOSTS, REDIS_CLIENTS, Side};
use crate::shared_drive::scene::{File, serve_memory, serve_memory_balanced};
use balance::{Policy, Settings};
use base::Nanos;
use node::server::BalanceConfig;
use spec::ListReader;
use std::collections::VecDeque;
use std::thread;

/// Requests that a failure prints.
const PRINTED: usize = 20;

/// Requests of a pipeline that reads contents.
const PIPELINE: usize = 50;

const DATABASES: usize = 16;

/// Lines of INFO that do not depend on time.
const COUNTERS: [&str; 5] = [
    "total_connections_received",
    "total_commands_processed",
    "total_error_replies",
    "keyspace_hits",
    "keyspace_misses",
];

/// A server of one reactor and one of several, which receive the same requests.
pub(crate) struct Pair {
    one: Side,
    many: Side,
    /// The file of the drive of several reactors, if it is on a disk.
    file: Option<File>,
    /// Whether several reactors must give open connections to each other.
    must_move: bool,
    /// Of which protocols they have given some: NVMe, and Redis.
    have_moved: [bool; 2],
    /// One for each client.
    comparers: Vec<Comparer>,
    name: String,
    last: VecDeque<String>,
    covered: Covered,
}

impl Pair {
    /// Starts both, with drives that the seed selects.
    pub(crate) fn start(seed: u64) -> Self {
        let on_disk = seed.is_multiple_of(2);
        let reactors = [2, 4, 3][usize::try_from(seed / 2 % 3).unwrap()];
        let medium = if on_disk { "disk" } else { "memory" };
        // Half of the servers, in memory as on a disk.
        let balance = (seed / 2).is_multiple_of(2).then(|| eager(seed));
        let balanced = if balance.is_some() { ", balanced" } else { "" };
        let server = format!("{reactors} reactors{balanced}, drive on {medium}");
        // A policy that deals clients by load could leave a reactor that is busy without one.
        let connecting = balance.map(|eager| BalanceConfig { policy: Policy::RoundRobin, ..eager });
        let files = on_disk.then(|| (File::formatted(), File::formatted()));
        let (one, many) = match &files {
            Some((one, many)) => (one.serve(1), many.serve_balanced(reactors, connecting)),
            None => (serve_memory(1), serve_memory_balanced(reactors, connecting)),
        };
        let many = Side::of(many);
        if let Some(balance) = balance {
            many.set_balance(balance);
        }
        Self {
            one: Side::of(one),
            many,
            file: files.map(|(_, many)| many),
            // The policy `auto` first diverts commands, which may be enough.
            must_move: balance.is_some_and(|balance| balance.policy == Policy::Connections),
            have_moved: [false; 2],
            comparers: (0..CLIENTS).map(|_| Comparer::default()).collect(),
            name: format!("seed {seed}, {server}"),
            last: VecDeque::new(),
            covered: Covered { servers: [server].into(), ..Covered::default() },
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Ask(client, requests) => drop(self.ask(*client, requests)),
            Step::Pause(pause) => thread::sleep(*pause),
            Step::Scan(client, line) => self.scan(*client, line),
        }
    }

    /// Asks one server after the other, compares the replies, and returns them.
    fn ask(&mut self, client: usize, requests: &[Request]) -> Vec<Reply> {
        let one = self.one.ask(client, requests);
        let many = self.many.ask(client, requests);
        for ((request, one), many) in requests.iter().zip(&one).zip(&many) {
            self.compare(client, request, one, many);
        }
        one
    }

    fn ask_lines(&mut self, client: usize, lines: &[&str]) -> Vec<Reply> {
        let requests: Vec<_> = lines.iter().map(|line| Request::line(line)).collect();
        self.ask(client, &requests)
    }

    fn compare(&mut self, client: usize, request: &Request, one: &Reply, many: &Reply) {
        if self.last.len() == PRINTED {
            self.last.pop_front();
        }
        self.last.push_back(format!("client {client}: {request}\n    {one}"));
        let is_same = self.comparers[client].is_same(request, one, many);
        assert!(
            is_same,
            "{}: replies to client {client} differ\nrequest: {request}\n1 reactor:  {one}\n\
             several:    {many}\nthe last requests, with the replies of 1 reactor:\n{}",
            self.name,
            self.last.make_contiguous().join("\n")
        );
        self.covered.add(request, one);
    }

    /// Repeats SCAN, HSCAN or ZSCAN, whose cursor is `CURSOR` in the line, up to the end.
    fn scan(&mut self, client: usize, line: &str) {
        let mut cursor = "0".to_owned();
        loop {
            let replies = self.ask_lines(client, &[&line.replace("CURSOR", &cursor)]);
            let Answer::Array(parts) = replies[0].answer() else { return };
            let [Answer::Bulk(next), Answer::Array(_)] = &parts[..] else {
                panic!("{}: {line} returns {}", self.name, replies[0])
            };
            cursor = String::from_utf8(next.clone()).unwrap();
            if cursor == "0" {
                return;
            }
        }
    }

    /// Lets all clients of a server send their pipelines at the same time, and compares the replies
    /// of each client.
    pub(crate) fn at_once(&mut self, round: &Round) {
        let [one, many] = [&mut self.one, &mut self.many].map(|side| side.at_once(round));
        let clients = round.iter().zip(one.iter().zip(&many)).enumerate();
        for (client, (pipelines, (one, many))) in clients {
            for (request, (one, many)) in pipelines.iter().flatten().zip(one.iter().zip(many)) {
                self.compare(client, request, one, many);
            }
        }
    }

    /// Returns true while no connection of a protocol has moved, if one must.
    pub(crate) fn awaits_move(&mut self) -> bool {
        if self.must_move && self.have_moved != [true; 2] {
            let are_moved = self.many.is_spread_anew();
            self.have_moved.iter_mut().zip(are_moved).for_each(|(before, now)| *before |= now);
        }
        self.must_move && self.have_moved != [true; 2]
    }

    /// Compares what both drives hold, and both servers' counters. Then a new server of one reactor
    /// opens the drive of several reactors, if it is on a disk, and compares the contents again.
    pub(crate) fn end(mut self) -> Covered {
        self.compare_contents();
        self.compare_counters();
        self.many.check_commands();
        self.covered.diverted += self.many.diverted();
        let [of_hosts, of_clients] = self.have_moved.map(u64::from);
        self.covered.moved_hosts += of_hosts;
        self.covered.moved_clients += of_clients;
        let Some(file) = self.file.take() else {
            self.many.stop();
            self.one.stop();
            return self.covered;
        };
        self.many.stop();
        self.many = Side::of(file.serve(1));
        self.name += ", after a restart";
        self.comparers = (0..CLIENTS).map(|_| Comparer::default()).collect();
        self.compare_contents();
        self.many.stop();
        self.one.stop();
        self.covered
    }

    /// Compares all keys with their values and dates, as Redis clients and NVMe hosts read them.
    fn compare_contents(&mut self) {
        for client in 0..REDIS_CLIENTS {
            self.ask_lines(client, &["reset"]);
        }
        for database in 0..DATABASES {
            let client = database % REDIS_CLIENTS;
            self.ask_lines(client, &[&format!("select {database}"), "dbsize"]);
            self.scan(client, "scan CURSOR count 7");
            let reads: Vec<_> = self.keys(client).iter().flat_map(|key| reads_of(key)).collect();
            for pipeline in reads.chunks(PIPELINE) {
                self.ask(client, pipeline);
            }
        }
        self.compare_list();
    }

    fn keys(&mut self, client: usize) -> Vec<Vec<u8>> {
        let replies = self.ask_lines(client, &["keys *"]);
        let Answer::Array(keys) = replies[0].answer() else { panic!("{}", replies[0]) };
        let bytes = |key: &Answer| match key {
            Answer::Bulk(bytes) => bytes.clone(),
            other => panic!("KEYS returns {other}"),
        };
        keys.iter().map(bytes).collect()
    }

    /// Lets each host list all keys, and the hosts in turn read the values.
    fn compare_list(&mut self) {
        for host in REDIS_CLIENTS..CLIENTS {
            let (mut start, mut number) = (Vec::new(), 0);
            loop {
                let keys = self.list(host, &start);
                for key in &keys {
                    number += 1;
                    if number % HOSTS == host - REDIS_CLIENTS {
                        let retrieve = HostCommand::Retrieve { key: key.clone(), len: 4_096 };
                        self.ask(host, &[Request::Host(retrieve)]);
                    }
                }
                let Some(last) = keys.last() else { break };
                start.clone_from(last);
            }
        }
    }

    /// Lists keys behind `start`.
    fn list(&mut self, host: usize, start: &[u8]) -> Vec<Vec<u8>> {
        let list = HostCommand::List { start: start.to_vec(), len: 512 };
        let replies = self.ask(host, &[Request::Host(list)]);
        let Reply::Host { data, .. } = &replies[0] else { panic!("{}", replies[0]) };
        let keys = ListReader::new(data).unwrap().map(Result::unwrap);
        keys.filter(|key| *key != start).map(<[u8]>::to_vec).collect()
    }

    fn compare_counters(&mut self) {
        let info = [Request::line("info stats")];
        let [one, many] = [&mut self.one, &mut self.many].map(|side| counters(&side.ask(0, &info)));
        assert_eq!(one, many, "{}: counters of INFO of 1 reactor, and of several", self.name);
    }
}

/// Returns a balancer that acts at the least difference. Of the first two seeds, which each sweep
/// runs, one diverts commands and the other one moves connections.
fn eager(seed: u64) -> BalanceConfig {
    let policies =
        [Policy::ProportionalShare, Policy::Connections, Policy::Auto, Policy::RoundRobin];
    let number = seed / 4 * 2 + seed % 2;
    let policy = policies[usize::try_from(number % 4).expect("below 4")];
    let window = Nanos::from_millis(1);
    let settings =
        Settings { overload: 0.0, spread: 0.0, movable: 1.0, window, ..Settings::default() };
    BalanceConfig { policy, settings }
}

/// Returns commands that read all that a key holds, whichever type it has.
fn reads_of(key: &[u8]) -> Vec<Request> {
    let reads = ["type", "get", "hgetall", "pexpiretime", "zrange"].map(|name| {
        let range = (name == "zrange").then_some(["0", "-1", "withscores"]);
        let rest = range.into_iter().flatten().map(|word| word.as_bytes().to_vec());
        let words = [name.as_bytes().to_vec(), key.to_vec()].into_iter().chain(rest);
        Request::Redis(words.collect())
    });
    reads.into()
}

/// Returns the lines of INFO that both servers must have in common.
fn counters(replies: &[Reply]) -> Vec<String> {
    let Answer::Bulk(text) = replies[0].answer() else { panic!("{}", replies[0]) };
    let text = String::from_utf8_lossy(text).into_owned();
    let is_counter =
        |line: &&str| line.split_once(':').is_some_and(|(name, _)| COUNTERS.contains(&name));
    let lines: Vec<_> = text.lines().filter(is_counter).map(str::to_owned).collect();
    assert_eq!(lines.len(), COUNTERS.len(), "INFO has {lines:?}");
    lines
}
