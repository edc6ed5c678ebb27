//! What peers that mean harm cost a host: its rate with them as a share of its rate without.

use experiments::loopback::connect::connect;
use experiments::loopback::core;
use experiments::loopback::exchange::{CAPSULE, CAPSULE_BYTES, Exchange, Kind, header};
use experiments::loopback::load::{BLOCKS, Grants, Load};
use experiments::loopback::target::{Kept, NQN, Target};
use experiments::median;
use spec::{Command, DataPointer};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

const EXCHANGE: Exchange = Exchange { kind: Kind::Read, value_bytes: 4_096, depth: 32 };

const WINDOW: Duration = Duration::from_millis(400);

/// Peers of one kind at a time, where they stay connected.
const PEERS: usize = 16;

/// The pause of a flood after each connection. The flood runs on the client's core and leaves most
/// of it to the client.
const REST: Duration = Duration::from_micros(100);

/// Commands that a peer sends at once, without their data.
const COMMANDS: u16 = 64;

/// A peer that acts until it is told to stop, and counts its actions.
struct Peer {
    name: &'static str,
    act: fn(SocketAddr, &Orders),
    count: usize,
}

#[derive(Default)]
struct Orders {
    stop: AtomicBool,
    acts: AtomicU64,
}

impl Orders {
    fn go_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

const KINDS: [Peer; 4] = [
    Peer { name: "connections, opened and dropped", act: flood, count: 1 },
    Peer { name: "connections, opened and kept", act: hoard, count: 1 },
    Peer { name: "readers of a byte a second", act: read_slowly, count: PEERS },
    Peer { name: "senders of headers alone", act: send_headers, count: PEERS },
];

pub(crate) fn report(rounds: usize) {
    for peer in &KINDS {
        let target = Target::start(Kept::InMemory, EXCHANGE.kind);
        let connected = target.connect();
        let grants = Grants::Awaited { data_max: connected.data_max };
        let mut load = Load::new(connected.io, grants, EXCHANGE.value_bytes);
        load.set_keys(BLOCKS);
        let blocks = usize::try_from(BLOCKS).expect("a few thousand");
        load.run(Exchange { kind: Kind::Write, ..EXCHANGE }, blocks);
        rate(&mut load);
        let (mut shares, mut acts) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let alone = rate(&mut load);
            let (beside, done) = beside(peer, target.address(), &mut load);
            shares.push(beside / alone);
            acts.push(done);
        }
        println!(
            "beside {:<32} {:>4.2} of the rate without; {:.0} acts a second; bar 0.90",
            peer.name,
            median(&mut shares),
            median(&mut acts)
        );
        drop(load);
        drop(connected.admin);
        target.stop();
    }
}

/// Returns the rate beside `count` such peers, and their actions a second.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn beside(peer: &Peer, address: SocketAddr, load: &mut Load) -> (f64, f64) {
    let orders = Arc::new(Orders::default());
    let start = |_| {
        let (orders, act) = (orders.clone(), peer.act);
        thread::spawn(move || {
            core::pin(core::CLIENT);
            act(address, &orders);
        })
    };
    let peers: Vec<_> = (0..peer.count).map(start).collect();
    // Peers that stay have connected by then.
    load.run(EXCHANGE, EXCHANGE.depth);
    let (before, start) = (orders.acts.load(Ordering::Relaxed), Instant::now());
    let rate = rate(load);
    let acts = orders.acts.load(Ordering::Relaxed) - before;
    let acts = acts as f64 / start.elapsed().as_secs_f64();
    orders.stop.store(true, Ordering::Relaxed);
    for peer in peers {
        peer.join().expect("a peer ends when it is told to");
    }
    (rate, acts)
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn rate(load: &mut Load) -> f64 {
    const STEP: usize = 2_048;
    let (mut count, start) = (0, Instant::now());
    while start.elapsed() < WINDOW {
        load.run(EXCHANGE, STEP);
        count += STEP;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn flood(address: SocketAddr, orders: &Orders) {
    while orders.go_on() {
        drop(TcpStream::connect_timeout(&address, WINDOW));
        orders.acts.fetch_add(1, Ordering::Relaxed);
        thread::sleep(REST);
    }
}

fn hoard(address: SocketAddr, orders: &Orders) {
    let mut kept = Vec::new();
    while orders.go_on() {
        kept.extend(TcpStream::connect_timeout(&address, WINDOW));
        orders.acts.fetch_add(1, Ordering::Relaxed);
        thread::sleep(REST);
    }
}

fn read_slowly(address: SocketAddr, orders: &Orders) {
    let mut connected = connect(address, NQN);
    send_commands(&mut connected.io, &Command::read(1, 0, 1).with_data_pointer(pointer()));
    while orders.go_on() {
        let mut byte = [0];
        let read = connected.io.read(&mut byte).expect("the target answers");
        orders.acts.fetch_add(read as u64, Ordering::Relaxed);
        for _ in 0..100 {
            if orders.go_on() {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Sends commands without their data, on ever new connections.
fn send_headers(address: SocketAddr, orders: &Orders) {
    while orders.go_on() {
        let mut connected = connect(address, NQN);
        send_commands(&mut connected.io, &Command::write(1, 0, 1).with_data_pointer(pointer()));
        orders.acts.fetch_add(u64::from(COMMANDS), Ordering::Relaxed);
        thread::sleep(Duration::from_millis(20));
    }
}

fn pointer() -> DataPointer {
    DataPointer::Transport { len: 4_096 }
}

fn send_commands(stream: &mut TcpStream, command: &Command) {
    let head = header(CAPSULE, 0, CAPSULE_BYTES, 0);
    let pdus = (0..COMMANDS).flat_map(|id| {
        let command = command.with_command_id(id);
        [&head[..], command.as_bytes()].concat()
    });
    let pdus: Vec<u8> = pdus.collect();
    match stream.write_all(&pdus) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("not sent: {error}"),
        _ => {}
    }
}
