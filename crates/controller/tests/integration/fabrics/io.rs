//! I/O commands as hosts send them over a fabric (KV 1.0d; Base 2.1, SGL descriptors).

use crate::fabrics::host::{BLOCK, KV, Line, ZONED, entry, len, run};
use spec::{
    BlockRange, Command, CopyRange, DataPointer, Opcode, ReportedZones, Status, StoreOptions,
    ZoneDescriptor, ZoneReport,
};
use zerocopy::IntoBytes;

async fn status_of(io: &Line, command: Command, data: &[u8]) -> Status {
    io.answer(command, data, 4_096).await.entry.status()
}

#[test]
fn values_come_back_cut_to_the_hosts_buffer() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
        for (room, expected) in [(64, &b"value"[..]), (2, b"va"), (0, b"")] {
            let response = io.retrieve(b"key", room).await;
            assert_eq!(response.entry.result(), 5, "the whole length");
            assert_eq!(response.data.bytes().unwrap_or_default(), expected);
        }
        let missing = io.retrieve(b"none", 64).await;
        assert_eq!(missing.entry.status(), Status::KEY_DOES_NOT_EXIST);
        assert!(missing.entry.do_not_retry());
        assert_eq!(missing.data.len(), 0);
    });
}

#[test]
fn a_value_may_have_no_bytes_or_2_mib_and_no_more() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        for value in [vec![], vec![9; 20_001], vec![7; 2 << 20]] {
            assert_eq!(io.store(b"key", &value).await, Status::SUCCESS);
            let response = io.retrieve(b"key", 2 << 20).await;
            assert_eq!(response.data.bytes().unwrap_or_default(), value);
        }
        // The door does not take more than a command may move.
        let command = Command::store(KV, b"key", (2 << 20) + 1, StoreOptions::NONE)
            .with_data_pointer(DataPointer::Transport { len: (2 << 20) + 1 });
        assert_eq!(status_of(&io, command, &[]).await, Status::INVALID_VALUE_SIZE);
    });
}

#[test]
fn junk_in_reserved_fields_is_ignored() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        // As Mooncake stores: CDW12 counts blocks, and key byte 11 is a 1.
        let mut key = *b"0123456789abcdef";
        key[11] = 1;
        let store = entry(&[
            (0, &[0x01, 0x40, 0x07, 0x00]),
            (4, &KV.to_le_bytes()),
            (8, &key[..8]),
            (16, &[0xee; 8]),
            (32, &4_096_u32.to_le_bytes()),
            (39, &[0x5a]),
            (40, &4_096_u32.to_le_bytes()),
            (44, &[16, 2, 0xee, 0xee]),
            (48, &[7, 0, 0, 0, 0xdd, 0xdd, 0xdd, 0xdd]),
            (56, &key[8..]),
        ]);
        io.send_bytes(&store, &[5; 4_096]);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::SUCCESS);
        assert_eq!(io.retrieve(&key, 4_096).await.data.bytes(), Some(&[5; 4_096][..]));
        io.send_bytes(&store, &[5; 4_096]);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::KEY_EXISTS);
        // Size, buffer and data pointer mean nothing to a Delete and an Exist.
        for (opcode, status) in
            [(0x14, Status::SUCCESS), (0x10, Status::SUCCESS), (0x14, Status::KEY_DOES_NOT_EXIST)]
        {
            let mut command = store;
            (command[0], command[45]) = (opcode, 0);
            io.send_bytes(&command, &[]);
            assert_eq!(io.next().await.unwrap().entry.status(), status, "{opcode:x}");
        }
    });
}

#[test]
fn keys_above_16_bytes_do_not_fit_a_command() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.store(&[7; 17], b"value").await, Status::INVALID_KEY_SIZE);
        for command in [
            Command::retrieve(KV, &[7; 17], 64),
            Command::list(KV, &[7; 17], 64),
            Command::delete(KV, &[7; 17]),
            Command::exist(KV, &[7; 17]),
        ] {
            let response = io.answer(command, &[], 64).await;
            assert_eq!(response.entry.status(), Status::INVALID_FIELD);
            assert!(response.entry.do_not_retry());
        }
        assert_eq!(io.store(b"", b"value").await, Status::INVALID_KEY_SIZE);
    });
}

