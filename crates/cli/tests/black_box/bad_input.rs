use crate::program::{SMALL, kvasir};
use std::ffi::{OsStr, OsString};
use std::fs::{self, read_to_string};
use std::os::unix::ffi::OsStrExt;
use tempfile::tempdir;

/// Refused with status 2, nothing printed, and one line that has `words`.
#[track_caller]
fn assert_refused(arguments: &[OsString], words: &str) {
    let ran = kvasir(arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
    let line = ran.stderr.strip_suffix('\n').unwrap_or_default();
    assert!(line.starts_with("kvasir: ") && line.contains(words), "{arguments:?}: {line:?}");
    assert!(!line.chars().any(char::is_control), "{arguments:?}: {line:?}");
    assert!(!line.contains("Usage: kvasir") && !line.contains("error: "), "{line}");
    assert!(!line.contains("panicked") && !line.contains("RUST_BACKTRACE"), "{line}");
}

fn words(arguments: &str) -> Vec<OsString> {
    arguments.split_whitespace().map(OsString::from).collect()
}

#[test]
fn commands_that_there_are_not_are_refused() {
    for (arguments, sentence) in [
        ("", "requires a subcommand"),
        ("dmeo", "'demo'"),
        ("help", "unrecognized subcommand"),
        (
            "serve",
            "--device <DEVICE> <--nvme-tcp <ADDR>|--vfio-user <SOCK>|--resp <ADDR>|--resp-tls \
             <ADDR>|--config <FILE>>",
        ),
        ("--json", "unexpected argument '--json'"),
        ("--frobnicate", "unexpected argument"),
        ("device", "see kvasir device --help"),
        ("device lst", "'list'"),
        ("device list moke", "unexpected argument"),
        ("device show", "<PROFILE>"),
        ("device show nope", "built in are \"moke\", \"ideal\","),
        ("device show moke ideal", "unexpected argument"),
        ("device show ./nope.toml", "cannot be read"),
        ("device show /", "cannot be read"),
        ("device show ./", "cannot be read"),
    ] {
        assert_refused(&words(arguments), sentence);
    }
}

#[test]
fn loads_that_cannot_be_are_refused() {
    for (arguments, sentence) in [
        ("bench", "<WORKLOAD>"),
        ("bench retreive", "'retrieve'"),
        ("bench store retrieve", "cannot be used with"),
        ("bench store -5", "'-5'"),
        ("bench store --ops", "--ops"),
        ("bench store --ops 0", "1 to"),
        ("bench store --ops -1", "a whole number"),
        ("bench store --ops 1e6", "a whole number"),
        ("bench store --ops ten", "a whole number"),
        ("bench store --ops 99999999999999999999", "a whole number"),
        ("bench store --ops 4294967295", "1 to"),
        ("bench store --ops 1 --ops 2", "multiple times"),
        ("bench store --keys 0", "keys"),
        ("bench store --key-size 0", "1 to 255 bytes"),
        ("bench store --key-size 256", "1 to 255 bytes"),
        ("bench store --key-size 4GiB", "1 to 255 bytes"),
        ("bench store --key-size 1 --ops 1000", "fewer than 1000 different keys"),
        ("bench store --value-size 3MiB", "at most 2.0 MiB"),
        ("bench store --value-size 2097153", "at most 2.0 MiB"),
        ("bench store --value-size 99999999999g", "value sizes are written as"),
        ("bench store --value-size 17179869183g", "at most 2.0 MiB"),
        ("bench store --value-size 4kbit", "value sizes are written as"),
        ("bench store --value-size -1", "value sizes are written as"),
        ("bench store --value-size 1.5k", "value sizes are written as"),
        ("bench store --queue-depth 0", "1..=65535"),
        ("bench store --queue-depth 65536", "1..=65535"),
        ("bench store --queue-depth deep", "--queue-depth"),
        ("bench store --rate 0", "at least 1"),
        ("bench store --seed x", "a whole number"),
        ("bench store --distribution normal", "uniform, zipfian, latest, sequential"),
        ("bench mixed --read-percent 101", "0..=100"),
        ("bench mixed --read-percent -1", "--read-percent"),
        ("bench store --read-percent 50", "mixed only"),
        ("bench delete --ops 11 --keys 10", "10 keys can be deleted once"),
        ("bench store --seconds 0", "a time must be seconds"),
        ("bench store --seconds 1e3", "a time must be seconds"),
        ("bench store --seconds 5 --ops 5", "cannot be used with"),
        ("bench store --value-size uniform:4KiB-1KiB", "at least 4096 bytes and at most 1024"),
        ("bench store --value-size uniform:1KiB", "uniform:64B-2MiB"),
        ("bench store --value-size normal:1KiB-2KiB", "uniform:64B-2MiB"),
        ("bench store --value-size mix:1KiB=0", "not 1 or more"),
        ("bench store --value-size uniform:1-3MiB", "at most 2.0 MiB"),
        ("bench ycsb-g", "ycsb-f"),
        ("bench ycsb-a --read-percent 50", "mixed only"),
        ("bench ycsb-d --key-size 1 --keys 250 --ops 1000", "50 new keys beside 250"),
        ("bench store --ops 9 --plot /nonexistent/a.svg", "/nonexistent/a.svg cannot be written"),
        ("bench store --ops 9 --trace /nonexistent/a", "/nonexistent/a cannot be written"),
        ("bench delete --distribution zipfian", "sequential"),
        ("bench store --distribution latest", "sequential"),
        ("bench store --ops 9 --plot /tmp", "is a directory"),
        ("bench store --ops 9 --trace /dev/stdout", "is also another input or output"),
        ("bench replay Cargo.toml --trace Cargo.toml", "is also another input or output"),
        ("bench store --plot /tmp/x.svg --trace /tmp/./x.svg", "is also another input or output"),
    ] {
        assert_refused(&words(arguments), sentence);
    }
}

#[test]
fn traces_that_cannot_be_replayed_are_refused() {
    for (arguments, sentence) in [
        ("bench replay", "<TRACE>"),
        ("bench replay /nonexistent/trace", "cannot be read: No such file"),
        ("bench replay /", "cannot be read"),
        ("bench replay Cargo.toml --pace slow", "recorded"),
        ("bench replay Cargo.toml --pace 0x", "recorded"),
        ("bench replay Cargo.toml --queue-depth 5", "--pace full only"),
        ("bench replay Cargo.toml --format xml", "csv, twitter"),
        ("bench replay Cargo.toml", "Cargo.toml:1: "),
        ("bench retrieve replay", "cannot be used with"),
    ] {
        assert_refused(&words(arguments), sentence);
    }
}

#[test]
fn sizes_and_fills_that_cannot_be_are_refused() {
    for (arguments, sentence) in [
        ("bench retrieve --keys 100000000", "do not fit"),
        (
            "bench retrieve --target sim:moke?index=cached-hash&keys=100 --keys 20000",
            "the index is for 100 keys, and this load has 20,000: more are the target's option \
             keys=20000",
        ),
        ("bench store --span 1MiB", "--span is of blocks"),
        ("bench store --block-size 4KiB", "--block-size is of blocks"),
        ("bench store --precondition 90", "a fill is a share as 90% or 0.9"),
        ("bench store --precondition 0", "a fill is a share"),
        ("bench store --precondition 101%", "a fill is a share"),
        ("bench store --precondition -1", "a fill is a share"),
        ("bench store --precondition full", "a fill is a share"),
        ("bench store --precondition 90% --keys 5", "cannot be used with"),
        ("bench read --precondition 90% --span 1MiB", "cannot be used with"),
        ("bench retrieve --precondition 1% --key-size 1", "at most 256 keys"),
    ] {
        assert_refused(&words(arguments), sentence);
    }
}

/// Of the namespaces of moke, 970pro and zn540, which are of pairs, blocks and zones.
#[test]
fn loads_that_are_not_for_a_namespace_are_refused() {
    for (arguments, sentence) in [
        ("randread --target sim:moke", "no namespace of moke: one of kind kv takes store, ret"),
        ("randread --target sim:moke?ns=1", "not for namespace 1 of moke: one of kind kv takes"),
        ("store --target sim:970pro", "one of kind block takes read, write, randread, randwr"),
        ("randwrite --target sim:zn540", "one of kind zoned takes read, write and randread"),
        ("mixed --target sim:zn540", "one of kind zoned takes read, write and randread"),
        ("replay Cargo.toml --target sim:970pro", "replay is for no namespace of 970pro"),
        ("read --target sim:970pro --block-size 5000", "a multiple of 4.0 KiB, up to 2.0 MiB"),
        ("read --target sim:970pro --block-size 0", "a multiple of 4.0 KiB, up to 2.0 MiB"),
        ("read --target sim:970pro --block-size 4MiB", "a multiple of 4.0 KiB, up to 2.0 MiB"),
        ("read --target sim:970pro --block-size 8GiB", "a multiple of 4.0 KiB, up to 2.0 MiB"),
        ("mixed --target sim:970pro --block-size 8KiB", "longer ones may tear"),
        ("read --target sim:970pro --span 1KiB", "0 cannot be used"),
        ("read --target sim:970pro --span 512GiB", "134217728 cannot be used"),
        ("read --target sim:970pro --keys 9", "--keys is of pairs"),
        ("read --target sim:970pro --key-size 9", "--key-size is of pairs"),
        ("read --target sim:970pro --value-size 9", "--value-size is of pairs"),
        ("read --target sim:970pro --read-percent 9", "mixed only"),
        ("read --target sim:970pro --distribution zipfian", "one block after the other"),
        ("write --target sim:zn540 --block-size 20KiB", "a whole number of blocks of 20.0 KiB"),
    ] {
        assert_refused(&words(&format!("bench {arguments}")), sentence);
    }
}

#[test]
fn targets_that_cannot_be_are_refused() {
    for (target, sentence) in [
        ("", "use sim:PROFILE"),
        ("moke", "use sim:PROFILE"),
        ("emu:", "there is no profile"),
        ("emu:mokee", "there is no profile"),
        ("emu:moke?colour=red", "no option"),
        ("ram:1GiB", "use sim:PROFILE"),
        ("nvme-tcp://127.0.0.1/x", "is no NVMe Qualified Name"),
        ("/dev/ng0n1", "use sim:PROFILE"),
        ("sim:", "there is no profile"),
        ("sim:mokee", "there is no profile"),
        ("sim:./gone.toml", "cannot be read"),
        ("sim:moke?", "no option"),
        ("sim:moke?colour=red", "no option"),
        ("sim:moke?payload=half", "full, checksum or none"),
        ("sim:moke?seed=", "a whole number"),
        ("sim:moke?seed=1&seed=1", "twice"),
        ("sim:moke?shuffle=2", "0 or 1"),
        ("sim:moke?index=tree", "is hash or cached-hash or btree"),
        ("sim:970pro?index=hash", "970pro has no index"),
        ("sim:moke?ns=0", "ns is 1, not"),
        ("sim:moke?ns=2", "ns is 1, not"),
        ("sim:moke?payload=full&", "no option"),
        ("sim:\u{1b}[31m\n", "there is no profile"),
    ] {
        let arguments = ["bench", "store", "--target", target].map(OsString::from);
        assert_refused(&arguments, sentence);
    }
}

#[test]
fn profiles_that_cannot_be_are_refused_with_their_line() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let small = read_to_string(SMALL).unwrap();
    for (from, to, sentence) in [
        ("channels = 2", "chanels = 2", "line 4: "),
        ("channels = 2", "channels = 0", "line 4: "),
        ("channels = 2", "channels = \"two\"", "line 4: "),
        ("channels = 2", "channels = ", "line 4: "),
        ("channels = 2", "channels = 2\nchannels = 2", "line 5: "),
        ("read_us = 45", "read_us = -1", "line 10: "),
        ("model = \"staged\"", "model = \"magic\"", "line 14: "),
        ("[link]", "[lnk]", "line 17: "),
        ("size_gb = 0.032", "size_gb = 64", "line 38: "),
        ("size_gb = 0.032", "size_gb = 0.032\nover_provisioning = 1", "line 39: "),
        ("kind = \"hash\"", "kind = \"tree\"", "line 34: "),
        ("kind = \"kv\"", "kind = \"zones\"", "line 37: "),
        ("[nand]", "[nand", "line 3: "),
    ] {
        let changed = small.replacen(from, to, 1);
        assert_ne!(changed, small, "{from}");
        fs::write(&path, changed).unwrap();
        let file = path.to_str().unwrap();
        for arguments in [
            vec!["device", "show", file],
            vec!["demo", "--device", file],
            vec!["bench", "store", "--target", &format!("sim:{file}")],
        ] {
            let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
            assert_refused(&arguments, sentence);
        }
    }
}

