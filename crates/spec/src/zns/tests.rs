use super::*;
use crate::command::tests::{counting, entry};
use std::format;
use std::vec::Vec;

const LBA: u64 = 0x0102_0304_0506_0708;
const LBA_BYTES: &[u8] = &[8, 7, 6, 5, 4, 3, 2, 1];

#[test]
fn commands_on_zones_have_the_specifications_bytes() {
    // ZNS 1.1a, Zone Append: CDW10 and 11 ZSLBA, CDW12 bits 15:0 NLB. Zone Management Send: CDW10
    // and 11 SLBA, CDW13 bits 7:0 action and bit 8 Select All.
    let expected = entry(&[(0, &[0x7d]), (4, &[7]), (40, LBA_BYTES), (48, &[0x33, 0x12])]);
    assert_eq!(Command::zone_append(7, LBA, 0x1234).as_bytes(), expected);
    let expected =
        |action, all| entry(&[(0, &[0x79]), (4, &[7]), (40, LBA_BYTES), (52, &[action, all])]);
    for (number, action) in [
        (0x01, ZoneSendAction::Close),
        (0x02, ZoneSendAction::Finish),
        (0x03, ZoneSendAction::Open),
        (0x04, ZoneSendAction::Reset),
        (0x05, ZoneSendAction::Offline),
    ] {
        let command = Command::zone_management_send(7, LBA, action);
        assert_eq!(command.as_bytes(), expected(number, 0));
        assert_eq!(command.with_select_all().as_bytes(), expected(number, 1));
        assert_eq!(command.zone_send_action(), Some(action));
    }
}

#[test]
fn a_report_is_asked_for_with_the_specifications_bytes() {
    // ZNS 1.1a, Zone Management Receive: CDW10 and 11 SLBA, CDW12 NUMD, CDW13 bits 7:0 action, bits
    // 15:8 which zones, bit 16 partial report.
    let expected = |which, partial| {
        let dword13: &[u8] = &[0, which, partial];
        entry(&[(0, &[0x7a]), (4, &[7]), (40, LBA_BYTES), (48, &[0xff, 0x03]), (52, dword13)])
    };
    let states =
        [0x1, 0x2, 0x3, 0x4, 0xe, 0xd, 0xf].map(|state| ReportedZones::In(ZoneState(state)));
    for (number, zones) in (0..).zip([ReportedZones::All].into_iter().chain(states)) {
        let command = Command::report_zones(7, LBA, zones, 4_096);
        assert_eq!(command.as_bytes(), expected(number, 0));
        assert_eq!(command.with_partial_report().as_bytes(), expected(number, 1));
        assert_eq!(command.reported_zones(), Some(zones));
        assert_eq!(command.report_bytes(), 4_096);
    }
}

#[test]
fn accessors_read_each_field_from_the_specifications_place() {
    let command = counting();
    assert_eq!(command.report_bytes(), (0x3433_3231 + 1) * 4);
    // Byte 53 is 36h, without bit 0, and byte 54 is 37h, with bit 0; bytes 52 and 53 are an action
    // and a choice of zones that there are not.
    assert!(!command.is_select_all() && command.is_partial_report());
    assert_eq!((command.zone_send_action(), command.reported_zones()), (None, None));
    let every = (0..=u8::MAX).map(|number| command.with_dword::<13>(number.into()));
    assert_eq!(every.clone().filter_map(|command| command.zone_send_action()).count(), 5);
    assert_eq!(every.filter_map(|command| command.reported_zones()).count(), 1);
    let every = (0..=u8::MAX).map(|number| command.with_dword::<13>(u32::from(number) << 8));
    assert_eq!(every.filter_map(|command| command.reported_zones()).count(), 8);
    let all = command.with_dword::<12>(u32::MAX);
    assert_eq!(all.report_bytes(), 16 << 30);
}

#[test]
fn a_zone_descriptor_has_the_specifications_bytes() {
    // ZNS 1.1a, Zone Descriptor: byte 0 type 2h, byte 1 bits 7:4 state, bytes 15:8 ZCAP, 23:16
    // ZSLBA, 31:24 WP; all ones for the write pointer of a zone that has none.
    let bytes = |state: u8, pointer: &[u8]| {
        let mut bytes = [0; 64];
        bytes[..2].copy_from_slice(&[0x02, state << 4]);
        bytes[8..16].copy_from_slice(&[0x55, 0x44, 0, 0, 0, 0, 0, 0]);
        bytes[16..24].copy_from_slice(LBA_BYTES);
        bytes[24..32].copy_from_slice(pointer);
        bytes
    };
    for (state, name) in [
        (0x1, "Empty"),
        (0x2, "Implicitly Opened"),
        (0x3, "Explicitly Opened"),
        (0x4, "Closed"),
        (0xd, "Read Only"),
        (0xe, "Full"),
        (0xf, "Offline"),
    ] {
        let zone = ZoneDescriptor::new(ZoneState(state), LBA, 0x4455, 9);
        let pointer = if state <= 4 { [9, 0, 0, 0, 0, 0, 0, 0] } else { [0xff; 8] };
        assert_eq!(zone.as_bytes(), bytes(state, &pointer));
        assert_eq!((zone.start(), zone.capacity()), (LBA, 0x4455));
        assert_eq!(zone.write_pointer(), (state <= 4).then_some(9));
        assert_eq!(format!("{:?}", zone.state()), name);
    }
    assert_eq!(format!("{:?}", ZoneState(7)), "zone state 7h");
}

#[test]
fn a_report_has_a_count_of_8_bytes_and_descriptors_from_byte_64_on() {
    let zones = [1, 2, 3].map(|at| ZoneDescriptor::new(ZoneState::EMPTY, at * 8, 6, at * 8));
    for room in 0..300 {
        let mut buffer = std::vec![0xff; room];
        let Some(mut writer) = ZoneReportWriter::new(&mut buffer) else {
            assert!(room < 64);
            assert!(ZoneReport::read(&buffer).is_none());
            continue;
        };
        let pushed: Vec<bool> = zones.iter().map(|zone| writer.push(zone)).collect();
        let fitting = (room / 64 - 1).min(3);
        assert_eq!(pushed, [fitting > 0, fitting > 1, fitting > 2]);
        let len = writer.finish(3);
        assert_eq!(len, 64 * (1 + fitting));
        assert_eq!(buffer[..8], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buffer[8..64], [0; 56]);
        assert!(buffer[len..].iter().all(|&byte| byte == 0xff), "the rest stays as it was");
        let report = ZoneReport::read(&buffer[..len]).unwrap();
        assert_eq!((report.zones, report.descriptors), (3, &zones[..fitting]));
    }
}

#[test]
fn a_report_of_fewer_zones_than_there_is_room_for_is_read_to_its_count() {
    let mut bytes = [0xff; 64 * 4];
    bytes[..8].copy_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ZoneReport::read(&bytes).unwrap().descriptors.len(), 2);
    bytes[..8].fill(0xff);
    assert_eq!(ZoneReport::read(&bytes).unwrap().descriptors.len(), 3);
}