#[test]
fn the_sgl_is_as_long_as_the_data() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let store = |size| Command::store(KV, b"key", size, StoreOptions::NONE);
        assert_eq!(status_of(&io, store(6), b"value").await, Status::DATA_SGL_LENGTH_INVALID);
        // What is longer than the value is cut.
        assert_eq!(status_of(&io, store(3), b"value").await, Status::SUCCESS);
        assert_eq!(io.retrieve(b"key", 9).await.data.bytes(), Some(&b"val"[..]));
        // The door did not get all the data that the SGL promised.
        let torn = store(5).with_data_pointer(DataPointer::Transport { len: 5 });
        assert_eq!(status_of(&io, torn, b"valu").await, Status::DATA_SGL_LENGTH_INVALID);
        // Data that does not fit the SGL, whatever CDW10 says.
        let retrieve = |len| {
            Command::retrieve(KV, b"key", 64).with_data_pointer(DataPointer::Transport { len })
        };
        assert_eq!(status_of(&io, retrieve(2), &[]).await, Status::DATA_SGL_LENGTH_INVALID);
        assert_eq!(status_of(&io, retrieve(3), &[]).await, Status::SUCCESS);
        let list = Command::list(KV, b"", 64).with_data_pointer(DataPointer::Transport { len: 60 });
        assert_eq!(status_of(&io, list, &[]).await, Status::DATA_SGL_LENGTH_INVALID);
    });
}

#[test]
fn data_pointers_are_sgls_of_two_kinds() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE);
        let retrieve = Command::retrieve(KV, b"key", 5);
        let inside = DataPointer::InCapsule { offset: 0, len: 5 };
        for (command, pointer, status) in [
            (store, inside, Status::SUCCESS),
            (store, DataPointer::InCapsule { offset: 8_187, len: 5 }, Status::SUCCESS),
            (store, DataPointer::InCapsule { offset: 8_188, len: 5 }, Status::SGL_OFFSET_INVALID),
            (store, DataPointer::Other(0x00), Status::SGL_TYPE_INVALID),
            (retrieve, inside, Status::SGL_TYPE_INVALID),
            (retrieve, DataPointer::Other(0x40), Status::SGL_TYPE_INVALID),
        ] {
            let command = command.with_data_pointer(pointer);
            let data: &[u8] = if command.opcode() == Opcode::STORE { b"value" } else { b"" };
            assert_eq!(status_of(&io, command, data).await, status, "{pointer:?}");
        }
        // PSDT 00b: PRP entries, which no fabric has. Then a fused command.
        for (flags, status) in [(0x00, Status::INVALID_FIELD), (0x41, Status::INVALID_FIELD)] {
            let command = retrieve.with_data_pointer(DataPointer::Transport { len: 5 });
            let mut bytes: [u8; 64] = zerocopy::transmute!(command);
            bytes[1] = flags;
            io.send_bytes(&bytes, &[]);
            assert_eq!(io.next().await.unwrap().entry.status(), status);
        }
    });
}

#[test]
fn opcodes_that_there_are_not_are_refused_whatever_their_data_pointer() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        // All of KV 1.0d, and Flush; bits 1:0 say the direction, 7Fh is of fabrics.
        let known = [0x00, 0x01, 0x02, 0x06, 0x10, 0x14, 0x7f];
        for opcode in (0..=0xff_u8).filter(|opcode| !known.contains(opcode)) {
            for pointer in [
                DataPointer::Transport { len: 0 },
                DataPointer::Transport { len: 8 },
                DataPointer::InCapsule { offset: 0, len: 8 },
                DataPointer::Other(0x00),
            ] {
                let command = Command::exist(KV, b"key").with_data_pointer(pointer);
                let mut bytes: [u8; 64] = zerocopy::transmute!(command);
                bytes[0] = opcode;
                io.send_bytes(&bytes, &[7; 8]);
                let status = io.next().await.unwrap().entry.status();
                assert_eq!(status, Status::INVALID_OPCODE, "{opcode:02x}h, {pointer:?}");
            }
        }
    });
}

#[test]
fn a_namespace_takes_the_commands_of_its_set_and_one_that_is_not_there_takes_none() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        for nsid in [0, 4, 1_025, u32::MAX] {
            for command in [Command::exist(nsid, b"key"), Command::flush(nsid)] {
                let response = io.answer(command, &[], 0).await;
                assert_eq!(response.entry.status(), Status::INVALID_NAMESPACE);
                assert!(response.entry.do_not_retry());
            }
        }
        for nsid in [BLOCK, ZONED] {
            let exist = Command::exist(nsid, b"key");
            assert_eq!(status_of(&io, exist, &[]).await, Status::INVALID_OPCODE);
        }
        for nsid in [KV, BLOCK, ZONED] {
            assert_eq!(status_of(&io, Command::flush(nsid), &[]).await, Status::SUCCESS);
        }
        let report = Command::report_zones(BLOCK, 0, ReportedZones::All, 4_096);
        assert_eq!(status_of(&io, report, &[]).await, Status::INVALID_OPCODE);
    });
}

