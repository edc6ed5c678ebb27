//! Submission queue entries: mostly such that something comes of them, and some of any bytes.

use crate::device::{BLOCK, BLOCK_BYTES, KV, ZONE_BLOCKS, ZONED};
use crate::input::Input;
use spec::{
    BLOCK_RANGE_BYTES, BlockRange, COPY_RANGE_BYTES, Cns, Command, CommandSet, Configuration,
    ConnectAttributes, CopyRange, Feature, FeatureSelect, Fuse, LogPage, Opcode, Property,
    ReportedZones, Shutdown, StoreOptions, Transfer, ZoneSendAction,
};
use zerocopy::{FromBytes, IntoBytes};

const ADMIN_OPCODES: [u8; 16] = [
    0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x0d, 0x84, 0x15, 0x18, 0x80, 0xc1,
];

const IDENTIFIED: [Cns; 10] = [
    Cns::NAMESPACE,
    Cns::CONTROLLER,
    Cns::ACTIVE_NAMESPACES,
    Cns::NAMESPACE_DESCRIPTORS,
    Cns::NAMESPACE_OF_SET,
    Cns::CONTROLLER_OF_SET,
    Cns::ACTIVE_NAMESPACES_OF_SET,
    Cns::INDEPENDENT_NAMESPACE,
    Cns::FORMAT_OF_SET,
    Cns::IO_COMMAND_SETS,
];

const SETS: [CommandSet; 4] =
    [CommandSet::NVM, CommandSet::KEY_VALUE, CommandSet::ZONED, CommandSet(0xff)];

const LOGS: [u8; 10] = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x70, 0x81, 0xc0, 0x0c];

const FEATURES: [u8; 14] =
    [0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x0b, 0x0f, 0x10, 0x16, 0x19, 0x20, 0x81, 0xc0];

const SELECTS: [FeatureSelect; 4] = [
    FeatureSelect::Current,
    FeatureSelect::Default,
    FeatureSelect::Saved,
    FeatureSelect::Capabilities,
];

/// The opcodes of blocks, and an unknown one.
const BLOCK_OPCODES: [Opcode; 9] = [
    Opcode::FLUSH,
    Opcode::WRITE,
    Opcode::READ,
    Opcode::WRITE_ZEROES,
    Opcode::DATASET_MANAGEMENT,
    Opcode::COPY,
    Opcode(0x0e),
    Opcode::COMPARE,
    Opcode::VERIFY,
];

/// Returns an admin command.
pub(crate) fn admin(input: &mut Input<'_>) -> Command {
    let nsid = input.pick(&[0, 1, 2, 3, 6, 7, u32::MAX]);
    let command = match input.below(8) {
        0 => {
            let command = Command::identify(input.pick(&IDENTIFIED), nsid);
            command.with_csi(input.pick(&SETS)).with_controller_id(input.pick(&[0, 1, 2]))
        }
        1 => {
            let page = LogPage(input.pick(&LOGS));
            let bytes = (input.below(2_000) + 1) * 4;
            let command = Command::get_log_page(page, nsid, bytes);
            let offset = if input.one_in(3) { u64::from(input.number() / 4) * 4 } else { 0 };
            let command = command.with_log_page_offset(offset).with_log_page_csi(input.pick(&SETS));
            if input.one_in(3) { command.with_retained_event() } else { command }
        }
        2 => {
            let feature = Feature(input.pick(&FEATURES));
            let command = Command::set_features(feature, nsid, input.number());
            if input.one_in(4) { command.with_save() } else { command }
        }
        3 => {
            let feature = Feature(input.pick(&FEATURES));
            Command::get_features(feature, nsid, input.pick(&SELECTS))
        }
        4 => Command::abort(input.pick(&[0, 1, 2, 3]), (input.byte() & 63).into()),
        5 => Command::async_event_request(),
        6 => Command::keep_alive(),
        _ => with_opcode(dwords(input, nsid), input.pick(&ADMIN_OPCODES)),
    };
    changed(command, input)
}

/// Returns a fabrics command other than Connect.
pub(crate) fn property(input: &mut Input<'_>) -> Command {
    let enable = Configuration::ENABLE_ALL_COMMAND_SETS;
    let command = match input.below(7) {
        0 | 1 => Command::property_set(Property::CC, enable.0.into()),
        2 => Command::property_set(Property::CC, 0),
        3 => {
            let shutdown = input.pick(&[Shutdown::Normal, Shutdown::Abrupt]);
            Command::property_set(Property::CC, enable.with_shutdown(shutdown).0.into())
        }
        4 => {
            let property = Property(input.pick(&[0x00, 0x08, 0x14, 0x1c, 0x20, 0x68, 0x0c]));
            let mut value = u64::from(input.number());
            if property == Property::NSSR && input.one_in(2) {
                value = Property::RESET_SUBSYSTEM.into();
            }
            if input.one_in(3) {
                Command::property_set(property, value)
            } else {
                Command::property_get(property)
            }
        }
        5 => Command::disconnect(),
        _ => {
            let kind = input.byte().into();
            with_opcode(dwords(input, kind), 0x7f)
        }
    };
    changed(command, input)
}

