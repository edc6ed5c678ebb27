//! A device as a PCIe function of a guest, over a QEMU's and a server's whole life. What a guest
//! does with its namespaces is in `values`, `block` and `zoned`.

use crate::debian::{BACKPORTS_WITH_SLOT, DEBIAN_12_WITH_SLOT, Debian};
use crate::guest::{Guest, Hardware, Memory};
use crate::kv::{self, KEY_DOES_NOT_EXIST};
use crate::target::Target;
use crate::transport::Transport;
use std::time::Duration;

crate::on!(killed_server_is_plugged_in_again:
    on_debian_12 DEBIAN_12_WITH_SLOT
    on_backports BACKPORTS_WITH_SLOT
);

crate::on!(acknowledged_values_outlive_a_pause_of_the_guest_and_a_killed_server:
    on_debian_12 DEBIAN_12_WITH_SLOT
);

fn acknowledged_values_outlive_a_pause_of_the_guest_and_a_killed_server(
    guest: &mut Guest,
    target: &mut Target,
) {
    target.become_drive_in_file();
    target.connect(guest, "");
    guest.make("/tmp/in", 20_001);
    let keys: Vec<String> = (0..30).map(|number| format!("key {number}")).collect();
    let store = |key: &String| kv::storing(key, "/tmp/in", 20_001, 0) + " && echo stored\n";
    let stores: String = keys.iter().map(store).collect();
    guest.succeed(&format!("({stores}) > /tmp/said 2>&1 & echo $! > /tmp/load"));
    guest.pause(Duration::from_secs(2));
    guest.succeed("kill -0 $(cat /tmp/load) || { echo 'it was over before the pause'; exit 1; }");
    guest.wait_for(&format!("[ $(grep -cx stored /tmp/said) = {} ]", keys.len()));
    replace_server(guest, target);
    for key in &keys {
        assert_eq!(kv::retrieve(guest, key, "/tmp/out", 20_001), Ok(20_001));
        guest.succeed("cmp /tmp/in /tmp/out");
    }
}

crate::on!(mapped_doorbells_serve_a_guest_through_resets:
    on_debian_12 DEBIAN_12_WITH_SLOT
    on_backports BACKPORTS_WITH_SLOT
);

fn mapped_doorbells_serve_a_guest_through_resets(guest: &mut Guest, target: &mut Target) {
    *target = Target::start_mapped("ideal");
    target.connect(guest, "");
    assert_eq!(target.maps_of_doorbells(), 1, "QEMU has mapped them");
    keep_a_value(guest);
    for _ in 0..2 {
        guest.succeed("nvme reset /dev/nvme[0-9]");
        let sum = guest.succeed("md5sum < /tmp/in");
        find_the_value(guest, &sum);
    }
    for number in 0..20 {
        assert_eq!(kv::exist(guest, &format!("{number}")), Err(KEY_DOES_NOT_EXIST));
    }
    target.disconnect(guest);
    target.connect(guest, "");
    let sum = guest.succeed("md5sum < /tmp/in");
    find_the_value(guest, &sum);
}

fn keep_a_value(guest: &mut Guest) {
    guest.make("/tmp/in", 20_001);
    assert_eq!(kv::store(guest, "kept", "/tmp/in", 20_001), Ok(0));
}

/// Kills the server, and plugs the device of another one in. QEMU does not connect a second time,
/// so the guest gives the device up. QEMU 11.1 aborts if the guest uses the device before QEMU has
/// noticed that the server is gone.
fn replace_server(guest: &mut Guest, target: &mut Target) {
    target.kill();
    guest.succeed("sleep 2");
    target.disconnect(guest);
    target.start_again();
    guest.plug_anew(&target.socket());
    guest.wait_for("[ -e /dev/ng*n1 ]");
}

fn killed_server_is_plugged_in_again(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    keep_a_value(guest);
    replace_server(guest, target);
    // What it had in memory went with the process.
    assert_eq!(kv::exist(guest, "kept"), Err(KEY_DOES_NOT_EXIST));
    keep_a_value(guest);
    assert_eq!(kv::retrieve(guest, "kept", "/tmp/out", 20_001), Ok(20_001));
    guest.succeed("cmp /tmp/in /tmp/out");
}

/// A guest that has the target's device from its start.
fn boot_with(debian: &Debian, target: &Target, memory: Memory) -> Option<Guest> {
    debian.boot(&Hardware::Slots { memory, sockets: &[&target.socket()] })
}

/// Boots a guest that stores a value, if there are packages, and restarts it. The firmware uses the
/// controller before the kernel does, at each start.
#[track_caller]
fn reboot(debian: &Debian) -> Option<(Target, Guest, String)> {
    let target = Target::start(Transport::Pcie);
    let mut guest = boot_with(debian, &target, Memory::Shared)?;
    keep_a_value(&mut guest);
    let sum = guest.succeed("md5sum < /tmp/in");
    guest.reboot();
    find_the_value(&mut guest, &sum);
    Some((target, guest, sum))
}

#[track_caller]
fn find_the_value(guest: &mut Guest, sum: &str) {
    assert_eq!(kv::retrieve(guest, "kept", "/tmp/out", 20_001), Ok(20_001));
    assert_eq!(guest.succeed("md5sum < /tmp/out"), sum);
}

#[test]
fn value_outlives_a_reboot_on_backports() {
    reboot(&BACKPORTS_WITH_SLOT);
}

#[test]
fn value_outlives_a_reboot_and_the_end_of_qemu_on_debian_12() {
    let Some((target, guest, sum)) = reboot(&DEBIAN_12_WITH_SLOT) else { return };
    // The host has no name but its socket.
    let shown = target.shown();
    assert!(shown.contains("/vm.sock "), "{shown}");
    // QEMU is killed, and gets no chance to say goodbye.
    drop(guest);
    let shown = target.shown();
    assert!(!shown.contains("/vm.sock "), "{shown}");
    let guest = boot_with(&DEBIAN_12_WITH_SLOT, &target, Memory::Shared);
    find_the_value(&mut guest.expect("there are packages"), &sum);
}

#[test]
fn server_of_a_guest_without_shared_memory_names_the_option() {
    let target = Target::start(Transport::Pcie);
    let guest = boot_with(&DEBIAN_12_WITH_SLOT, &target, Memory::Private);
    let Some(guest) = guest else { return };
    // While the guest runs.
    let said = target.error_line();
    assert!(said.contains("share=on"), "{said}");
    drop(guest);
}
