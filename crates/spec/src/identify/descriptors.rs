use super::CommandSet;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const BYTES: usize = 4096;
const HEADER_BYTES: usize = 4;

const EUI64: u8 = 1;
const NGUID: u8 = 2;
const UUID: u8 = 3;
const COMMAND_SET: u8 = 4;

/// One thing that a namespace is known by (Base 2.1, Namespace Identification Descriptor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceDescriptor {
    /// IEEE Extended Unique Identifier, most significant byte first: NIDT 1.
    Eui64([u8; 8]),
    /// Namespace Globally Unique Identifier, most significant byte first: NIDT 2.
    Nguid([u8; 16]),
    /// Universally Unique Identifier, in the order of its text: NIDT 3.
    Uuid([u8; 16]),
    /// The command set of the namespace: NIDT 4.
    CommandSet(CommandSet),
}

/// What a namespace is known by (Base 2.1, Namespace Identification Descriptor list).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct NamespaceDescriptors([u8; BYTES]);

impl NamespaceDescriptors {
    /// The list of `descriptors`, each of another type.
    pub fn new(descriptors: &[NamespaceDescriptor]) -> Self {
        let mut list = Self::default();
        let mut free = &mut list.0[..];
        for descriptor in descriptors {
            let (kind, id) = match descriptor {
                NamespaceDescriptor::Eui64(id) => (EUI64, &id[..]),
                NamespaceDescriptor::Nguid(id) => (NGUID, &id[..]),
                NamespaceDescriptor::Uuid(id) => (UUID, &id[..]),
                NamespaceDescriptor::CommandSet(set) => {
                    (COMMAND_SET, core::slice::from_ref(&set.0))
                }
            };
            let len = u8::try_from(id.len()).expect("no identifier has more than 16 bytes");
            let (entry, rest) = free
                .split_at_mut_checked(HEADER_BYTES + id.len())
                .expect("a namespace has few identifiers");
            entry[..2].copy_from_slice(&[kind, len]);
            entry[HEADER_BYTES..].copy_from_slice(id);
            free = rest;
        }
        list
    }

    /// The descriptors of the list, in its order, without those of unknown types.
    pub fn iter(&self) -> impl Iterator<Item = NamespaceDescriptor> + '_ {
        let mut rest = &self.0[..];
        let entries = core::iter::from_fn(move || {
            let (&[kind, len, ..], behind) = rest.split_first_chunk::<HEADER_BYTES>()?;
            let (id, behind) = behind.split_at_checked(len.into())?;
            rest = behind;
            (len != 0).then_some((kind, id))
        });
        entries.fuse().filter_map(|(kind, id)| match (kind, id) {
            (EUI64, id) => id.try_into().ok().map(NamespaceDescriptor::Eui64),
            (NGUID, id) => id.try_into().ok().map(NamespaceDescriptor::Nguid),
            (UUID, id) => id.try_into().ok().map(NamespaceDescriptor::Uuid),
            (COMMAND_SET, &[set]) => Some(NamespaceDescriptor::CommandSet(CommandSet(set))),
            _ => None,
        })
    }

    /// The command set of the namespace, if the list tells it.
    pub fn command_set(&self) -> Option<CommandSet> {
        self.iter().find_map(|descriptor| match descriptor {
            NamespaceDescriptor::CommandSet(set) => Some(set),
            _ => None,
        })
    }
}

impl Default for NamespaceDescriptors {
    /// No descriptor.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const ALL: [NamespaceDescriptor; 4] = [
        NamespaceDescriptor::Eui64(*b"01234567"),
        NamespaceDescriptor::Nguid(*b"0123456789abcdef"),
        NamespaceDescriptor::Uuid(*b"fedcba9876543210"),
        NamespaceDescriptor::CommandSet(CommandSet::KEY_VALUE),
    ];

    fn list(bytes: &[u8]) -> NamespaceDescriptors {
        let mut list = NamespaceDescriptors::default();
        list.0[..bytes.len()].copy_from_slice(bytes);
        list
    }

    #[test]
    fn descriptors_have_the_specifications_bytes() {
        // Base 2.1, Namespace Identification Descriptor: NIDT, NIDL, two reserved bytes, NID. Linux
        // takes a namespace for one of keys by 04 01 00 00 01.
        let expected = list(
            b"\x01\x08\0\x0001234567\x02\x10\0\x000123456789abcdef\
              \x03\x10\0\0fedcba9876543210\x04\x01\0\0\x01",
        );
        let descriptors = NamespaceDescriptors::new(&ALL);
        assert_eq!(descriptors, expected);
        assert!(descriptors.iter().eq(ALL));
        assert_eq!(descriptors.command_set(), Some(CommandSet::KEY_VALUE));
        assert_eq!(NamespaceDescriptors::new(&ALL[..3]).command_set(), None);
    }

    #[test]
    fn what_is_unknown_is_skipped() {
        let bytes = b"\x09\x02\0\0ab\x01\x03\0\0abc\x04\x02\0\0\x01\x01\x04\x01\xff\xff\x02";
        let all: Vec<_> = list(bytes).iter().collect();
        assert_eq!(all, [NamespaceDescriptor::CommandSet(CommandSet::ZONED)]);
    }

    #[test]
    fn a_list_ends_with_its_bytes() {
        let full = NamespaceDescriptors::read_from_bytes(&[4; 4096]).unwrap();
        assert_eq!(full.iter().next(), None, "four bytes are no command set");
        // Entries of five bytes: 819 of them, and one byte is left.
        let mut list = NamespaceDescriptors::default();
        for entry in list.0.chunks_exact_mut(5) {
            entry.copy_from_slice(&[4, 1, 0, 0, 1]);
        }
        assert_eq!(list.iter().count(), 819);
        assert_eq!(NamespaceDescriptors::default().iter().next(), None);
    }

    #[test]
    fn a_list_ends_with_an_entry_of_no_length() {
        // Base 2.1, Namespace Identification Descriptor list: NIDL 0 is its end.
        assert_eq!(list(b"\x04\0\0\0\x04\x01\0\0\x01").iter().next(), None);
    }
}
