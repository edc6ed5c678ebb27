//! The Zoned Namespace command set (ZNS 1.1a), on eight zones of 12 blocks that start 16 apart.

use crate::commands::host::{
    BLOCK_BYTES, Host, UNRECOVERED, ZONED, filled, nothing, run, run_with,
};
use base::{Buf, Nanos};
use clock::Stage;
use controller::{Completion, FirmwareCosts};
use media::Error;
use spec::ZoneSendAction::{Close, Finish, Offline, Open, Reset};
use spec::{
    BlockRange, Command, CopyRange, ReportedZones, Status, StoreOptions, ZoneReport,
    ZoneSendAction, ZoneState,
};
use zerocopy::IntoBytes;

/// The first block of a zone.
const fn zone(number: u64) -> u64 {
    number * 16
}

const END: u64 = zone(8);

/// A report's descriptors: state, first block, write pointer.
type Zones = Vec<(ZoneState, u64, Option<u64>)>;

impl Host {
    async fn write_at(&self, lba: u64, byte: u8, count: u32) -> Status {
        let command = Command::write(ZONED, lba, count);
        self.answer(command, filled(byte, count)).await.status
    }

    async fn append(&self, start: u64, byte: u8, count: u32) -> Completion {
        self.answer(Command::zone_append(ZONED, start, count), filled(byte, count)).await
    }

    async fn send(&self, start: u64, action: ZoneSendAction) -> Status {
        self.status(Command::zone_management_send(ZONED, start, action)).await
    }

    async fn send_all(&self, action: ZoneSendAction) -> Status {
        let command = Command::zone_management_send(ZONED, zone(0), action);
        self.status(command.with_select_all()).await
    }

    async fn copy_zone(&self, lba: u64, ranges: &[CopyRange]) -> Completion {
        let command = Command::copy(ZONED, lba, ranges.len().try_into().expect("there are few"));
        self.answer(command, Buf::copy_from(ranges.as_bytes())).await
    }

    /// The count of a report and what it says of each zone.
    async fn report(&self, command: Command) -> (u64, Zones) {
        let answered = self.answer(command, nothing()).await;
        assert_eq!(answered.status, Status::SUCCESS);
        let bytes = answered.data.bytes().expect("a report has bytes");
        let report = ZoneReport::read(bytes).expect("a report has a count");
        assert!(report.descriptors.iter().all(|zone| zone.capacity() == 12));
        let zones = report.descriptors.iter();
        let zones = zones.map(|zone| (zone.state(), zone.start(), zone.write_pointer())).collect();
        (report.zones, zones)
    }

    async fn states(&self) -> Vec<ZoneState> {
        let command = Command::report_zones(ZONED, 0, ReportedZones::All, 4_096);
        self.report(command).await.1.into_iter().map(|(state, ..)| state).collect()
    }

    /// Lets what the zones do in the background end.
    async fn settle(&self) {
        clock::sleep(Nanos(1), Stage::Queue).await;
    }
}

#[test]
fn an_append_says_where_its_data_is_and_it_is_read_there() {
    run(async |host| {
        assert_eq!(host.write_at(zone(2), 1, 3).await, Status::SUCCESS);
        for (byte, count, at) in [(2, 2, 35), (3, 5, 37), (4, 2, 42)] {
            let appended = host.append(zone(2), byte, count).await;
            assert_eq!((appended.status, appended.result), (Status::SUCCESS, at));
        }
        let data = host.read(ZONED, zone(2), 16).await;
        let expected = [(1, 3), (2, 2), (3, 5), (4, 2), (0, 4)];
        let expected: Vec<u8> = expected
            .into_iter()
            .flat_map(|(byte, count)| vec![byte; count * BLOCK_BYTES as usize])
            .collect();
        assert!(data.bytes() == Some(&expected[..]), "zeros where nothing can be written");
        let forced = Command::zone_append(ZONED, zone(3), 1).with_force_unit_access();
        let forced = host.answer(forced, filled(5, 1)).await;
        assert_eq!((forced.status, forced.result), (Status::SUCCESS, zone(3)));
        assert_eq!(host.status(Command::flush(ZONED)).await, Status::SUCCESS);
    });
}