/// Which blocks are bad is drawn when a device is made, so it is no matter of its text alone.
#[test]
fn commands_refuse_a_device_with_too_many_bad_blocks_alike() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let zones = concat!(env!("CARGO_MANIFEST_DIR"), "/../node/profiles/zn540.toml");
    let text = read_to_string(zones).unwrap();
    let line = text.lines().position(|line| line.starts_with("size_gb")).unwrap() + 1;
    let bad = text.replacen("factory_bad_ppm = 0", "factory_bad_ppm = 65536", 1);
    assert_ne!(bad, text);
    fs::write(&path, bad).unwrap();
    let config = folder.path().join("server.toml");
    let server = "[server]\nnvme_tcp = [\":0\"]\n[[device]]\nname = \"zones\"\n\
        device = \"mine.toml\"\n[[subsystem]]\nnqn = \"nqn.2026-11.com.example:zones\"\n\
        device = \"zones\"\n";
    fs::write(&config, server).unwrap();
    let (file, config) = (path.to_str().unwrap(), config.to_str().unwrap());
    let sentence = format!("mine.toml line {line}: namespace 1 has ");
    for arguments in [
        vec!["device", "show", file],
        vec!["bench", "write", "--target", &format!("sim:{file}")],
        vec!["serve", "--config", config, "--check"],
    ] {
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        assert_refused(&arguments, &sentence);
    }
}

