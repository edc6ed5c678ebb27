//! A server of a drive in a file that is killed again and again under load: what was acknowledged
//! is there after each start, and nothing else than what was under way.
//!
//! `KVASIR_KILLS=300 cargo test --release -p kvasir-cli --test black_box killed -- --nocapture`
//! kills more often than CI does. `KVASIR_KILL_SEED` makes another run. With `KVASIR_KILL_CORES`
//! each server has as many cores.

mod host;
mod oracle;

use crate::program::kvasir;
use crate::serving::Serving;
use base::Rng;
use host::{Figures, check, load};
use oracle::Oracle;
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

/// Fewest that make sense: each durability twice, with a check of the drive after.
const KILLS: u64 = 8;

/// About half of what the drive takes, so that it is cleaned all the time.
const KEYS: usize = 1_800;
const SIZE: &str = "72MiB";

/// Log between checkpoints, so that many are cut off.
const CHECKPOINT: &str = "4MiB";

/// A server is killed after this many commands at most.
const COMMANDS: u64 = 3_000;

/// After how many kills the drive is checked.
const CHECKED: u64 = 4;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn acknowledged_writes_survive_every_kill() {
    let (kills, seed) = (number("KVASIR_KILLS", KILLS), number("KVASIR_KILL_SEED", 1));
    let folder = tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let made = kvasir(["format", path.to_str().unwrap(), "--size", SIZE]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let (mut rng, mut oracle, mut figures) =
        (Rng::new(seed), Oracle::new(KEYS), Figures::default());
    for kill in 0..kills {
        let served = Serving::start(words(&path, kill));
        let uri = served.uri(0);
        check(&uri, &mut oracle, &mut figures);
        let process = served.process();
        let delay = Duration::from_micros(rng.below(3_000));
        // Not by the clock alone: a slow machine has done as much by then.
        let after = rng.below(COMMANDS);
        load(&uri, &mut oracle, &mut rng, &mut figures, after, || {
            thread::spawn(move || {
                thread::sleep(delay);
                kill_process(process, Signal::KILL).unwrap();
            })
        });
        assert_eq!(served.end(Signal::KILL).code, None, "it was killed");
        // The next start is cut off too.
        for _ in 0..rng.below(3) {
            start_and_kill(&path, kill, Duration::from_micros(rng.below(40_000)));
            figures.starts_cut += 1;
        }
        if kill % CHECKED == CHECKED - 1 {
            assert_whole(&path);
            figures.drive_checks += 1;
        }
    }
    let served = Serving::start(words(&path, 0));
    check(&served.uri(0), &mut oracle, &mut figures);
    served.stop();
    assert_whole(&path);
    figures.drive_checks += 1;
    println!("{kills} kills with seed {seed}: {figures}");
    assert!(figures.stores > 100 * kills && figures.cut > 0, "{figures:?}");
}

/// The arguments of a server: all durabilities in turn, and one to four cores, if no number is
/// asked for.
fn words(path: &Path, kill: u64) -> Vec<String> {
    let durabilities = ["group", "everysec", "capacitor"];
    let durability = durabilities[usize::try_from(kill % 3).unwrap()];
    let cores = number("KVASIR_KILL_CORES", 1 + kill / 3 % 4).to_string();
    let words = [
        "--device",
        path.to_str().unwrap(),
        "--nvme-tcp",
        ":0",
        "--durability",
        durability,
        "--checkpoint",
        CHECKPOINT,
        "--cores",
        &cores,
    ];
    words.map(str::to_owned).to_vec()
}

fn start_and_kill(path: &Path, kill: u64, delay: Duration) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .arg("serve")
        .args(words(path, kill))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[track_caller]
fn assert_whole(path: &Path) {
    let checked = kvasir(["check", path.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}
