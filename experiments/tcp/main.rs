//! Compares a target over NVMe/TCP with a bare echo: the same client and message sizes, over
//! loopback, one core for each side, alternating.
//!
//! `cargo run --profile dist -p experiments --bin tcp -- [ROUNDS [NAME]]`, on an idle machine of
//! two cores. `NAME` selects lines by a part of their names: `store`, or `4 KiB QD 32`.

mod asleep;
mod idle;
mod peers;

use experiments::loopback::core;
use experiments::loopback::echo::{self, Values, Wait};
use experiments::loopback::exchange::{Exchange, Kind};
use experiments::loopback::load::{BLOCKS, Grants, KEYS, Load};
use experiments::loopback::target::{Kept, Target};
use experiments::median;
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

const ROUNDS: usize = 5;

/// How long each measurement lasts, about.
const WINDOW: Duration = Duration::from_millis(400);

const KIB: usize = 1_024;

/// The rates of one exchange in every round: operations a second.
#[derive(Default)]
struct Rates {
    echo: Vec<f64>,
    /// The rates of an echo with as many blocks in memory, for exchanges of blocks.
    echo_of_blocks: Vec<f64>,
    memory: Vec<f64>,
    ideal: Vec<f64>,
}

impl Rates {
    /// Returns the median ratio of `rates` to the echo of the same round.
    fn share(&self, rates: &[f64]) -> f64 {
        share(rates, &self.echo)
    }
}

/// Returns the median ratio of `rates` to `wholes`, round by round.
fn share(rates: &[f64], wholes: &[f64]) -> f64 {
    median(&mut rates.iter().zip(wholes).map(|(rate, whole)| rate / whole).collect::<Vec<_>>())
}

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |text| text.parse());
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("tcp: ROUNDS is a whole number above 0, as in `tcp 5`");
        return ExitCode::from(2);
    };
    let wanted = std::env::args().nth(2).unwrap_or_default();
    core::pin(core::CLIENT);
    println!("operations a second, and shares of the echo of the same round; medians of {rounds}:");
    println!("{:<28} {:>10} {:>18} {:>18}  bar", "", "echo", "mem:", "ideal");
    for kind in [Kind::Retrieve, Kind::Store] {
        for value_bytes in [64, 4 * KIB] {
            let echoes = [(1, 0.80), (32, 0.65), (128, 0.65)].map(|(depth, bar)| {
                report(Exchange { kind, value_bytes, depth }, rounds, bar, &wanted)
            });
            if let ([Some(one), Some(some), Some(many)], true) = (echoes, value_bytes == 4 * KIB) {
                say_whether_it_counts(kind, some / one, many / one);
            }
        }
        for value_bytes in [256 * KIB, 2_048 * KIB] {
            report(Exchange { kind, value_bytes, depth: 8 }, rounds, 0.85, &wanted);
        }
    }
    for kind in [Kind::Read, Kind::Write] {
        for (depth, bar) in [(1, 0.85), (32, 0.70), (128, 0.65)] {
            report(Exchange { kind, value_bytes: 4 * KIB, depth }, rounds, bar, &wanted);
        }
    }
    if "asleep".contains(&wanted) {
        asleep::report(rounds);
    }
    if "idle".contains(&wanted) {
        idle::report();
    }
    if "peers".contains(&wanted) {
        peers::report(rounds);
    }
    ExitCode::SUCCESS
}

/// Checks how much a bare echo over loopback gains by 32 and by 128 outstanding requests. The
/// expected gains are those of 4 KiB requests and replies on a quiet machine of two cores. A
/// smaller gain shows that other work disturbed the measurement.
fn say_whether_it_counts(kind: Kind, by_32: f64, by_128: f64) {
    let known = match kind {
        Kind::Retrieve | Kind::Read => (9.8, 11.8),
        Kind::Store | Kind::Write => (9.3, 10.7),
    };
    let counts = by_32 > 0.8 * known.0 && by_128 > 0.8 * known.1;
    println!(
        "    the echo at QD 32 and 128 is {by_32:.1} and {by_128:.1} times that at QD 1, known are \
         {:.1} and {:.1}: these lines {}",
        known.0,
        known.1,
        if counts { "count" } else { "do not count, for the machine was disturbed" }
    );
}

