//! The Zoned Namespace command set, as far as it is more than the NVM command set: opcodes, the
//! fields of commands, and the report of zones.

use crate::nvm::halves;
use crate::{Command, Opcode};
use core::fmt;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const SELECT_ALL: u32 = 1 << 8;
const PARTIAL_REPORT: u32 = 1 << 16;

/// The Zoned Namespace command set (ZNS 1.1a, opcodes for I/O commands).
impl Opcode {
    /// Asks zones to change their state.
    pub const ZONE_MANAGEMENT_SEND: Self = Self(0x79);
    /// Asks about zones.
    pub const ZONE_MANAGEMENT_RECEIVE: Self = Self(0x7a);
    /// Writes logical blocks to wherever the write pointer of a zone is.
    pub const ZONE_APPEND: Self = Self(0x7d);
}

/// What zones are asked to do (ZNS 1.1a, Zone Management Send command, Zone Send Action).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ZoneSendAction {
    /// Give up what an open zone has.
    Close = 0x01,
    /// Take no more data.
    Finish = 0x02,
    /// Be ready for data.
    Open = 0x03,
    /// Drop all data.
    Reset = 0x04,
    /// Be gone for good.
    Offline = 0x05,
}

impl ZoneSendAction {
    /// All actions, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Close, Self::Finish, Self::Open, Self::Reset, Self::Offline];
}

/// The state of a zone, as reports give it (ZNS 1.1a, Zone Descriptor data structure, Zone State).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZoneState(pub u8);

impl ZoneState {
    /// No data yet.
    pub const EMPTY: Self = Self(0x1);
    /// Opened by a write.
    pub const IMPLICITLY_OPEN: Self = Self(0x2);
    /// Opened by the host's order.
    pub const EXPLICITLY_OPEN: Self = Self(0x3);
    /// With data, and not open.
    pub const CLOSED: Self = Self(0x4);
    /// Can be read only.
    pub const READ_ONLY: Self = Self(0xd);
    /// Takes no more data.
    pub const FULL: Self = Self(0xe);
    /// Can be neither read nor written.
    pub const OFFLINE: Self = Self(0xf);

    /// True where a report gives the write pointer.
    #[inline]
    pub const fn has_write_pointer(self) -> bool {
        Self::EMPTY.0 <= self.0 && self.0 <= Self::CLOSED.0
    }
}

impl fmt::Debug for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::EMPTY => "Empty",
            Self::IMPLICITLY_OPEN => "Implicitly Opened",
            Self::EXPLICITLY_OPEN => "Explicitly Opened",
            Self::CLOSED => "Closed",
            Self::READ_ONLY => "Read Only",
            Self::FULL => "Full",
            Self::OFFLINE => "Offline",
            Self(other) => return write!(f, "zone state {other:X}h"),
        })
    }
}

/// Which zones a report is about (ZNS 1.1a, Zone Management Receive command, Zone Receive Action
/// Specific Field).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedZones {
    /// All.
    All,
    /// Those in one state.
    In(ZoneState),
}

impl ReportedZones {
    /// The states that a report may be about, in the order of its numbers, from 1.
    const STATES: [ZoneState; 7] = [
        ZoneState::EMPTY,
        ZoneState::IMPLICITLY_OPEN,
        ZoneState::EXPLICITLY_OPEN,
        ZoneState::CLOSED,
        ZoneState::FULL,
        ZoneState::READ_ONLY,
        ZoneState::OFFLINE,
    ];

