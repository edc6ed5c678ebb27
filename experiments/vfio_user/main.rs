//! Compares a PCIe function over vfio-user with a bare ring of commands in shared memory and with
//! NVMe/TCP over loopback: reads of 4 KiB, one core for each side, alternating.
//!
//! `cargo run --profile dist -p experiments --bin vfio_user -- [ROUNDS]`, on an idle machine of two
//! cores.

mod bare;

use bare::BareRing;
use experiments::loopback::core;
use experiments::loopback::exchange::{Exchange, Kind};
use experiments::loopback::load::{BLOCKS, Grants, Load};
use experiments::loopback::target::{Kept, Target};
use experiments::median;
use guest::{BLOCK_BYTES, Doorbells, Guest, Queue};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const ROUNDS: usize = 5;

/// Reads of a measurement by the number outstanding, about half a second of them.
const READS: [(usize, usize); 2] = [(1, 100_000), (32, 400_000)];

/// What one number of outstanding reads gave in every round: reads a second.
#[derive(Default)]
struct Rates {
    bare: Vec<f64>,
    shadow: Vec<f64>,
    mapped: Vec<f64>,
    tcp: Vec<f64>,
    /// Messages of the guest with shadow doorbells, for each read.
    messages: Vec<f64>,
}

/// Of guests with mapped doorbells, while they read.
#[derive(Default)]
struct Mapped {
    doorbells: u64,
    messages: u64,
}

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |text| text.parse());
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("vfio_user: ROUNDS is a whole number above 0, as in `vfio_user 5`");
        return ExitCode::from(2);
    };
    core::pin(core::CLIENT);
    println!("reads of 4 KiB a second; shares are of the same round; medians of {rounds}:");
    println!(
        "{:<6} {:>10} {:>26} {:>26} {:>16} {:>16}",
        "",
        "bare ring",
        "shadow (of bare, of TCP)",
        "mapped (of bare, of TCP)",
        "NVMe/TCP",
        "messages a read"
    );
    let mut mapped = Mapped::default();
    for (depth, reads) in READS {
        let mut rates = Rates::default();
        for _ in 0..rounds {
            measure(depth, reads, &mut rates, &mut mapped);
        }
        report(depth, &mut rates);
    }
    let Mapped { doorbells, messages } = mapped;
    println!("mapped doorbells: {doorbells}, with {messages} messages");
    ExitCode::SUCCESS
}

fn measure(depth: usize, reads: usize, rates: &mut Rates, mapped: &mut Mapped) {
    let bare = BareRing::start(BLOCKS);
    let mut queue = bare.queue();
    rates.bare.push(rate(&mut queue, depth, reads));
    drop(queue);
    bare.stop();
    let folder = tempfile::tempdir().expect("a folder for a socket");
    let sockets = ["trapped", "mapped"].map(|name| folder.path().join(name));
    let paths = sockets.each_ref().map(PathBuf::as_path);
    let target = Target::start_for_guests(Kept::OnIdealFlash, Kind::Read, paths);
    let (shadow_rate, messages, _) = guest_rate(paths[0], depth, reads);
    rates.shadow.push(shadow_rate);
    rates.messages.push(per(messages, reads));
    let (mapped_rate, messages, doorbells) = guest_rate(paths[1], depth, reads);
    rates.mapped.push(mapped_rate);
    mapped.messages += messages;
    mapped.doorbells += doorbells;
    rates.tcp.push(tcp_rate(&target, depth, reads / 2));
    target.stop();
}

/// Returns the rate of a new guest at a socket, and its messages and doorbells.
fn guest_rate(socket: &Path, depth: usize, reads: usize) -> (f64, u64, u64) {
    let guest = Guest::attach(socket).expect("the server listens");
    let mut queue = guest.queue(1_024).expect("the device answers");
    queue.fill(BLOCKS).expect("the device answers");
    let (messages, doorbells) = guest.counts();
    let rate = rate(&mut queue, depth, reads);
    let (messages_after, doorbells_after) = guest.counts();
    (rate, messages_after - messages, doorbells_after - doorbells)
}

fn rate(queue: &mut Queue<impl Doorbells>, depth: usize, reads: usize) -> f64 {
    // Warms caches first.
    queue.read(depth, reads / 10, BLOCKS).expect("the device answers");
    let start = Instant::now();
    queue.read(depth, reads, BLOCKS).expect("the device answers");
    per(reads as u64, 1) / start.elapsed().as_secs_f64()
}

fn tcp_rate(target: &Target, depth: usize, reads: usize) -> f64 {
    let exchange = Exchange { kind: Kind::Read, value_bytes: BLOCK_BYTES, depth };
    let connected = target.connect();
    let grants = Grants::Awaited { data_max: connected.data_max };
    let mut load = Load::new(connected.io, grants, BLOCK_BYTES);
    load.set_keys(BLOCKS);
    load.run(exchange, reads / 10);
    per(reads as u64, 1) / load.run(exchange, reads)
}

fn report(depth: usize, rates: &mut Rates) {
    let share = |some: &[f64], of: &[f64]| {
        median(&mut some.iter().zip(of).map(|(some, of)| some / of).collect::<Vec<_>>())
    };
    let columns = [&rates.shadow, &rates.mapped].map(|of| {
        let (of_bare, of_tcp) = (share(of, &rates.bare), share(of, &rates.tcp));
        format!("{:.0} ({of_bare:.2}, {of_tcp:.2})", median(&mut of.clone()))
    });
    println!(
        "QD {depth:<3} {:>10.0} {:>26} {:>26} {:>16.0} {:>16.4}",
        median(&mut rates.bare),
        columns[0],
        columns[1],
        median(&mut rates.tcp),
        median(&mut rates.messages),
    );
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn per(count: u64, of: usize) -> f64 {
    count as f64 / of as f64
}