/// Returns the echo's rate, unless the line is not selected.
fn report(exchange: Exchange, rounds: usize, bar: f64, wanted: &str) -> Option<f64> {
    let name =
        format!("{} {} QD {}", exchange.kind.name(), size(exchange.value_bytes), exchange.depth);
    if !name.contains(wanted) {
        return None;
    }
    let mut rates = Rates::default();
    let mut copied = 0.0;
    for _ in 0..rounds {
        rates.echo.push(echo_rate(exchange, Values::One));
        if exchange.kind.is_of_blocks() {
            rates.echo_of_blocks.push(echo_rate(exchange, Values::Many(keys(exchange))));
        }
        let (rate, copies) = target_rate(Kept::InMemory, exchange);
        rates.memory.push(rate);
        copied = copies;
        rates.ideal.push(target_rate(Kept::OnIdealFlash, exchange).0);
    }
    let (of_memory, of_ideal) = (rates.share(&rates.memory), rates.share(&rates.ideal));
    let (echo, memory, ideal) =
        (median(&mut rates.echo), median(&mut rates.memory), median(&mut rates.ideal));
    println!(
        "{name:<28} {echo:>10.0} {memory:>10.0} ({of_memory:>4.2}) {ideal:>10.0} \
         ({of_ideal:>4.2})  {bar:.2}, ideal 0.50; {copied:.0} B copied for each"
    );
    if exchange.kind.is_of_blocks() {
        println!(
            "    an echo of as many blocks in memory: {:.0}; `mem:` has {:.2} of that",
            median(&mut rates.echo_of_blocks.clone()),
            share(&rates.memory, &rates.echo_of_blocks),
        );
    }
    Some(echo)
}

fn echo_rate(exchange: Exchange, values: Values) -> f64 {
    let (address, server) = echo::start(Wait::Spin, exchange.value_bytes, values);
    let stream = TcpStream::connect(address).expect("the echo listens");
    let mut load = Load::new(stream, Grants::None, exchange.value_bytes);
    let rate = rate(&mut load, exchange);
    drop(load);
    server.join().expect("the echo ends with its client");
    rate
}

/// Returns the rate, and the bytes of values copied for each operation in addition to the kernel's
/// copies.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn target_rate(kept: Kept, exchange: Exchange) -> (f64, f64) {
    let target = Target::start(kept, exchange.kind);
    let connected = target.connect();
    let grants = Grants::Awaited { data_max: connected.data_max };
    let mut load = Load::new(connected.io, grants, exchange.value_bytes);
    let kind = exchange.kind.filler();
    let fill = Exchange { kind, depth: 32.min(exchange.depth.max(8)), ..exchange };
    load.set_keys(keys(exchange) as u64);
    load.run(fill, keys(exchange));
    let (rate, operations) = rate_and_count(&mut load, exchange);
    drop(load);
    drop(connected.admin);
    (rate, target.stop() as f64 / (operations + keys(exchange)) as f64)
}

/// Returns the number of keys or blocks: as many as fit memory with large values.
fn keys(exchange: Exchange) -> usize {
    let keys = if exchange.kind.is_of_blocks() { BLOCKS } else { KEYS };
    usize::try_from(keys).expect("a few thousand").min((256 << 20) / exchange.value_bytes)
}

fn rate(load: &mut Load, exchange: Exchange) -> f64 {
    rate_and_count(load, exchange).0
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn rate_and_count(load: &mut Load, exchange: Exchange) -> (f64, usize) {
    load.set_keys(keys(exchange) as u64);
    // Warms caches and windows first, and counts the exchanges in a window.
    let count = load.run_for(exchange, WINDOW / 4);
    let operations = (count * 4).max(64);
    (operations as f64 / load.run(exchange, operations), count + operations)
}

fn size(bytes: usize) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        _ => format!("{} KiB", bytes / KIB),
    }
}
