//! Block namespaces, as a Linux host uses them: by its block layer, its file systems and fio.

use crate::guest::Guest;
use crate::target::Target;
use crate::{on_each_kernel, over_each_transport};

over_each_transport! {
    a_file_system_keeps_its_files_over_a_reconnect
    fio_finds_what_it_wrote_on_several_queues
    a_reset_in_the_middle_of_io_loses_nothing
    blocks_are_discarded_zeroed_compared_and_copied
}

on_each_kernel! {
    namespaces_come_and_go_under_load
    a_volatile_cache_is_written_back_and_no_other
    a_sanitize_leaves_zeros
    a_reset_of_the_subsystem_keeps_the_data
}

/// The block namespace.
const NSID: u32 = 2;

/// A quick file system of 4 KiB blocks.
const MAKE_FILE_SYSTEM: &str = "mkfs.ext4 -q -b 4096";

/// Returns the namespace's device.
fn connect(guest: &mut Guest, target: &mut Target) -> String {
    target.become_drive();
    target.connect_block(guest, NSID)
}

fn a_file_system_keeps_its_files_over_a_reconnect(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.make("/tmp/in", 20_000_001);
    guest.succeed(&format!(
        "{MAKE_FILE_SYSTEM} {device} && mkdir -p /tmp/disk && mount -t ext4 {device} /tmp/disk
         for i in $(seq 20); do mkdir /tmp/disk/$i && echo $i > /tmp/disk/$i/file; done
         cp /tmp/in /tmp/disk/copy && rm -r /tmp/disk/7 && umount /tmp/disk"
    ));
    target.disconnect(guest);
    guest.wait_for(&format!("[ ! -e {device} ]"));
    let device = target.connect_block(guest, NSID);
    guest.succeed(&format!(
        "fsck.ext4 -f -n {device} && mount -t ext4 {device} /tmp/disk &&
         cmp /tmp/in /tmp/disk/copy && [ ! -e /tmp/disk/7 ]
         for i in 1 6 8 20; do [ $(cat /tmp/disk/$i/file) = $i ] || exit; done
         umount /tmp/disk && rm /tmp/in"
    ));
}

/// Two processes, each on a half of its own; all is read back and compared.
const FIO: &str = "fio --name=verified --direct=1 --ioengine=libaio --iodepth=16 --numjobs=2 \
                   --size=24m --offset_increment=64m --bsrange=4k-128k --verify=crc32c \
                   --verify_fatal=1 --randrepeat=1 --group_reporting";

/// Each round has other content, so that it does not find what an earlier one wrote.
fn writes_in_rounds(device: &str, rate: u32) -> String {
    format!("{FIO} --filename={device} --rw=randwrite --rate_iops={rate} --randseed=$round")
}

fn fio_finds_what_it_wrote_on_several_queues(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    assert_eq!(guest.succeed("cat /sys/class/nvme/nvme*/queue_count"), "3\n");
    for load in ["randwrite", "write"] {
        let said = guest.succeed(&format!("{FIO} --filename={device} --rw={load}"));
        assert!(said.contains("err= 0"), "{said}");
    }
}

fn a_reset_in_the_middle_of_io_loses_nothing(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.succeed("dmesg -c");
    guest.start_load(&writes_in_rounds(&device, 600));
    guest.succeed("for i in 1 2 3; do sleep 1 && nvme reset /dev/nvme[0-9] || exit; done");
    let said = guest.end_load();
    assert!(said.contains("err= 0"), "{said}");
    let log = guest.succeed("dmesg");
    assert!(!log.contains("I/O error"), "{log}");
}

fn blocks_are_discarded_zeroed_compared_and_copied(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.make("/tmp/in", 65_536);
    guest.succeed("head -c 65536 /dev/zero > /tmp/zeros");
    let write = format!("dd if=/tmp/in of={device} bs=65536 oflag=direct");
    let is = |file: &str| {
        format!("dd if={device} of=/tmp/out bs=65536 count=1 iflag=direct && cmp {file} /tmp/out")
    };
    guest.succeed(&format!("{write} && {}", is("/tmp/in")));
    let whole = "--start-block=0 --block-count=15";
    let compare = format!("nvme compare {device} {whole} --data-size=65536");
    guest.succeed(&format!("{compare} --data=/tmp/in"));
    let other = guest.run(&format!("{compare} --data=/tmp/zeros"));
    assert!(other.status != 0 && other.output.contains("0x4285"), "{}", other.output);
    guest.succeed(&format!("nvme verify {device} {whole}"));
    // To block 64: one range of 16 blocks.
    guest.succeed(&format!("nvme copy {device} --sdlba=64 --slbs=0 --blocks=15"));
    let copy = format!("dd if={device} of=/tmp/out bs=65536 skip=4 count=1 iflag=direct");
    guest.succeed(&format!("{copy} && cmp /tmp/in /tmp/out"));
    guest.succeed(&format!("blkdiscard -l 65536 {device} && {}", is("/tmp/zeros")));
    guest.succeed(&format!("{write} && nvme write-zeroes {device} {whole}"));
    guest.succeed(&is("/tmp/zeros"));
    guest.succeed(&format!("{write} && nvme write-zeroes {device} {whole} --deac"));
    guest.succeed(&is("/tmp/zeros"));
    guest.succeed(&format!("nvme flush {device} --namespace-id={NSID}"));
}

