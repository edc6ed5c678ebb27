//! What right messages are answered, byte for byte.

use crate::device::CONFIG;
use crate::raw_client::*;
use pcie::Region;

#[test]
fn version_is_0_0_with_capabilities() {
    for (minor, data, has_multiple) in [
        (0_u16, &b""[..], false),
        (
            1,
            b"{\"capabilities\":{\"write_multiple\":true,\"migration\":{\"pgsize\":4096}}}\0",
            true,
        ),
    ] {
        let (_server, mut client) = RawClient::without_version();
        let reply = client.call(VERSION, &[&payload!(0_u16, minor)[..], data].concat(), &[]);
        let multiple = if has_multiple { ",\"write_multiple\":true" } else { "" };
        let text = format!(
            "\0\0\0\0{{\"capabilities\":{{\"max_msg_fds\":16,\"max_data_xfer_size\":1048576,\
             \"max_dma_maps\":65535,\"pgsizes\":4096{multiple}}}}}\0"
        );
        assert_eq!(String::from_utf8(reply.unwrap()).unwrap(), text);
        client.check_in_step();
    }
}

#[test]
fn bar_0_and_configuration_space_are_the_regions() {
    let (_server, mut client) = RawClient::start();
    for index in 0..9_u32 {
        let (flags, size) = match index {
            0 => (3_u32, 8_192_u64),
            7 => (3, 256),
            _ => (0, 0),
        };
        // A client that expects capabilities offers more room.
        for argsz in [32_u32, 4_096] {
            let asked = payload!(argsz, 0_u32, index, 0_u32, 0_u64, 0_u64);
            let reply = client.call(GET_REGION_INFO, &asked, &[]);
            assert_eq!(reply, Ok(payload!(32_u32, flags, index, 0_u32, size, 0_u64)));
        }
    }
}

#[test]
fn msix_errors_and_requests_are_the_interrupts() {
    let (_server, mut client) = RawClient::start();
    for (index, flags, count) in [(0, 0, 0), (1, 0, 0), (2, 1, 20), (3, 1, 1), (4, 1, 1_u32)] {
        let (index, flags): (u32, u32) = (index, flags);
        let reply = client.call(GET_IRQ_INFO, &payload!(16_u32, 0_u32, index, 0_u32), &[]);
        assert_eq!(reply, Ok(payload!(16_u32, flags, index, count)));
    }
}

#[test]
fn regions_are_read_and_written() {
    let (server, mut client) = RawClient::start();
    let whole = payload!(0_u64, 7_u32, 256_u32);
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(
        client.call(REGION_READ, &whole, &[]),
        Ok([&whole[..], &bytes[..]].concat()),
        "configuration space tells its places"
    );
    let part = payload!(3_u64, 7_u32, 2_u32);
    assert_eq!(client.call(REGION_WRITE, &[&part[..], b"xy"].concat(), &[]), Ok(part));
    let around = payload!(2_u64, 7_u32, 4_u32);
    let reply = client.call(REGION_READ, &around, &[]);
    assert_eq!(reply, Ok([&around[..], b"\x02xy\x05"].concat()));
    client.set(8_188, &[9; 4]);
    assert_eq!(client.register(8_188), 0x0909_0909);
    let log = server.log();
    assert_eq!(log.lock().unwrap().writes, [(Region::Config, 3, 2), (Region::Bar0, 8_188, 4)]);
    assert_eq!(client.call(RESET, &[], &[]), Ok(vec![]));
    assert_eq!((log.lock().unwrap().resets, client.register(8_188)), (1, 0));
}

#[test]
fn posted_writes_have_no_reply() {
    let (_server, mut client) = RawClient::start();
    let write = [&payload!(0_u64, 0_u32, 4_u32)[..], b"abcd"].concat();
    client.send(&message(1, REGION_WRITE, 0x10, &write), &[]);
    let wrong = payload!(0_u64, 6_u32, 4_u32, 0_u32);
    client.send(&message(2, REGION_WRITE, 0x10, &wrong), &[]);
    client.send(&message(3, 999, 0x10, b"unknown"), &[]);
    assert_eq!(client.register(0), u32::from_le_bytes(*b"abcd"));
}

#[test]
fn writes_of_one_message_are_all_done_or_none() {
    let (server, mut client) = RawClient::start();
    let write = |offset: u64, region: u32, count: u32, data: &[u8; 8]| {
        [&payload!(offset, region, count)[..], data].concat()
    };
    let first = write(0, 0, 8, b"abcdefgh");
    let second = write(2, 0, 1, b"-_______");
    let message = [&payload!(2_u64)[..], &first, &second].concat();
    assert_eq!(client.call(WRITE_MULTI, &message, &[]), Ok(payload!(2_u64)));
    assert_eq!(client.register(0), u32::from_le_bytes(*b"ab-d"));
    assert_eq!(client.call(WRITE_MULTI, &payload!(0_u64), &[]), Ok(payload!(0_u64)));
    server.log().lock().unwrap().writes.clear();
    for wrong in
        [write(0, 0, 9, b"ABCDEFGH"), write(252, 7, 5, b"ABCDEFGH"), write(0, 1, 1, &[0; 8])]
    {
        let message = [&payload!(2_u64)[..], &first, &wrong].concat();
        assert_eq!(client.call(WRITE_MULTI, &message, &[]), Err(rustix::io::Errno::INVAL));
    }
    assert_eq!(server.log().lock().unwrap().writes, []);
    assert_eq!(CONFIG, 256);
}

#[test]
fn a_message_may_come_in_pieces() {
    let (_server, mut client) = RawClient::start();
    let write = [&payload!(0_u64, 0_u32, 4_u32)[..], b"abcd"].concat();
    for byte in message(5, REGION_WRITE, 0, &write) {
        client.send(&[byte], &[]);
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    assert_eq!(client.reply(5, REGION_WRITE), Ok(write[..16].to_vec()));
    client.check_in_step();
}
