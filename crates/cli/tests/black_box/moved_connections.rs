//! `kvasir serve` with the policy `conn`: open connections move to less busy cores, or stay.

use crate::authority::Authority;
use crate::balance::{self, reload};
use crate::program::json;
use crate::redis::{Client, page};
use crate::serving::Serving;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, from_str};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Many times what the server takes for anything on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The busier core gives connections away as often as it can. `device` has more keys of the device.
fn file(policy: &str, device: &str) -> String {
    let memory = "device = \"mem:64MiB\"\n";
    balance::file(policy).replacen(memory, &format!("{memory}resp = \":0\"\n{device}\n"), 1)
}

/// Returns a figure of each core.
fn figures(served: &Serving, name: &str) -> Vec<u64> {
    // A status is up to 100 ms old.
    sleep(Duration::from_millis(150));
    let status: Value = from_str(&page(served.ready["http"].as_str().unwrap(), "/status")).unwrap();
    let cores = status["reactors"].as_array().unwrap();
    cores.iter().map(|core| core[name].as_u64().unwrap()).collect()
}

/// Returns how many connections have moved.
fn moved(served: &Serving) -> u64 {
    figures(served, "connections_moved").iter().sum()
}

/// Waits until figures of the cores fulfil a condition.
fn wait_for(served: &Serving, name: &str, condition: impl Fn(&[u64]) -> bool) -> Vec<u64> {
    let begin = Instant::now();
    loop {
        let figures = figures(served, name);
        if condition(&figures) {
            return figures;
        }
        assert!(begin.elapsed() < TIMEOUT, "{name}: {figures:?}");
    }
}

/// Adds to a counter of its own until `is_over`, and checks each reply.
fn add(client: &mut Client, name: usize, is_over: &AtomicBool) {
    let (key, begin) = (format!("counter{name}"), Instant::now());
    client.ask(&["del", &key]);
    for count in 1.. {
        if is_over.load(Relaxed) || begin.elapsed() > 2 * TIMEOUT {
            return;
        }
        client.says(&format!("incr {key}"), &format!(":{count}"));
    }
}

/// Sets a flag when it is dropped.
struct Over<'flag>(&'flag AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Does `work` while clients add.
fn while_they_add<'clients>(
    clients: impl Iterator<Item = &'clients mut Client>,
    work: impl FnOnce(),
) {
    let is_over = &AtomicBool::new(false);
    scope(|threads| {
        for (name, client) in clients.enumerate() {
            threads.spawn(move || add(client, name, is_over));
        }
        let _over = Over(is_over);
        work();
    });
}

/// Limits the descriptors of the server. It keeps those that it has.
fn limit_descriptors(served: &Serving, limit: Rlimit) {
    prlimit(Some(served.process()), Resource::Nofile, limit).unwrap();
}

/// A hand-over duplicates the descriptor of a socket.
#[test]
fn connections_are_served_while_the_server_has_no_free_descriptor() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file("none", ""));
    // Connections are dealt in turn.
    let mut clients: Vec<Client> = (0..8).map(|_| Client::of(&served)).collect();
    let target = format!("{}?queues=4", served.uri(0));
    let load = ["bench", "store", "--keys", "500", "--seconds", "4", "--overwrite", "--json"];
    let load: Vec<String> =
        load.into_iter().chain(["--target", &target]).map(ToOwned::to_owned).collect();
    let load = spawn(move || json(load));
    wait_for(&served, "connections", |cores| cores.iter().sum::<u64>() == 5);
    assert_eq!(moved(&served), 0);
    reload(&served, folder.path(), &file("conn", ""));
    let usual = getrlimit(Resource::Nofile);
    limit_descriptors(&served, Rlimit { current: Some(0), ..usual });
    // Some hundreds of windows: each connection of the busy core is asked to move in some of them.
    while_they_add(clients.iter_mut().step_by(2), || sleep(Duration::from_secs(1)));
    limit_descriptors(&served, usual);
    let report = load.join().unwrap();
    assert_eq!(report["errors"], 0, "{report}");
    while_they_add(clients.iter_mut().step_by(2), || {
        wait_for(&served, "connections_moved", |cores| cores.iter().sum::<u64>() > 0);
    });
    served.stop();
}

/// A load of one client over TLS, which ends when this is dropped.
struct TlsLoad(Child);

impl TlsLoad {
    fn start(served: &Serving, authority: &Authority) -> Self {
        let uri = served.ready["devices"][0]["resp_tls"].as_str().unwrap();
        let target = format!("{uri}/1?ca={}", authority.path("ca.crt"));
        let load = ["bench", "store", "--keys", "500", "--seconds", "600", "--rate", "2000"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvasir"));
        let command = command.args(load).args(["--overwrite", "--target", &target]);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for TlsLoad {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn clients_over_tls_stay_on_their_core_while_others_move() {
    let authority = Authority::new();
    let folder = authority.folder.path();
    let keys = "resp_tls = \":0\"\nresp_tls_cert = \"server.crt\"\nresp_tls_key = \"server.key\"";
    let served = Serving::with_file(folder, &file("none", keys));
    let clients = |count| wait_for(&served, "redis_clients", |it| it.iter().sum::<u64>() == count);
    // One of two cores has two of three.
    let mut loads = [(); 3].map(|()| TlsLoad::start(&served, &authority));
    clients(3);
    // A load looks at the server by a connection of its own first.
    sleep(Duration::from_secs(1));
    let of_tls = clients(3);
    let core = usize::from(of_tls[1] > 1);
    assert!(of_tls[core] > 1, "{of_tls:?}");

    // Only clients over TLS have requests.
    reload(&served, folder, &file("conn", keys));
    sleep(Duration::from_secs(1));
    assert_eq!(moved(&served), 0);
    assert_eq!(clients(3), of_tls);

    reload(&served, folder, &file("none", keys));
    let mut plain: Vec<Client> = (0..4).map(|_| Client::of(&served)).collect();
    let here = clients(7);
    assert!(here[core] > of_tls[core], "{here:?}");
    reload(&served, folder, &file("conn", keys));
    while_they_add(plain.iter_mut(), || {
        wait_for(&served, "connections_moved", |cores| cores.iter().sum::<u64>() > 0);
    });

    drop(plain);
    let before = figures(&served, "redis_commands")[core];
    wait_for(&served, "redis_commands", |cores| cores[core] > before + 100);
    assert_eq!(clients(3), of_tls);
    for load in &mut loads {
        assert_eq!(load.0.try_wait().unwrap(), None, "its connection has ended");
    }
    served.stop();
}
