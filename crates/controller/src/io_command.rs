//! The supported I/O commands, as reported to and enforced for fabrics hosts.

use base::Buf;
use spec::{BLOCK_RANGE_BYTES, COPY_RANGE_BYTES, Command, CommandSet, CopyRange, Effects, Opcode};

/// An I/O command of a command set.
pub(crate) struct IoCommand {
    pub(crate) opcode: Opcode,
    pub(crate) effects: Effects,
    /// Returns the data bytes of a command by its fields, for the given block size.
    pub(crate) bytes: fn(&Command, u32) -> u64,
    pub(crate) counted: Counted,
}

/// The class of a command in SMART / Health Information (KV 1.0d, NVM 1.1 and ZNS 1.1a, definitions
/// of SMART Data Units Read Command and User Data Out Command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// With the bytes that it moves over the link.
    Read,
    /// With the bytes that it moves over the link.
    Write,
    /// A read of blocks that stay in the device.
    ReadInside,
    /// A write of blocks that the device has read itself.
    WriteInside,
    Neither,
}

/// What the controller keeps of a command while the device executes it.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    /// Bytes counted for it in addition to those that it returns.
    pub(crate) bytes: u64,
    pub(crate) counted: Counted,
    /// Length of the host's buffer in bytes.
    pub(crate) room: u32,
}

impl Counted {
    /// Returns whether a command writes data.
    #[inline]
    pub(crate) const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteInside)
    }

    /// Returns the bytes to count for a command with `data`, in addition to those that it returns.
    #[inline]
    pub(crate) fn bytes(self, command: &Command, data: &Buf, block_bytes: u32) -> u64 {
        match self {
            Self::Read | Self::Write | Self::Neither => data.len().into(),
            Self::ReadInside => blocks(command, block_bytes),
            Self::WriteInside => {
                let ranges = data.bytes().and_then(CopyRange::all_in).unwrap_or_default();
                let count: u64 = ranges.iter().map(|range| u64::from(range.blocks())).sum();
                count * u64::from(block_bytes)
            }
        }
    }
}

/// Returns the commands of a command set; none if it is unsupported.
pub(crate) fn commands(set: CommandSet) -> &'static [IoCommand] {
    match set {
        CommandSet::KEY_VALUE => &KEY_VALUE,
        CommandSet::NVM => &NVM,
        CommandSet::ZONED => &ZONED,
        _ => &[],
    }
}

/// Returns the command with this opcode in a command set.
#[inline]
pub(crate) fn find(set: CommandSet, opcode: Opcode) -> Option<&'static IoCommand> {
    commands(set).iter().find(|command| command.opcode == opcode)
}

/// Returns whether any command set has a command with this opcode.
pub(crate) fn is_known(opcode: Opcode) -> bool {
    let sets = [CommandSet::KEY_VALUE, CommandSet::NVM, CommandSet::ZONED];
    sets.into_iter().any(|set| find(set, opcode).is_some())
}

const CHANGES: Effects = Effects::CHANGES_DATA;
const NO_EFFECT: Effects = Effects(0);

/// Most frequent commands first.
static KEY_VALUE: [IoCommand; 6] = [
    IoCommand::new(Opcode::RETRIEVE, NO_EFFECT, nothing, Counted::Read),
    IoCommand::new(Opcode::STORE, CHANGES, size, Counted::Write),
    IoCommand::new(Opcode::EXIST, NO_EFFECT, nothing, Counted::Neither),
    IoCommand::new(Opcode::DELETE, CHANGES, nothing, Counted::Neither),
    IoCommand::new(Opcode::LIST, NO_EFFECT, size, Counted::Neither),
    FLUSH,
];

static NVM: [IoCommand; 8] = [READ, WRITE, FLUSH, WRITE_ZEROES, DATASET, COPY, COMPARE, VERIFY];

static ZONED: [IoCommand; 11] = [
    READ,
    WRITE,
    FLUSH,
    IoCommand::new(Opcode::ZONE_APPEND, CHANGES, blocks, Counted::Write),
    IoCommand::new(Opcode::ZONE_MANAGEMENT_SEND, CHANGES, nothing, Counted::Neither),
    IoCommand::new(Opcode::ZONE_MANAGEMENT_RECEIVE, NO_EFFECT, report, Counted::Neither),
    WRITE_ZEROES,
    DATASET,
    COPY,
    COMPARE,
    VERIFY,
];

const READ: IoCommand = IoCommand::new(Opcode::READ, NO_EFFECT, blocks, Counted::Read);
const WRITE: IoCommand = IoCommand::new(Opcode::WRITE, CHANGES, blocks, Counted::Write);
const FLUSH: IoCommand = IoCommand::new(Opcode::FLUSH, NO_EFFECT, nothing, Counted::Neither);
const WRITE_ZEROES: IoCommand =
    IoCommand::new(Opcode::WRITE_ZEROES, CHANGES, nothing, Counted::Neither);
const DATASET: IoCommand =
    IoCommand::new(Opcode::DATASET_MANAGEMENT, CHANGES, block_ranges, Counted::Neither);
const COPY: IoCommand = IoCommand::new(Opcode::COPY, CHANGES, copy_ranges, Counted::WriteInside);
const COMPARE: IoCommand = IoCommand::new(Opcode::COMPARE, NO_EFFECT, blocks, Counted::Read);
const VERIFY: IoCommand = IoCommand::new(Opcode::VERIFY, NO_EFFECT, nothing, Counted::ReadInside);

impl IoCommand {
    const fn new(
        opcode: Opcode,
        effects: Effects,
        bytes: fn(&Command, u32) -> u64,
        counted: Counted,
    ) -> Self {
        Self { opcode, effects, bytes, counted }
    }
}

/// Of none, or, for a Retrieve, of as many as the host has room for.
fn nothing(_: &Command, _: u32) -> u64 {
    0
}

fn size(command: &Command, _: u32) -> u64 {
    command.size().into()
}

fn blocks(command: &Command, block_bytes: u32) -> u64 {
    u64::from(command.blocks()) * u64::from(block_bytes)
}

fn block_ranges(command: &Command, _: u32) -> u64 {
    u64::from(command.block_ranges()) * u64::from(BLOCK_RANGE_BYTES)
}

fn copy_ranges(command: &Command, _: u32) -> u64 {
    u64::from(command.copy_ranges()) * u64::from(COPY_RANGE_BYTES)
}

fn report(command: &Command, _: u32) -> u64 {
    command.report_bytes()
}
