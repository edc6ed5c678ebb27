//! DMA regions that come, go, overlap, shrink and lack files.

use crate::device::*;
use crate::raw_client::*;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use vfio_user::UnsharedMemory;

const MIB: u64 = 1 << 20;

fn read_at(file: &File, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

#[test]
fn the_device_copies_memory_at_any_alignment() {
    for file in [sealed("copies", 65_536), unsealed("copies", 65_536)] {
        let (_server, mut client) = RawClient::start();
        assert_eq!(client.map((MIB, 32_768), Some((&file, 4_096)), READ_WRITE), Ok(vec![]));
        for (from, to, len) in
            [(0, 16_384, 1), (1, 16_387, 100), (5, 20_000, 63), (8, 24_576, 8_192)]
        {
            let before = read_at(&file, 0, 65_536);
            let outcome = client.dma(COPY, MIB + from, MIB + to, len);
            assert_eq!(outcome, DONE);
            let mut expected = before.clone();
            let [from, to, len] = [4_096 + from, 4_096 + to, len.into()]
                .map(|number: u64| usize::try_from(number).unwrap());
            expected[to..to + len].copy_from_slice(&before[from..from + len]);
            assert!(read_at(&file, 0, 65_536) == expected, "{from} to {to}, {len} bytes");
        }
    }
}

#[test]
fn words_are_loaded_and_stored() {
    for file in [sealed("words", 4_096), unsealed("words", 4_096)] {
        let (_server, mut client) = RawClient::start();
        assert!(client.map((0, 4_096), Some((&file, 0)), READ_WRITE).is_ok());
        assert_eq!(client.dma(LOAD, 4, 0, 0), DONE);
        assert_eq!(client.register(WORD), u32::from_ne_bytes([4, 5, 6, 7]));
        client.set(WORD, &0xfeed_u32.to_le_bytes());
        assert_eq!(client.dma(STORE, 0, 4_092, 0), DONE);
        assert_eq!(read_at(&file, 4_092, 4), 0xfeed_u32.to_ne_bytes());
        for address in [1, 2, 4_095, 4_096] {
            assert_eq!(client.dma(LOAD, address, 0, 0), READ_FAILED);
            assert_eq!(client.dma(STORE, 0, address, 0), WRITE_FAILED);
        }
    }
}

#[test]
fn an_access_crosses_adjacent_regions() {
    let (first, second) = (sealed("first", 8_192), unsealed("second", 8_192));
    let (_server, mut client) = RawClient::start();
    assert!(client.map((0, 8_192), Some((&first, 0)), READ_WRITE).is_ok());
    assert!(client.map((8_192, 8_192), Some((&second, 0)), READ_WRITE).is_ok());
    // Reads 2,192 bytes of the first and 1,808 of the second.
    assert_eq!(client.dma(COPY, 6_000, 12_000, 4_000), DONE);
    let expected = [read_at(&first, 6_000, 2_192), read_at(&second, 0, 1_808)].concat();
    assert!(read_at(&second, 12_000 - 8_192, 4_000) == expected);
    assert_eq!(client.dma(COPY, 0, 8_190, 4), DONE);
    assert_eq!((read_at(&first, 8_190, 2), read_at(&second, 0, 2)), (vec![0, 1], vec![2, 3]));
    assert_eq!(client.dma(COPY, 16_000, 0, 385), READ_FAILED);
    let before = read_at(&second, 0, 8_192);
    assert_eq!(client.dma(COPY, 0, 16_000, 385), WRITE_FAILED);
    assert!(read_at(&second, 0, 8_192) == before, "nothing is written if a part is outside");
}

#[test]
fn regions_come_and_go() {
    let file = sealed("come-and-go", 65_536);
    let (_server, mut client) = RawClient::start();
    for round in 0..3_u64 {
        assert!(client.map((MIB, 4_096), Some((&file, 4_096 * round)), READ_WRITE).is_ok());
        assert_eq!(client.dma(COPY, MIB, MIB + 1_000, 8), DONE);
        let reply = client.unmap(0, MIB, 4_096);
        assert_eq!(reply, Ok(payload!(24_u32, 0_u32, MIB, 4_096_u64)));
        assert_eq!(client.dma(COPY, MIB, MIB + 1_000, 8), READ_FAILED);
        assert_eq!(client.unmap(0, MIB, 4_096), Err(Errno::NOENT));
    }
    let addresses = [0, 8_192, u64::MAX - 4_095];
    for address in addresses {
        assert!(client.map((address, 4_096), Some((&file, 0)), READ_WRITE).is_ok());
        assert_eq!(client.dma(COPY, address, address, 4_096), DONE);
    }
    assert_eq!(
        client.dma(COPY, u64::MAX, 0, 2),
        READ_FAILED,
        "there is no address behind the last"
    );
    assert_eq!(client.unmap(2, 0, 0), Ok(payload!(24_u32, 2_u32, 0_u64, 0_u64)));
    for address in addresses {
        assert_eq!(client.dma(COPY, address, address, 1), READ_FAILED);
        assert!(client.map((address, 4_096), Some((&file, 0)), READ_WRITE).is_ok());
    }
}

#[test]
fn an_unmap_names_a_region_exactly() {
    let file = sealed("exact", 65_536);
    let (_server, mut client) = RawClient::start();
    assert!(client.map((8_192, 16_384), Some((&file, 0)), READ_WRITE).is_ok());
    for (address, size) in [(8_192, 4_096), (12_288, 4_096), (8_192, 20_480), (4_096, 8_192)] {
        assert_eq!(client.unmap(0, address, size), Err(Errno::INVAL));
    }
    for (address, size) in [(0, 8_192), (24_576, 4_096), (4_096, 4_096)] {
        assert_eq!(client.unmap(0, address, size), Err(Errno::NOENT));
    }
    for (flags, address, size) in
        [(0, 8_192, 0), (0, 8_192, u64::MAX), (2, 8_192, 16_384), (1, 8_192, 16_384), (2, 0, 1)]
    {
        assert_eq!(client.unmap(flags, address, size), Err(Errno::INVAL));
    }
    assert_eq!(client.dma(COPY, 8_192, 8_192, 16_384), DONE);
}

#[test]
fn overlapping_regions_are_refused() {
    let file = sealed("overlap", 65_536);
    let (_server, mut client) = RawClient::start();
    assert!(client.map((8_192, 8_192), Some((&file, 0)), READ_WRITE).is_ok());
    for (address, size) in
        [(8_192, 8_192), (4_096, 8_192), (12_288, 4_096), (12_288, 8_192), (0, 65_536)]
    {
        assert_eq!(client.map((address, size), Some((&file, 0)), READ), Err(Errno::EXIST));
        assert_eq!(client.map((address, size), None, READ), Err(Errno::EXIST));
    }
    for address in [4_096, 16_384] {
        assert_eq!(client.map((address, 4_096), Some((&file, 0)), READ), Ok(vec![]));
    }
}

#[test]
fn regions_that_cannot_be_are_refused() {
    let file = sealed("refused", 16_384);
    let (_server, mut client) = RawClient::start();
    for (region, offset, flags) in [
        ((100, 4_096), 0, READ),
        ((0, 100), 0, READ),
        ((0, 0), 0, READ),
        ((0, 4_096), 100, READ),
        ((0, 4_096), 0, 0),
        ((0, 4_096), 0, 7),
        ((u64::MAX - 4_095, 8_192), 0, READ),
        ((0, 20_480), 0, READ),
        ((0, 4_096), 16_384, READ),
        ((0, 8_192), u64::MAX - 4_095, READ),
    ] {
        let reply = client.map(region, Some((&file, offset)), flags);
        assert_eq!(reply, Err(Errno::INVAL), "{region:?} at {offset}, flags {flags}");
    }
    let null = File::open("/dev/null").unwrap();
    assert_eq!(client.map((0, 4_096), Some((&null, 0)), READ), Err(Errno::INVAL));
    let folder = File::open("/").unwrap();
    assert_eq!(client.map((0, 4_096), Some((&folder, 0)), READ), Err(Errno::INVAL));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 8_192]).unwrap();
    let read_only = File::open(&path).unwrap();
    assert_eq!(client.map((0, 4_096), Some((&read_only, 0)), READ_WRITE), Err(Errno::ACCESS));
    assert_eq!(client.map((0, 4_096), Some((&read_only, 0)), READ), Ok(vec![]));
    let appending = OpenOptions::new().read(true).append(true).open(&path).unwrap();
    assert_eq!(client.map((4_096, 4_096), Some((&appending, 0)), READ_WRITE), Err(Errno::INVAL));
    client.check_in_step();
}