/// Returns a Connect, whose data the caller sends.
pub(crate) fn connect(input: &mut Input<'_>, queue: u16) -> Command {
    let size = if input.one_in(4) { input.half() } else { 31 };
    let attributes = ConnectAttributes(input.pick(&[0, 4, 0xff]));
    let keep_alive_ms = input.pick(&[0, 0, 1, 3_000, 120_000]);
    let command = Command::connect(queue, size, attributes, keep_alive_ms);
    if input.one_in(8) { changed(command, input) } else { command }
}

/// Returns an I/O command of any command set.
pub(crate) fn io(input: &mut Input<'_>) -> Command {
    let nsid = input.pick(&[KV, BLOCK, ZONED, KV, BLOCK, ZONED, 0, 7, u32::MAX]);
    let command = match (nsid, input.one_in(16)) {
        (KV, false) => pair(input, nsid),
        (BLOCK, false) => blocks(input, nsid),
        (ZONED, false) => zones(input, nsid),
        _ => match input.below(4) {
            0 => pair(input, nsid),
            1 => blocks(input, nsid),
            2 => zones(input, nsid),
            _ => with_opcode(dwords(input, nsid), input.byte()),
        },
    };
    changed(command, input)
}

fn pair(input: &mut Input<'_>, nsid: u32) -> Command {
    // Few keys, so that commands use the same ones.
    let key = [input.byte() & 1; 16];
    let key = &key[..input.pick(&[1, 1, 16, 2, 0])];
    let size = input.pick(&[100, 100, 0, 1, 512, 8_192, 8_193, 16_384, 40_000, 300_000]);
    match input.below(5) {
        0 => {
            let options = if input.one_in(3) { input.byte() & 0x0f } else { 0 };
            Command::store(nsid, key, size, StoreOptions::NONE).with_options(options)
        }
        1 => Command::retrieve(nsid, key, size),
        2 => Command::list(nsid, key, size),
        3 => Command::delete(nsid, key),
        _ => Command::exist(nsid, key),
    }
}

fn blocks(input: &mut Input<'_>, nsid: u32) -> Command {
    let lba = u64::from(if input.one_in(6) { input.number() } else { input.below(520) });
    let count = if input.one_in(8) { input.below(65_536) + 1 } else { input.below(40) + 1 };
    match input.pick(&BLOCK_OPCODES) {
        Opcode::FLUSH => Command::flush(nsid),
        Opcode::WRITE => Command::write(nsid, lba, count),
        Opcode::READ => Command::read(nsid, lba, count),
        Opcode::WRITE_ZEROES => Command::write_zeroes(nsid, lba, count),
        Opcode::DATASET_MANAGEMENT => Command::deallocate(nsid, input.below(256) + 1),
        Opcode::COPY => Command::copy(nsid, lba, input.below(256) + 1),
        Opcode::COMPARE if input.one_in(2) => {
            let count = if input.one_in(4) { count } else { 1 };
            Command::compare(nsid, lba, count).with_fuse(Fuse::First)
        }
        Opcode::COMPARE => Command::compare(nsid, lba, count),
        Opcode::VERIFY => Command::verify(nsid, lba, count),
        other => with_opcode(Command::read(nsid, lba, count), other.0),
    }
}

/// The command that makes a fused operation of `first`, mostly, if that is the first of one: its
/// Write, or another one.
pub(crate) fn second_of(first: &Command, input: &mut Input<'_>) -> Option<Command> {
    if !first.begins_compare_and_write() {
        return None;
    }
    let write = Command::write(first.nsid(), first.lba(), first.blocks());
    match input.below(8) {
        0 => None,
        1 => Some(Command::write(first.nsid(), first.lba(), input.below(9) + 1)),
        2 => Some(io(input)),
        3 => Some(write.with_force_unit_access()),
        _ => Some(write),
    }
    .map(|second| second.with_fuse(if input.one_in(8) { Fuse::Reserved } else { Fuse::Second }))
}

