//! A host over several queues that writes until its target is gone.

use super::oracle::{Oracle, Tag, tag_of, value};
use base::{Buf, Key, Nanos, Rng};
use client::{Association, Host, IoQueue, Settings, Uri};
use controller::{Completion, Queue, Submission};
use reactor::{Reactor, Remote, TcpStream};
use spec::{Command, Status, StoreOptions};
use std::collections::HashMap;
use std::net::SocketAddr;

const QUEUES: usize = 3;

/// Commands under way at a time.
const DEPTH: usize = 48;

const TIMEOUT: Nanos = Nanos::from_secs(60);

/// What a Retrieve takes at most: more than any value has.
const ROOM: u32 = 256 << 10;

/// What was done and found.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) stores: u64,
    pub(crate) deletes: u64,
    pub(crate) retrieves: u64,
    pub(crate) refused: u64,
    /// Writes that were under way when a server was killed.
    pub(crate) cut: u64,
    /// Keys that were read after a start.
    pub(crate) checked: u64,
    /// Starts that were killed too.
    pub(crate) starts_cut: u64,
    /// Checks of the whole drive.
    pub(crate) drive_checks: u64,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stores, deletes, retrieves, refused, cut, .. } = self;
        let Self { checked, starts_cut, drive_checks, .. } = self;
        write!(
            f,
            "{stores} stores and {deletes} deletes acknowledged, {refused} refused, {cut} writes \
             in flight at a kill; {checked} keys verified after starts and {retrieves} under \
             load; {starts_cut} starts killed too; {drive_checks} checks of the drive, all whole"
        )
    }
}

enum Op {
    Write { key: usize, began: u64, is_delete: bool },
    Read { key: usize },
}

/// Does `act` with a queue to the target at `uri`.
fn with<T>(uri: &str, act: impl AsyncFnOnce(&IoQueue<TcpStream>) -> T) -> T {
    let uri: Uri = uri.parse().unwrap();
    let address = SocketAddr::new(uri.place.host.parse().unwrap(), uri.place.port);
    let remote = Remote::new().unwrap();
    let host = Host::of_name("nqn.2026-11.com.example:killer");
    let settings = Settings { queue_entries: 32, ..Settings::new(host, &uri.subsystem) };
    let served = Reactor::new(None).serve(&remote, async {
        let dial = async || TcpStream::connect(address, TIMEOUT).await.unwrap();
        let association = Association::connect(settings, dial().await).await.unwrap();
        let reads = association.namespace(1).await.unwrap().reads();
        let mut streams = Vec::new();
        for _ in 0..QUEUES {
            streams.push(dial().await);
        }
        let queue = association.io_queue(streams, reads).await.unwrap();
        let done = act(&queue).await;
        queue.close();
        done
    });
    served.unwrap().0
}

fn name(key: usize) -> Key {
    Key::new(format!("key {key}").as_bytes()).unwrap()
}

fn submit_read(queue: &IoQueue<TcpStream>, key: usize) -> u64 {
    let name = name(key);
    let command = Command::retrieve(1, name.as_bytes(), ROOM);
    queue.submit(Submission::new(command, &name))
}

/// What a Retrieve has found; a panic when that is no value of the key.
#[track_caller]
fn found(key: usize, completion: &Completion) -> Tag {
    match completion.status {
        Status::KEY_DOES_NOT_EXIST => None,
        Status::SUCCESS => {
            let bytes = completion.data.bytes().unwrap_or_default();
            let tag = tag_of(key, bytes);
            assert!(tag.is_some(), "key {key} has {} bytes of no value of it", bytes.len());
            tag
        }
        status => panic!("key {key} cannot be read: {status}"),
    }
}

