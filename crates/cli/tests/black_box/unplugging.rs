//! PCIe functions that are plugged in and out many times, beside one that stays in use. In QEMU
//! this ends with the first `device_del`: see docs/guide/virtual-machine.md.

use crate::redis::page;
use crate::serving::Serving;
use guest::{BLOCK_BYTES, Guest, GuestDoorbells, Queue};
use rustix::process::Signal;
use serde_json::Value;
use spec::Command;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Many times what the server needs on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

const ROUNDS: usize = 200;

/// Rounds after which the server has allocated what it keeps.
const FIRST_ROUNDS: usize = 20;

/// Two sockets of one device that trap doorbells, and one that maps them.
const SERVER: &str = r#"
[server]
clock = "none"
http = ":0"

[[device]]
name = "fast"
device = "mem:64MiB?kind=block"

[[subsystem]]
device = "fast"
vfio_user = ["stays.sock", "trapped.sock"]

[[subsystem]]
device = "fast"
nqn = "nqn.2026-11.org.example:mapped"
serial = "mapped"
vfio_user = ["mapped.sock"]
doorbells = "mapped"
"#;

/// How a function is unplugged.
#[derive(Clone, Copy, Debug)]
enum Unplug {
    /// The guest gives it up, as QEMU demands of a guest at `device_del`.
    InOrder,
    /// With commands in flight.
    AmidCommands,
    /// With queues that no command has used.
    AmidSetup,
}

const WAYS: [Unplug; 3] = [Unplug::InOrder, Unplug::AmidCommands, Unplug::AmidSetup];

/// Commands of a machine that are outstanding at a time.
const DEPTH: u16 = 32;

/// The first blocks of the machine that stays, and of those that do not.
const STAYS_AT: u64 = 0;
const PLUGGED_AT: u64 = 1_000;

fn commands(queue: &mut Queue<GuestDoorbells>, first: u64, command: fn(u32, u64, u32) -> Command) {
    (0..DEPTH).for_each(|id| queue.push(id, command(1, first + u64::from(id), 1)));
}

/// Writes blocks, each with content of its own, reads them and compares.
fn exchange(guest: &Guest, queue: &mut Queue<GuestDoorbells>, first: u64, round: usize) {
    let content = |id: u16| {
        let seed = (first + u64::from(id)) << 32 | round as u64;
        seed.to_le_bytes().repeat(BLOCK_BYTES / 8)
    };
    let memory = guest.memory();
    (0..DEPTH).for_each(|id| memory.write(queue.buffer(id), &content(id)));
    commands(queue, first, Command::write);
    queue.finish(DEPTH.into()).unwrap();
    (0..DEPTH).for_each(|id| memory.write(queue.buffer(id), &[0; BLOCK_BYTES]));
    commands(queue, first, Command::read);
    queue.finish(DEPTH.into()).unwrap();
    for id in 0..DEPTH {
        let mut read = vec![0; BLOCK_BYTES];
        memory.read(queue.buffer(id), &mut read);
        assert!(read == content(id), "block {id} of round {round}");
    }
}

/// Plugs the function at `socket` in, uses it and unplugs it.
fn visit(socket: &Path, round: usize, way: Unplug) {
    let guest = Guest::attach(socket).unwrap();
    let mut queue = guest.queue(2 * DEPTH + 1).unwrap();
    match way {
        Unplug::InOrder => {
            exchange(&guest, &mut queue, PLUGGED_AT, round);
            guest.shut_down().unwrap();
        }
        Unplug::AmidCommands => {
            exchange(&guest, &mut queue, PLUGGED_AT, round);
            commands(&mut queue, PLUGGED_AT, Command::write);
            commands(&mut queue, PLUGGED_AT, Command::read);
            queue.ring_tail();
        }
        Unplug::AmidSetup => {}
    }
}

/// Waits until the server has exactly these hosts, by the names of their sockets.
#[track_caller]
fn wait_for_hosts(served: &Serving, sockets: &[&str]) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let status = page(served.ready["http"].as_str().unwrap(), "/status");
        let status: Value = serde_json::from_str(&status).unwrap();
        let hosts = status["associations"].as_array().unwrap().iter();
        // A host that has left has no address. It is there until its commands have ended.
        let address = |host: &Value| host["address"].as_str().unwrap_or_default().to_owned();
        let addresses: Vec<_> = hosts.map(address).collect();
        let is_there = |(address, socket): (&String, &&str)| address.ends_with(*socket);
        if addresses.len() == sockets.len()
            && addresses.iter().zip(sockets).all(is_there)
            && status["server"]["connections"] == sockets.len()
        {
            return;
        }
        assert!(Instant::now() < deadline, "{sockets:?} are to be there: {status}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Set when this is dropped, also by a test that fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a process has.
#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    files: usize,
    mappings_of_guests: usize,
    /// Threads of `io_uring` and parts of the heap come and go among these.
    threads: usize,
    mappings: usize,
}

impl Belongings {
    fn of(process: i32) -> Self {
        let count = |folder| fs::read_dir(format!("/proc/{process}/{folder}")).unwrap().count();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
        let of_guests = maps.lines().filter(|line| line.contains("/memfd:guest"));
        Self {
            files: count("fd"),
            mappings_of_guests: of_guests.count(),
            threads: count("task"),
            mappings: maps.lines().count(),
        }
    }

    /// Waits until a process has no more than at `first`, but for a few threads and mappings: far
    /// fewer than the rounds between.
    #[track_caller]
    fn wait_for(process: i32, first: &Self) {
        const FEW: usize = (ROUNDS - FIRST_ROUNDS) / 10;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let now = Self::of(process);
            if (now.files, now.mappings_of_guests) == (first.files, first.mappings_of_guests)
                && now.threads <= first.threads + FEW
                && now.mappings <= first.mappings + FEW
            {
                return;
            }
            assert!(Instant::now() < deadline, "{now:?} after {first:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn unplugged_functions_leave_nothing_and_disturb_no_other_machine() {
    let folder = tempfile::tempdir().unwrap();
    let served = Serving::with_file(folder.path(), SERVER);
    let [stays, trapped, mapped] =
        ["stays.sock", "trapped.sock", "mapped.sock"].map(|name| folder.path().join(name));
    let process = served.process().as_raw_nonzero().get();
    let is_over = AtomicBool::new(false);
    let mut at_first = None;
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let guest = Guest::attach(&stays).unwrap();
            let mut queue = guest.queue(2 * DEPTH + 1).unwrap();
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                exchange(&guest, &mut queue, STAYS_AT, rounds);
                rounds += 1;
            }
            rounds
        });
        let end = SetAtEnd(&is_over);
        for round in 0..ROUNDS {
            let socket = [&trapped, &mapped][round % 2];
            visit(socket, round, WAYS[round % WAYS.len()]);
            wait_for_hosts(&served, &["/stays.sock"]);
            if round == FIRST_ROUNDS {
                // The server frees something after the status has changed.
                thread::sleep(Duration::from_millis(500));
                at_first = Some(Belongings::of(process));
            }
        }
        Belongings::wait_for(process, &at_first.expect("there are more rounds"));
        drop(end);
        let rounds = neighbour.join().expect("the neighbour is not disturbed");
        assert!(rounds > 1, "the neighbour did {rounds} rounds");
    });
    wait_for_hosts(&served, &[]);
    let stopped = served.end(Signal::TERM);
    assert_eq!((stopped.code, stopped.stderr), (Some(0), Vec::new()));
    assert_eq!(stopped.stopped["connections"], ROUNDS + 1);
}
