//! Leaves in memory: a bounded number of frames, and the choice of the next victim (CLOCK).

use super::leaf::{Leaf, LeafId};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Bytes of memory that a frame counts as: the longest leaf, and its state.
pub(super) const FRAME_BYTES: u64 = 4_096;

/// A leaf in memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) id: LeafId,
    /// The first hash beyond its range.
    pub(super) end: u64,
    pub(super) leaf: Leaf,
    /// Changed since its writing began, if it was ever written.
    pub(super) dirty: bool,
    /// On its way to flash, as it was when its writing began.
    pub(super) writing: bool,
    /// Wanted since the hand passed.
    touched: bool,
}

impl Frame {
    /// Returns true when its content is not on flash.
    const fn is_needed(&self) -> bool {
        self.dirty || self.writing
    }

    /// Returns true when it can be written.
    const fn is_waiting(&self) -> bool {
        self.dirty && !self.writing
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Frames {
    all: Vec<Frame>,
    by_id: HashMap<LeafId, usize, foldhash::fast::FixedState>,
    hand: usize,
    /// Frames whose content is not on flash.
    needed: usize,
    /// Frames that are dirty and not being written.
    dirty: usize,
}

/// The frames in a saved state, in the order that the hand goes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFrames {
    all: Vec<Frame>,
    hand: usize,
}

impl Frames {
    pub(super) fn save(&self) -> SavedFrames {
        SavedFrames { all: self.all.clone(), hand: self.hand }
    }

