use super::CommandSet;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const COMBINATIONS: usize = 512;

/// Which I/O command sets a controller has together (Base 2.1, Identify I/O Command Set data
/// structure): combinations, each with a bit for every [`CommandSet`]. A host selects one by
/// [`Feature::COMMAND_SET_PROFILE`](crate::Feature::COMMAND_SET_PROFILE).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct IoCommandSets([U64; COMBINATIONS]);

impl IoCommandSets {
    /// With one combination, of all of `sets`.
    pub fn of(sets: &[CommandSet]) -> Self {
        let mut combinations = Self::default();
        combinations.0[0] = sets.iter().fold(0, |bits, set| bits | bit_of(*set)).into();
        combinations
    }

    /// True when the combination `index` has `set`.
    pub fn contains(&self, index: u16, set: CommandSet) -> bool {
        self.0.get(usize::from(index)).is_some_and(|sets| sets.get() & bit_of(set) != 0)
    }

    /// How many combinations there are: those before the first without a command set.
    pub fn len(&self) -> usize {
        self.0.iter().position(|sets| sets.get() == 0).unwrap_or(COMBINATIONS)
    }

    /// True when there is no combination.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for IoCommandSets {
    /// No combination.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// The bit of a command set; none has a number above 63.
fn bit_of(set: CommandSet) -> u64 {
    1_u64.checked_shl(set.0.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_have_the_specifications_bytes() {
        // Base 2.1, I/O Command Set Combination 0: bit 0 NVM, bit 1 Key Value, bit 2 Zoned.
        let sets = IoCommandSets::of(&[CommandSet::NVM, CommandSet::KEY_VALUE]);
        let mut expected = [0; 4096];
        expected[0] = 0b011;
        assert_eq!(sets.as_bytes(), expected);
        assert_eq!(sets.len(), 1);
        assert!(sets.contains(0, CommandSet::KEY_VALUE));
        assert!(!sets.contains(0, CommandSet::ZONED));
        assert!(!sets.contains(1, CommandSet::KEY_VALUE));

        expected[8] = 0b100;
        let sets = IoCommandSets::read_from_bytes(&expected).unwrap();
        assert_eq!(sets.len(), 2);
        assert!(sets.contains(1, CommandSet::ZONED));
        assert!(IoCommandSets::default().is_empty());
    }

    #[test]
    fn numbers_beyond_what_there_can_be_are_contained_nowhere() {
        let all = IoCommandSets::read_from_bytes(&[0xff; 4096]).unwrap();
        assert_eq!(all.len(), 512);
        assert!(all.contains(511, CommandSet(63)));
        assert!(!all.contains(512, CommandSet(63)));
        assert!(!all.contains(0, CommandSet(64)));
    }
}