#[test]
fn blocks_and_zones_are_read_as_they_were_written() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let data: Vec<u8> =
            (0..3 * 4_096_u32).map(|at| at.to_le_bytes()[at as usize % 2]).collect();
        for nsid in [BLOCK, ZONED] {
            let write = Command::write(nsid, 0, 3);
            assert_eq!(io.answer(write, &data, 0).await.entry.status(), Status::SUCCESS);
            let read = io.answer(Command::read(nsid, 0, 3), &[], 3 * 4_096).await;
            assert_eq!(read.data.bytes(), Some(&data[..]));
            let compare = io.answer(Command::compare(nsid, 0, 3), &data, 0).await;
            assert_eq!(compare.entry.status(), Status::SUCCESS);
        }
        let appended = io.answer(Command::zone_append(ZONED, 16, 1), &data[..4_096], 0).await;
        assert_eq!((appended.entry.status(), appended.entry.result()), (Status::SUCCESS, 16));
        let report = Command::report_zones(ZONED, 0, ReportedZones::All, 256);
        let report = io.answer(report, &[], 256).await;
        let zones = ZoneReport::read(report.data.bytes().unwrap()).unwrap();
        let pointers = zones.descriptors.iter().map(ZoneDescriptor::write_pointer);
        assert_eq!(pointers.collect::<Vec<_>>(), [Some(3), Some(17), Some(32)]);
    });
}

#[test]
fn an_sgl_of_another_length_than_the_blocks_is_cut_or_refused() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let wrong = Status::DATA_SGL_LENGTH_INVALID;
        let two = [[1; 4_096], [2; 4_096]].concat();
        let write = |blocks| Command::write(BLOCK, 7, blocks);
        assert_eq!(status_of(&io, write(3), &two).await, wrong);
        assert_eq!(status_of(&io, write(1), &two).await, Status::SUCCESS);
        assert_eq!(status_of(&io, Command::read(BLOCK, 7, 2), &[]).await, wrong);
        let read = io.answer(Command::read(BLOCK, 7, 2), &[], 8_192).await;
        assert_eq!(read.data.bytes().unwrap(), [[1; 4_096], [0; 4_096]].concat());
        // Ranges too, and a report.
        let range = BlockRange::new(7, 1);
        for (ranges, status) in [(2, wrong), (1, Status::SUCCESS)] {
            let unwanted = Command::deallocate(BLOCK, ranges);
            assert_eq!(status_of(&io, unwanted, range.as_bytes()).await, status);
        }
        let copy = Command::copy(BLOCK, 9, 2);
        assert_eq!(status_of(&io, copy, CopyRange::new(7, 1).as_bytes()).await, wrong);
        let report = Command::report_zones(ZONED, 0, ReportedZones::All, 4_100);
        assert_eq!(status_of(&io, report, &[]).await, wrong);
        // More than any command may move.
        let most = Command::write(BLOCK, 0, 513)
            .with_data_pointer(DataPointer::Transport { len: 513 * 4_096 });
        assert_eq!(status_of(&io, most, &[]).await, Status::INVALID_FIELD);
    });
}

#[test]
fn queues_of_all_hosts_share_the_keys() {
    run(async |world| {
        let ((_one, first), (_two, second)) = (world.admin().await, world.admin().await);
        let (io, other) = (world.io(first, 1).await, world.io(second, 1).await);
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
        assert_eq!(other.retrieve(b"key", 9).await.data.bytes(), Some(&b"value"[..]));
        let list = other.answer(Command::list(KV, b"", 64), &[], 64).await;
        assert_eq!(list.data.bytes(), Some(&b"\x01\0\0\0\x03\0key\0\0\0"[..]));
    });
}

#[test]
fn a_full_device_may_have_room_later() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let value = vec![7; 1 << 20];
        for key in 0..64_u8 {
            let store = Command::store(KV, &[key], len(&value), StoreOptions::NONE);
            let response = io.answer(store, &value, 0).await;
            if response.entry.status() == Status::CAPACITY_EXCEEDED {
                assert!(!response.entry.do_not_retry());
                return;
            }
        }
        panic!("16 MiB hold no 64");
    });
}
