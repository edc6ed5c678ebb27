use crate::guest::Guest;
use crate::kv;
use crate::on_each_kernel;
use crate::target::Target;
use std::thread;
use std::time::{Duration, Instant};

on_each_kernel! {
    a_value_outlives_a_disconnect
    a_controller_that_is_reset_serves_again
    an_idle_host_is_kept
    a_silent_host_is_let_go_and_comes_back
    a_host_comes_back_to_a_target_that_was_killed
}

const IS_LIVE: &str = "grep -q live /sys/class/nvme/nvme*/state";

/// Each queue's connection, as long as the host is connected: the admin queue's and two more.
const CONNECTIONS: usize = 3;

/// Many times what is waited for: what does not happen is to fail.
const TIMEOUT: Duration = Duration::from_secs(30);

fn keep_a_value(guest: &mut Guest) {
    guest.make("/tmp/in", 20_001);
    assert_eq!(kv::store(guest, "kept", "/tmp/in", 20_001), Ok(0));
}

fn find_the_value(guest: &mut Guest) {
    assert_eq!(kv::retrieve(guest, "kept", "/tmp/out", 20_001), Ok(20_001));
    guest.succeed("cmp /tmp/in /tmp/out");
}

fn a_value_outlives_a_disconnect(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    keep_a_value(guest);
    target.disconnect(guest);
    wait_for(|| target.connections() == 0);
    target.connect(guest, "");
    find_the_value(guest);
}

fn a_controller_that_is_reset_serves_again(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    keep_a_value(guest);
    guest.succeed("nvme reset /dev/nvme[0-9]");
    guest.wait_for(IS_LIVE);
    find_the_value(guest);
}

/// The host sends Keep Alive, which is all that the target hears of it.
fn an_idle_host_is_kept(guest: &mut Guest, target: &mut Target) {
    guest.succeed("dmesg -c");
    target.connect(guest, "--keep-alive-tmo=5");
    guest.succeed("sleep 8");
    let log = guest.succeed("dmesg");
    assert!(!log.contains("error recovery") && !log.contains("Reconnect"), "{log}");
    assert_eq!(target.connections(), CONNECTIONS);
}

/// With its network down the host can send nothing, not even the end of its connections. The
/// timeout leaves a guest on a busy machine 2.5 s for each Keep Alive.
fn a_silent_host_is_let_go_and_comes_back(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "--keep-alive-tmo=5 --reconnect-delay=1 --ctrl-loss-tmo=60");
    keep_a_value(guest);
    assert_eq!(target.connections(), CONNECTIONS);
    guest.succeed("ip link set eth0 down");
    wait_for(|| target.connections() == 0);
    guest.succeed("ip link set eth0 up");
    guest.wait_for(IS_LIVE);
    find_the_value(guest);
}

/// The host keeps its device. Data in the target's memory is gone.
fn a_host_comes_back_to_a_target_that_was_killed(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "--reconnect-delay=1 --ctrl-loss-tmo=60");
    keep_a_value(guest);
    let device = guest.succeed("ls /dev/ng*n1");
    target.kill();
    guest.wait_for("grep -q connecting /sys/class/nvme/nvme*/state");
    target.start_again();
    guest.wait_for(IS_LIVE);
    assert_eq!(kv::exist(guest, "kept"), Err(kv::KEY_DOES_NOT_EXIST));
    keep_a_value(guest);
    find_the_value(guest);
    assert_eq!(guest.succeed("ls /dev/ng*n1"), device);
    let connections = target.connections();
    let log = guest.succeed("dmesg | grep nvme | tail -30");
    assert_eq!(connections, CONNECTIONS, "{log}");
}

#[track_caller]
fn wait_for(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < TIMEOUT, "what is waited for does not happen");
        thread::sleep(Duration::from_millis(20));
    }
}
