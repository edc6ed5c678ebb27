use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const ENTRIES: usize = 1024;
const TOO_MANY: u32 = 0xffff_ffff;

/// Up to 1,024 namespaces in ascending order (Base 2.1, Namespace List): the answer to
/// [`Cns::ACTIVE_NAMESPACES`](crate::Cns::ACTIVE_NAMESPACES), and the log page
/// [`LogPage::CHANGED_NAMESPACES`](crate::LogPage::CHANGED_NAMESPACES).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct NamespaceList([U32; ENTRIES]);

impl NamespaceList {
    /// More namespaces than a list has room for: what the log page of changed ones says then.
    pub fn too_many() -> Self {
        Self::from_iter([TOO_MANY])
    }

    /// The namespaces of the list, in its order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|id| id.get()).take_while(|&id| id != 0)
    }

    /// True when more namespaces changed than a list has room for.
    pub fn is_too_many(&self) -> bool {
        self.0[0] == TOO_MANY
    }
}

impl FromIterator<u32> for NamespaceList {
    /// The first 1,024 of `ids`, which are not zero and ascend.
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut list = Self::default();
        let mut last = 0;
        for (entry, id) in list.0.iter_mut().zip(ids) {
            assert!(last < id, "a list of namespaces ascends, and {id} follows {last}");
            last = id;
            *entry = id.into();
        }
        list
    }
}

impl Default for NamespaceList {
    /// No namespace.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_list_has_the_specifications_bytes() {
        // Base 2.1, Namespace List Format: identifiers of 4 bytes, zeros behind them.
        let mut expected = [0; 4096];
        expected[..8].copy_from_slice(&[1, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a]);
        let list: NamespaceList = [1, 0x0a0b_0c0d].into_iter().collect();
        assert_eq!(list.as_bytes(), expected);
        assert_eq!(NamespaceList::read_from_bytes(&expected), Ok(list.clone()));
        assert!(list.iter().eq([1, 0x0a0b_0c0d]));
        assert_eq!(NamespaceList::default().iter().next(), None);
    }

    #[test]
    fn a_list_has_the_first_1024() {
        let list: NamespaceList = (7..5000).collect();
        assert!(list.iter().eq(7..7 + 1024));
    }

    #[test]
    fn too_many_changes_are_told_by_the_first_entry() {
        // Base 2.1, Changed Attached Namespace List: FFFFFFFFh, then zeros.
        let mut expected = [0; 4096];
        expected[..4].fill(0xff);
        assert_eq!(NamespaceList::too_many().as_bytes(), expected);
        assert!(NamespaceList::too_many().is_too_many());
        assert!(!NamespaceList::from_iter([1]).is_too_many());
    }

    #[test]
    #[should_panic(expected = "a list of namespaces ascends, and 2 follows 2")]
    fn a_list_that_does_not_ascend_is_refused() {
        let _: Vec<_> = NamespaceList::from_iter([1, 2, 2]).iter().collect();
    }
}
