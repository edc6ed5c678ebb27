//! Each wrong message is answered with an error, and the stream stays in step.

use crate::raw_client::*;
use crate::server::Server;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use vfio_user::Ended;

/// Sends a message and expects an error.
#[track_caller]
fn refused(client: &mut RawClient, command: u16, payload: &[u8], fds: usize, errno: Errno) {
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let fds: Vec<BorrowedFd<'_>> = vec![event.as_fd(); fds];
    let reply = client.call(command, payload, &fds);
    assert_eq!(reply, Err(errno), "command {command} with {payload:?}, {} fds", fds.len());
    client.check_in_step();
}

#[track_caller]
fn invalid(client: &mut RawClient, command: u16, payload: &[u8]) {
    refused(client, command, payload, 0, Errno::INVAL);
}

#[test]
fn the_version_comes_first_and_once() {
    let (_server, mut client) = RawClient::without_version();
    let map = payload!(32_u32, 3_u32, 0_u64, 0_u64, 4_096_u64);
    for (command, payload) in [(DMA_MAP, &map[..]), (RESET, b""), (99, b"x")] {
        assert_eq!(client.call(command, payload, &[]), Err(Errno::INVAL));
    }
    for wrong in [&b""[..], b"\0\0\0", b"\x01\0\0\0", b"\0\0\0\0{}", b"\0\0\0\0{\"a\"\0"] {
        assert_eq!(client.call(VERSION, wrong, &[]), Err(Errno::INVAL));
    }
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    assert_eq!(client.call(VERSION, &[0; 4], &[event.as_fd()]), Err(Errno::INVAL));
    assert!(client.call(VERSION, &[0; 4], &[]).is_ok());
    client.check_in_step();
    invalid(&mut client, VERSION, &[0; 4]);
}

#[test]
fn commands_that_the_server_does_not_execute_are_refused() {
    let (_server, mut client) = RawClient::start();
    for command in [0, 6, 11, 12, 14, 16, 17, 18, 19, 1_000, u16::MAX] {
        refused(&mut client, command, b"", 0, Errno::OPNOTSUPP);
        refused(&mut client, command, &vec![1; 100_000], 0, Errno::OPNOTSUPP);
    }
}

#[test]
fn messages_of_other_types_are_refused() {
    let (_server, mut client) = RawClient::start();
    for flags in [1, 2, 15] {
        client.send(&message(5, RESET, flags, b""), &[]);
        assert_eq!(client.reply(5, RESET), Err(Errno::INVAL));
        client.check_in_step();
    }
}

#[test]
fn payloads_that_do_not_fit_are_refused() {
    let (_server, mut client) = RawClient::start();
    let map = payload!(32_u32, 3_u32, 0_u64, 0_u64, 4_096_u64);
    let unmap = payload!(24_u32, 0_u32, 0_u64, 4_096_u64);
    let set = payload!(20_u32, 0x21_u32, 2_u32, 0_u32, 1_u32);
    let info = payload!(16_u32, 0_u32, 0_u32, 0_u32);
    let region = payload!(32_u32, 0_u32, 0_u32, 0_u32, 0_u64, 0_u64);
    let access = payload!(0_u64, 0_u32, 4_u32);
    for (command, right, may_be_longer) in [
        (DMA_MAP, &map, false),
        (DMA_UNMAP, &unmap, false),
        (SET_IRQS, &set, false),
        (GET_INFO, &info, true),
        (GET_IRQ_INFO, &info, true),
        (GET_REGION_INFO, &region, true),
        (REGION_READ, &access, false),
        (REGION_WRITE, &access, false),
        (WRITE_MULTI, &payload!(1_u64), false),
        (RESET, &vec![], false),
    ] {
        for len in 0..right.len() {
            invalid(&mut client, command, &right[..len]);
        }
        let longer = [&right[..], b"x"].concat();
        if may_be_longer {
            assert!(client.call(command, &longer, &[]).is_ok(), "{command}");
        } else {
            invalid(&mut client, command, &longer);
        }
    }
}