#[test]
fn a_device_without_room_to_clean_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let small = read_to_string(SMALL).unwrap();
    fs::write(&path, small.replacen("size_gb = 0.032", "size_gb = 0.06", 1)).unwrap();
    let target = format!("sim:{}", path.display());
    assert_refused(
        &["bench", "store", "--ops", "9", "--target", &target].map(OsString::from),
        "leaves 40.0 MiB for its 57.2 MiB, a narrower stripe keeps less; size_gb of at most 0.041 ",
    );
}

#[test]
fn demos_that_cannot_be_are_refused() {
    for (arguments, sentence) in [
        ("demo /nonexistent/folder", "cannot be read: No such file"),
        ("demo /dev/null", "neither a folder nor a regular file"),
        ("demo a b", "unexpected argument 'b'"),
        ("demo . --device nope", "there is no profile"),
        ("demo . --device 970pro", "970pro has no namespace of kind kv"),
        ("demo . --device zn540 --clock real", "zn540 has no namespace of kind kv"),
        ("demo . --device", "--device"),
        ("demo . --seed x", "a whole number"),
        ("demo . --memory lots", "a size is"),
        ("demo . --clock wrong", "virtual, real"),
        ("demo . --all=yes", "--all"),
    ] {
        assert_refused(&words(arguments), sentence);
    }
}

