use crate::format::record::HEADER_ALIGN;
use media::{ExtentId, PageId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Where a record's header lies, in 48 bits: a page number in 32, and in 16 an offset in the page's
/// headers, in units of 8 bytes; or, where the record has a frame to itself, how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address(u64);

/// Addresses where a key's record may lie. The record holds the key, so the reader can check it.
pub type Candidates = SmallVec<[Address; 2]>;

impl Address {
    /// How many bits an address has.
    pub const BITS: u32 = 48;

    /// The first address in their order.
    pub const MIN: Self = Self(0);

    /// The last address in their order.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);

    /// The address that [`Self::to_bits`] gave.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        assert!(bits >> Self::BITS == 0, "an address has 48 bits");
        Self(bits)
    }

    /// The address as a number below 2^48.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn new(page: PageNumber, offset: usize) -> Self {
        assert!(offset.is_multiple_of(HEADER_ALIGN), "headers are aligned");
        let unit = u16::try_from(offset / HEADER_ALIGN);
        Self::with_unit(page, unit.expect("the headers of a page take less than 512 KiB"))
    }

    /// An address whose lower 16 bits say something else than an offset.
    #[inline]
    pub(crate) fn with_unit(page: PageNumber, unit: u16) -> Self {
        Self((u64::from(page.0) << 16) | u64::from(unit))
    }

    /// The lower 16 bits.
    #[inline]
    pub(crate) const fn unit(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }

    #[inline]
    pub(crate) const fn page(self) -> PageNumber {
        #[expect(clippy::cast_possible_truncation, reason = "an address has 48 bits")]
        PageNumber((self.0 >> 16) as u32)
    }

    #[inline]
    pub(crate) const fn offset(self) -> usize {
        self.unit() as usize * HEADER_ALIGN
    }
}

/// A page of the medium, counted through all extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PageNumber(pub(crate) u32);

impl PageNumber {
    #[inline]
    pub(crate) fn new(at: PageId, pages_per_extent: u32) -> Self {
        let number = u64::from(at.extent.0) * u64::from(pages_per_extent) + u64::from(at.page);
        Self(u32::try_from(number).expect("a medium has fewer than 2^32 pages"))
    }

    #[inline]
    pub(crate) const fn id(self, pages_per_extent: u32) -> PageId {
        PageId { extent: ExtentId(self.0 / pages_per_extent), page: self.0 % pages_per_extent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_back_its_page_and_offset() {
        let id = PageId { extent: ExtentId(250), page: 16_383 };
        let address = Address::new(PageNumber::new(id, 16_384), 1_016);
        assert_eq!(address.page().id(16_384), id);
        assert_eq!(address.offset(), 1_016);
        assert_eq!(Address::from_bits(address.to_bits()), address);
    }
}