#[test]
fn too_small_an_argsz_is_refused() {
    let (_server, mut client) = RawClient::start();
    invalid(&mut client, DMA_MAP, &payload!(31_u32, 3_u32, 0_u64, 0_u64, 4_096_u64));
    invalid(&mut client, DMA_UNMAP, &payload!(23_u32, 2_u32, 0_u64, 0_u64));
    invalid(&mut client, GET_INFO, &payload!(15_u32, 0_u32, 0_u32, 0_u32));
    invalid(&mut client, GET_REGION_INFO, &payload!(31_u32, 0_u32, 0_u32, 0_u32, 0_u64, 0_u64));
    invalid(&mut client, GET_IRQ_INFO, &payload!(15_u32, 0_u32, 2_u32, 0_u32));
    invalid(&mut client, SET_IRQS, &payload!(19_u32, 0x21_u32, 2_u32, 0_u32, 1_u32));
    let bools = [&payload!(20_u32, 0x22_u32, 2_u32, 0_u32, 2_u32)[..], &[1, 1]].concat();
    invalid(&mut client, SET_IRQS, &bools);
}

#[test]
fn indexes_that_do_not_exist_are_refused() {
    let (_server, mut client) = RawClient::start();
    for index in [9_u32, 10, u32::MAX] {
        let region = payload!(32_u32, 0_u32, index, 0_u32, 0_u64, 0_u64);
        invalid(&mut client, GET_REGION_INFO, &region);
    }
    for index in [5_u32, u32::MAX] {
        invalid(&mut client, GET_IRQ_INFO, &payload!(16_u32, 0_u32, index, 0_u32));
        invalid(&mut client, SET_IRQS, &payload!(20_u32, 0x21_u32, index, 0_u32, 0_u32));
    }
}

#[test]
fn accesses_outside_of_regions_are_refused() {
    let (server, mut client) = RawClient::start();
    for (offset, region, count) in [
        (8_192_u64, 0_u32, 1_u32),
        (8_189, 0, 4),
        (0, 0, 8_193),
        (0, 0, 0),
        (256, 7, 1),
        (255, 7, 2),
        (0, 1, 1),
        (0, 8, 1),
        (0, 9, 1),
        (0, u32::MAX, 1),
        (u64::MAX, 0, 1),
        (u64::MAX - 3, 0, 4),
        (0, 0, u32::MAX),
        (0, 0, (1 << 20) + 1),
    ] {
        let access = payload!(offset, region, count);
        invalid(&mut client, REGION_READ, &access);
        if count <= 8_193 {
            let data = vec![0; usize::try_from(count).unwrap()];
            invalid(&mut client, REGION_WRITE, &[&access[..], &data].concat());
        }
    }
    let four = payload!(0_u64, 0_u32, 4_u32);
    for len in [3, 5] {
        invalid(&mut client, REGION_WRITE, &[&four[..], &vec![0; len]].concat());
    }
    let huge = payload!(0_u64, 0_u32, 1_u32 << 20);
    invalid(&mut client, REGION_WRITE, &[&huge[..], &vec![0; 1 << 20]].concat());
    invalid(&mut client, WRITE_MULTI, &payload!(u64::MAX));
    invalid(&mut client, WRITE_MULTI, &[&payload!(2_u64)[..], &[0; 24]].concat());
    assert_eq!(server.log().lock().unwrap().writes, []);
}

#[test]
fn descriptors_that_a_command_does_not_take_are_refused() {
    let (_server, mut client) = RawClient::start();
    refused(&mut client, RESET, b"", 1, Errno::INVAL);
    let info = payload!(16_u32, 0_u32, 0_u32, 0_u32);
    refused(&mut client, GET_INFO, &info, 1, Errno::INVAL);
    let map = payload!(32_u32, 3_u32, 0_u64, 0_u64, 4_096_u64);
    refused(&mut client, DMA_MAP, &map, 2, Errno::INVAL);
    for (count, fds) in [(1_u32, 2), (2, 1), (3, 1), (17, 17), (20, 40), (16, 17)] {
        let set = payload!(20_u32, 0x24_u32, 2_u32, 0_u32, count);
        refused(&mut client, SET_IRQS, &set, fds, Errno::INVAL);
    }
}

/// Sends a header, and expects the end of the connection.
fn ends(header: &[u8]) -> Ended {
    let (server, mut client): (Server, _) = RawClient::start();
    client.send(header, &[]);
    let mut rest = Vec::new();
    // The server may reset the connection, as it has not read the rest.
    let _ = std::io::Read::read_to_end(&mut client.socket, &mut rest);
    assert_eq!(rest, b"");
    server.ended()
}

#[test]
fn a_size_that_no_message_has_ends_the_connection() {
    for size in [0_u32, 15, (1 << 20) + 33, u32::MAX] {
        let header = payload!(1_u16, GET_INFO, size, 0_u32, 0_u32);
        assert_eq!(ends(&header), Ended::ImpossibleSize(size));
    }
    let (_server, mut client) = RawClient::start();
    invalid(&mut client, RESET, &vec![0; (1 << 20) + 16]);
}