#[test]
fn rights_of_a_region_are_kept() {
    for (one, two) in [
        (sealed("rights", 4_096), sealed("rights", 4_096)),
        (unsealed("rights", 4_096), unsealed("rights", 4_096)),
    ] {
        let (server, mut client) = RawClient::start();
        assert!(client.map((0, 4_096), Some((&one, 0)), READ).is_ok());
        assert!(client.map((4_096, 4_096), Some((&two, 0)), 2).is_ok());
        assert_eq!(client.dma(COPY, 0, 8, 8), WRITE_FAILED);
        assert_eq!(client.dma(STORE, 0, 8, 8), WRITE_FAILED);
        assert_eq!(client.dma(COPY, 4_096, 4_100, 8), READ_FAILED);
        assert_eq!(client.dma(LOAD, 4_096, 0, 0), READ_FAILED);
        assert_eq!(client.dma(COPY, 16, 4_096, 8), DONE);
        assert_eq!(read_at(&two, 0, 8), read_at(&one, 16, 8));
        assert_eq!(client.dma(STORE, 0, 4_100, 0), DONE);
        drop(client);
        let log = server.log();
        server.ended();
        assert_eq!(log.lock().unwrap().unshared, []);
    }
}

#[test]
fn a_truncated_file_is_an_error_and_not_a_signal() {
    let file = unsealed("truncated", 16_384);
    let (_server, mut client) = RawClient::start();
    assert!(client.map((0, 16_384), Some((&file, 0)), READ_WRITE).is_ok());
    assert_eq!(client.dma(COPY, 8_192, 0, 4_096), DONE);
    file.set_len(9_000).unwrap();
    assert_eq!(client.dma(COPY, 8_192, 0, 4_096), READ_FAILED);
    assert_eq!(client.dma(COPY, 0, 8_192, 4_096), WRITE_FAILED);
    assert_eq!(client.dma(LOAD, 12_288, 0, 0), READ_FAILED);
    assert_eq!(client.dma(STORE, 0, 12_288, 0), WRITE_FAILED);
    assert_eq!(file.metadata().unwrap().len(), 9_000, "the device does not extend it");
    assert_eq!(client.dma(COPY, 8_192, 0, 808), DONE);
}