#[test]
fn a_block_or_zone_past_the_end_is_out_of_range_for_every_command() {
    run(async |host| {
        let out = Status::LBA_OUT_OF_RANGE;
        for lba in [END, u64::MAX - 15] {
            assert_eq!(host.status(Command::read(ZONED, lba, 1)).await, out);
            assert_eq!(host.write_at(lba, 1, 1).await, out);
            assert_eq!(host.append(lba, 1, 1).await.status, out);
            assert_eq!(host.send(lba, Open).await, out);
            let report = Command::report_zones(ZONED, lba, ReportedZones::All, 64);
            assert_eq!(host.status(report).await, out);
            assert_eq!(host.copy_zone(0, &[CopyRange::new(lba, 1)]).await.status, out);
            assert_eq!(host.copy_zone(lba, &[CopyRange::new(0, 1)]).await.status, out);
        }
        assert_eq!(host.status(Command::read(ZONED, END - 1, 2)).await, out);
        assert_eq!(host.states().await, [ZoneState::EMPTY; 8]);
    });
}

#[test]
fn nothing_crosses_the_end_of_a_zone() {
    run(async |host| {
        let boundary = Status::ZONE_BOUNDARY_ERROR;
        assert_eq!(host.status(Command::read(ZONED, zone(1) - 1, 2)).await, boundary);
        assert_eq!(host.status(Command::read(ZONED, zone(1) - 1, 1)).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(0), 1, 13).await, boundary);
        assert_eq!(host.append(zone(0), 1, 13).await.status, boundary);
        assert_eq!(host.append(zone(7), 1, 17).await.status, boundary);
        let sources = [CopyRange::new(0, 7), CopyRange::new(16, 6)];
        assert_eq!(host.copy_zone(zone(3), &sources).await.status, boundary);
        let source = [CopyRange::new(zone(1) - 1, 2)];
        assert_eq!(host.copy_zone(zone(3), &source).await.status, boundary);
        assert_eq!(host.states().await, [ZoneState::EMPTY; 8]);
        assert_eq!(host.write_at(zone(0), 1, 12).await, Status::SUCCESS);
        assert_eq!(host.states().await[0], ZoneState::FULL);
        assert_eq!(host.append(zone(0), 1, 1).await.status, Status::ZONE_IS_FULL);
        assert_eq!(host.write_at(zone(0), 1, 1).await, Status::ZONE_IS_FULL);
    });
}

#[test]
fn a_write_starts_at_the_write_pointer() {
    run(async |host| {
        let invalid = Status::ZONE_INVALID_WRITE;
        assert_eq!(host.write_at(zone(1) + 1, 1, 1).await, invalid);
        assert_eq!(host.write_at(zone(1), 1, 2).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(1) + 1, 1, 1).await, invalid);
        assert_eq!(host.write_at(zone(1) + 3, 1, 1).await, invalid);
        let source = [CopyRange::new(zone(1), 1)];
        assert_eq!(host.copy_zone(zone(1) + 1, &source).await.status, invalid);
        assert_eq!(host.write_at(zone(1) + 2, 1, 1).await, Status::SUCCESS);
    });
}

#[test]
fn zeros_are_written_at_the_write_pointer_and_all_or_none() {
    run(async |host| {
        let zeroes = |lba, count| Command::write_zeroes(ZONED, lba, count);
        assert_eq!(host.write_at(zone(1), 7, 2).await, Status::SUCCESS);
        assert_eq!(host.status(zeroes(zone(1), 1)).await, Status::ZONE_INVALID_WRITE);
        assert_eq!(host.status(zeroes(zone(1) + 2, 11)).await, Status::ZONE_BOUNDARY_ERROR);
        assert_eq!(host.status(zeroes(zone(1) + 2, 3)).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(1) + 5, 8, 1).await, Status::SUCCESS);
        let data = host.read(ZONED, zone(1), 6).await;
        let expected = [7_u8, 7, 0, 0, 0, 8].map(|byte| vec![byte; 4_096]).concat();
        assert_eq!(data.bytes().expect("bytes were written"), expected);
    });
}

#[test]
fn zones_are_compared_verified_and_not_deallocated() {
    run(async |host| {
        assert_eq!(host.write_at(zone(0), 7, 3).await, Status::SUCCESS);
        let compare = Command::compare(ZONED, zone(0), 3);
        assert_eq!(host.answer(compare, filled(7, 3)).await.status, Status::SUCCESS);
        assert_eq!(host.answer(compare, filled(8, 3)).await.status, Status::COMPARE_FAILURE);
        assert_eq!(host.status(Command::verify(ZONED, zone(0), 16)).await, Status::SUCCESS);
        let across = Command::verify(ZONED, zone(0), 17);
        assert_eq!(host.status(across).await, Status::ZONE_BOUNDARY_ERROR);
        let unwanted = Buf::copy_from(BlockRange::new(zone(0), 3).as_bytes());
        let given_up = host.answer(Command::deallocate(ZONED, 1), unwanted).await;
        assert_eq!(given_up.status, Status::SUCCESS);
        assert_eq!(host.answer(compare, filled(7, 3)).await.status, Status::SUCCESS);
        let past = Buf::copy_from(BlockRange::new(END, 1).as_bytes());
        let refused = host.answer(Command::deallocate(ZONED, 1), past).await;
        assert_eq!(refused.status, Status::LBA_OUT_OF_RANGE);
    });
}

