//! What a host knows of an emulated device, over starts of its server. A server that is killed
//! leaves the state file as it is while the server runs.

use base::Nanos;
use client::{Association, Host, Namespace, Settings};
use node::server::{Began, Pace, SerialNumber, Served, Server, ServerConfig, default_serial};
use reactor::{Reactor, Remote, TcpStream};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;

const NQN: &str = "nqn.2026-11.com.example:kept";
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/full.toml");

/// What a host reads by Identify.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    serial: String,
    /// NGUIDs of the namespaces of pairs and of blocks.
    nguids: [[u8; 16]; 2],
}

impl Identity {
    /// Identifies the device that a server has at `address`.
    fn read(address: SocketAddr) -> Self {
        let remote = Remote::new().unwrap();
        let identified = Reactor::new(None).serve(&remote, async {
            let stream = TcpStream::connect(address, Nanos::from_secs(10)).await.unwrap();
            let settings = Settings::new(Host::of_uuid([7; 16]), NQN);
            let association = Association::connect(settings, stream).await.unwrap();
            let pairs = association.kv_namespace(1).await.unwrap();
            let Namespace::Blocks(blocks) = association.namespace(2).await.unwrap() else {
                panic!("it is of blocks");
            };
            let serial = association.controller().serial_number.as_str().unwrap().to_owned();
            association.shut_down().await.unwrap();
            Self { serial, nguids: [pairs.nguid, blocks.nguid] }
        });
        identified.unwrap().0
    }
}

/// How a server ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Stopped,
    Killed,
}

/// Serves a device that is kept in `state`, and returns how it started, its incarnation, and what a
/// host knows of it.
fn serve(state: Option<&Path>, serial: &SerialNumber, end: End) -> (Option<Began>, u64, Identity) {
    let served = Served::named(PROFILE, Path::new(""), Pace::None).unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let mut config = ServerConfig::of_one(served, NQN, address, NonZero::new(1).unwrap());
    config.subsystems[0].serial = serial.clone();
    config.devices[0].state = state.map(Path::to_owned);
    let server = Server::start(config).unwrap();
    let identity = Identity::read(server.addresses()[0]);
    let (began, incarnation) = (server.began(0), server.incarnation(0));
    let left = state.filter(|_| end == End::Killed).map(|state| (state, fs::read(state).unwrap()));
    server.stop().unwrap();
    if let Some((state, content)) = left {
        fs::write(state, content).unwrap();
    }
    (began, incarnation, identity)
}

fn by_default() -> SerialNumber {
    SerialNumber::Default(default_serial("full", 1))
}

#[test]
fn device_has_new_identifiers_after_each_loss_and_keeps_them_over_stops() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("device.state");
    let mut seen: BTreeMap<u64, Identity> = BTreeMap::new();
    for (end, began, incarnation) in [
        (End::Stopped, Began::New, 0),
        (End::Killed, Began::Resumed, 0),
        (End::Killed, Began::Lost, 1),
        (End::Stopped, Began::Lost, 2),
        (End::Stopped, Began::Resumed, 2),
        (End::Killed, Began::Resumed, 2),
        (End::Stopped, Began::Lost, 3),
    ] {
        let (how, number, identity) = serve(Some(&state), &by_default(), end);
        assert_eq!((how, number), (Some(began), incarnation));
        let known = seen.entry(incarnation).or_insert_with(|| identity.clone());
        assert_eq!(*known, identity, "incarnation {incarnation}");
    }
    assert_eq!(seen[&0].serial, default_serial("full", 1));
    let serials: BTreeSet<_> = seen.values().map(|identity| &identity.serial).collect();
    let nguids: BTreeSet<_> = seen.values().flat_map(|identity| identity.nguids).collect();
    assert_eq!((serials.len(), nguids.len()), (4, 8), "{seen:?}");
}

#[test]
fn loss_keeps_a_serial_number_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("device.state");
    let given = SerialNumber::Given("KV-1".to_owned());
    let (_, _, before) = serve(Some(&state), &given, End::Killed);
    let (began, _, after) = serve(Some(&state), &given, End::Stopped);
    assert_eq!((began, &*before.serial, &*after.serial), (Some(Began::Lost), "KV-1", "KV-1"));
    assert!(before.nguids.iter().all(|nguid| !after.nguids.contains(nguid)));
}

/// It is empty at each start.
#[test]
fn device_without_a_state_file_has_the_same_identifiers_at_each_start() {
    let first = serve(None, &by_default(), End::Stopped);
    assert_eq!((first.0, first.1), (None, 0));
    assert_eq!(serve(None, &by_default(), End::Stopped), first);
}
