//! The output that the guide shows is what the program prints.

use crate::program::kvasir;
use std::ffi::OsStr;
use std::fs::{self, read_to_string};
use std::os::unix::fs::symlink;
use std::process::Command;
use tempfile::tempdir;

/// Asserts that the guide's `page` has every line of `output`, in this order. Lines that depend on
/// the machine are left out.
#[track_caller]
fn assert_shown(page: &str, output: &str) {
    let path = format!("{}/../../docs/guide/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = read_to_string(path).unwrap();
    let mut lines = text.lines();
    let is_same = |line: &&str| !line.contains("wall time") && !line.contains("/sample on ");
    for line in output.lines().filter(is_same) {
        assert!(lines.any(|shown| shown == line), "{page} lacks {line:?} of\n{output}");
    }
}

#[test]
fn demo_page_shows_the_output() {
    let folder = tempdir().unwrap();
    let sample = folder.path().join("sample");
    fs::create_dir(&sample).unwrap();
    fs::write(sample.join("long"), vec![0; 3_500_000]).unwrap();
    fs::write(sample.join("short"), "hello\n").unwrap();
    fs::write(sample.join("empty"), "").unwrap();
    symlink("short", sample.join("link")).unwrap();
    assert_shown("demo.md", &kvasir([OsStr::new("demo"), sample.as_os_str()]).stdout);
}

#[test]
fn server_page_shows_a_valid_file() {
    let path = format!("{}/../../docs/guide/server.md", env!("CARGO_MANIFEST_DIR"));
    let text = read_to_string(path).unwrap();
    let (_, file) = text.split_once("    [server]\n").unwrap();
    let lines = file.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let file = lines.fold("[server]\n".to_owned(), |file, line| file + line.trim_start() + "\n");
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.toml");
    fs::write(&path, file).unwrap();
    let words = ["serve", "--check", "--config"].map(OsStr::new);
    let checked = kvasir(words.into_iter().chain([path.as_os_str()]));
    assert_eq!((checked.code, &checked.stderr[..]), (Some(0), ""));
    assert!(checked.stdout.ends_with("refers to 192.0.2.4, port 8009\n"), "{}", checked.stdout);
}

#[test]
fn bench_page_shows_the_output_of_pairs() {
    let arguments = "bench mixed --read-percent 95 --distribution zipfian";
    assert_shown("bench.md", &kvasir(arguments.split(' ')).stdout);
}

/// The page shows no table of stages, and names profiles relative to the project's folder.
#[test]
fn bench_page_shows_the_output_of_blocks() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let text = read_to_string(format!("{root}docs/guide/bench.md")).unwrap();
    for load in
        ["randread --target sim:970pro", "write --target sim:zn540", "randwrite --target sim:"]
    {
        let command = format!("    kvasir bench {load}");
        let mut commands = text.lines().filter(|line| line.starts_with(&command));
        let command = commands.next().unwrap_or_else(|| panic!("no {command} is shown"));
        let command = command.trim_start().replace("sim:examples", &format!("sim:{root}examples"));
        let ran = kvasir(command.split(' ').skip(1));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command}");
        let (first, rest) = ran.stdout.split_once("where the time went").expect("stages");
        let (_, flash) = rest.split_once("\nflash\n").expect("a section on the flash");
        assert_shown("bench.md", &format!("{first}flash\n{flash}").replace(root, ""));
    }
}

/// The page shows the first lines.
#[test]
fn replay_page_shows_the_output() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/sample.csv");
    let printed = kvasir(["bench", "replay", sample]).stdout;
    let end = printed.find("where the time went").expect("a table of stages");
    assert_shown("replay.md", &printed[..end]);
}

/// Uses the points and the command of the page.
#[test]
fn calibrate_page_shows_the_fit() {
    let text =
        read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/calibrate.md"));
    let text = text.unwrap();
    let lines = |first: &str| -> Vec<&str> {
        let block = text.lines().skip_while(|line| line.trim() != first);
        block.map_while(|line| line.strip_prefix("    ")).collect()
    };
    let header = "workload,value_bytes,key_bytes,queue_depth,ops_per_second,latency_ns,use";
    let command = "kvasir device calibrate points.csv --device moke \\";
    let command = lines(command).concat().replace('\\', "");
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("points.csv"), lines(header).join("\n")).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .args(command.split_whitespace().skip(1))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(0), &b""[..]));
    assert_shown("calibrate.md", &String::from_utf8(ran.stdout).unwrap());
    assert!(
        folder.path().join("fitted.toml").exists() && folder.path().join("fitted.svg").exists()
    );
}

/// Runs the command without knobs: the one with knobs takes too long.
#[test]
fn calibrate_page_shows_the_comparison() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let points = format!("{root}examples/calibration/lightstore.csv");
    let ran = kvasir(["device", "calibrate", &points, "--device", "lightstore"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_shown("calibrate.md", &ran.stdout.replace(root, ""));
}

#[test]
fn bench_page_shows_the_drawn_figure() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("ycsb-a.svg");
    kvasir([OsStr::new("bench"), OsStr::new("ycsb-a"), OsStr::new("--plot"), path.as_os_str()]);
    let shown = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/ycsb-a.svg");
    assert!(
        fs::read(path).unwrap() == fs::read(shown).unwrap(),
        "docs/guide/ycsb-a.svg is out of date: draw it again"
    );
}

/// A block has a command and some of the lines that it prints.
#[test]
fn devices_page_shows_the_output() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/devices.md");
    let text = read_to_string(page).unwrap();
    let (mut printed, mut shown) = (String::new(), 0);
    for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
        match line.strip_prefix("kvasir ") {
            Some(command) if command.split(' ').any(|word| word == "V" || word == "Q") => (),
            Some(command) => printed = kvasir(command.split(' ')).stdout,
            None => {
                assert!(printed.lines().any(|printed| printed == line), "{line:?} of\n{printed}");
                shown += 1;
            }
        }
    }
    assert_eq!(shown, 4, "one line for each device");
}

#[test]
fn bench_page_states_the_latencies_of_its_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/bench.md");
    let text = read_to_string(page).unwrap();
    for load in ["--queue-depth 1", "--rate 230000"] {
        let ran = kvasir(format!("bench retrieve {load}").split(' '));
        let row = ran.stdout.lines().find(|line| line.starts_with("  retrieve ")).unwrap();
        let mean = row.split_whitespace().nth(1).unwrap();
        assert!(text.contains(&format!("{mean} us ")), "{load} takes {row}");
    }
}

/// The README shows some of the printed lines, in order.
#[test]
fn readme_shows_the_output() {
    let text = read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let shown = text.split("```").nth(1).expect("an example").lines().skip(1);
    let printed = kvasir("bench retrieve --queue-depth 1".split(' ')).stdout;
    let mut lines = printed.lines();
    let mut count = 0;
    for line in shown.filter(|line| !line.is_empty()) {
        assert!(lines.any(|printed| printed == line), "{line:?} is not printed, in this order");
        count += 1;
    }
    assert!(count > 10, "the example has {count} lines");
}
