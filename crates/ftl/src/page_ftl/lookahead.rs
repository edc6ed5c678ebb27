use smallvec::SmallVec;

/// Reads that are prefetched at most: together with what their answers touch, their data fits into
/// a second-level cache.
pub(crate) const READS_MAX: usize = 32;

/// The first logical blocks of announced reads, since the last read began.
#[derive(Debug, Default)]
pub(crate) struct Lookahead {
    announced: Announced,
}

pub(crate) type Announced = SmallVec<[u32; READS_MAX]>;

impl Lookahead {
    /// Announces a read of a logical block.
    #[inline]
    pub(crate) fn announce(&mut self, block: u32) {
        if self.announced.len() < READS_MAX {
            self.announced.push(block);
        }
    }

    /// Forgets the announced blocks, and returns them if there are several: the cache misses of one
    /// read have nothing to overlap with.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Announced> {
        match self.announced.len() {
            0 => None,
            1 => {
                self.announced.clear();
                None
            }
            _ => Some(std::mem::take(&mut self.announced)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_blocks_are_taken_together_and_a_bounded_number() {
        let mut lookahead = Lookahead::default();
        assert_eq!(lookahead.take(), None);
        lookahead.announce(7);
        assert_eq!(lookahead.take(), None, "there is one");
        lookahead.announce(8);
        lookahead.announce(9);
        assert_eq!(lookahead.take().as_deref(), Some(&[8, 9][..]), "the one was forgotten");
        (0..100).for_each(|block| lookahead.announce(block));
        let first: Vec<u32> = (0..32).collect();
        assert_eq!(lookahead.take().as_deref(), Some(&first[..]));
        assert_eq!(lookahead.take(), None);
    }
}