fn zones(input: &mut Input<'_>, nsid: u32) -> Command {
    let start = u64::from(input.below(9) * ZONE_BLOCKS);
    let count = input.below(14) + 1;
    match input.below(8) {
        0 | 1 => Command::zone_append(nsid, start, count),
        2 | 3 => {
            let action = input.pick(&ZoneSendAction::ALL);
            let command = Command::zone_management_send(nsid, start, action);
            if input.one_in(6) { command.with_select_all() } else { command }
        }
        4 => {
            let bytes = (input.below(300) + 1) * 4;
            let command = Command::report_zones(nsid, start, ReportedZones::All, bytes);
            if input.one_in(3) { command.with_partial_report() } else { command }
        }
        5 => Command::write(nsid, start + u64::from(input.below(12)), count),
        6 => Command::read(nsid, start + u64::from(input.below(12)), count),
        _ => blocks(input, nsid),
    }
}

/// Returns the bytes of data of `command` by its fields: 0 if that is more than a run should move.
pub(crate) fn data_len(command: &Command) -> u32 {
    const MOST: u32 = 1 << 19;
    let len = match command.opcode() {
        Opcode::DATASET_MANAGEMENT if command.nsid() != KV => {
            command.block_ranges() * BLOCK_RANGE_BYTES
        }
        Opcode::COPY => command.copy_ranges() * COPY_RANGE_BYTES,
        Opcode::ZONE_MANAGEMENT_RECEIVE => u32::try_from(command.report_bytes()).unwrap_or(0),
        Opcode::WRITE | Opcode::READ if command.nsid() == KV => command.size(),
        Opcode::LIST => command.size(),
        Opcode::WRITE | Opcode::READ | Opcode::COMPARE | Opcode::ZONE_APPEND => {
            command.blocks().saturating_mul(BLOCK_BYTES)
        }
        _ => 0,
    };
    if len > MOST { 0 } else { len }
}

/// Returns data of `len` bytes for `command`: ranges of blocks where it takes them.
pub(crate) fn data(command: &Command, len: u32, input: &mut Input<'_>) -> Vec<u8> {
    if command.transfer() != Transfer::ToController {
        return Vec::new();
    }
    let mut range = || (u64::from(input.below(520)), input.below(20) + 1);
    let mut bytes = Vec::new();
    match command.opcode() {
        Opcode::DATASET_MANAGEMENT => {
            let (lba, blocks) = range();
            let one = BlockRange::new(lba, blocks);
            (0..len / BLOCK_RANGE_BYTES).for_each(|_| bytes.extend(one.as_bytes()));
        }
        Opcode::COPY => {
            let (lba, blocks) = range();
            let one = CopyRange::new(lba, blocks);
            (0..len / COPY_RANGE_BYTES).for_each(|_| bytes.extend(one.as_bytes()));
        }
        _ => {}
    }
    let rest = len as usize - bytes.len();
    bytes.extend(input.filling(u32::try_from(rest).expect("it is a part of a length")));
    bytes
}

/// Returns a command whose fields are numbers of the input.
fn dwords(input: &mut Input<'_>, nsid: u32) -> Command {
    let mut bytes = [0; 64];
    bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
    for dword in bytes[40..].chunks_mut(4) {
        dword.copy_from_slice(&input.number().to_le_bytes());
    }
    of_bytes(bytes)
}

/// Returns the command, sometimes with a changed field or with arbitrary bytes instead.
fn changed(command: Command, input: &mut Input<'_>) -> Command {
    match input.below(12) {
        9 => {
            let mut bytes = bytes_of(&command);
            let at = input.pick(&[4, 8, 12, 40, 44, 48, 52, 56, 60]);
            bytes[at..at + 4].copy_from_slice(&input.number().to_le_bytes());
            of_bytes(bytes)
        }
        10 => {
            let mut bytes = bytes_of(&command);
            bytes[input.below(64) as usize] = input.byte();
            of_bytes(bytes)
        }
        11 => of_bytes(input.array()),
        _ => command,
    }
}

/// Returns the command with another opcode.
pub(crate) fn with_opcode(command: Command, opcode: u8) -> Command {
    let mut bytes = bytes_of(&command);
    bytes[0] = opcode;
    of_bytes(bytes)
}

/// Returns the command for another namespace.
pub(crate) fn with_nsid(command: &Command, nsid: u32) -> Command {
    let mut bytes = bytes_of(command);
    bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
    of_bytes(bytes)
}

/// Returns the command with these flags and this data pointer, valid or not.
pub(crate) fn with_pointer(command: &Command, flags: u8, pointer: [u8; 16]) -> Command {
    let mut bytes = bytes_of(command);
    bytes[1] = flags;
    bytes[24..40].copy_from_slice(&pointer);
    of_bytes(bytes)
}

fn bytes_of(command: &Command) -> [u8; 64] {
    *command.as_bytes().first_chunk().expect("an entry has 64 bytes")
}

/// Returns the command with these bytes.
pub(crate) fn of_bytes(bytes: [u8; 64]) -> Command {
    Command::read_from_bytes(&bytes).expect("any 64 bytes are an entry")
}
