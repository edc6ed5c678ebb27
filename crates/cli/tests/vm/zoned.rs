//! Zoned namespaces, as a Linux host uses them: a zoned block device.

use crate::guest::Guest;
use crate::over_each_transport;
use crate::target::Target;

over_each_transport! {
    a_zoned_namespace_is_a_zoned_block_device
    fio_finds_what_it_wrote_into_zones
}

/// The zoned namespace.
const NSID: u32 = 3;

/// Returns the namespace's device.
fn connect(guest: &mut Guest, target: &mut Target) -> String {
    target.become_drive();
    target.connect_block(guest, NSID)
}

/// What sysfs says of the device's queue.
fn queue(guest: &mut Guest, device: &str, name: &str) -> String {
    let name = format!("/sys/block/{}/queue/{name}", device.trim_start_matches("/dev/"));
    guest.succeed(&format!("cat {name}")).trim().to_owned()
}

fn a_zoned_namespace_is_a_zoned_block_device(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    assert_eq!(queue(guest, &device, "zoned"), "host-managed");
    assert_eq!(queue(guest, &device, "nr_zones"), "16");
    // Linux 6.1 does not hand these on to the device that stands for all ways to a namespace.
    let limits = ["max_open_zones", "max_active_zones"].map(|name| queue(guest, &device, name));
    assert!(limits == ["4", "6"] || limits == ["0", "0"], "{limits:?}");
    // 32 MiB, in sectors.
    assert_eq!(queue(guest, &device, "chunk_sectors"), "65536");
    assert_ne!(queue(guest, &device, "zone_append_max_bytes"), "0");
    guest.succeed(&format!("dd if=/dev/zero of={device} bs=65536 count=1 oflag=direct"));
    let report = guest.succeed(&format!("blkzone report --count 2 {device}"));
    let zones: Vec<_> = report.lines().collect();
    assert!(zones[0].contains("wptr 0x000080") && zones[0].contains("(oi)"), "{report}");
    assert!(zones[1].contains("wptr 0x000000") && zones[1].contains("(em)"), "{report}");
    let elsewhere = format!("dd if=/dev/zero of={device} bs=65536 seek=4 count=1 oflag=direct");
    assert_ne!(guest.run(&elsewhere).status, 0, "only at the write pointer");
    guest.succeed(&format!("blkzone finish --count 1 {device}"));
    let report = guest.succeed(&format!("blkzone report --count 1 {device}"));
    assert!(report.contains("(fu)"), "{report}");
    guest.succeed(&format!("blkzone reset {device}"));
    let report = guest.succeed(&format!("blkzone report {device}"));
    assert_eq!(report.matches("(em)").count(), 16, "{report}");
}

fn fio_finds_what_it_wrote_into_zones(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    for load in ["randwrite", "write"] {
        let said = guest.succeed(&format!(
            "fio --name=zones --filename={device} --direct=1 --zonemode=zbd --rw={load} \
             --bs=64k --size=64m --io_size=80m --max_open_zones=3 --ioengine=psync \
             --verify=crc32c --verify_fatal=1"
        ));
        assert!(said.contains("err= 0"), "{said}");
    }
}