#[test]
fn only_so_many_zones_are_open_and_active() {
    run(async |host| {
        for number in 0..3 {
            assert_eq!(host.write_at(zone(number), 1, 1).await, Status::SUCCESS);
        }
        let many = Status::TOO_MANY_ACTIVE_ZONES;
        assert_eq!(host.write_at(zone(3), 1, 1).await, many);
        assert_eq!(host.append(zone(3), 1, 1).await.status, many);
        assert_eq!(host.send(zone(3), Open).await, many);
        assert_eq!(host.send(zone(2), Finish).await, Status::SUCCESS);
        assert_eq!(host.send(zone(0), Open).await, Status::SUCCESS);
        assert_eq!(host.send(zone(1), Open).await, Status::SUCCESS);
        let many = Status::TOO_MANY_OPEN_ZONES;
        assert_eq!(host.send(zone(3), Open).await, many);
        assert_eq!(host.write_at(zone(3), 1, 1).await, many);
        assert_eq!(host.send(zone(0), Close).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(3), 1, 1).await, Status::SUCCESS);
    });
}

#[test]
fn zones_change_their_state_when_they_may() {
    run(async |host| {
        let invalid = Status::INVALID_ZONE_STATE_TRANSITION;
        assert_eq!(host.send(zone(0), Close).await, invalid, "it is empty");
        assert_eq!(host.send(zone(0), Offline).await, invalid, "it is empty");
        assert_eq!(host.send(zone(0), Open).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(1), 1, 1).await, Status::SUCCESS);
        let states = host.states().await;
        assert_eq!(states[..2], [ZoneState::EXPLICITLY_OPEN, ZoneState::IMPLICITLY_OPEN]);
        assert_eq!(host.send(zone(1), Close).await, Status::SUCCESS);
        assert_eq!(host.send(zone(0), Finish).await, Status::SUCCESS);
        let states = host.states().await;
        assert_eq!(states[..3], [ZoneState::FULL, ZoneState::CLOSED, ZoneState::EMPTY]);
        assert_eq!(host.send(zone(0), Open).await, invalid, "it is full");
        assert_eq!(host.send(zone(0), Reset).await, Status::SUCCESS);
        assert_eq!(host.states().await[0], ZoneState::EMPTY);
        assert_eq!(host.send_all(Open).await, Status::SUCCESS);
        assert_eq!(host.states().await[1], ZoneState::EXPLICITLY_OPEN);
        assert_eq!(host.send_all(Close).await, Status::SUCCESS);
        assert_eq!(host.states().await[1], ZoneState::CLOSED);
        assert_eq!(host.send_all(Finish).await, Status::SUCCESS);
        assert_eq!(host.states().await[1], ZoneState::FULL);
        assert_eq!(host.send_all(Offline).await, Status::SUCCESS, "none is read only");
        assert_eq!(host.send_all(Reset).await, Status::SUCCESS);
        assert_eq!(host.states().await, [ZoneState::EMPTY; 8]);
    });
}

#[test]
fn what_a_command_says_wrong_is_an_invalid_field() {
    run(async |host| {
        let invalid = Status::INVALID_FIELD;
        assert_eq!(host.append(zone(1) + 1, 1, 1).await.status, invalid, "not the first block");
        assert_eq!(host.send(zone(1) + 1, Open).await, invalid, "not the first block");
        for blocks in [0, 1, 3] {
            let write = host.answer(Command::write(ZONED, 0, 2), filled(1, blocks)).await;
            assert_eq!(write.status, invalid);
            let append = host.answer(Command::zone_append(ZONED, 0, 2), filled(1, blocks)).await;
            assert_eq!(append.status, invalid);
        }
        let most = (2 << 20) / BLOCK_BYTES;
        assert_eq!(host.status(Command::read(ZONED, 0, most + 1)).await, invalid);
        assert_eq!(host.write_at(0, 1, most + 1).await, invalid);
        assert_eq!(host.append(0, 1, most + 1).await.status, invalid);
        let unknown = [0x00, 0x06, 0x10, 0x11, 0xff];
        for action in unknown {
            let mut command = Command::zone_management_send(ZONED, 0, Open);
            command.as_mut_bytes()[52] = action;
            assert_eq!(host.status(command).await, invalid);
        }
        let copy = Command::copy(ZONED, 0, 1);
        for data in [nothing(), Buf::copy_from(&[0; 31]), Buf::phantom(32, 5)] {
            assert_eq!(host.answer(copy, data).await.status, invalid);
        }
        assert_eq!(host.states().await, [ZoneState::EMPTY; 8]);
    });
}

