//! `[[tenant]]` in the file of `kvasir serve`: counters of tenants, and what a reload changes.

use crate::program::{json, kvasir};
use crate::redis::page;
use crate::serving::Serving;
use rustix::process::Signal;
use serde_json::{Value, from_str};
use tempfile::tempdir;

const HOST: &str = "nqn.2026-11.com.example:team";

fn file(terms: &str) -> String {
    format!(
        "[server]
clock = \"none\"
nvme_tcp = [\":0\"]
http = \":0\"

[[device]]
name = \"fast\"
device = \"mem:64MiB\"

[[subsystem]]
device = \"fast\"

[[tenant]]
name = \"team\"
host_nqns = [{HOST:?}]
{terms}
"
    )
}

/// Stores 500 pairs by one queue of the host with this name.
fn store(served: &Serving, host: &str) {
    let target = format!("{}?as={host}", served.uri(0));
    let bench = ["bench", "store", "--keys", "500", "--ops", "500", "--value-size", "1000"];
    let report = json(bench.iter().chain(&["--overwrite", "--json", "--target", &target]));
    assert_eq!(report["errors"], 0, "{report}");
}

fn http(served: &Serving) -> &str {
    served.ready["http"].as_str().unwrap()
}

fn tenants(served: &Serving) -> Vec<Value> {
    // A status is shared by all that ask within 100 ms.
    std::thread::sleep(std::time::Duration::from_millis(150));
    let status: Value = from_str(&page(http(served), "/status")).unwrap();
    status["tenants"].as_array().unwrap().clone()
}

#[test]
fn tenants_are_counted_shown_and_reloaded() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file("weight = 3"));
    store(&served, HOST);
    let [team, others] = &tenants(&served)[..] else { panic!("`default` is the second tenant") };
    assert_eq!((&team["name"], &team["weight"]), (&"team".into(), &3.into()));
    assert_eq!((&others["name"], &others["requests"]), (&"default".into(), &0.into()));
    assert!(team["requests"].as_u64().unwrap() >= 500, "{team}");
    assert!(team["bytes"].as_u64().unwrap() > 500_000, "{team}");
    assert!(team["busy_ns"].as_u64().unwrap() > 0, "{team}");
    assert_eq!(team["requests_per_second"], Value::Null);
    store(&served, "nqn.2026-11.com.example:other");
    assert!(tenants(&served)[1]["requests"].as_u64().unwrap() >= 500);

    let path = folder.path().join("server.toml");
    std::fs::write(&path, file("weight = 5\nrequests_per_second = 200")).unwrap();
    served.signal(Signal::HUP);
    assert!(served.error_line().starts_with("kvasir: reloaded "));
    store(&served, HOST);
    let team = &tenants(&served)[0];
    assert_eq!((&team["weight"], &team["requests_per_second"]), (&5.into(), &200.into()));
    assert!(team["waited_limit_ns"].as_u64().unwrap() > 0, "{team}");

    let metrics = page(http(&served), "/metrics");
    for series in [
        "tenant_weight{tenant=\"team\"} 5",
        "tenant_limit_requests_per_second{tenant=\"team\"} 200",
        "tenant_requests_total{tenant=\"default\"} ",
        "tenant_bytes_total{tenant=\"team\"} ",
        "tenant_busy_seconds_total{tenant=\"team\"} ",
        "tenant_share_wait_seconds_total{tenant=\"team\"} ",
        "tenant_limit_wait_seconds_total{tenant=\"team\"} ",
    ] {
        assert!(metrics.contains(&format!("\nkvasir_{series}")), "{series}: {metrics}");
    }
    let top = ["top", http(&served), "--once", "--interval", "200ms"];
    assert!(kvasir(top).stdout.lines().any(|line| line.starts_with("tenant ")));
    let sample = json(top.iter().chain(&["--json"]));
    assert_eq!(sample["tenants"][0]["name"], "team", "{sample}");
    served.stop();
}

#[test]
fn reload_with_other_members_of_a_tenant_changes_nothing() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file("weight = 3"));
    let other = file("weight = 4").replace(HOST, "nqn.2026-11.com.example:other");
    std::fs::write(folder.path().join("server.toml"), other).unwrap();
    served.signal(Signal::HUP);
    let line = served.error_line();
    let what = "the name, host_nqns or resp_users of a [[tenant]] has changed";
    assert!(line.contains(what) && line.ends_with("nothing was reloaded"), "{line}");
    assert_eq!(tenants(&served)[0]["weight"], 3);
    served.stop();
}

#[test]
fn check_prints_the_tenants_of_the_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.toml");
    let terms = "weight = 3\nrequests_per_second = 500\n[[tenant]]\nname = \"default\"\n";
    std::fs::write(&path, file(terms)).unwrap();
    let check = ["serve", "--check", "--config", path.to_str().unwrap()];
    let checked = kvasir(check);
    assert_eq!((checked.code, &checked.stderr[..]), (Some(0), ""));
    let lines: Vec<_> = checked.stdout.lines().filter(|line| line.starts_with("tenant ")).collect();
    let expected = ["tenant team: weight 3, requests_per_second 500", "tenant default: weight 1"];
    assert_eq!(lines, expected);
    let team = &json(check.iter().chain(&["--json"]))["tenants"][0];
    assert_eq!((&team["host_nqns"][0], &team["bytes_per_second"]), (&HOST.into(), &Value::Null));
}
