use super::page::{Asked, VendorPage};
use crate::fabrics::{Subsystem, Subsystems};
use engine::{Counts, Live, Usage};
use spec::{LogPage, Status};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The entry in the list of vendor log pages.
pub(super) const PAGE: VendorPage = VendorPage { id: EngineFigures::LOG_PAGE, read };

/// State and counters of the device's store and flash: log page C0h. All fields are 64-bit numbers,
/// little endian. Counters start when the device is opened, or continue from its saved state. The
/// last four start with the server.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct EngineFigures {
    /// 2, the version of this layout. Later ones only add fields; 1 ended with `flash_erases`.
    pub version: U64,
    /// Keys with a value, and a few internal records of key spaces.
    pub live_records: U64,
    /// Bytes of those records.
    pub live_bytes: U64,
    /// Maximum of `live_bytes`.
    pub capacity_bytes: U64,
    /// Delete records that are still needed.
    pub tombstones: U64,
    /// Extents that are free.
    pub extents_free: U64,
    /// Memory of the index in bytes.
    pub index_bytes: U64,
    /// Bytes of keys and values that hosts stored.
    pub host_bytes: U64,
    /// Pages sensed for hosts.
    pub host_page_reads: U64,
    /// Extents cleaned.
    pub victims: U64,
    /// Records that cleaning moved.
    pub records_moved: U64,
    /// Pages sensed for cleaning.
    pub gc_page_reads: U64,
    /// Pages programmed before they were full, because no other record was pending.
    pub padded_pages: U64,
    /// Pages of flash read.
    pub flash_reads: U64,
    /// Pages of flash programmed.
    pub flash_programs: U64,
    /// Blocks of flash erased.
    pub flash_erases: U64,
    /// Bytes that hosts read in all namespaces through all subsystems of the device. SMART / Health
    /// Information counts one subsystem only.
    pub bytes_read: U64,
    /// Bytes that hosts wrote, counted likewise.
    pub bytes_written: U64,
    /// Bytes of data programmed into the flash, copies within it included.
    pub flash_programmed_bytes: U64,
    /// Write amplification: `flash_programmed_bytes` for each million of `bytes_written`, or 0
    /// where that is 0.
    pub amplification_millionths: U64,
}

impl EngineFigures {
    /// The id of the log page.
    pub const LOG_PAGE: LogPage = LogPage(0xc0);

    /// Returns the figures of the store and the flash behind `subsystem`; zeros without a store.
    /// Flash and host bytes are those of the whole device.
    fn of(subsystem: &Subsystem, subsystems: &Subsystems) -> Self {
        let store = subsystem.device.kv();
        let usage = store.map_or_else(Usage::default, |store| store.usage());
        let pairs = store.map_or_else(Live::default, |store| store.live_pairs());
        let counts = store.map_or_else(Counts::default, |store| store.counters());
        let (flash, work) = (subsystem.flash(), subsystems.work_of(&subsystem.device));
        Self {
            version: 2.into(),
            live_records: pairs.records.into(),
            live_bytes: pairs.bytes.into(),
            capacity_bytes: store.map_or(0, |store| store.capacity_bytes()).into(),
            tombstones: usage.tombstones.records.into(),
            extents_free: u64::from(usage.extents_free).into(),
            index_bytes: usage.index_bytes.into(),
            host_bytes: counts.host_bytes.into(),
            host_page_reads: counts.host_page_reads.into(),
            victims: counts.victims.into(),
            records_moved: counts.records_moved.into(),
            gc_page_reads: counts.gc_page_reads.into(),
            padded_pages: counts.padded_pages.into(),
            flash_reads: flash.reads.into(),
            flash_programs: flash.programs.into(),
            flash_erases: flash.erases.into(),
            bytes_read: work.bytes_read.into(),
            bytes_written: work.bytes_written.into(),
            flash_programmed_bytes: flash.programmed_bytes.into(),
            amplification_millionths: millionths(flash.programmed_bytes, work.bytes_written).into(),
        }
    }
}

/// Returns `part` in millionths of `whole`, rounded down; 0 if `whole` is 0.
fn millionths(part: u64, whole: u64) -> u64 {
    let millionths = (u128::from(part) * 1_000_000).checked_div(whole.into()).unwrap_or(0);
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

#[expect(clippy::unnecessary_wraps, reason = "other pages can be refused")]
fn read(asked: &Asked<'_>) -> Result<Vec<u8>, Status> {
    Ok(EngineFigures::of(asked.subsystem, asked.subsystems).as_bytes().to_vec())
}
