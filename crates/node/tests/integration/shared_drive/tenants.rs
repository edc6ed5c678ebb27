//! Tenants of a server share a reactor by weight, whatever their number of connections, and are
//! delayed by their limits.
//!
//! The order of execution is what is judged, not time: a limit holds all requests back until all
//! have been sent, and a counter in the drive tells which came first.

use crate::shared_drive::moved::{eager, moved};
use crate::shared_drive::peer::Peer;
use crate::shared_drive::scene::NQN;
use balance::Policy;
use node::MemoryKind;
use node::server::{
    BalanceConfig, Inquirer, Served, ServedResp, Server, ServerConfig, Status, TenantConfig,
    TenantStatus,
};
use spec::{Command, Status as CommandStatus};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOST_A: &str = "nqn.2026-11.com.example:a";
const HOST_B: &str = "nqn.2026-11.com.example:b";

const USERS: &str = "user alice on >secret ~* +@all\nuser bob on >secret ~* +@all\n";

/// Many times what any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

struct Scene {
    server: Server,
    inquirer: Inquirer,
    tenants: Vec<TenantConfig>,
}

impl Scene {
    /// Serves a drive in memory to the tenants `a` and `b` of these weights.
    fn new(reactors: u16, weights: [u32; 2]) -> Self {
        Self::balanced(reactors, weights, None)
    }

    /// The same with reactors that give each other connections.
    fn balanced(reactors: u16, weights: [u32; 2], balance: Option<BalanceConfig>) -> Self {
        let tenant = |name: &str, host: &str, user: &str, weight| {
            let mut tenant = TenantConfig::new(name);
            tenant.host_nqns = vec![host.to_owned()];
            tenant.resp_users = vec![user.to_owned()];
            tenant.terms.weight = NonZero::new(weight).unwrap();
            tenant
        };
        let [of_a, of_b] = weights;
        let tenants = vec![tenant("a", HOST_A, "alice", of_a), tenant("b", HOST_B, "bob", of_b)];
        let served = Served::Memory { size_bytes: 72 << 20, kind: MemoryKind::Kv, reactors: 1 };
        let any = ([127, 0, 0, 1], 0).into();
        let reactors = NonZero::new(reactors).unwrap();
        let mut config = ServerConfig::of_one(served, NQN, any, reactors);
        let mut resp = ServedResp::of_users(None).unwrap().at("127.0.0.1:0").unwrap();
        resp.users = Some(resp::Users::parse(USERS).unwrap());
        config.devices[0].resp = Some(resp);
        config.tenants.clone_from(&tenants);
        (config.http, config.balance) = (Some(any), balance);
        let server = Server::start(config).unwrap();
        let inquirer = Inquirer::new(server.http_address().unwrap()).unwrap();
        Self { server, inquirer, tenants }
    }

    /// Limits the requests per second of each tenant.
    fn limit(&self, requests_per_second: Option<u64>) {
        let mut tenants = self.tenants.clone();
        for tenant in &mut tenants {
            tenant.terms.requests_per_second = requests_per_second.and_then(NonZero::new);
        }
        self.server.ruler().set_tenants(&tenants);
    }

