//! Doorbells that the client maps.

use crate::device::*;
use crate::raw_client::*;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Asks for a region. Returns the reply's payload and the descriptors that came with it.
fn region(client: &mut RawClient, index: u32, argsz: u32) -> (Vec<u8>, Vec<OwnedFd>) {
    let asked = payload!(argsz, 0_u32, index, 0_u32, 0_u64, 0_u64);
    call(client, GET_REGION_INFO, &asked)
}

fn call(client: &mut RawClient, command: u16, asked: &[u8]) -> (Vec<u8>, Vec<OwnedFd>) {
    client.send(&message(9, command, 0, asked), &[]);
    let mut bytes = vec![0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
    let flags = rustix::net::RecvFlags::CMSG_CLOEXEC;
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    rustix::net::recvmsg(&client.socket, parts, &mut control, flags).unwrap();
    let fds = control.drain().flat_map(|message| match message {
        rustix::net::RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    let fds = fds.collect();
    let size = u32::from_ne_bytes(bytes[4..8].try_into().unwrap());
    let mut payload = vec![0; usize::try_from(size).unwrap() - 16];
    client.socket.read_exact(&mut payload).unwrap();
    (payload, fds)
}

/// The bytes of `linux/vfio.h`: `vfio_region_info`, and `vfio_region_info_cap_sparse_mmap` with the
/// page at 1000h.
fn with_area() -> Vec<u8> {
    let info = payload!(64_u32, 0xf_u32, 0_u32, 32_u32, BAR0 as u64, 0_u64);
    let area = payload!(1_u16, 1_u16, 0_u32, 1_u32, 0_u32, 0x1000_u64, 0x1000_u64);
    [info, area].concat()
}

#[test]
fn bar_0_has_an_area_to_map_and_its_file() {
    let (_server, mut client) = RawClient::start_mapped();
    // As QEMU asks: it learns the size that it needs, and asks again.
    let short = payload!(64_u32, 7_u32, 0_u32, 0_u32, BAR0 as u64, 0_u64);
    for argsz in [32, 63] {
        let (reply, fds) = region(&mut client, 0, argsz);
        assert_eq!((reply, fds.len()), (short.clone(), 0));
    }
    for argsz in [64, 1_000] {
        let (reply, fds) = region(&mut client, 0, argsz);
        assert_eq!((reply, fds.len()), (with_area(), 1));
        let (_, fds) = call(&mut client, GET_INFO, &payload!(16_u32, 0_u32, 0_u32, 0_u32));
        assert_eq!(fds.len(), 0, "it came with its own reply only");
    }
    for index in 1..9 {
        let (reply, fds) = region(&mut client, index, 64);
        assert_eq!((reply.len(), fds.len()), (32, 0), "{index}");
        assert_eq!(reply[4] & 0xc, 0, "{index}");
    }
    let asked = payload!(64_u32, 0_u32, 9_u32, 0_u32, 0_u64, 0_u64);
    assert_eq!(client.call(GET_REGION_INFO, &asked, &[]), Err(Errno::INVAL));
    client.check_in_step();
}

#[test]
fn both_sides_see_the_doorbells_of_the_other_without_messages() {
    let (_server, mut client) = RawClient::start_mapped();
    let (_, fds) = region(&mut client, 0, 64);
    let file = File::from(fds.into_iter().next().unwrap());
    for (offset, value) in [(0_u64, 1_u32), (4, 2), (0xffc, u32::MAX), (8, 0x0102_0304)] {
        file.write_all_at(&value.to_le_bytes(), 0x1000 + offset).unwrap();
        assert_eq!(client.dma(LOAD_DOORBELL, offset, 0, 0), DONE);
        assert_eq!(client.register(WORD), value);
        client.set(WORD, &(value / 3).to_le_bytes());
        assert_eq!(client.dma(STORE_DOORBELL, 0, offset, 0), DONE);
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0x1000 + offset).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), value / 3);
    }
}

#[test]
fn the_client_cannot_take_the_page_away() {
    let (server, mut client) = RawClient::start_mapped();
    let (_, fds) = region(&mut client, 0, 64);
    let file = &fds[0];
    for len in [0, 0x1000, 0x3000] {
        assert_eq!(ftruncate(file, len), Err(Errno::PERM));
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, hole, 0, 0x2000).unwrap();
    assert_eq!(client.dma(LOAD_DOORBELL, 8, 0, 0), DONE);
    assert_eq!(client.register(WORD), 0);
    drop(client);
    server.ended();
}

#[test]
fn each_session_has_a_page_of_its_own() {
    let (_first, mut first) = RawClient::start_mapped();
    let (_second, mut second) = RawClient::start_mapped();
    let (_, fds) = region(&mut first, 0, 64);
    let file = File::from(fds.into_iter().next().unwrap());
    file.write_all_at(&[7; 4], 0x1000).unwrap();
    assert_eq!(second.dma(LOAD_DOORBELL, 0, 0, 0), DONE);
    assert_eq!(second.register(WORD), 0);
}
