use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const ENTRIES: usize = 2_047;

/// Up to 2,047 controllers in ascending order (Base 2.1, Controller List): the answer to
/// [`Cns::CONTROLLERS`](crate::Cns::CONTROLLERS), and the data of a Namespace Attachment.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ControllerList {
    len: U16,
    ids: [U16; ENTRIES],
}

const _: () = assert!(size_of::<ControllerList>() == 4096, "a list of controllers has 4,096 bytes");

impl ControllerList {
    /// The controllers of the list, in its order; `None` if it says that it has more than fit.
    pub fn ids(&self) -> Option<impl Iterator<Item = u16> + '_> {
        let ids = self.ids.get(..self.len.get().into())?;
        Some(ids.iter().map(|id| id.get()))
    }
}

impl FromIterator<u16> for ControllerList {
    /// The first 2,047 of `ids`, which ascend.
    fn from_iter<I: IntoIterator<Item = u16>>(ids: I) -> Self {
        let mut list = Self::new_zeroed();
        for (entry, id) in list.ids.iter_mut().zip(ids) {
            *entry = id.into();
            list.len += 1;
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_list_has_the_specifications_bytes() {
        // Base 2.1, Controller List: the number of ids in bytes 1:0, then the ids.
        let list: ControllerList = [1, 0x0203].into_iter().collect();
        let mut expected = [0; 4096];
        expected[..6].copy_from_slice(&[2, 0, 1, 0, 3, 2]);
        assert_eq!(list.as_bytes(), expected);
        assert_eq!(list.ids().unwrap().collect::<Vec<_>>(), [1, 0x0203]);
        let cut: ControllerList = (1..=3_000).collect();
        assert_eq!(cut.ids().unwrap().count(), 2_047);
        expected[..2].copy_from_slice(&2_048_u16.to_le_bytes());
        assert!(ControllerList::read_from_bytes(&expected).unwrap().ids().is_none());
    }
}
