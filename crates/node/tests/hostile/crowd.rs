//! Good hosts: each stores and retrieves until it is told to stop, and checks every byte.

use crate::abuse::{LONGEST, LONGEST_KEY, SHORT, SHORT_KEY};
use crate::peer::{Place, TIMEOUT};
use base::{Buf, Key, Nanos, Rng};
use client::{Association, Host, Pairs, Reads, Settings};
use reactor::{Reactor, Remote, TcpStream};
use spec::StoreOptions;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

pub(crate) const HOSTS: usize = 4;

/// Rounds that the hosts may be ahead of who counts them.
const AHEAD: usize = 64;

/// Keys of a host.
const KEYS: usize = 4;

/// In the capsule up to 8 KiB, by R2T above that.
const LENGTHS: [usize; 6] = [5, 100, 4_096, 8_192, 8_193, 40_001];

/// What a round may put on the flash at most: five pages of 16 KiB and their spare bytes, as each
/// store may be the only one of its last page.
pub(crate) const ROUND_BYTES: u64 = 5 * 17_408;

#[derive(Debug)]
pub(crate) struct Crowd {
    hosts: Vec<JoinHandle<(u64, u64)>>,
    rounds: Receiver<usize>,
    counted: u64,
}

impl Crowd {
    pub(crate) fn new(place: &Place) -> Self {
        let (sender, rounds) = sync_channel(AHEAD);
        let hosts = (0..HOSTS).map(|number| {
            let (address, nqn, rounds) = (place.address, place.nqn.clone(), sender.clone());
            thread::spawn(move || visit(number, address, &nqn, &rounds))
        });
        Self { hosts: hosts.collect(), rounds, counted: 0 }
    }

    /// Waits until each host has done `count` more rounds from first to last, and calls `look`
    /// after each.
    #[track_caller]
    pub(crate) fn go_on(&mut self, count: usize, mut look: impl FnMut()) {
        self.counted += self.rounds.try_iter().count() as u64;
        let deadline = Instant::now() + TIMEOUT;
        // One more, for what had begun before.
        let mut missing = [count + 1; HOSTS];
        while missing.iter().any(|missing| *missing > 0) {
            let left = deadline.saturating_duration_since(Instant::now());
            let host = self.rounds.recv_timeout(left);
            let host = host.unwrap_or_else(|_| panic!("rounds are missing: {missing:?}"));
            missing[host] = missing[host].saturating_sub(1);
            self.counted += 1;
            look();
        }
    }

    /// Rounds that may have been done so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.counted + (AHEAD + 2 * HOSTS) as u64
    }

    /// Ends them; gives how often they retrieved, and how many bytes.
    pub(crate) fn leave(self) -> (u64, u64) {
        drop(self.rounds);
        let ends = self.hosts.into_iter().map(JoinHandle::join);
        let reads = ends.map(|end| end.expect("nothing goes wrong for a good host"));
        reads.fold((0, 0), |(count, bytes), (more, longer)| (count + more, bytes + longer))
    }
}

fn visit(number: usize, address: SocketAddr, nqn: &str, rounds: &SyncSender<usize>) -> (u64, u64) {
    let remote = Remote::new().unwrap();
    let visit = async {
        let host = Host::of_uuid([u8::try_from(number + 1).unwrap(); 16]);
        let dial = async || TcpStream::connect(address, Nanos::from_secs(10)).await.unwrap();
        let settings = Settings::new(host, nqn);
        let association = Association::connect(settings, dial().await).await.unwrap();
        let queue = association.io_queue(vec![dial().await], Reads::Pairs).await.unwrap();
        let pairs = Pairs::new(queue.clone(), 1);
        if number == 0 {
            for (key, len) in [(LONGEST_KEY, LONGEST), (SHORT_KEY, SHORT)] {
                let value = Buf::copy_from(&vec![0x5a; len as usize]);
                pairs.store(&Key::new(key).unwrap(), value, StoreOptions::NONE).await.unwrap();
            }
        }
        let mut stored: Vec<Vec<u8>> = Vec::new();
        let (mut retrieved, mut bytes) = (0, 0);
        for round in 0.. {
            let value = value(number, round);
            let place = round % KEYS;
            let buf = Buf::copy_from(&value);
            pairs.store(&key(number, place), buf, StoreOptions::NONE).await.unwrap();
            match stored.get_mut(place) {
                Some(before) => *before = value,
                None => stored.push(value),
            }
            // What was just stored, and what was stored longest ago.
            for place in [place, (round + 1) % stored.len()] {
                let found = pairs.retrieve(&key(number, place)).await.unwrap();
                assert!(found.bytes() == Some(&stored[place]), "host {number}, round {round}");
                retrieved += 1;
                bytes += u64::from(found.len());
            }
            if rounds.send(number).is_err() {
                break;
            }
        }
        queue.close();
        association.shut_down().await.unwrap();
        (retrieved, bytes)
    };
    Reactor::new(None).serve(&remote, visit).unwrap().0
}

fn key(number: usize, place: usize) -> Key {
    Key::new(format!("host {number} {place}").as_bytes()).unwrap()
}

fn value(number: usize, round: usize) -> Vec<u8> {
    let mut rng = Rng::fork(number as u64, round as u64);
    let mut value = vec![0; LENGTHS[round % LENGTHS.len()]];
    rng.fill(&mut value);
    value
}
