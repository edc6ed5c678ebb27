//! Ten thousand connections that come and go in every way there is to go, and what stays of them.

use crate::abuse::{SHORT, SHORT_KEY, storing};
use crate::peer::{
    C2H_DATA, Peer, Place, R2T, TIMEOUT, capsule, capsule_for, connecting, h2c_data, ic_req,
};
use rustix::net::sockopt::set_socket_linger;
use spec::{Command, Configuration, ConnectData, Property, Shutdown};
use std::io::Read;
use std::net::Shutdown as Half;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// Threads of visitors.
const THREADS: usize = 4;

/// Visitors of a thread that are there at a time: far fewer than a subsystem has associations, or
/// a process files.
const AT_A_TIME: usize = 16;

/// How a visitor goes, when it has come as far as it does.
#[derive(Clone, Copy, Debug)]
enum Goodbye {
    Close,
    Reset,
    /// Says that it sends no more, and waits for the server to say so too.
    HalfClose,
}

const GOODBYES: [Goodbye; 3] = [Goodbye::Close, Goodbye::Reset, Goodbye::HalfClose];

type Come = fn(&Place) -> Vec<Peer>;

/// How far a visitor comes.
const COMINGS: [Come; 9] = [
    |place| vec![Peer::connect("nothing said", place)],
    half_a_request,
    initialized,
    connected,
    |place| Peer::associate("with a queue", place, 128).into(),
    in_a_capsule,
    owing_data,
    leaving_data,
    disconnected,
];

/// Lets visitors come and go until there were `count` connections.
pub(crate) fn come_and_go(place: &Place, count: u64) {
    let last = place.connected.load(Relaxed) + count;
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                for round in number.. {
                    if place.connected.load(Relaxed) >= last {
                        return;
                    }
                    visit(place, round);
                }
            });
        }
    });
}

/// Some visitors at a time, no two of which are alike in one round or the next.
fn visit(place: &Place, round: usize) {
    let ways = round * AT_A_TIME..(round + 1) * AT_A_TIME;
    let visitors: Vec<_> = ways
        .map(|way| {
            let goodbye = GOODBYES[way / COMINGS.len() % GOODBYES.len()];
            (COMINGS[way % COMINGS.len()](place), goodbye)
        })
        .collect();
    for (peers, goodbye) in visitors {
        for peer in peers {
            go(peer, goodbye);
        }
    }
    shut_down(place);
}

fn go(mut peer: Peer, goodbye: Goodbye) {
    match goodbye {
        Goodbye::Close => {}
        Goodbye::Reset => set_socket_linger(&peer.stream, Some(Duration::ZERO)).unwrap(),
        Goodbye::HalfClose => {
            // The server may have ended the connection first, as it does with I/O queues.
            let _ = peer.stream.shutdown(Half::Write);
            let mut rest = Vec::new();
            match peer.stream.read_to_end(&mut rest) {
                Ok(_) => {}
                Err(error) => assert!(
                    error.kind() == std::io::ErrorKind::ConnectionReset,
                    "{}: the server does not go: {error}",
                    peer.name()
                ),
            }
        }
    }
}

fn half_a_request(place: &Place) -> Vec<Peer> {
    let mut peer = Peer::connect("half an ICReq", place);
    peer.say(&ic_req(0)[..64]);
    vec![peer]
}

fn initialized(place: &Place) -> Vec<Peer> {
    let mut peer = Peer::connect("an ICReq", place);
    peer.initialize(3);
    vec![peer]
}

fn connected(place: &Place) -> Vec<Peer> {
    let mut peer = Peer::connect("a Connect", place);
    peer.initialize(0);
    let (connect, data) = connecting(&place.nqn, 0, 32, ConnectData::ANY_CONTROLLER);
    peer.call(&connect, &data);
    // It waits for an event that does not come.
    peer.say(&capsule(&Command::async_event_request(), &[]));
    vec![peer]
}

fn in_a_capsule(place: &Place) -> Vec<Peer> {
    let [admin, mut io] = Peer::associate("half a capsule", place, 128);
    io.say(&capsule(&Command::exist(1, b"key"), &[])[..40]);
    vec![admin, io]
}

/// It was asked for a value, and has given some of it.
fn owing_data(place: &Place) -> Vec<Peer> {
    const PART: usize = 5_000;
    let [admin, mut io] = Peer::associate("owing data", place, 128);
    io.say(&storing(0));
    let asked = io.pdu();
    assert_eq!(asked[0], R2T, "{}", io.name());
    io.say(&h2c_data(&asked, 0, &[7; PART])[..24 + PART / 2]);
    vec![admin, io]
}

/// Values are on their way to it.
fn leaving_data(place: &Place) -> Vec<Peer> {
    let [admin, mut io] = Peer::associate("leaving data", place, 128);
    let retrieve = Command::retrieve(1, SHORT_KEY, SHORT);
    (0..3).for_each(|id| io.say(&capsule_for(&retrieve, id, SHORT)));
    assert_eq!(io.pdu()[0], C2H_DATA, "{}", io.name());
    vec![admin, io]
}

/// Its I/O queue ends by a command, and then its connection by the server.
fn disconnected(place: &Place) -> Vec<Peer> {
    let [admin, mut io] = Peer::associate("disconnected", place, 128);
    io.call(&Command::disconnect(), &[]);
    assert_eq!(io.stream.read(&mut [0]).unwrap(), 0, "{}: the server ends it", io.name());
    vec![admin, io]
}

/// A host that has its controller shut down, as hosts should, and waits for nothing after that.
fn shut_down(place: &Place) {
    let [mut admin, io] = Peer::associate("shut down", place, 128);
    drop(io);
    let off = Configuration::ENABLE_ALL_COMMAND_SETS.with_shutdown(Shutdown::Normal);
    admin.call(&Command::property_set(Property::CC, off.0.into()), &[]);
}

/// How long a connection that is gone may still be known: what waited for it looks once a second.
pub(crate) const FORGOTTEN_WITHIN: Duration = Duration::from_millis(1_500);

const _: () = assert!(FORGOTTEN_WITHIN.as_millis() < TIMEOUT.as_millis());
