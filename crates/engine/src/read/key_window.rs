//! A window of keys in memory: those that walks meet next.
//!
//! Walks go in the order of hashes, and records lie in the order of writing. Without its header in
//! memory each key costs a read of a page. Once walks over a table have read as many bytes key by
//! key as the summaries of all extents have, those are read instead. The keys that come next are
//! kept: as many as the memory takes.

use crate::clean::expiry::has_expired;
use crate::format::address::Address;
use crate::format::record::Header;
use crate::key_space::TableId;
use base::Key;
use clock::UnixMillis;
use media::ExtentId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a key takes in a window at most, beside its own: address, start, flags, length, date.
const ENTRY_BYTES: u64 = 22;

/// Bytes of reads from which on the cost of a window is computed.
const CHECK_BYTES: u64 = 64 << 10;

const IS_VALUE: u8 = 1;
const EXPIRES: u8 = 2;

/// Keys of records, by address.
#[derive(Debug, Default)]
pub(crate) struct KeyWindow {
    /// In rising order.
    addresses: Vec<u64>,
    /// Where the entry of each begins in `keys`: flags, length, date of expiry if any, key.
    starts: Vec<u32>,
    keys: Vec<u8>,
    /// The least hash after the keys that it was read for; `None` when it has the last.
    until: Option<u64>,
}

impl KeyWindow {
    /// Notes the key of the record at `address`, which comes after the addresses noted before.
    pub(crate) fn note(&mut self, address: Address, header: &Header<'_>) {
        assert!(self.addresses.last().is_none_or(|last| *last < address.to_bits()), "in order");
        self.addresses.push(address.to_bits());
        self.starts.push(u32::try_from(self.keys.len()).expect("a window is below 4 GiB"));
        let value = if header.kind.is_value() { IS_VALUE } else { 0 };
        let flags = value | if header.expires.is_some() { EXPIRES } else { 0 };
        let len = u8::try_from(header.key.len()).expect("a stored key has 1 to 255 bytes");
        self.keys.extend([flags, len]);
        self.keys.extend(header.expires.map(|date| date.0.to_le_bytes()).iter().flatten());
        self.keys.extend_from_slice(header.key);
    }

    /// Sets the hash that comes after the window's keys.
    pub(crate) fn end(&mut self, until: Option<u64>) {
        self.until = until;
    }

    /// Returns the key of the record at `address`, and whether it exists.
    fn get(&self, address: Address) -> Option<(Key, bool)> {
        let at = self.addresses.binary_search(&address.to_bits()).ok()?;
        let (entry, mut rest) = self.keys[self.starts[at] as usize..].split_first_chunk::<2>()?;
        let [flags, len] = *entry;
        let mut expires = None;
        if flags & EXPIRES != 0 {
            let (date, key) = rest.split_first_chunk()?;
            (expires, rest) = (Some(UnixMillis(u64::from_le_bytes(*date))), key);
        }
        let key = Key::new(&rest[..usize::from(len)]).expect("it was a key");
        Some((key, flags & IS_VALUE != 0 && !has_expired(expires)))
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.addresses.len() * 12 + self.keys.len()) as u64
    }
}

/// How large a window may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRoom {
    /// Keys to read it for.
    pub(crate) keys: usize,
    /// Bytes that it may take.
    pub(crate) bytes: u64,
}

/// The state of the walks over a table.
#[derive(Debug, Default)]
struct OfTable {
    window: Option<KeyWindow>,
    /// Keys that the window has told.
    hits: u64,
    /// Keys that were read one by one, and bytes of the keys.
    read_keys: u64,
    key_bytes: u64,
    /// Bytes that those reads took since the window was read, and when its cost was last computed.
    read_bytes: u64,
    checked_bytes: u64,
    /// A window is being read, and the bytes that it may take.
    is_read: bool,
    reserved: u64,
    /// Extents that other records have filled since the window began to be read.
    refilled: BTreeSet<ExtentId>,
}