/// Reads every key, and records its value in the oracle.
pub(crate) fn check(uri: &str, oracle: &mut Oracle, figures: &mut Figures) {
    with(uri, async |queue| {
        let (mut next, mut under_way) = (0, HashMap::new());
        while next < oracle.keys() || !under_way.is_empty() {
            while next < oracle.keys() && under_way.len() < DEPTH {
                under_way.insert(submit_read(queue, next), next);
                next += 1;
            }
            let completion = queue.next().await;
            let key = under_way.remove(&completion.id).unwrap();
            oracle.settle(key, found(key, &completion));
            figures.checked += 1;
        }
    });
}

/// Stores, deletes and retrieves until the target is gone, which `kill` sees to after so many
/// commands.
pub(crate) fn load<T>(
    uri: &str,
    oracle: &mut Oracle,
    rng: &mut Rng,
    figures: &mut Figures,
    after: u64,
    kill: impl FnOnce() -> T,
) {
    let (mut left, mut kill) = (after, Some(kill));
    with(uri, async |queue| {
        let mut under_way: HashMap<u64, Op> = HashMap::new();
        // Of each key so many writes, or one read alone.
        let mut busy: HashMap<usize, u32> = HashMap::new();
        let mut is_gone = false;
        loop {
            while !is_gone && under_way.len() < DEPTH {
                let key = usize::try_from(rng.below(oracle.keys() as u64)).unwrap();
                let at_work = busy.get(&key).copied().unwrap_or(0);
                if at_work > 1 {
                    continue;
                }
                let kind = rng.below(10);
                if kind < 2 && at_work == 0 {
                    busy.insert(key, u32::MAX);
                    under_way.insert(submit_read(queue, key), Op::Read { key });
                } else {
                    busy.insert(key, at_work + 1);
                    let (number, op) = submit_write(queue, oracle, key, kind == 9, rng);
                    under_way.insert(number, op);
                }
            }
            if under_way.is_empty() {
                return;
            }
            if left == 0
                && let Some(kill) = kill.take()
            {
                kill();
            }
            left = left.saturating_sub(1);
            let completion = queue.next().await;
            is_gone |= completion.status == Status::HOST_PATHING_ERROR;
            let op = under_way.remove(&completion.id).unwrap();
            let (Op::Write { key, .. } | Op::Read { key }) = op;
            let left = busy.remove(&key).filter(|left| *left != u32::MAX).unwrap_or(1) - 1;
            if left > 0 {
                busy.insert(key, left);
            }
            note(&op, &completion, oracle, figures);
        }
    });
}

fn submit_write(
    queue: &IoQueue<TcpStream>,
    oracle: &mut Oracle,
    key: usize,
    is_delete: bool,
    rng: &mut Rng,
) -> (u64, Op) {
    let name = name(key);
    let tag = (!is_delete).then(|| rng.below(u64::MAX));
    let submission = match tag {
        None => Submission::new(Command::delete(1, name.as_bytes()), &name),
        Some(tag) => {
            let value = Buf::copy_from(&value(key, tag));
            let options = StoreOptions::NONE;
            let command = Command::store(1, name.as_bytes(), value.len(), options);
            Submission::with_data(command, &name, value)
        }
    };
    let began = oracle.begin(key, tag);
    (queue.submit(submission), Op::Write { key, began, is_delete })
}

fn note(op: &Op, completion: &Completion, oracle: &mut Oracle, figures: &mut Figures) {
    match (op, completion.status) {
        (Op::Write { .. }, Status::HOST_PATHING_ERROR) => figures.cut += 1,
        (Op::Read { .. }, Status::HOST_PATHING_ERROR) => {}
        (Op::Read { key }, _) => {
            oracle.settle(*key, found(*key, completion));
            figures.retrieves += 1;
        }
        (Op::Write { key, began, is_delete }, status) => match status {
            Status::SUCCESS | Status::KEY_DOES_NOT_EXIST => {
                oracle.end(*key, *began);
                *(if *is_delete { &mut figures.deletes } else { &mut figures.stores }) += 1;
            }
            Status::CAPACITY_EXCEEDED => {
                oracle.refuse(*key, *began);
                figures.refused += 1;
            }
            status => panic!("a write of key {key} ends with {status}"),
        },
    }
}