#[test]
fn a_copy_of_more_than_2_mib_exceeds_its_size_limit() {
    run(async |host| {
        let limit = Status::COMMAND_SIZE_LIMIT_EXCEEDED;
        assert_eq!(host.copy_zone(0, &[CopyRange::new(0, 513)]).await.status, limit);
        assert_eq!(host.copy_zone(0, &[CopyRange::new(0, 3); 171]).await.status, limit);
        // 512 blocks are no more than that, but more than all zones have.
        let out = Status::LBA_OUT_OF_RANGE;
        assert_eq!(host.copy_zone(0, &[CopyRange::new(0, 2); 256]).await.status, out);
    });
}

#[test]
fn a_report_has_the_zones_that_are_asked_for_and_fit() {
    run(async |host| {
        assert_eq!(host.write_at(zone(1), 1, 12).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(3), 1, 5).await, Status::SUCCESS);
        let full = (ZoneState::FULL, zone(1), None);
        let open = (ZoneState::IMPLICITLY_OPEN, zone(3), Some(zone(3) + 5));
        let empty = |number| (ZoneState::EMPTY, zone(number), Some(zone(number)));
        let report = |lba, zones, bytes| Command::report_zones(ZONED, lba, zones, bytes);
        let all = report(0, ReportedZones::All, 4_096);
        let mut expected: Zones = (0..8).map(empty).collect();
        (expected[1], expected[3]) = (full, open);
        assert_eq!(host.report(all).await, (8, expected.clone()));
        // From a block in the midst of zone 2, into room for two and for none.
        let some = report(zone(2) + 7, ReportedZones::All, 3 * 64 + 60);
        assert_eq!(host.report(some).await, (6, expected[2..4].to_vec()));
        assert_eq!(host.report(some.with_partial_report()).await, (2, expected[2..4].to_vec()));
        let none = report(zone(2), ReportedZones::All, 64);
        assert_eq!(host.report(none).await, (6, vec![]));
        assert_eq!(host.report(none.with_partial_report()).await, (0, vec![]));
        let full_ones = report(0, ReportedZones::In(ZoneState::FULL), 4_096);
        assert_eq!(host.report(full_ones).await, (1, vec![full]));
        let empty_ones = report(zone(6), ReportedZones::In(ZoneState::EMPTY), 4_096);
        assert_eq!(host.report(empty_ones).await, (2, vec![empty(6), empty(7)]));
    });
}

#[test]
fn a_report_that_there_is_not_is_an_invalid_field() {
    run(async |host| {
        let invalid = Status::INVALID_FIELD;
        let report = |bytes| Command::report_zones(ZONED, 0, ReportedZones::All, bytes);
        assert_eq!(host.status(report(60)).await, invalid, "no room for the count");
        assert_eq!(host.status(report(2 << 20)).await, Status::SUCCESS);
        assert_eq!(host.status(report((2 << 20) + 4)).await, invalid, "more than a transfer");
        for (at, value) in [(51, 0xff), (52, 0x01), (53, 0x08)] {
            let mut command = report(64);
            command.as_mut_bytes()[at] = value;
            assert_eq!(host.status(command).await, invalid, "byte {at}");
        }
    });
}

#[test]
fn a_zone_whose_medium_does_not_write_is_read_only() {
    run(async |host| {
        host.medium.fail_next(UNRECOVERED);
        assert_eq!(host.write_at(zone(0), 1, 4).await, Status::SUCCESS, "it is in memory");
        host.settle().await;
        assert_eq!(host.states().await[0], ZoneState::READ_ONLY);
        let read_only = Status::ZONE_IS_READ_ONLY;
        assert_eq!(host.write_at(zone(0) + 4, 1, 1).await, read_only);
        assert_eq!(host.append(zone(0), 1, 1).await.status, read_only);
        assert_eq!(host.read(ZONED, zone(0), 4).await.bytes(), filled(1, 4).bytes());
        let invalid = Status::INVALID_ZONE_STATE_TRANSITION;
        assert_eq!(host.send(zone(0), Reset).await, invalid);
    });
}