impl OfTable {
    /// Returns the bytes of reads that a window would save a walk that continues after `after`.
    fn credit(&self, after: Option<u64>, head_bytes: u64) -> u64 {
        let until = self.window.as_ref().and_then(|window| window.until);
        let is_used_up = until.is_some_and(|until| after.is_some_and(|after| after >= until));
        self.read_bytes + if is_used_up { self.hits * head_bytes } else { 0 }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct KeyWindows {
    bytes_max: u64,
    tables: Mutex<BTreeMap<TableId, OfTable>>,
}

impl KeyWindows {
    /// Makes windows that take at most `bytes_max` bytes in all; with 0 there are none.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, tables: Mutex::default() }
    }

    fn tables(&self) -> MutexGuard<'_, BTreeMap<TableId, OfTable>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of the record at `address` in `extent`, and whether it exists, if a window
    /// has it.
    pub(crate) fn get(
        &self,
        table: TableId,
        extent: ExtentId,
        address: Address,
    ) -> Option<(Key, bool)> {
        if self.bytes_max == 0 {
            return None;
        }
        let mut tables = self.tables();
        let of_table = tables.get_mut(&table)?;
        let window = of_table.window.as_ref()?;
        let found = window.get(address).filter(|_| !of_table.refilled.contains(&extent))?;
        of_table.hits += 1;
        Some(found)
    }

    /// Notes that so many keys were read one by one, with this many bytes in all, from the medium
    /// `head_bytes` each.
    pub(crate) fn note_read(&self, table: TableId, keys: u64, key_bytes: u64, head_bytes: u64) {
        if self.bytes_max > 0 && keys > 0 {
            let mut tables = self.tables();
            let of_table = tables.entry(table).or_default();
            of_table.read_keys += keys;
            of_table.key_bytes += key_bytes;
            of_table.read_bytes += keys * head_bytes;
        }
    }

    /// Returns the bytes of reads that a window would save a walk that continues after `after`, if
    /// they may be as many as the window costs. The caller then computes that cost. The header of a
    /// key takes a read of `head_bytes`.
    pub(crate) fn credit(
        &self,
        table: TableId,
        after: Option<u64>,
        head_bytes: u64,
    ) -> Option<u64> {
        let mut tables = self.tables();
        let of_table = tables.get_mut(&table).filter(|of_table| !of_table.is_read)?;
        let (credit, checked) = (of_table.credit(after, head_bytes), of_table.checked_bytes);
        if credit < checked + checked / 8 + CHECK_BYTES {
            return None;
        }
        of_table.checked_bytes = of_table.read_bytes;
        Some(credit)
    }

    /// Returns whether a window is worth the `cost` bytes that it takes to read: the caller then
    /// reads it.
    pub(crate) fn begin(
        &self,
        table: TableId,
        credit: u64,
        head_bytes: u64,
        cost: u64,
    ) -> Option<WindowRoom> {
        let mut tables = self.tables();
        let of_table = tables.get(&table).filter(|of_table| !of_table.is_read)?;
        let key_bytes = of_table.key_bytes.div_ceil(of_table.read_keys.max(1));
        let others = || tables.iter().filter(|(id, _)| **id != table).map(|(_, it)| it);
        // Windows that are being read take their room now.
        let reserved: u64 = others().map(|it| it.reserved).sum();
        let kept: u64 = others().filter_map(|it| it.window.as_ref()).map(KeyWindow::bytes).sum();
        let is_crowded = reserved + kept > self.bytes_max / 2;
        let bytes = self.bytes_max.saturating_sub(reserved + if is_crowded { 0 } else { kept });
        let keys = bytes / (ENTRY_BYTES + key_bytes);
        if credit < cost || keys * head_bytes < 2 * cost {
            return None;
        }
        for (id, other) in tables.iter_mut() {
            if *id == table {
                let (read_keys, key_bytes) = (other.read_keys, other.key_bytes);
                let begun = OfTable { is_read: true, reserved: bytes, ..OfTable::default() };
                *other = OfTable { read_keys, key_bytes, ..begun };
            } else if is_crowded {
                other.window = None;
            }
        }
        Some(WindowRoom { keys: usize::try_from(keys).expect("they are in memory"), bytes })
    }

    /// Keeps the window that the caller has read since [`Self::begin`].
    pub(crate) fn keep(&self, table: TableId, window: KeyWindow) {
        if let Some(of_table) = self.tables().get_mut(&table) {
            (of_table.is_read, of_table.reserved) = (false, 0);
            of_table.window = Some(window);
        }
    }

    /// Notes that `extent` was opened again, for other records.
    pub(crate) fn forget_extent(&self, extent: ExtentId) {
        if self.bytes_max > 0 {
            for of_table in self.tables().values_mut() {
                of_table.refilled.insert(extent);
            }
        }
    }

    /// The keys of `table` are gone.
    pub(crate) fn forget_table(&self, table: TableId) {
        self.tables().remove(&table);
    }
}
