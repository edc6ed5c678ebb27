use crate::guest::Guest;
use crate::kv::{self, INVALID_KEY_SIZE, KEY_DOES_NOT_EXIST, KEY_EXISTS};
use crate::target::Target;
use crate::{on_each_kernel, over_each_transport};

over_each_transport! {
    values_come_back_as_they_were
    a_value_longer_than_the_buffer_is_cut_and_its_size_is_told
    keys_exist_are_listed_and_are_deleted
    errors_reach_the_host_with_their_status
}

on_each_kernel! {
    values_come_back_under_header_and_data_digests
    values_come_back_without_queue_flow_control
}

/// In the capsule up to 8 KiB, by R2T above that; odd lengths on both sides.
const SIZES: [u32; 8] = [1, 4_095, 8_192, 8_193, 20_001, 131_072, 1 << 20, 2 << 20];

/// Linux 7 refuses to pass more through to a PCIe device than fits its own lists of segments.
const PCIE_BYTES_MAX: u32 = 131_072;

fn round_trips(guest: &mut Guest, target: &Target) {
    let is_passed = |size: &u32| target.is_over_tcp() || *size <= PCIE_BYTES_MAX;
    for size in SIZES.into_iter().filter(is_passed) {
        guest.make("/tmp/in", size);
        assert_eq!(kv::store(guest, "key", "/tmp/in", size), Ok(0), "{size} bytes");
        assert_eq!(kv::retrieve(guest, "key", "/tmp/out", size), Ok(size), "{size} bytes");
        guest.succeed("cmp /tmp/in /tmp/out");
    }
}

fn values_come_back_as_they_were(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    round_trips(guest, target);
}

fn values_come_back_under_header_and_data_digests(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "--hdr-digest --data-digest");
    round_trips(guest, target);
    let log = guest.succeed("dmesg");
    assert!(!log.contains("digest"), "{log}");
}

/// Then the target may leave the response out behind data that it sent whole.
fn values_come_back_without_queue_flow_control(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "--disable-sqflow");
    round_trips(guest, target);
    guest.succeed("nvme list-ns /dev/nvme[0-9]");
}

fn a_value_longer_than_the_buffer_is_cut_and_its_size_is_told(
    guest: &mut Guest,
    target: &mut Target,
) {
    target.connect(guest, "");
    guest.make("/tmp/in", 20_001);
    assert_eq!(kv::store(guest, "long", "/tmp/in", 20_001), Ok(0));
    assert_eq!(kv::retrieve(guest, "long", "/tmp/out", 512), Ok(20_001));
    guest.succeed("head -c 512 /tmp/in | cmp - /tmp/out");
    // nvme-cli writes the whole buffer, which has nothing behind the value.
    assert_eq!(kv::retrieve(guest, "long", "/tmp/out", 24_576), Ok(20_001));
    guest.succeed("head -c 20001 /tmp/out | cmp - /tmp/in");
}

fn keys_exist_are_listed_and_are_deleted(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    guest.make("/tmp/in", 100);
    let keys = ["a", "bcd", "efgh", "0123456789abcdef"];
    for key in keys {
        assert_eq!(kv::store(guest, key, "/tmp/in", 100), Ok(0), "{key}");
        assert_eq!(kv::exist(guest, key), Ok(0), "{key}");
    }
    assert_eq!(listed(guest), keys);
    assert_eq!(kv::delete(guest, "bcd"), Ok(0));
    assert_eq!(kv::exist(guest, "bcd"), Err(KEY_DOES_NOT_EXIST));
    assert_eq!(kv::exist(guest, "efgh"), Ok(0));
    assert_eq!(listed(guest), ["a", "efgh", "0123456789abcdef"]);
}

/// All keys, the shortest first (KV 1.0d, List command: a count, then each key after its length and
/// padded to 4 bytes).
fn listed(guest: &mut Guest) -> Vec<String> {
    kv::list(guest, "/tmp/list", 4_096).expect("keys are listed");
    let hex = guest.succeed("xxd -p /tmp/list").replace('\n', "");
    let byte = |at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len() / 2).map(byte).collect();
    let (count, mut rest) = bytes.split_at(4);
    let mut keys = Vec::new();
    for _ in 0..u32::from_le_bytes(count.try_into().unwrap()) {
        let length = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
        keys.push(String::from_utf8(rest[2..2 + length].to_vec()).unwrap());
        rest = &rest[(2 + length).next_multiple_of(4)..];
    }
    keys.sort_by_key(|key| (key.len(), key.clone()));
    keys
}

fn errors_reach_the_host_with_their_status(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    guest.make("/tmp/in", 20_001);
    assert_eq!(kv::exist(guest, "none"), Err(KEY_DOES_NOT_EXIST));
    // The feature Key Value Configuration makes it an error, and is off at first.
    assert_eq!(kv::delete(guest, "none"), Ok(0));
    guest.succeed("nvme set-feature /dev/nvme[0-9] --feature-id=0x20 --namespace-id=1 --value=1");
    assert_eq!(kv::delete(guest, "none"), Err(KEY_DOES_NOT_EXIST));
    assert_eq!(kv::retrieve(guest, "none", "/tmp/out", 20_001), Err(KEY_DOES_NOT_EXIST));
    assert_eq!(kv::exist(guest, ""), Err(INVALID_KEY_SIZE));
    // Once with the value in the capsule, and once with one that is never asked for.
    for size in [100, 20_001] {
        assert_eq!(kv::store(guest, "here", "/tmp/in", 100), Ok(0));
        let refused = kv::store_new(guest, "here", "/tmp/in", size);
        assert_eq!(refused, Err(KEY_EXISTS), "{size} bytes");
    }
    assert_eq!(kv::retrieve(guest, "here", "/tmp/out", 4_096), Ok(100), "the queue still works");
}