    /// True when a zone in `state` is among them.
    #[inline]
    pub fn include(self, state: ZoneState) -> bool {
        match self {
            Self::All => true,
            Self::In(wanted) => wanted == state,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::All => 0,
            Self::In(wanted) => (1..)
                .zip(Self::STATES)
                .find_map(|(number, state)| (state == wanted).then_some(number))
                .expect("zones are reported by a state that there is"),
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        match usize::from(number).checked_sub(1) {
            None => Some(Self::All),
            Some(at) => Self::STATES.get(at).map(|&state| Self::In(state)),
        }
    }
}

/// The Zoned Namespace command set (ZNS 1.1a, Zone Append, Zone Management Send and Zone Management
/// Receive commands).
impl Command {
    /// Asks to write `blocks` logical blocks, of 1 to 65,536, at the write pointer of the zone
    /// whose first block is `zone_start`.
    #[inline]
    pub fn zone_append(nsid: u32, zone_start: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::ZONE_APPEND, nsid, zone_start, blocks)
    }

    /// Asks the zone whose first block is `zone_start` to do `action`.
    #[inline]
    pub fn zone_management_send(nsid: u32, zone_start: u64, action: ZoneSendAction) -> Self {
        let [low, high] = halves(zone_start);
        let dwords = [low, high, 0, action as u32, 0, 0];
        Self::new(Opcode::ZONE_MANAGEMENT_SEND, nsid, dwords)
    }

    /// The same Zone Management Send to all zones for which it makes sense.
    #[inline]
    #[must_use]
    pub fn with_select_all(self) -> Self {
        self.with_dword::<13>(self.dword::<13>() | SELECT_ALL)
    }

    /// Asks for a report of `zones`, from the one that has block `lba` on, as much of it as fits
    /// `buffer_len` bytes: a multiple of 4, from 4.
    #[inline]
    pub fn report_zones(nsid: u32, lba: u64, zones: ReportedZones, buffer_len: u32) -> Self {
        assert!(buffer_len > 0 && buffer_len.is_multiple_of(4), "reports are asked for in dwords");
        let [low, high] = halves(lba);
        let dwords = [low, high, buffer_len / 4 - 1, zones.number() << 8, 0, 0];
        Self::new(Opcode::ZONE_MANAGEMENT_RECEIVE, nsid, dwords)
    }

    /// The same report, which counts only the zones that it has room for.
    #[inline]
    #[must_use]
    pub fn with_partial_report(self) -> Self {
        self.with_dword::<13>(self.dword::<13>() | PARTIAL_REPORT)
    }

    /// The Zone Send Action: CDW13 bits 7:0. `None` where it is none of these.
    #[inline]
    pub fn zone_send_action(&self) -> Option<ZoneSendAction> {
        let number = self.dword::<13>().to_le_bytes()[0];
        ZoneSendAction::ALL.into_iter().find(|&action| action as u8 == number)
    }

    /// True when all zones are asked: CDW13 bit 8.
    #[inline]
    pub fn is_select_all(&self) -> bool {
        self.dword::<13>() & SELECT_ALL != 0
    }

    /// Which zones a report is asked of: CDW13 bits 7:0, of which 0 is Report Zones, and bits 15:8.
    /// `None` where it is no such report.
    #[inline]
    pub fn reported_zones(&self) -> Option<ReportedZones> {
        let [action, which, ..] = self.dword::<13>().to_le_bytes();
        if action == 0 { ReportedZones::from_number(which) } else { None }
    }

    /// True when a report counts only the zones that it has room for: CDW13 bit 16.
    #[inline]
    pub fn is_partial_report(&self) -> bool {
        self.dword::<13>() & PARTIAL_REPORT != 0
    }

    /// Bytes of the host's buffer for a report, 4 to 16 GiB: CDW12, in dwords, of which 0 is 1.
    #[inline]
    pub fn report_bytes(&self) -> u64 {
        (u64::from(self.dword::<12>()) + 1) * 4
    }
}

/// What a report says of one zone (ZNS 1.1a, Zone Descriptor data structure).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ZoneDescriptor {
    kind: u8,
    state: u8,
    attributes: [u8; 6],
    capacity: U64,
    start: U64,
    write_pointer: U64,
    reserved: [u8; 32],
}

/// Bytes of a zone descriptor, and of what a report has before the first.
pub const ZONE_DESCRIPTOR_BYTES: usize = 64;

const _: () = assert!(size_of::<ZoneDescriptor>() == ZONE_DESCRIPTOR_BYTES);

