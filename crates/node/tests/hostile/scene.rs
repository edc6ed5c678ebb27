use crate::abuse::{self, COMMANDS_MAX, IN_FLIGHT_MAX, LONGEST, SHORT};
use crate::crowd::{Crowd, HOSTS, ROUND_BYTES};
use crate::peer::{Peer, Place, TIMEOUT};
use crate::{breach, census, droves, reset, stall};
use node::Profile;
use node::server::{Served, Server, ServerConfig};
use std::num::NonZero;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Sockets and memory are the process's: one scene at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Bad hosts of each kind.
const OF_EACH: usize = 3;

/// Rounds of each good host while all bad ones are there.
const ROUNDS: usize = 20;

pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000002";

type Act = fn(&Place) -> Vec<Peer>;

const ACTS: [Act; 10] = [
    stall::silent,
    stall::slow,
    stall::halfway,
    reset::at_once,
    reset::halfway,
    reset::in_data,
    abuse::never_reads,
    abuse::floods,
    abuse::never_sends,
    abuse::never_ends,
];

/// Those of [`ACTS`] that have as much in flight as they may when all are there: 16 MiB each.
const GREEDY: u64 = 4;

#[test]
fn bad_hosts_end_alone_on_one_reactor() {
    play(1);
}

#[test]
fn bad_hosts_end_alone_on_three_reactors() {
    play(3);
}

/// Connections that come and go.
const DROVES: u64 = 10_000;

/// Those that come and go before it is counted: by then the allocator has most of what it keeps.
const WARM_UP: u64 = 6_000;

/// By how much memory may have grown after all have gone: 400 bytes of each connection.
const KEPT_BYTES: u64 = 4 << 20;

/// Tasks of a reactor itself, at most: those that accept, clean, and speak to other reactors. Some
/// may end before others when the server stops.
const OWN_TASKS: usize = 8;

/// How often it may have grown by more. What stays of connections grows with each of them; what the
/// allocator keeps does not, and depends on how many were there at a time.
const GROWTHS: usize = 3;

#[test]
fn ten_thousand_connections_leave_nothing_on_one_reactor() {
    come_and_go(1);
}

#[test]
fn ten_thousand_connections_leave_nothing_on_three_reactors() {
    come_and_go(3);
}

fn come_and_go(reactors: u16) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = census::sockets();
    let server = start(reactors);
    let idle = census::sockets();
    let place = Arc::new(Place::of(&server));
    let good = |rounds| {
        let mut crowd = Crowd::new(&place);
        crowd.go_on(rounds, || {});
        crowd.leave();
    };
    good(2);
    droves::come_and_go(&place, WARM_UP);
    census::wait_for_sockets(idle, TIMEOUT);
    thread::sleep(droves::FORGOTTEN_WITHIN);
    let grows = || {
        let memory = census::memory();
        droves::come_and_go(&place, DROVES);
        census::wait_for_sockets(idle, TIMEOUT);
        thread::sleep(droves::FORGOTTEN_WITHIN);
        census::memory().saturating_sub(memory) > KEPT_BYTES
    };
    assert!(!(0..GROWTHS).all(|_| grows()), "memory grows by {KEPT_BYTES} and more each time");
    good(2);
    census::wait_for_sockets(idle, TIMEOUT);
    thread::sleep(droves::FORGOTTEN_WITHIN);
    let report = server.stop().expect("the server served");
    for reactor in report.reactors {
        assert!(reactor.tasks <= OWN_TASKS, "{} tasks are left of connections", reactor.tasks);
    }
    assert_eq!(census::sockets(), before, "the server is gone with its sockets");
}

fn play(reactors: u16) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = census::sockets();
    let server = start(reactors);
    let idle = census::sockets();
    let place = Arc::new(Place::of(&server));
    let mut crowd = Crowd::new(&place);
    crowd.go_on(2, || {});
    let peers = let_in_beside(&mut crowd, &place);
    for peer in &peers {
        peer.check_line();
    }

    let retrieved = crowd.leave();
    check_reads(&place, retrieved);

    drop(peers);
    let mut later = Crowd::new(&place);
    later.go_on(2, || {});
    later.leave();
    census::wait_for_sockets(idle, TIMEOUT);
    let report = server.stop().expect("the server served");
    assert_eq!(report.reactors.len(), usize::from(reactors));
    let good = 2 * 2 * HOSTS as u64;
    let most = good + place.connected.load(Relaxed);
    // The kernel may take back a connection that was reset before it was accepted.
    let least = most - OF_EACH as u64;
    assert!((least..=most).contains(&report.connections()), "{} served", report.connections());
    assert_eq!(census::sockets(), before, "the server is gone with its sockets");
}

