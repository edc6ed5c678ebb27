use smallvec::SmallVec;
use std::os::fd::OwnedFd;

/// File descriptors that came with received bytes, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct PassedFds {
    kept: SmallVec<[OwnedFd; PassedFds::MAX]>,
    are_too_many: bool,
}

impl PassedFds {
    /// The most descriptors that are kept. Those beyond are closed.
    pub const MAX: usize = 16;

    /// Returns the number of kept descriptors.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// True if no descriptor is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// True if descriptors were closed: more than [`Self::MAX`] came, or the process has no room
    /// for more.
    pub fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// Moves the kept descriptors out.
    pub fn take(&mut self) -> impl ExactSizeIterator<Item = OwnedFd> {
        std::mem::take(&mut self.kept).into_iter()
    }

    /// Closes the kept descriptors and forgets that there were too many.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.are_too_many = false;
    }

    pub(super) fn add(&mut self, fd: OwnedFd) {
        if self.kept.len() < Self::MAX {
            self.kept.push(fd);
        } else {
            self.are_too_many = true;
        }
    }

    pub(super) fn note_closed_by_kernel(&mut self) {
        self.are_too_many = true;
    }
}

impl FromIterator<OwnedFd> for PassedFds {
    fn from_iter<T: IntoIterator<Item = OwnedFd>>(fds: T) -> Self {
        let mut passed = Self::default();
        fds.into_iter().for_each(|fd| passed.add(fd));
        passed
    }
}
