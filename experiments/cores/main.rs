//! Measures what several reactors give: stores and gets of 64 bytes in memory, and of 64 bytes and
//! of 8 KiB on a drive whose blocks are memory. Each reactor executes a load of its own, without
//! sockets, on one store. One reactor and several alternate. Then it opens a drive on a file of 8
//! GiB in the folder for temporary files, by one reactor and by several, and compares with fio.
//!
//! `cargo run --profile dist -p experiments --bin cores -- [REACTORS] [ROUNDS] [TEXT]`, alone. With
//! TEXT it runs only loads whose name contains it, as in `cores 2 5 drive`.

mod load;
mod opening;
mod team;

use experiments::median;
use load::{Kind, Load};
use opening::Crashed;
use std::process::ExitCode;
use workload::Distribution;

const REACTORS: usize = 2;
const ROUNDS: usize = 5;

/// Each number of keys with the operations of a run.
const IN_MEMORY: [(u64, u64); 3] =
    [(10_000, 4_000_000), (1_000_000, 4_000_000), (10_000_000, 4_000_000)];
const ZIPFIAN: (u64, u64) = (1_000_000, 4_000_000);
const ON_BLOCKS: (u64, u64) = (50_000, 400_000);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).take(2);
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let (Ok(reactors), Ok(rounds)) = (number(REACTORS), number(ROUNDS)) else {
        eprintln!("cores: REACTORS and ROUNDS are whole numbers, as in `cores 2 5`");
        return ExitCode::from(2);
    };
    let text = std::env::args().nth(3).unwrap_or_default();
    let mut loads = Vec::new();
    for kind in [Kind::Store, Kind::Get] {
        let (value_bytes, is_on_blocks, distribution) = (64, false, Distribution::Uniform);
        for (keys, operations) in IN_MEMORY {
            loads.push(Load { kind, keys, operations, value_bytes, distribution, is_on_blocks });
        }
        let ((keys, operations), distribution) = (ZIPFIAN, Distribution::Zipfian);
        loads.push(Load { kind, keys, operations, value_bytes, distribution, is_on_blocks });
        let ((keys, operations), distribution) = (ON_BLOCKS, Distribution::Uniform);
        for value_bytes in [64, 8 << 10] {
            let is_on_blocks = true;
            loads.push(Load { kind, keys, operations, value_bytes, distribution, is_on_blocks });
        }
    }
    println!("thousands of operations a second, medians of {rounds} rounds:");
    println!("{:<44} {:>10} {:>12} {:>6} {:>6}", "", "1 reactor", "", "ratio", "apart");
    loads.retain(|load| load.name().contains(&text));
    for load in loads {
        compare(&load.name(), reactors, rounds, || {
            let [one, several] = [1, reactors].map(|reactors| team::rate(load, reactors));
            (one, several, Some(team::rate_apart(load, reactors)))
        });
    }
    if Crashed::name().contains(&text) {
        let crashed = Crashed::new();
        compare(&Crashed::name(), reactors, rounds, || {
            let [one, several] = [1, reactors].map(|reactors| crashed.rate(reactors));
            (one, several, None)
        });
        if let Err(sentence) = crashed.print_reads() {
            eprintln!("cores: {sentence}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The rates of a round: of one reactor, of several, and of several that share nothing.
type Round = (f64, f64, Option<f64>);

/// Measures some rounds, and prints a line.
fn compare(name: &str, reactors: usize, rounds: usize, round: impl Fn() -> Round) {
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let (mut ratios, mut apart) = (Vec::new(), Vec::new());
    for (one, several, sharing_nothing) in (0..rounds).map(|_| round()) {
        alone.push(one);
        together.push(several);
        ratios.push(several / one);
        apart.extend(sharing_nothing.map(|rate| rate / one));
    }
    let apart = if apart.is_empty() { String::new() } else { format!("{:.2}", median(&mut apart)) };
    println!(
        "{name:<44} {:>10.0} {:>12} {:>6.2} {apart:>6}",
        median(&mut alone),
        format!("{reactors}: {:.0}", median(&mut together)),
        median(&mut ratios)
    );
}