    fn client(&self, user: &str) -> Client {
        let stream = TcpStream::connect(self.server.resp_address(0).unwrap()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut client = Client(BufReader::new(stream));
        client.send(&format!("AUTH {user} secret\r\n"));
        assert_eq!(client.line(), "+OK");
        client
    }

    /// Returns I/O queues of a host with so many entries, and its admin queue.
    fn queues(&self, host: &str, count: u16, entries: u16) -> (Peer, Vec<Peer>) {
        let address = self.server.addresses()[0];
        let (admin, controller) = Peer::admin_of(host, address, 0);
        let io = |id| Peer::io_of(host, address, controller, (id, entries));
        (admin, (1..=count).map(io).collect())
    }

    fn status(&self) -> Status {
        self.inquirer.ask().unwrap()
    }

    fn tenant(&self, name: &str) -> TenantStatus {
        let tenants = self.status().tenants;
        tenants.into_iter().find(|tenant| tenant.name == name).unwrap()
    }
}

/// Waits until what was sent is in the sockets of the server, which waits for its limits.
fn let_arrive() {
    sleep(Duration::from_millis(200));
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn number(&mut self) -> u64 {
        self.line().strip_prefix(':').unwrap().parse().unwrap()
    }
}

/// One client counts to the end of its pipeline while eight of another tenant count too. Returns
/// how many of the others' requests were executed before its last.
fn executed_before_the_last_of_one(weights: [u32; 2], each: usize) -> u64 {
    let scene = Scene::new(1, weights);
    let mut many: Vec<_> = (0..8).map(|_| scene.client("alice")).collect();
    let mut one = scene.client("bob");
    scene.limit(Some(1));
    let load = "INCR count\r\n".repeat(each);
    for client in &mut many {
        client.send(&load);
    }
    one.send(&load);
    let_arrive();
    scene.limit(None);
    let last = (0..each).map(|_| one.number()).last().unwrap();
    for client in &mut many {
        (0..each).for_each(|_| assert!(client.number() > 0));
    }
    scene.server.stop().unwrap();
    last - each as u64
}

#[test]
fn redis_users_share_by_weight_whatever_their_number_of_connections() {
    const EACH: usize = 4_000;
    // Without tenants 28,000 and more, whether connections take turns or are served as they come.
    let equal = executed_before_the_last_of_one([1, 1], EACH);
    assert!((1_500..=9_000).contains(&equal), "{equal}");
    let quarter = executed_before_the_last_of_one([1, 4], EACH);
    assert!(quarter <= 2_000, "{quarter}");
}

/// The requests of a client count once, for its tenant, whichever reactors execute them.
#[test]
fn clients_of_a_tenant_move_and_stay_its_clients() {
    let scene = Scene::balanced(2, [1, 1], Some(eager(Policy::None)));
    // Clients are dealt in turn. Those of one reactor send requests, so some of them move.
    let connected = ["alice", "bob", "alice", "bob", "bob", "bob"].map(|user| scene.client(user));
    let mut clients: Vec<Client> = connected.into_iter().step_by(2).collect();
    scene.server.ruler().set_balance(eager(Policy::Connections));
    let (begin, mut rounds) = (Instant::now(), 0);
    while rounds % 100 > 0 || moved(&scene.status()) == 0 {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", scene.status().reactors);
        rounds += 1;
        for client in &mut clients {
            client.send("INCR count\r\n");
        }
        for client in &mut clients {
            assert!(client.number() > 0);
        }
    }
    // A turn is charged after its replies are sent.
    let expected = [2 * rounds, rounds];
    while ["a", "b"].map(|name| scene.tenant(name).requests) != expected {
        assert!(begin.elapsed() < 2 * TIMEOUT, "{:?} are not {expected:?}", scene.status().tenants);
    }
    scene.server.stop().unwrap();
}

#[test]
fn redis_client_is_not_behind_eight_connections_of_a_host() {
    // In order of arrival all 8,000 stores were executed before the last GET.
    let stored = stored_before_the_last_get();
    assert!(stored <= 3_000, "{stored}");
}

/// Eight queues of a host store 1,000 values each. Returns how many of these were stored before a
/// client of another tenant had got 300 values.
fn stored_before_the_last_get() -> u64 {
    const STORES: u32 = 1_000;
    const GETS: usize = 300;
    let scene = Scene::new(1, [1, 1]);
    let (_admin, many) = scene.queues(HOST_A, 8, 1_024);
    let mut one = scene.client("bob");
    scene.limit(Some(1));
    for (number, io) in many.iter().enumerate() {
        (0..STORES).for_each(|count| _ = io.send_store(&key(number, count), b"value"));
    }
    // The last GETs are of every 200th key: how many of these exist tells how many were stored.
    let sampled = (0..STORES).step_by(200).flat_map(|count| (0..8).map(move |it| key(it, count)));
    let sampled: Vec<_> = sampled.map(|key| String::from_utf8(key).unwrap()).collect();
    let nothing = std::iter::repeat_n("nothing", GETS - sampled.len());
    let gets = nothing.chain(sampled.iter().map(String::as_str));
    let gets: Vec<_> = gets.map(|key| format!("GET {key}\r\n")).collect();
    one.send(&gets.concat());
    let_arrive();
    scene.limit(None);
    let mut got = 0;
    for _ in 0..GETS {
        if one.line() != "$-1" {
            assert_eq!(one.line(), "value");
            got += 1;
        }
    }
    for io in &many {
        for _ in 0..STORES {
            assert_eq!(io.next().unwrap().entry.status(), CommandStatus::SUCCESS);
        }
    }
    scene.server.stop().unwrap();
    got * 200
}

fn key(number: usize, count: u32) -> Vec<u8> {
    format!("{number}-{count}").into_bytes()
}

#[test]
fn limit_delays_and_answers_everything() {
    for reactors in [1, 3] {
        let scene = Scene::new(reactors, [1, 1]);
        let (admin, io) = scene.queues(HOST_A, 3, 128);
        scene.limit(Some(100));
        let began = Instant::now();
        for queue in &io {
            (0..100_u8).for_each(|key| _ = queue.send_store(&[key], b"value"));
        }
        // Limits hold back no admin command: a host ends an association without a Keep Alive.
        assert_eq!(admin.status(Command::keep_alive()), CommandStatus::SUCCESS);
        for queue in &io {
            for _ in 0..100 {
                assert_eq!(queue.next().unwrap().entry.status(), CommandStatus::SUCCESS);
            }
        }
        // 300 requests at 100/s, without a burst of 10 and a turn of each reactor: 7 or 21.
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(2_600), "{reactors} reactors: {took:?}");
        let [a, b] = ["a", "b"].map(|name| scene.tenant(name));
        assert_eq!((a.requests, b.requests, b.busy_ns), (300, 0, 0));
        assert!(a.waited_limit_ns > 1_000_000_000 && a.bytes > 300 * 72, "{a:?}");
        scene.server.stop().unwrap();
    }
}

