//! Debian's redis-py, as one of the clients of Redis that are not ours.

use crate::drive::{formatted, shown};
use crate::redis::target;
use crate::serving::Serving;
use std::env;
use std::process::Command;

/// That of Debian, whose packages it has.
const PYTHON: &str = "/usr/bin/python3";

const SCRIPT: &str = include_str!("redis_py.py");

#[test]
fn redis_py_works_as_with_redis() {
    let imported = Command::new(PYTHON).args(["-c", "import redis"]).output();
    if !imported.is_ok_and(|imported| imported.status.success()) {
        let is_required = env::var("REQUIRE_REDIS").is_ok_and(|value| value == "1");
        assert!(!is_required, "REQUIRE_REDIS=1, and {PYTHON} has no redis");
        eprintln!("skipped: {PYTHON} has no redis");
        return;
    }
    let (_folder, path) = formatted();
    for device in [shown(&path), "mem:64MiB"] {
        let served = Serving::start(["--device", device, "--resp", ":0"]);
        let port = target(&served).rsplit(':').next().expect("it has a port");
        let ran = Command::new(PYTHON).args(["-c", SCRIPT, port]).output().expect("it is there");
        let [said, wrong] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!((&said[..], &wrong[..]), ("done\n", ""), "{device}");
        served.stop();
    }
}
