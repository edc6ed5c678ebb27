//! What each extent holds at least, written down apart from the extents: so an old copy of one is
//! told from what it was last.

use crate::origin::{Opening, word};
use base::checksum::{crc32c, crc32c_append};
use clock::TaskId;
use media::{ExtentId, Label, Stream};
use std::collections::BTreeSet;

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u32 = 32;

/// What outlives any loss of power of an extent: of this opening this much, or of a later one
/// anything.
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the drive's secret, the number of the extent in 4 bytes, and bytes 4..32 |
/// | 4..8 | mount of the opening |
/// | 8..12 | count of the opening |
/// | 12..16 | units that had landed; 0 of one that was reset |
/// | 16 | 1 the extent was reset, 2 it is in use, 3 and has its footer |
/// | 17 | stream of the label; 0 of one that was reset |
/// | 18..24 | zero |
/// | 24..32 | epoch of the label; 0 of one that was reset |
///
/// Where nothing is known there are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) opening: Opening,
    pub(crate) fill: Fill,
}

/// What was known of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The opening is over.
    Reset,
    Used {
        label: Label,
        units: u32,
        /// Nothing is appended to it any more, and its footer outlives a loss of power.
        is_over: bool,
    },
}

/// An entry that is neither whole nor blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

const RESET: u8 = 1;
const USED: u8 = 2;
const OVER: u8 = 3;

impl Entry {
    /// What tells which of two is later.
    fn rank(&self) -> (Opening, u8, u32) {
        match self.fill {
            Fill::Used { units, is_over, .. } => (self.opening, is_over.into(), units),
            Fill::Reset => (self.opening, 2, 0),
        }
    }

    /// Units that are known to have landed in the opening.
    pub(crate) const fn units(&self) -> u32 {
        match self.fill {
            Fill::Reset => 0,
            Fill::Used { units, .. } => units,
        }
    }

    /// Whether nothing is appended any more to the extent, which has a footer.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.fill, Fill::Used { is_over: true, .. })
    }

    /// True when the ledger need not be written for this one alone.
    fn is_like(&self, other: &Self) -> bool {
        let (opening, state, _) = self.rank();
        let (other_opening, other_state, _) = other.rank();
        (opening, state) == (other_opening, other_state)
    }

    pub(crate) fn encode(&self, secret: [u8; 16], extent: ExtentId) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        bytes[4..8].copy_from_slice(&self.opening.mount.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.opening.count.to_le_bytes());
        match self.fill {
            Fill::Reset => bytes[16] = RESET,
            Fill::Used { label, units, is_over } => {
                bytes[12..16].copy_from_slice(&units.to_le_bytes());
                bytes[16] = if is_over { OVER } else { USED };
                bytes[17] = label.stream as u8;
                bytes[24..32].copy_from_slice(&label.epoch.to_le_bytes());
            }
        }
        let crc = crc_of(secret, extent, &bytes);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The entry of `extent`; `None` where nothing was written.
    pub(crate) fn decode(
        secret: [u8; 16],
        extent: ExtentId,
        bytes: &[u8],
    ) -> Result<Option<Self>, Damaged> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let bytes = bytes.first_chunk::<{ ENTRY_BYTES as usize }>().ok_or(Damaged)?;
        if word(bytes, 0) != crc_of(secret, extent, bytes) {
            return Err(Damaged);
        }
        let opening = Opening { mount: word(bytes, 4), count: word(bytes, 8) };
        let fill = match bytes[16] {
            RESET => Fill::Reset,
            state @ (USED | OVER) => {
                let stream = Stream::from_number(bytes[17]).ok_or(Damaged)?;
                let epoch = u64::from(word(bytes, 24)) | u64::from(word(bytes, 28)) << 32;
                let label = Label { stream, epoch };
                Fill::Used { label, units: word(bytes, 12), is_over: state == OVER }
            }
            _ => return Err(Damaged),
        };
        Ok(Some(Self { opening, fill }))
    }
}

fn crc_of(secret: [u8; 16], extent: ExtentId, bytes: &[u8; ENTRY_BYTES as usize]) -> u32 {
    let crc = crc32c_append(crc32c(&secret), &extent.0.to_le_bytes());
    crc32c_append(crc, &bytes[4..])
}

/// All entries, as they are or will be on the blocks.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Option<Entry>>,
    /// Extents of whose entries the blocks have earlier ones.
    unwritten: BTreeSet<ExtentId>,
    /// A task writes, or is about to.
    is_at_work: bool,
    /// Who waits until it has ended.
    waiters: Vec<TaskId>,
}

impl Ledger {
    /// An entry that lies on the blocks: of two the later one counts.
    pub(crate) fn found(&mut self, extent: ExtentId, entry: Entry) {
        let known = self.known(extent);
        if known.is_none_or(|known| known.rank() < entry.rank()) {
            *known = Some(entry);
        }
    }

    pub(crate) fn entry(&self, extent: ExtentId) -> Option<Entry> {
        self.entries.get(extent.0 as usize).copied().flatten()
    }

    /// Of the openings that it knows of, the last mount.
    pub(crate) fn last_mount(&self) -> u32 {
        let mounts = self.entries.iter().flatten().map(|entry| entry.opening.mount);
        mounts.max().unwrap_or_default()
    }

