//! How a checkpoint keeps the hash table: runs of entries in the order of their hashes, one after
//! the other, on table pages. A run continues with a new head on the next page.
//!
//! ```text
//! page:  | run | run | ...
//! run:   | entries 4 | space 2 | generation 4 | lane 1 | unit bits 1 | address bytes 1 | entry ...
//! entry: | hash less the one before, 7 bits a byte | page and unit, `address bytes` |
//! ```

use crate::format::address::Address;
use crate::key_space::{KeySpaceId, TableId};
use base::Buf;

const COUNT_BYTES: usize = 4;
const HEAD_BYTES: usize = COUNT_BYTES + 9;
/// The most that an entry takes: 5 of the hash, 6 of the address.
const ENTRY_BYTES_MAX: usize = 11;
/// Bits of an address below its page.
const UNIT_BITS: u32 = 16;

/// The entries of a table in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunId {
    pub(super) table: TableId,
    pub(super) lane: u8,
}

/// What the addresses of a run have in common: how few bits each takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widths {
    /// The bits of all pages, and those of all units.
    pages: u64,
    units: u64,
}

impl Widths {
    pub(super) fn add(&mut self, entries: &[(u32, Address)]) {
        for (_, address) in entries {
            let bits = address.to_bits();
            self.pages |= bits >> UNIT_BITS;
            self.units |= bits & ((1 << UNIT_BITS) - 1);
        }
    }

    const fn unit_bits(self) -> u32 {
        u64::BITS - self.units.leading_zeros()
    }

    fn address_bytes(self) -> u32 {
        let unit_bits = self.unit_bits();
        let bits = u64::BITS - (self.pages << unit_bits).leading_zeros();
        bits.max(unit_bits).div_ceil(8)
    }
}

/// Fills pages with runs.
#[derive(Debug)]
pub(super) struct Packer {
    page_bytes: usize,
    page: Vec<u8>,
    full: Vec<Buf>,
    run: Option<OpenRun>,
}

/// The run to which entries are added.
#[derive(Debug)]
struct OpenRun {
    /// Its head on any page, but for the number of entries.
    shape: [u8; HEAD_BYTES - COUNT_BYTES],
    unit_bits: u32,
    address_bytes: usize,
    /// Where its head begins on the open page, if it has one there.
    head: Option<usize>,
    /// The entries that follow this head.
    entries: u32,
    /// The hash of the last of them.
    before: u32,
}

impl Packer {
    pub(super) const fn new(page_bytes: u32) -> Self {
        Self { page_bytes: page_bytes as usize, page: Vec::new(), full: Vec::new(), run: None }
    }

    /// Begins a run, whose addresses have these widths.
    pub(super) fn begin(&mut self, run: RunId, widths: Widths) {
        let (unit_bits, address_bytes) = (widths.unit_bits(), widths.address_bytes());
        let small = |number: u32| u8::try_from(number).expect("an address has 48 bits");
        let ([s0, s1], [g0, g1, g2, g3]) =
            (run.table.space.0.to_le_bytes(), run.table.generation.to_le_bytes());
        self.run = Some(OpenRun {
            shape: [s0, s1, g0, g1, g2, g3, run.lane, small(unit_bits), small(address_bytes)],
            unit_bits,
            address_bytes: address_bytes as usize,
            head: None,
            entries: 0,
            before: 0,
        });
    }

    /// Adds entries to the run that was begun last, in the order of their hashes.
    pub(super) fn push(&mut self, entries: &[(u32, Address)]) {
        let mut run = self.run.take().expect("a run was begun");
        for (hash, address) in entries {
            if run.head.is_none() || self.page.len() + ENTRY_BYTES_MAX > self.page_bytes {
                self.begin_head(&mut run);
            }
            push_number(&mut self.page, hash - run.before);
            run.before = *hash;
            let bits = address.to_bits();
            let (page, unit) = (bits >> UNIT_BITS, bits & ((1 << UNIT_BITS) - 1));
            let packed = page << run.unit_bits | unit;
            self.page.extend_from_slice(&packed.to_le_bytes()[..run.address_bytes]);
            run.entries += 1;
        }
        self.end_head(&run);
        self.run = Some(run);
    }

    /// Begins the run on the open page, or continues it on the next.
    fn begin_head(&mut self, run: &mut OpenRun) {
        self.end_head(run);
        if self.page.len() + HEAD_BYTES + ENTRY_BYTES_MAX > self.page_bytes {
            self.close_page();
        }
        (run.head, run.entries, run.before) = (Some(self.page.len()), 0, 0);
        self.page.extend_from_slice(&[0; COUNT_BYTES]);
        self.page.extend_from_slice(&run.shape);
    }

    /// Writes the number of entries so far into the run's head on the open page.
    fn end_head(&mut self, run: &OpenRun) {
        if let Some(start) = run.head {
            self.page[start..start + COUNT_BYTES].copy_from_slice(&run.entries.to_le_bytes());
        }
    }

    fn close_page(&mut self) {
        if !self.page.is_empty() {
            self.full.push(Buf::copy_from(&self.page));
            self.page.clear();
        }
    }

    /// The pages that are full.
    pub(super) fn take_full(&mut self) -> Vec<Buf> {
        std::mem::take(&mut self.full)
    }

    pub(super) const fn full(&self) -> usize {
        self.full.len()
    }

    /// All that is left.
    pub(super) fn finish(&mut self) -> Vec<Buf> {
        self.close_page();
        self.take_full()
    }
}