#[test]
fn connections_end_while_they_wait() {
    let scene = Scene::new(1, [1, 1]);
    let (admin, io) = scene.queues(HOST_A, 4, 128);
    let mut clients: Vec<_> = (0..4).map(|_| scene.client("alice")).collect();
    let mut one = scene.client("bob");
    scene.limit(Some(1));
    for queue in &io {
        (0..100_u8).for_each(|key| _ = queue.send_store(&[key], b"value"));
    }
    for client in &mut clients {
        client.send(&"INCR count\r\n".repeat(1_000));
    }
    one.send("PING\r\n");
    let_arrive();
    // Half of them are gone when the limit is lifted.
    let (_kept, _others) = (clients.split_off(2), admin);
    drop((io, clients));
    scene.limit(None);
    assert_eq!(one.line(), "+PONG");
    let begin = Instant::now();
    while scene.status().reactors[0].connections > 1 {
        assert!(begin.elapsed() < TIMEOUT, "the lost connections have ended");
    }
    one.send("PING\r\n");
    assert_eq!(one.line(), "+PONG");
    scene.server.stop().unwrap();
}

#[test]
fn server_stops_while_connections_wait() {
    for reactors in [1, 2] {
        let scene = Scene::new(reactors, [1, 1]);
        let (_admin, io) = scene.queues(HOST_A, 4, 128);
        let mut clients: Vec<_> = (0..4).map(|_| scene.client("bob")).collect();
        scene.limit(Some(1));
        for queue in &io {
            (0..100_u8).for_each(|key| _ = queue.send_store(&[key], b"value"));
        }
        for client in &mut clients {
            client.send(&"INCR count\r\n".repeat(1_000));
        }
        let_arrive();
        let began = Instant::now();
        scene.server.stop().unwrap();
        // At one request a second it would take far longer to execute what was sent.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[test]
fn commands_count_for_the_user_who_gave_them() {
    let scene = Scene::new(1, [1, 1]);
    let mut client = scene.client("alice");
    // In one read: AUTH and 100 commands as bob, and AUTH and 10 as alice.
    let as_bob = format!("AUTH bob secret\r\n{}", "INCR count\r\n".repeat(100));
    let as_alice = format!("AUTH alice secret\r\n{}", "INCR count\r\n".repeat(10));
    client.send(&(as_bob + &as_alice));
    for expected in ["+OK"].into_iter().chain([":"; 100]).chain(["+OK"]).chain([":"; 10]) {
        assert!(client.line().starts_with(expected));
    }
    let requests = ["a", "b"].map(|name| scene.tenant(name).requests);
    // AUTH counts for the user before it; the first one has none.
    assert_eq!(requests, [1 + 10, 100 + 1]);
    scene.server.stop().unwrap();
}
