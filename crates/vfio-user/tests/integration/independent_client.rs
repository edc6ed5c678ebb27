//! The client of another implementation.

use crate::device::*;
use crate::raw_client::{sealed, unsealed};
use crate::server::Server;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use vfio_user::Ended;
use vfio_user_client::Client;

fn connect() -> (Server, Client) {
    connect_to(false)
}

fn connect_to(are_mapped: bool) -> (Server, Client) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = Server::listen(&path, are_mapped);
    let client = Client::new(&path).unwrap();
    assert!(!path.exists(), "the listener is gone after its first client");
    (server, client)
}

fn set(client: &mut Client, offset: u64, value: &[u8]) {
    client.region_write(0, offset, value).unwrap();
}

fn register(client: &mut Client, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    client.region_read(0, offset, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

#[test]
fn it_learns_the_regions_and_interrupts() {
    let (_server, mut client) = connect();
    // `resettable` of this client returns the opposite.
    assert!(!client.resettable());
    for index in 0..9 {
        let region = client.region(index).unwrap();
        let (flags, size) = match index {
            0 => (3, 8_192),
            7 => (3, 256),
            _ => (0, 0),
        };
        assert_eq!((region.flags, region.size), (flags, size), "{index}");
        assert!(region.file_offset.is_none() && region.sparse_areas.is_empty());
    }
    assert!(client.region(9).is_none());
    for (index, count) in [(0, 0), (1, 0), (2, 20), (3, 1), (4, 1)] {
        let info = client.get_irq_info(index).unwrap();
        assert_eq!((info.index, info.count, info.flags), (index, count, u32::from(count > 0)));
    }
}

#[test]
fn it_uses_the_device_to_its_end() {
    let (server, mut client) = connect();
    let log = server.log();
    let mut config = [0; 256];
    client.region_read(7, 0, &mut config).unwrap();
    assert!(config.iter().zip(0..=255).all(|(byte, at)| *byte == at));
    for memory in [sealed("independent", 65_536), unsealed("independent", 65_536)] {
        client.dma_map(4_096, 1 << 32, 8_192, memory.as_raw_fd()).unwrap();
        set(&mut client, SOURCE, &((1_u64 << 32) + 10).to_le_bytes());
        set(&mut client, TARGET, &((1_u64 << 32) + 8_000).to_le_bytes());
        set(&mut client, LENGTH, &100_u32.to_le_bytes());
        set(&mut client, GO, &COPY.to_le_bytes());
        assert_eq!(register(&mut client, OUTCOME), DONE);
        let (mut from, mut to) = ([0; 100], [0; 100]);
        memory.read_exact_at(&mut from, 4_096 + 10).unwrap();
        memory.read_exact_at(&mut to, 4_096 + 8_000).unwrap();
        assert_eq!(from, to);
        client.dma_unmap(1 << 32, 8_192).unwrap();
        set(&mut client, GO, &COPY.to_le_bytes());
        assert_eq!(register(&mut client, OUTCOME), READ_FAILED);
    }
    let eventfds = [0, 1].map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let raw = [0, 1].map(|at| AsRawFd::as_raw_fd(&eventfds[at]));
    // Data and action: eventfd and trigger.
    client.set_irqs(2, 0x24, 5, 2, &raw).unwrap();
    set(&mut client, RAISE, &6_u32.to_le_bytes());
    let mut counter = [0; 8];
    assert_eq!(rustix::io::read(&eventfds[1], &mut counter), Ok(8));
    assert_eq!(u64::from_ne_bytes(counter), 1);
    assert!(rustix::io::read(&eventfds[0], &mut counter).is_err());
    client.set_irqs(2, 0x21, 0, 0, &[]).unwrap();
    client.reset().unwrap();
    assert_eq!(register(&mut client, RAISE), 0);
    assert_eq!(log.lock().unwrap().resets, 1);
    client.shutdown().unwrap();
    assert_eq!(server.ended(), Ended::ClientLeft);
    assert!(log.lock().unwrap().is_closed);
}

#[test]
fn it_maps_the_doorbells() {
    let (_server, mut client) = connect_to(true);
    let region = client.region(0).unwrap();
    assert_eq!((region.flags, region.size), (0xf, 8_192));
    let areas: Vec<_> = region.sparse_areas.iter().map(|area| (area.offset, area.size)).collect();
    assert_eq!(areas, [(4_096, 4_096)]);
    let file = region.file_offset.as_ref().unwrap();
    assert_eq!(file.start(), 0);
    file.file().write_all_at(&77_u32.to_le_bytes(), 4_096 + 8).unwrap();
    set(&mut client, SOURCE, &8_u64.to_le_bytes());
    set(&mut client, GO, &LOAD_DOORBELL.to_le_bytes());
    assert_eq!((register(&mut client, OUTCOME), register(&mut client, WORD)), (DONE, 77));
}