/// Sequential Write Required, the one zone type that there is.
const SEQUENTIAL_WRITE_REQUIRED: u8 = 0x2;

/// The write pointer of a zone that has none, as other devices report it.
const NO_WRITE_POINTER: u64 = u64::MAX;

impl ZoneDescriptor {
    /// Of a zone in `state` that starts at block `start` and has `capacity` blocks to be written.
    /// The write pointer is left out where `state` has none.
    pub const fn new(state: ZoneState, start: u64, capacity: u64, write_pointer: u64) -> Self {
        let write_pointer =
            if state.has_write_pointer() { write_pointer } else { NO_WRITE_POINTER };
        Self {
            kind: SEQUENTIAL_WRITE_REQUIRED,
            state: state.0 << 4,
            attributes: [0; 6],
            capacity: U64::new(capacity),
            start: U64::new(start),
            write_pointer: U64::new(write_pointer),
            reserved: [0; 32],
        }
    }

    /// Byte 1, bits 7:4.
    pub fn state(&self) -> ZoneState {
        ZoneState(self.state >> 4)
    }

    /// Blocks of the zone that can be written: bytes 15:8.
    pub fn capacity(&self) -> u64 {
        self.capacity.get()
    }

    /// The zone's first block: bytes 23:16.
    pub fn start(&self) -> u64 {
        self.start.get()
    }

    /// The block that is written next, where the state has one: bytes 31:24.
    pub fn write_pointer(&self) -> Option<u64> {
        self.state().has_write_pointer().then_some(self.write_pointer.get())
    }
}

/// Writes a report of zones into a host's buffer (ZNS 1.1a, Report Zones data structure): the
/// number of zones in 8 bytes, 56 reserved ones, then the descriptors.
#[derive(Debug)]
pub struct ZoneReportWriter<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> ZoneReportWriter<'a> {
    /// A report of no zone at the front of `buffer`, or `None` where not even that fits: 64 bytes.
    pub fn new(buffer: &'a mut [u8]) -> Option<Self> {
        buffer.get_mut(..ZONE_DESCRIPTOR_BYTES)?.fill(0);
        Some(Self { buffer, len: ZONE_DESCRIPTOR_BYTES })
    }

    /// Appends `zone` and says true; or changes nothing and says false, if it does not fit.
    pub fn push(&mut self, zone: &ZoneDescriptor) -> bool {
        let end = self.len + ZONE_DESCRIPTOR_BYTES;
        let Some(entry) = self.buffer.get_mut(self.len..end) else { return false };
        entry.copy_from_slice(zone.as_bytes());
        self.len = end;
        true
    }

    /// Ends the report with `zones` as its number of zones, which is more than it has descriptors
    /// where they did not fit. Returns its length in bytes.
    pub fn finish(self, zones: u64) -> usize {
        self.buffer[..8].copy_from_slice(&zones.to_le_bytes());
        self.len
    }
}

/// A report of zones as a host reads it.
#[derive(Clone, Copy, Debug)]
pub struct ZoneReport<'a> {
    /// How many zones the report is about, whether it has room for them or not.
    pub zones: u64,
    /// As many of them as there was room for.
    pub descriptors: &'a [ZoneDescriptor],
}

impl<'a> ZoneReport<'a> {
    /// The report in `bytes`, or `None` where they are shorter than a report of no zone.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(ZONE_DESCRIPTOR_BYTES)?;
        let (zones, _) = U64::read_from_prefix(head).ok()?;
        let fitting = rest.len() / ZONE_DESCRIPTOR_BYTES;
        let count = usize::try_from(zones.get()).map_or(fitting, |zones| zones.min(fitting));
        let whole = &rest[..count * ZONE_DESCRIPTOR_BYTES];
        let descriptors = <[ZoneDescriptor]>::ref_from_bytes(whole).ok()?;
        Some(Self { zones: zones.get(), descriptors })
    }
}

#[cfg(test)]
mod tests;
