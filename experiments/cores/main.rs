//! Measures what several reactors give: stores and gets of 64 bytes in memory, and of 64 bytes and
//! of 8 KiB on a drive whose blocks are memory. Each reactor executes a load of its own, without
//! sockets, on one store. One reactor and several alternate.
//!
//! `cargo run --profile dist -p experiments --bin cores -- [REACTORS] [ROUNDS] [TEXT]`, alone. With
//! TEXT it runs only loads whose name contains it, as in `cores 2 5 drive`.

mod load;
mod team;

use experiments::median;
use load::{Kind, Load};
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
    println!("{:<34} {:>10} {:>12} {:>6}", "", "1 reactor", "", "ratio");
    loads.retain(|load| load.name().contains(&text));
    for load in loads {
        let (mut one, mut several, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (alone, together) = (team::rate(load, 1), team::rate(load, reactors));
            one.push(alone);
            several.push(together);
            ratios.push(together / alone);
        }
        println!(
            "{:<34} {:>10.0} {:>12} {:>6.2}",
            load.name(),
            median(&mut one),
            format!("{reactors}: {:.0}", median(&mut several)),
            median(&mut ratios)
        );
    }
    ExitCode::SUCCESS
}