/// Lets the bad hosts in, and checks that the good ones go on and that memory stays bounded while
/// all are there.
fn let_in_beside(crowd: &mut Crowd, place: &Arc<Place>) -> Vec<Peer> {
    let (memory, rounds) = (census::memory(), crowd.rounds());
    let peers = let_in(place);
    let mut peak = 0;
    crowd.go_on(ROUNDS, || peak = peak.max(census::memory()));
    let grown = peak.saturating_sub(memory);
    let bound = bound(peers.len() as u64, crowd.rounds() - rounds);
    assert!(grown <= bound, "memory grew by {} MiB of {} MiB", grown >> 20, bound >> 20);
    peers
}

/// How much was retrieved for those that never read, beside what good hosts did. Values that are
/// retrieved may share memory: this tells even then what is held.
fn check_reads(place: &Place, (good, good_bytes): (u64, u64)) {
    let [mut admin, _io] = Peer::associate("reads the log", place, 2);
    let (reads, bytes) = admin.reads();
    let (reads, bytes) = (reads - good, bytes - good_bytes);
    // For each, beside what is in flight, as much as the kernel has taken. What it means by the
    // size of a buffer is vague: no more than twice of that.
    let in_kernel = 2 * (census::send_buffer_max() + 2 * abuse::DEAF_BYTES as u64);
    let values = |count: u64, len: u32| count + in_kernel.div_ceil(len.into());
    let long = OF_EACH as u64 * values(IN_FLIGHT_MAX / u64::from(LONGEST), LONGEST);
    let short = OF_EACH as u64 * values(COMMANDS_MAX, SHORT);
    assert!(reads <= long + short, "{reads} Retrieves were started of {}", long + short);
    let most = long * u64::from(LONGEST) + short * u64::from(SHORT) + 512_000;
    assert!(bytes <= most, "{} MiB were retrieved of {}", bytes >> 20, most >> 20);
}

/// Lets all bad hosts do what they do, at the same time. Those that stay are returned.
fn let_in(place: &Arc<Place>) -> Vec<Peer> {
    let mut hosts = Vec::new();
    for _ in 0..OF_EACH {
        for act in ACTS {
            let place = place.clone();
            hosts.push(thread::spawn(move || act(&place)));
        }
        for number in 0..breach::count() {
            let place = place.clone();
            hosts.push(thread::spawn(move || breach::breach(number, &place)));
        }
    }
    // All have come to an end before one is looked at.
    let ends: Vec<_> = hosts.into_iter().map(thread::JoinHandle::join).collect();
    ends.into_iter().flat_map(|end| end.expect("a bad host is treated as it should be")).collect()
}

/// By how much memory may grow while so many bad connections are open.
fn bound(connections: u64, rounds: u64) -> u64 {
    // Each that never reads, sends or ends: 16 MiB of long values, or 1,024 short ones, which are
    // no more. One value besides is on its way from the flash while its pages are there too.
    let in_flight = OF_EACH as u64 * GREEDY * (IN_FLIGHT_MAX + 2 * u64::from(LONGEST));
    // Each connection: 128 KiB that are read ahead, and as much for 1,024 commands and tables.
    let connections = connections * (256 << 10);
    // What good hosts store stays on the emulated flash.
    let stored = rounds * ROUND_BYTES;
    // Of threads, and what the allocator has not given back.
    let others = 32 << 20;
    in_flight + connections + stored + others
}

fn start(reactors: u16) -> Server {
    let ideal = Profile::load("ideal").expect("it is built in");
    let served = Served::Emulated(Box::new(ideal.without_delays()));
    let reactors = NonZero::new(reactors).expect("there is one");
    let config = ServerConfig::of_one(served, NQN, ([127, 0, 0, 1], 0).into(), reactors);
    Server::start(config).expect("loopback has a free port")
}