/// Six namespaces of pairs, one after the other, and the zones, which are deleted and made again,
/// while blocks are written and read back.
fn namespaces_come_and_go_under_load(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.start_load(&writes_in_rounds(&device, 100));
    let host = guest.succeed("ls /dev/nvme[0-9]").trim().to_owned();
    let find = format!("nvme id-ctrl {host} | grep cntlid | cut -d: -f2 | tr -d ' '");
    let controller = guest.succeed(&find).trim().to_owned();
    let make = |nsid: u32, blocks: u32, csi: u8| {
        format!(
            "nvme create-ns {host} --nsze={blocks} --ncap={blocks} --flbas=0 --csi={csi} |
                 grep -q nsid:{nsid} &&
             nvme attach-ns {host} --namespace-id={nsid} --controllers={controller}"
        )
    };
    let delete = |nsid: u32| format!("nvme delete-ns {host} --namespace-id={nsid}");
    let there_are = |count: u32| format!("[ $(ls /dev/ng* | wc -l) = {count} ]");
    for _ in 0..6 {
        guest.succeed(&make(4, 1_000, 1));
        guest.wait_for(&there_are(4));
        guest.succeed(&delete(4));
        guest.wait_for(&there_are(3));
    }
    guest.succeed(&delete(3));
    guest.wait_for(&there_are(2));
    guest.succeed(&make(3, 131_072, 2));
    guest.wait_for(&there_are(3));
    let said = guest.end_load();
    assert!(said.contains("err= 0"), "{said}");
    let formatted = format!("nvme format {device} --ses=1 --force && cmp -n 65536 {device}");
    guest.succeed(&format!("{formatted} /dev/zero"));
}

/// Without capacitors what the buffer holds is lost with the power.
fn a_volatile_cache_is_written_back_and_no_other(guest: &mut Guest, target: &mut Target) {
    for (power, mode) in
        [("", "write through\n"), ("[power]\ncapacitor_mj = 0\nprogram_uj = 50\n", "write back\n")]
    {
        target.become_drive_with(power);
        let device = target.connect_block(guest, NSID);
        let name = device.trim_start_matches("/dev/");
        assert_eq!(guest.succeed(&format!("cat /sys/block/{name}/queue/write_cache")), mode);
        guest.succeed(&format!("dd if=/dev/zero of={device} bs=65536 count=1 conv=fsync"));
        guest.succeed("nvme disconnect-all");
        guest.wait_for("[ -z \"$(ls /sys/class/nvme)\" ]");
    }
}

/// A block erase, and what the sanitize log says then: all of it is done, and nothing was written
/// since (Base 2.1, Sanitize Status log page: SPROG `FFFFh`, SSTAT `101h`).
fn a_sanitize_leaves_zeros(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.make("/tmp/in", 65_536);
    guest.succeed(&format!("dd if=/tmp/in of={device} bs=65536 oflag=direct"));
    guest.succeed("nvme sanitize /dev/nvme[0-9] --sanact=2");
    let log = "nvme get-log /dev/nvme[0-9] --log-id=0x81 --log-len=4 --raw-binary | xxd -p";
    guest.wait_for(&format!("[ $({log}) = ffff0101 ]"));
    let said = guest.succeed("nvme sanitize-log /dev/nvme[0-9]");
    assert!(said.contains("(SPROG) :  65535"), "{said}");
    guest.succeed(&format!(
        "dd if={device} of=/tmp/out bs=65536 count=1 iflag=direct &&
         head -c 65536 /dev/zero | cmp - /tmp/out"
    ));
}

/// The host loses its I/O queues, and connects them again.
fn a_reset_of_the_subsystem_keeps_the_data(guest: &mut Guest, target: &mut Target) {
    let device = connect(guest, target);
    guest.make("/tmp/in", 65_536);
    guest.succeed(&format!("dd if=/tmp/in of={device} bs=65536 oflag=direct"));
    guest.succeed("dmesg -c");
    guest.succeed("nvme subsystem-reset /dev/nvme[0-9]");
    guest.wait_for("dmesg | grep -q 'creating 2 I/O queues'");
    guest.wait_for("grep -q live /sys/class/nvme/nvme*/state");
    let read = format!("dd if={device} of=/tmp/out bs=65536 count=1 iflag=direct");
    guest.succeed(&format!("{read} && cmp /tmp/in /tmp/out"));
}