/// Every option and target that takes a size asks for the unit of a small number.
#[test]
fn a_small_size_without_a_unit_is_refused_everywhere() {
    let serve = |option: &str| format!("serve --device ./none.kv --resp :0 {option} 10");
    let options = ["--scrub", "--cache", "--checkpoint", "--resp-query", "--resp-output"];
    let more = [
        "format none.kv --size 10",
        "demo . --memory 10",
        "bench write --span 10",
        "bench store --target sim:moke?index=cached-hash&dram=10",
        "bench store --target file:none.kv?cache=10",
        "serve --device mem:10 --resp :0",
    ];
    for arguments in options.map(serve).into_iter().chain(more.map(str::to_owned)) {
        assert_refused(&words(&arguments), "10 has no unit: write 10MiB for mebibytes, or 10B for");
    }
}

/// Opens, but its first byte cannot be read, by root neither.
#[cfg(target_os = "linux")]
#[test]
fn a_demo_of_a_file_that_cannot_be_read_is_refused() {
    assert_refused(&words("demo /proc/self/mem"), "/proc/self/mem cannot be read: ");
}

#[test]
fn arguments_of_any_bytes_are_refused_in_one_line() {
    let bytes = |bytes| OsStr::from_bytes(bytes).to_owned();
    for arguments in [
        vec![bytes(b"\xff")],
        vec![bytes(b"de\nmo")],
        vec![bytes(b"demo"), bytes(b"/nonexistent\n\xff\x1b[2J")],
        vec![bytes(b"bench"), bytes(b"\xff")],
        vec![bytes(b"bench"), bytes(b"store"), bytes(b"--ops"), bytes(b"\n\nUsage: x")],
        vec![bytes(b"device"), bytes(b"show"), bytes(b"\xff.toml")],
        vec![bytes(b"device"), bytes(b"show"), bytes(b"a\nb")],
        vec![bytes(b"demo"), bytes(b"--device"), bytes(b"")],
        vec![bytes(b"")],
    ] {
        assert_refused(&arguments, "");
    }
    assert_refused(&[OsString::from("x".repeat(100_000))], "unrecognized");
}

/// A trace of which one line is wrong is refused with that line.
#[test]
fn a_malformed_line_of_a_trace_is_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    for (line, sentence) in [
        ("1,retrieve,a", "trace.csv:3: "),
        ("1,fetch,a,5", "trace.csv:3: "),
        ("x,retrieve,a,5", "trace.csv:3: "),
        ("0.1,retrieve,a,5", "trace.csv:3: "),
        ("1,retrieve,a,-5", "trace.csv:3: "),
        ("1,retrieve,,5", "trace.csv:3: "),
    ] {
        fs::write(&path, format!("time,operation,key,size\n0.5,store,a,5\n{line}\n")).unwrap();
        let arguments = ["bench".as_ref(), "replay".as_ref(), path.as_os_str()];
        assert_refused(&arguments.map(OsStr::to_owned), sentence);
    }
}

#[test]
fn a_timeline_of_a_device_that_waits_for_nothing_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("scalar.toml");
    let small = read_to_string(SMALL).unwrap();
    fs::write(&path, small.replacen("\"staged\"", "\"scalar\"", 1)).unwrap();
    let (target, file) = (format!("sim:{}", path.display()), folder.path().join("timeline"));
    let arguments = ["bench", "store", "--ops", "9", "--target", &target, "--trace"];
    let arguments: Vec<OsString> =
        arguments.map(OsString::from).into_iter().chain([file.into_os_string()]).collect();
    assert_refused(&arguments, "model = \"scalar\"");
}