    /// Enters what has come to be known. True: a task is to be started that writes it.
    pub(crate) fn enter(&mut self, extent: ExtentId, entry: Entry) -> bool {
        let known = self.known(extent);
        if known.is_some_and(|known| known.rank() >= entry.rank()) {
            return false;
        }
        let is_written = known.is_some_and(|known| known.is_like(&entry));
        *known = Some(entry);
        if is_written {
            return false;
        }
        self.unwritten.insert(extent);
        !std::mem::replace(&mut self.is_at_work, true)
    }

    fn known(&mut self, extent: ExtentId) -> &mut Option<Entry> {
        let at = extent.0 as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, None);
        }
        &mut self.entries[at]
    }

    /// The first extent of the next note that is to be written, which has `count`, and their
    /// entries. `None` ends the task.
    pub(crate) fn take(&mut self, count: u32) -> Option<(u32, Vec<Option<Entry>>)> {
        let Some(extent) = self.unwritten.first().copied() else {
            self.is_at_work = false;
            self.waiters.drain(..).for_each(clock::wake);
            return None;
        };
        let first = extent.0 / count * count;
        self.unwritten.retain(|extent| extent.0 / count * count != first);
        let entries = (first..first + count).map(|extent| self.entry(ExtentId(extent)));
        Some((first, entries.collect()))
    }

    /// True when nothing is written or to be written; else the current task is woken then.
    pub(crate) fn is_idle(&mut self) -> bool {
        if self.is_at_work {
            self.waiters.push(clock::current());
        }
        !self.is_at_work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [0xC3; 16];
    const EXTENT: ExtentId = ExtentId(0x0102_0304);
    const OPENING: Opening = Opening { mount: 0x1112_1314, count: 0x2122_2324 };

    fn entries() -> [Entry; 3] {
        let label = Label { stream: Stream::Index, epoch: 0x4142_4344_4546_4748 };
        let used = |is_over| Fill::Used { label, units: 0x3132_3334, is_over };
        [Fill::Reset, used(false), used(true)].map(|fill| Entry { opening: OPENING, fill })
    }

    #[test]
    fn an_entry_lies_as_its_table_says() {
        let opening = [0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21];
        let mut reset = opening.to_vec();
        reset.extend([0, 0, 0, 0, 1]);
        let mut used = opening.to_vec();
        used.extend([0x34, 0x33, 0x32, 0x31, 2, 2, 0, 0, 0, 0, 0, 0]);
        used.extend([0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41]);
        let mut over = used.clone();
        over[12] = 3;
        for (entry, mut rest) in entries().into_iter().zip([reset, used, over]) {
            rest.resize(28, 0);
            let all = [&SECRET[..], &[4, 3, 2, 1], &rest].concat();
            let expected = [&crc32c(&all).to_le_bytes()[..], &rest].concat();
            assert_eq!(entry.encode(SECRET, EXTENT)[..], expected);
            assert_eq!(Entry::decode(SECRET, EXTENT, &expected), Ok(Some(entry)));
        }
        assert_eq!(Entry::decode(SECRET, EXTENT, &[0; 32]), Ok(None));
    }

    #[test]
    fn no_flipped_bit_and_no_other_extents_entry_is_read() {
        for bytes in entries().map(|entry| entry.encode(SECRET, EXTENT)) {
            for bit in 0..8 * bytes.len() {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Entry::decode(SECRET, EXTENT, &flipped), Err(Damaged), "bit {bit}");
            }
            assert_eq!(Entry::decode(SECRET, ExtentId(5), &bytes), Err(Damaged));
            assert_eq!(Entry::decode([0; 16], EXTENT, &bytes), Err(Damaged));
        }
    }

    #[test]
    fn only_later_entries_are_entered_and_only_other_ones_are_written_at_once() {
        let opening = |count| Opening { mount: 1, count };
        let used = |count, units| Entry {
            opening: opening(count),
            fill: Fill::Used {
                label: Label { stream: Stream::Host, epoch: 7 },
                units,
                is_over: units >= 20,
            },
        };
        let reset = |count| Entry { opening: opening(count), fill: Fill::Reset };
        let mut ledger = Ledger::default();
        let mut enter = |entry, is_written| {
            ledger.enter(ExtentId(3), entry);
            let taken = ledger.take(128);
            assert_eq!(taken.is_some(), is_written, "{entry:?}");
            while ledger.take(128).is_some() {}
            ledger.entry(ExtentId(3)).unwrap()
        };
        assert_eq!(enter(used(1, 5), true), used(1, 5));
        assert_eq!(enter(used(1, 9), false), used(1, 9), "with the next that is");
        assert_eq!(enter(used(1, 8), false), used(1, 9));
        assert_eq!(enter(used(1, 20), true), used(1, 20));
        assert_eq!(enter(reset(1), true), reset(1));
        assert_eq!(enter(used(1, 10), false), reset(1));
        assert_eq!(enter(used(2, 1), true), used(2, 1));
        assert_eq!(enter(reset(1), false), used(2, 1));
        assert_eq!(enter(reset(2), true), reset(2));
    }
}