    /// Restores what [`Self::save`] returned. `None` when it has a leaf twice, or one that was
    /// being written.
    pub(super) fn restored(saved: SavedFrames) -> Option<Self> {
        let mut frames = Self { hand: saved.hand, ..Self::default() };
        for frame in saved.all {
            if frame.writing || frames.by_id.insert(frame.id, frames.all.len()).is_some() {
                return None;
            }
            frames.needed += usize::from(frame.is_needed());
            frames.dirty += usize::from(frame.is_waiting());
            frames.all.push(frame);
        }
        Some(frames)
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Frames that are dirty or being written.
    pub(super) const fn needed(&self) -> usize {
        self.needed
    }

    /// Returns true when one can be written.
    pub(super) fn has_dirty(&self) -> bool {
        self.dirty > 0
    }

    /// Returns the frame of leaf `id`, and marks it as used.
    #[inline]
    pub(super) fn get(&mut self, id: LeafId) -> Option<&mut Frame> {
        let frame = &mut self.all[*self.by_id.get(&id)?];
        frame.touched = true;
        Some(frame)
    }

    /// Returns the frame of leaf `id` without marking it as used.
    pub(super) fn peek(&self, id: LeafId) -> Option<&Frame> {
        self.by_id.get(&id).map(|at| &self.all[*at])
    }

    /// Adds a leaf that is not there. The caller has made room.
    pub(super) fn add(&mut self, id: LeafId, end: u64, leaf: Leaf) {
        let other = self.by_id.insert(id, self.all.len());
        assert!(other.is_none(), "a leaf is in one frame");
        self.all.push(Frame { id, end, leaf, dirty: false, writing: false, touched: true });
    }

    /// Takes away the next frame that is clean, was not wanted lately and is not among those that
    /// `is_held` names; false when all are needed or held.
    pub(super) fn evict(&mut self, is_held: impl Fn(&Frame) -> bool) -> bool {
        // Once around for those not touched, and once more for the others.
        for _ in 0..2 * self.all.len() {
            self.hand %= self.all.len();
            let frame = &mut self.all[self.hand];
            let stays = frame.is_needed() || is_held(frame);
            if stays || std::mem::take(&mut frame.touched) {
                self.hand += 1;
            } else {
                self.take(self.hand);
                return true;
            }
        }
        false
    }

    fn take(&mut self, at: usize) {
        let frame = self.all.swap_remove(at);
        self.by_id.remove(&frame.id);
        self.needed -= usize::from(frame.is_needed());
        self.dirty -= usize::from(frame.is_waiting());
        if let Some(moved) = self.all.get(at) {
            self.by_id.insert(moved.id, at);
        }
    }

    /// Changes the state of a frame by `change`.
    pub(super) fn update(&mut self, id: LeafId, change: impl FnOnce(&mut Frame)) {
        let frame = &mut self.all[self.by_id[&id]];
        self.needed -= usize::from(frame.is_needed());
        self.dirty -= usize::from(frame.is_waiting());
        change(frame);
        self.needed += usize::from(frame.is_needed());
        self.dirty += usize::from(frame.is_waiting());
    }

    /// Takes away all frames for which `is_gone`.
    pub(super) fn drop_all(&mut self, is_gone: impl Fn(LeafId) -> bool) {
        for at in (0..self.all.len()).rev() {
            if is_gone(self.all[at].id) {
                self.take(at);
            }
        }
    }

    /// Up to `count` dirty frames that are not being written, from the hand on: those that were not
    /// wanted lately first.
    pub(super) fn coldest_dirty(&self, count: usize) -> Vec<LeafId> {
        let (before, after) = self.all.split_at(self.hand.min(self.all.len()));
        let in_turn = || after.iter().chain(before).filter(|frame| frame.is_waiting());
        let cold = in_turn().filter(|frame| !frame.touched);
        let warm = in_turn().filter(|frame| frame.touched);
        cold.chain(warm).take(count).map(|frame| frame.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_space::{KeySpaceId, TableId};

    fn id(first: u64) -> LeafId {
        LeafId { table: TableId { space: KeySpaceId(1), generation: 0 }, first }
    }

    fn filled(count: u64) -> Frames {
        let mut frames = Frames::default();
        for first in 0..count {
            frames.add(id(first), first + 1, Leaf::default());
        }
        frames
    }

    fn there(frames: &Frames, count: u64) -> Vec<u64> {
        (0..count).filter(|first| frames.peek(id(*first)).is_some()).collect()
    }

    #[test]
    fn a_frame_used_since_the_hand_passed_stays_for_another_round() {
        let mut frames = filled(4);
        assert!(frames.evict(|_| false), "all were touched: the first has to go");
        assert_eq!(there(&frames, 4), [1, 2, 3]);
        frames.get(id(1)).unwrap();
        frames.get(id(3)).unwrap();
        assert!(frames.evict(|_| false));
        assert_eq!(there(&frames, 4), [1, 3], "2 alone was not wanted");
    }

    #[test]
    fn dirty_written_and_held_frames_are_not_evicted() {
        let mut frames = filled(4);
        frames.update(id(0), |frame| frame.dirty = true);
        frames.update(id(1), |frame| frame.writing = true);
        assert_eq!(frames.needed(), 2);
        assert!(frames.evict(|frame| frame.id == id(2)));
        assert_eq!(there(&frames, 4), [0, 1, 2]);
        assert!(!frames.evict(|frame| frame.id == id(2)), "no other frame can be evicted");
        frames.update(id(0), |frame| frame.dirty = false);
        assert_eq!(frames.needed(), 1);
        assert!(frames.evict(|frame| frame.id == id(2)));
        assert_eq!(there(&frames, 4), [1, 2]);
        assert!(!Frames::default().evict(|_| false), "there is no frame");
    }

    #[test]
    fn a_dropped_frame_is_not_counted_and_the_others_are_found() {
        let mut frames = filled(5);
        frames.update(id(1), |frame| frame.dirty = true);
        frames.update(id(4), |frame| frame.dirty = true);
        frames.drop_all(|leaf| leaf.first < 3);
        assert_eq!((frames.len(), frames.needed()), (2, 1));
        assert_eq!(frames.get(id(4)).unwrap().end, 5);
        assert_eq!(frames.get(id(3)).unwrap().end, 4);
    }

    #[test]
    fn the_coldest_dirty_leaves_are_written_first() {
        let mut frames = filled(5);
        assert!(frames.evict(|_| false), "the hand goes around");
        for first in 1..5 {
            frames.update(id(first), |frame| frame.dirty = first != 2);
        }
        frames.get(id(1)).unwrap();
        let cold = frames.coldest_dirty(2);
        assert!(!cold.contains(&id(1)) && cold.len() == 2, "{cold:?}");
        assert_eq!(frames.coldest_dirty(9).len(), 3, "all that are dirty");
        frames.update(id(3), |frame| frame.writing = true);
        assert!(!frames.coldest_dirty(9).contains(&id(3)), "one is on its way");
    }
}
