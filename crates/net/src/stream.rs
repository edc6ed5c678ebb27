use std::io::{IoSlice, IoSliceMut};

/// One end of a connection. Clones of a handle are not wanted: it is shared by reference between
/// the one task that reads and the one that writes.
pub trait Stream: 'static {
    /// Moves what has arrived into `into`, which has room, part by part, as far as there
    /// is some and it fits, and says how many bytes. `None`: nothing is there now. `Some(0)`: the
    /// peer ended its side, or [`Self::shut_down`] was called, and nothing more comes.
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken>;

    /// Sends `parts`, one after the other, as far as there is room, and says how many bytes of them
    /// were taken. `None`: there is no room now.
    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken>;

    /// Returns when [`Self::try_read`] is worth a try, which then still may find nothing.
    fn readable(&self) -> impl Future<Output = ()>;

    /// Returns false if [`Self::try_read`] would find nothing now. May return true then too.
    fn may_read(&self) -> bool {
        true
    }

    /// Returns when [`Self::try_write`] is worth a try, which then still may find no room.
    fn writable(&self) -> impl Future<Output = ()>;

    /// Ends both directions: wakes waiting tasks; later writes break and later reads find the end.
    fn shut_down(&self);
}

/// The connection is gone: the peer reset it, or this end was shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is broken")]
pub struct Broken;
