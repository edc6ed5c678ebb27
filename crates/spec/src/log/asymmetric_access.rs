use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What an Asymmetric Namespace Access log page begins with: log page 0Ch (Base 2.1, Asymmetric
/// Namespace Access log page). [`AccessGroup`]s follow.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AccessHeader {
    /// How often the page has changed: CHGC.
    pub changes: U64,
    /// Groups that follow: NAGD.
    pub groups: U16,
    #[doc(hidden)]
    pub reserved_10: Reserved<6>,
}

/// How the namespaces of a group can be reached by this controller (Base 2.1, ANA Group
/// Descriptor). Their ids, in ascending order and of 4 bytes, follow.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AccessGroup {
    /// The group, from 1: AGID.
    pub group: U32,
    /// How many namespaces follow: NNV.
    pub namespaces: U32,
    /// How often the group has changed: CHGC.
    pub changes: U64,
    /// Bits 3:0, as [`AccessGroup::OPTIMIZED`]: AGDSB.
    pub state: u8,
    #[doc(hidden)]
    pub reserved_17: Reserved<15>,
}

impl AccessGroup {
    /// Of `state`: no other controller reaches them better.
    pub const OPTIMIZED: u8 = 0x1;
}

const _: () = assert!(size_of::<AccessHeader>() == 16, "the header has 16 bytes");
const _: () = assert!(size_of::<AccessGroup>() == 32, "a group has 32 bytes before its ids");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_specifications_bytes() {
        // Base 2.1: CHGC 7:0, NAGD 9:8; of a group AGID 3:0, NNV 7:4, CHGC 15:8, state 16.
        let header = AccessHeader {
            changes: 0x0807_0605_0403_0201.into(),
            groups: 0x0a09.into(),
            ..AccessHeader::default()
        };
        assert_eq!(header.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0]);
        let group = AccessGroup {
            group: 0x0403_0201.into(),
            namespaces: 0x0807_0605.into(),
            changes: 0x100f_0e0d_0c0b_0a09.into(),
            state: AccessGroup::OPTIMIZED,
            ..AccessGroup::default()
        };
        let mut expected = [0; 32];
        expected[..17].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1]);
        assert_eq!(group.as_bytes(), expected);
    }
}