#[test]
fn a_zone_whose_medium_does_not_erase_is_offline() {
    run(async |host| {
        assert_eq!(host.write_at(zone(0), 1, 4).await, Status::SUCCESS);
        host.settle().await;
        host.medium.fail_next(UNRECOVERED);
        assert_eq!(host.send(zone(0), Reset).await, Status::WRITE_FAULT);
        assert_eq!(host.states().await[0], ZoneState::OFFLINE);
        let offline = Status::ZONE_IS_OFFLINE;
        assert_eq!(host.status(Command::read(ZONED, zone(0), 1)).await, offline);
        assert_eq!(host.write_at(zone(0), 1, 1).await, offline);
        let invalid = Status::INVALID_ZONE_STATE_TRANSITION;
        assert_eq!(host.send(zone(0), Reset).await, invalid);
        assert_eq!(host.send(zone(0), Offline).await, Status::SUCCESS, "it is");
    });
}

#[test]
fn what_the_medium_does_not_give_back_is_an_unrecovered_read_error() {
    run(async |host| {
        assert_eq!(host.write_at(zone(0), 1, 4).await, Status::SUCCESS);
        host.settle().await;
        host.medium.fail_next(UNRECOVERED);
        let unrecovered = Status::UNRECOVERED_READ_ERROR;
        assert_eq!(host.status(Command::read(ZONED, zone(0), 1)).await, unrecovered);
        host.medium.fail_next(Error::NoFreeExtent);
        let read = Command::read(ZONED, zone(0), 1);
        assert_eq!(host.status(read).await, Status::INTERNAL_ERROR);
        assert_eq!(host.status(read).await, Status::SUCCESS);
    });
}

#[test]
fn a_copy_gathers_its_ranges_at_the_write_pointer() {
    run(async |host| {
        assert_eq!(host.write_at(zone(0), 1, 6).await, Status::SUCCESS);
        assert_eq!(host.write_at(zone(1), 2, 3).await, Status::SUCCESS);
        let ranges = [CopyRange::new(zone(1), 2), CopyRange::new(zone(0) + 5, 1)];
        let copied = host.copy_zone(zone(1) + 3, &ranges).await;
        assert_eq!(copied.status, Status::SUCCESS);
        let data = host.read(ZONED, zone(1), 6).await;
        let expected = [filled(2, 5), filled(1, 1)];
        assert_eq!(data.bytes(), Buf::join(&expected).unwrap().bytes());
    });
}

#[test]
fn commands_of_other_sets_are_invalid_opcodes() {
    run(async |host| {
        for command in [
            Command::list(ZONED, b"", 64),
            Command::delete(ZONED, b"k"),
            Command::exist(ZONED, b"k"),
        ] {
            assert_eq!(host.status(command).await, Status::INVALID_OPCODE);
        }
        let store = Command::store(ZONED, b"k", 1, StoreOptions::NONE);
        assert_eq!(host.status(store).await, Status::INVALID_FIELD, "a Write of no data");
    });
}

#[test]
fn each_command_takes_its_handler_and_what_it_moves_over_the_link() {
    let costs = FirmwareCosts {
        t_read: Nanos(1_000),
        t_write: Nanos(2_000),
        t_delete: Nanos(7),
        t_exist: Nanos(7),
        t_update: Nanos(7),
        t_write_kib: Nanos(7),
        t_read_kib: Nanos(7),
    };
    run_with(costs, async |host| {
        let ranges = Buf::copy_from([CopyRange::new(0, 1); 3].as_bytes());
        let report = Command::report_zones(ZONED, zone(4), ReportedZones::All, 4_096);
        for (command, data, handler, moved) in [
            (Command::write(ZONED, 0, 3), filled(1, 3), 2_000, 12_288),
            (Command::zone_append(ZONED, 0, 2), filled(1, 2), 2_000, 8_192),
            (Command::read(ZONED, 0, 2), nothing(), 1_000, 8_192),
            (Command::copy(ZONED, 5, 3), ranges, 2_000, 96),
            (report, nothing(), 2_000, 5 * 64),
        ] {
            let answered = host.answer(command, data).await;
            assert_eq!(answered.status, Status::SUCCESS);
            assert_eq!(answered.stages[Stage::Index], Nanos(handler));
            assert_eq!(answered.stages[Stage::Link], Nanos(100 + moved));
            assert_eq!(answered.latency(), Nanos(handler + 100 + moved));
        }
        let open = Command::zone_management_send(ZONED, zone(2), Open);
        assert_eq!(host.answer(open, nothing()).await.latency(), Nanos(2_000));
    });
}