#[test]
fn only_sealed_files_are_mapped() {
    let is_mapped = |name: &str| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(&format!("/memfd:{name} "))
    };
    let (is, is_not) = (sealed("that-is-mapped", 4_096), unsealed("that-is-not-mapped", 4_096));
    let (_server, mut client) = RawClient::start();
    assert!(client.map((0, 4_096), Some((&is, 0)), READ).is_ok());
    assert!(client.map((4_096, 4_096), Some((&is_not, 0)), READ).is_ok());
    assert!(is_mapped("that-is-mapped") && !is_mapped("that-is-not-mapped"));
    assert!(client.unmap(0, 0, 4_096).is_ok());
    assert!(!is_mapped("that-is-mapped"));
}

#[test]
fn memory_without_a_file_fails_and_the_operator_is_told_once() {
    for (flags, told) in [(READ, vec![]), (READ_WRITE, vec![UnsharedMemory(MIB + 64)])] {
        let (server, mut client) = RawClient::start();
        assert_eq!(client.map((MIB, 8_192), None, flags), Ok(vec![]));
        assert_eq!(client.map((MIB, 8_192), None, flags), Err(Errno::EXIST));
        assert_eq!(client.dma(COPY, MIB + 64, 0, 4), READ_FAILED);
        // Before the client leaves.
        assert_eq!(server.log().lock().unwrap().unshared, told);
        assert_eq!(client.dma(LOAD, MIB, 0, 4), READ_FAILED);
        assert!(client.unmap(0, MIB, 8_192).is_ok());
        assert_eq!(server.log().lock().unwrap().unshared, told);
    }
    let sentence = UnsharedMemory(MIB + 64).to_string();
    assert!(sentence.contains("at 0x100040") && sentence.contains("share=on"), "{sentence}");
}

#[test]
fn what_a_client_can_hold_is_bounded() {
    let (sealed, unsealed) = (sealed("bounded", 4_096), unsealed("bounded", 4_096));
    let (_server, mut client) = RawClient::start();
    for number in 0..256 {
        assert!(client.map((4_096 * number, 4_096), Some((&unsealed, 0)), READ).is_ok());
    }
    assert_eq!(client.map((MIB, 4_096), Some((&unsealed, 0)), READ), Err(Errno::MFILE));
    assert!(client.unmap(0, 0, 4_096).is_ok());
    assert!(client.map((MIB, 4_096), Some((&unsealed, 0)), READ).is_ok());
    assert!(client.unmap(2, 0, 0).is_ok());
    sealed.set_len(1 << 43).unwrap();
    for number in 0..2 {
        assert!(client.map((number << 43, 1 << 43), Some((&sealed, 0)), READ).is_ok());
    }
    assert_eq!(client.map((1 << 60, 4_096), Some((&sealed, 0)), READ), Err(Errno::NOMEM));
    assert!(client.unmap(0, 0, 1 << 43).is_ok());
    assert!(client.map((1 << 60, 4_096), Some((&sealed, 0)), READ).is_ok());
    assert!(client.unmap(2, 0, 0).is_ok());
    for number in 0..65_535 {
        client.send(
            &message(
                1,
                DMA_MAP,
                0x10,
                &payload!(32_u32, READ, 0_u64, 4_096_u64 * number, 4_096_u64),
            ),
            &[],
        );
    }
    assert_eq!(client.map((1 << 60, 4_096), None, READ), Err(Errno::NOSPC));
    assert!(client.unmap(0, 4_096 * 65_534, 4_096).is_ok(), "the last that fits is mapped");
}