/// Reads a page of runs: `take` gets one after the other, its entries in order. `None` when that is
/// not such a page, or `take` says so.
pub(super) fn read(
    mut page: &[u8],
    mut take: impl FnMut(RunId, &[(u32, Address)]) -> Option<()>,
) -> Option<()> {
    let mut entries = Vec::new();
    while !page.is_empty() {
        let (head, rest) = page.split_first_chunk::<HEAD_BYTES>()?;
        page = rest;
        let [n0, n1, n2, n3, s0, s1, g0, g1, g2, g3, lane, unit_bits, address_bytes] = *head;
        let (unit_bits, address_bytes) = (u32::from(unit_bits), usize::from(address_bytes));
        if unit_bits > UNIT_BITS || address_bytes > 6 {
            return None;
        }
        let mut hash = 0u32;
        for _ in 0..u32::from_le_bytes([n0, n1, n2, n3]) {
            hash = hash.checked_add(take_number(&mut page)?)?;
            let (address, after) = page.split_at_checked(address_bytes)?;
            page = after;
            let mut bytes = [0; 8];
            bytes[..address_bytes].copy_from_slice(address);
            let packed = u64::from_le_bytes(bytes);
            let bits = (packed >> unit_bits) << UNIT_BITS | packed & ((1 << unit_bits) - 1);
            if bits >> Address::BITS != 0 {
                return None;
            }
            entries.push((hash, Address::from_bits(bits)));
        }
        let space = KeySpaceId(u16::from_le_bytes([s0, s1]));
        let generation = u32::from_le_bytes([g0, g1, g2, g3]);
        take(RunId { table: TableId { space, generation }, lane }, &entries)?;
        entries.clear();
    }
    Some(())
}

fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is below 128")]
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    type Entries = Vec<(u32, Address)>;

    fn random(rng: &mut Rng) -> Entries {
        let (pages, units) = (1 + rng.below(1 << 32), 1 + rng.below(1 << 16));
        let spread = 1 << rng.below(32);
        let mut entries: Entries = (0..rng.below(2_000))
            .map(|_| {
                let hash = u32::MAX - u32::try_from(rng.below(spread)).unwrap();
                let bits = rng.below(pages) << 16 | rng.below(units);
                (hash, Address::from_bits(bits))
            })
            .collect();
        entries.sort_unstable();
        entries
    }

    fn pack(runs: &[(RunId, Entries)], page_bytes: u32) -> Vec<Buf> {
        let mut packer = Packer::new(page_bytes);
        for (run, entries) in runs {
            let mut widths = Widths::default();
            widths.add(entries);
            packer.begin(*run, widths);
            entries.chunks(300).for_each(|some| packer.push(some));
        }
        packer.finish()
    }

    #[test]
    fn runs_of_any_entries_read_back_as_they_were() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let table = TableId { space: KeySpaceId(0x1234), generation: 0x5678_9ABC };
            let run = |lane| RunId { table, lane };
            let runs: Vec<(RunId, Entries)> =
                (0..5).map(|lane| (run(lane), random(&mut rng))).collect();
            let mut found: Vec<(RunId, Entries)> =
                (0..5).map(|lane| (run(lane), Vec::new())).collect();
            for page in pack(&runs, 4_000) {
                assert!(page.len() <= 4_000);
                let take = |run: RunId, entries: &[(u32, Address)]| {
                    found[usize::from(run.lane)].1.extend_from_slice(entries);
                    (run.table == table).then_some(())
                };
                assert_eq!(read(page.bytes().unwrap(), take), Some(()), "seed {seed}");
            }
            assert_eq!(found, runs, "seed {seed}");
        }
    }

    /// 100 million entries on a terabyte: 1.6 million in a lane, so hashes are 2,700 apart, which
    /// takes 2 bytes; 26 bits of pages of 16 KiB and 5 of four headers in units of 8 take 4.
    #[test]
    fn an_entry_of_a_large_table_takes_no_more_than_8_bytes() {
        let mut rng = Rng::new(1);
        let mut hash = 0;
        let entries: Entries = (0..100_000)
            .map(|_| {
                hash += u32::try_from(rng.below(2 * 2_700)).unwrap();
                (hash, Address::from_bits(rng.below(1 << 26) << 16 | (3 + 7 * rng.below(4))))
            })
            .collect();
        let run = RunId { table: TableId::STORE, lane: 0 };
        let bytes: u32 = pack(&[(run, entries)], 16_384).iter().map(Buf::len).sum();
        assert!(bytes <= 8 * 100_000, "{bytes} bytes");
    }

    #[test]
    fn what_is_no_run_is_not_read_as_one() {
        let entries =
            vec![(7, Address::from_bits(9 << 16)), (900, Address::from_bits(1 << 16 | 3))];
        let run = RunId { table: TableId::STORE, lane: 1 };
        let page = pack(&[(run, entries)], 4_096).remove(0);
        let bytes = page.bytes().unwrap();
        let is_read = |bytes: &[u8]| read(bytes, |_, _| Some(())).is_some();
        assert!(is_read(bytes) && read(bytes, |_, _| None).is_none());
        assert!((1..bytes.len()).all(|len| !is_read(&bytes[..len])), "cut short");
        let mut too_wide = bytes.to_vec();
        too_wide[HEAD_BYTES - 1] = 7;
        assert!(!is_read(&too_wide));
    }
}
