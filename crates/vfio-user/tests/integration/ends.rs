//! How sessions end, and that nothing of the client stays.

use crate::raw_client::*;
use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use vfio_user::Ended;

#[test]
fn a_client_that_leaves_ends_its_session() {
    for has_version in [true, false] {
        let (server, client) =
            if has_version { RawClient::start() } else { RawClient::without_version() };
        let log = server.log();
        assert!(!log.lock().unwrap().is_closed);
        drop(client);
        assert_eq!(server.ended(), Ended::ClientLeft);
        assert!(log.lock().unwrap().is_closed);
    }
}

#[test]
fn a_client_may_leave_in_the_middle_of_a_message() {
    let write = [&payload!(0_u64, 0_u32, 4_u32)[..], b"abcd"].concat();
    let bytes = message(1, REGION_WRITE, 0, &write);
    for len in 1..bytes.len() {
        let (server, mut client) = RawClient::start();
        let log = server.log();
        client.send(&bytes[..len], &[]);
        drop(client);
        assert_eq!(server.ended(), Ended::ClientBroke, "{len} bytes");
        let log = log.lock().unwrap();
        assert!(log.is_closed && log.writes.is_empty());
    }
}

#[test]
fn the_server_ends_a_session() {
    let (server, mut client) = RawClient::start();
    client.check_in_step();
    server.stop();
    let ended = server.ended();
    assert_eq!(ended, Ended::ShutDown);
    assert_eq!(ended.to_string(), "the server ended the session");
}

#[test]
fn a_session_ends_with_one_sentence() {
    assert_eq!(Ended::ClientLeft.to_string(), "the client disconnected");
    assert_eq!(
        Ended::ImpossibleSize(3).to_string(),
        "the client sent a vfio-user message of 3 bytes, which none has"
    );
}

/// Counts the open descriptors of a file.
fn open_fds(ends_with: &str) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().contains(ends_with)).count()
}

#[test]
fn nothing_of_a_client_stays_after_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a-file-for-interrupts");
    // Written to as eventfds are, and told from those of other tests by its name.
    let interrupts = File::create_new(&path).unwrap();
    let (shared, files) = (sealed("shared-by-ends", 4_096), unsealed("files-by-ends", 4_096));
    let is_mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains("/memfd:shared-by-ends ")
    };
    let (server, mut client) = RawClient::start();
    let log = server.log();
    assert!(client.map((0, 4_096), Some((&shared, 0)), READ_WRITE).is_ok());
    assert!(client.map((4_096, 4_096), Some((&files, 0)), READ_WRITE).is_ok());
    for (index, count) in [(2_u32, 16), (3, 1), (4, 1)] {
        let fds = vec![interrupts.as_fd(); count];
        let count = u32::try_from(count).unwrap();
        let set = payload!(20_u32, 0x24_u32, index, 0_u32, count);
        assert!(client.call(SET_IRQS, &set, &fds).is_ok(), "{index}");
    }
    assert_eq!(open_fds("a-file-for-interrupts"), 1 + 18);
    assert_eq!(open_fds("files-by-ends"), 2);
    assert_eq!(open_fds("shared-by-ends"), 1, "a mapping keeps no descriptor");
    assert!(is_mapped());
    // Descriptors of a message whose end never comes.
    let half = &message(1, SET_IRQS, 0, &[0; 20])[..20];
    client.send(half, &[interrupts.as_fd(); 16]);
    drop(client);
    assert_eq!(server.ended(), Ended::ClientBroke);
    assert_eq!(open_fds("a-file-for-interrupts"), 1);
    assert_eq!(open_fds("files-by-ends"), 1);
    assert!(!is_mapped());
    assert!(log.lock().unwrap().lost_memory, "a function's handle reaches nothing");
}

#[test]
fn descriptors_of_refused_messages_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a-file-that-is-refused");
    let file = File::create_new(&path).unwrap();
    file.write_all_at(&[0; 8_192], 0).unwrap();
    let (_server, mut client) = RawClient::start();
    for (command, payload, fds) in [
        (RESET, vec![], 3),
        (999, vec![], 16),
        (DMA_MAP, payload!(32_u32, 3_u32, 0_u64, 0_u64, 4_096_u64), 2),
        (DMA_MAP, payload!(32_u32, 3_u32, 0_u64, 0_u64, 12_288_u64), 1),
        (SET_IRQS, payload!(20_u32, 0x24_u32, 2_u32, 19_u32, 2_u32), 2),
        (SET_IRQS, payload!(20_u32, 0x24_u32, 2_u32, 0_u32, 20_u32), 20),
    ] {
        assert!(client.call(command, &payload, &vec![file.as_fd(); fds]).is_err());
        assert_eq!(open_fds("a-file-that-is-refused"), 1);
    }
}

#[test]
fn a_client_that_does_not_read_ends_when_it_leaves() {
    let (server, mut client) = RawClient::start();
    let read = message(1, REGION_READ, 0, &payload!(0_u64, 0_u32, 8_192_u32));
    fcntl_setfl(&client.socket, OFlags::NONBLOCK).unwrap();
    while std::io::Write::write_all(&mut client.socket, &read).is_ok() {}
    drop(client);
    assert_eq!(server.ended(), Ended::ClientBroke);
}
