//! What balancing gives on two cores. Two reactors share a drive in memory. Hosts inside them, not
//! sockets, store values, so all that a host costs counts as receiving and replying.
//!
//! `cargo run --profile dist -p experiments --bin balancers -- [ROUNDS] [VALUE_BYTES]`, alone on
//! two cores or more.

mod host;
mod team;

use balance::Policy;
use experiments::median;
use std::process::ExitCode;
use team::Measured;

const ROUNDS: usize = 5;
const VALUE_BYTES: usize = 16 << 10;

/// Hosts of each reactor: all on one, and as many on both.
const ON_ONE: [usize; 2] = [8, 0];
const ON_BOTH: [usize; 2] = [4, 4];

const POLICIES: [Policy; 4] =
    [Policy::None, Policy::RoundRobin, Policy::ProportionalShare, Policy::Auto];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let (Ok(rounds), Ok(value_bytes)) = (number(ROUNDS), number(VALUE_BYTES)) else {
        eprintln!("balancers: ROUNDS and VALUE_BYTES are whole numbers, as in `balancers 5 16384`");
        return ExitCode::from(2);
    };
    println!("stores of {value_bytes} B");
    // Policies and places alternate, because the speed of a machine drifts.
    let of = |hosts| POLICIES.map(|policy| team::measure(policy, hosts, value_bytes));
    let (on_one, on_both): (Vec<_>, Vec<_>) =
        (0..rounds).map(|_| (of(ON_ONE), of(ON_BOTH))).unzip();
    print("all hosts on one reactor", &on_one);
    print("as many on both", &on_both);
    let ratio = |(one, both): (&[Measured; 4], &[Measured; 4])| both[0].rate / one[0].rate;
    println!(
        "without balancing, two reactors with as many hosts on both store {:.2} times as much",
        median(&mut on_one.iter().zip(&on_both).map(ratio).collect::<Vec<f64>>())
    );
    ExitCode::SUCCESS
}

/// Prints the medians of all rounds.
fn print(name: &str, rounds: &[[Measured; 4]]) {
    let of = |figure: &dyn Fn(&[Measured; 4]) -> f64| {
        median(&mut rounds.iter().map(figure).collect::<Vec<f64>>())
    };
    println!("{name}, medians of {} rounds:", rounds.len());
    let stays = of(&|all| all[0].stays);
    println!(
        "  receiving and replying take {:.0} % of the busy time without balancing, so two cores \
         have at most {:.2} times the rate",
        stays * 100.0,
        1.0 / stays.max(0.5)
    );
    println!("  {:<8}{:>12}{:>10}{:>12}{:>16}", "", "stores/s", "of none", "diverted", "ns a move");
    for (at, policy) in POLICIES.iter().enumerate() {
        println!(
            "  {:<8}{:>10.0} k{:>10.2}{:>10.1} %{:>16.0}",
            policy.name(),
            of(&|all| all[at].rate / 1e3),
            of(&|all| all[at].rate / all[0].rate),
            of(&|all| all[at].diverted * 100.0),
            of(&|all| all[at].cost_of_move(&all[0])),
        );
    }
}
