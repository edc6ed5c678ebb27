//! A device as a PCIe function of a guest, over a QEMU's and a server's whole life. What a guest
//! does with its namespaces is in `values`, `block` and `zoned`.

use crate::debian::{BACKPORTS_WITH_SLOT, DEBIAN_12_WITH_SLOT, Debian};
use crate::guest::{Guest, Hardware, Memory};
use crate::kv::{self, KEY_DOES_NOT_EXIST};
use crate::target::Target;
use crate::transport::Transport;
use std::thread;
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
    guest.start_load(&stores);
    guest.pause(Duration::from_secs(2));
    let said = guest.end_load();
    let stored = said.lines().filter(|&line| line == "stored").count();
    assert!(stored >= keys.len() && stored.is_multiple_of(keys.len()), "{said}");
    replace_server(guest, target, Target::kill);
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

/// Ends the server by `end`, and plugs the device of another one in. QEMU does not connect a second
/// time, so the guest gives the device up. QEMU 11.1 aborts if the guest uses the device before
/// QEMU has noticed that the server is gone.
fn replace_server(guest: &mut Guest, target: &mut Target, end: fn(&mut Target)) {
    end(target);
    guest.succeed("sleep 2");
    target.disconnect(guest);
    target.start_again();
    guest.plug_anew(&target.socket());
    guest.wait_for("[ -e /dev/ng*n1 ]");
}

fn killed_server_is_plugged_in_again(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    keep_a_value(guest);
    replace_server(guest, target, Target::kill);
    // What it had in memory went with the process.
    assert_eq!(kv::exist(guest, "kept"), Err(KEY_DOES_NOT_EXIST));
    keep_a_value(guest);
    assert_eq!(kv::retrieve(guest, "kept", "/tmp/out", 20_001), Ok(20_001));
    guest.succeed("cmp /tmp/in /tmp/out");
}

crate::on!(kept_device_has_new_identifiers_after_a_killed_server_only:
    on_debian_12 DEBIAN_12_WITH_SLOT
    on_backports BACKPORTS_WITH_SLOT
);

fn kept_device_has_new_identifiers_after_a_killed_server_only(
    guest: &mut Guest,
    target: &mut Target,
) {
    target.become_kept();
    target.connect(guest, "");
    keep_a_value(guest);
    let sum = guest.succeed("md5sum < /tmp/in");
    let [serial, ids] = identifiers(guest);
    assert!(ids.contains("nguid") && ids.contains("uuid"), "{ids}");
    replace_server(guest, target, Target::stop);
    find_the_value(guest, &sum);
    assert_eq!(identifiers(guest), [serial.clone(), ids.clone()]);
    replace_server(guest, target, Target::kill);
    assert_eq!(kv::exist(guest, "kept"), Err(KEY_DOES_NOT_EXIST));
    let [serial_now, ids_now] = identifiers(guest);
    assert_ne!(serial_now, serial);
    let same = ids.lines().filter(|line| ids_now.lines().any(|now| now == *line));
    assert_eq!(same.collect::<Vec<_>>(), [""; 0], "{ids_now}");
    assert_eq!(ids_now.lines().count(), ids.lines().count());
}

/// The serial number of the guest's controller, and the NGUID and the UUID of its namespace 1.
fn identifiers(guest: &mut Guest) -> [String; 2] {
    ["cat /sys/class/nvme/nvme*/serial", "nvme ns-descs /dev/nvme[0-9] -n 1 | grep uid"]
        .map(|script| guest.succeed(script))
}

/// A round of a load on the block namespace of a drive, each with other content.
const FIO: &str = "fio --name=verified --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
                   --bs=4k --size=8m --offset=64m --verify=crc32c --verify_fatal=1 \
                   --rate_iops=400 --randseed=$round";

/// Two virtual machines of one server, each with a device of its own. Each keeps the same key and
/// the same blocks, with other content.
#[test]
fn killed_guest_does_not_disturb_another_one_of_the_server() {
    let (target, sockets) = Target::start_pair();
    let boot = |socket| {
        let memory = Memory::Shared;
        DEBIAN_12_WITH_SLOT.boot(&Hardware::Slots { memory, sockets: &[socket] })
    };
    let [first, second] = thread::scope(|scope| {
        let first = scope.spawn(|| boot(&sockets[0]));
        let second = boot(&sockets[1]);
        [first.join().expect("it boots"), second]
    });
    let (Some(mut first), Some(mut second)) = (first, second) else { return };
    let mut devices = Vec::new();
    for guest in [&mut first, &mut second] {
        let device = guest.block_device(2);
        keep_a_value(guest);
        guest.succeed(&format!("dd if=/tmp/in of={device} bs=4096 count=4 oflag=direct"));
        guest.start_load(&format!("{FIO} --filename={device}"));
        devices.push(device);
    }
    for (guest, device) in [&mut first, &mut second].into_iter().zip(&devices) {
        let own = guest.succeed("md5sum < /tmp/in");
        find_the_value(guest, &own);
        guest.succeed(&format!(
            "dd if={device} of=/tmp/blocks bs=4096 count=4 iflag=direct && \
             cmp -n 16384 /tmp/in /tmp/blocks"
        ));
    }
    let shown = target.shown();
    assert!(shown.contains("/a.sock ") && shown.contains("/b.sock "), "{shown}");
    second.expect_load();
    drop(second);
    let sum = first.succeed("md5sum < /tmp/in");
    find_the_value(&mut first, &sum);
    let said = first.end_load();
    assert!(said.contains("err= 0"), "{said}");
    let log = first.succeed("dmesg");
    assert!(!log.contains("I/O error") && !log.contains("timeout"), "{log}");
    let shown = target.shown();
    assert!(shown.contains("/a.sock ") && !shown.contains("/b.sock "), "{shown}");
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
