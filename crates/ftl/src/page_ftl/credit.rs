use clock::TaskId;
use std::collections::VecDeque;

/// Space in the buffer for data that has not landed.
#[derive(Debug)]
pub(crate) struct Credit {
    /// Logical blocks that fit; `None` for no limit.
    room: Option<u64>,
    taken: u64,
    waiters: VecDeque<TaskId>,
}

impl Credit {
    pub(crate) const fn new(room: Option<u64>) -> Self {
        Self { room, taken: 0, waiters: VecDeque::new() }
    }

    /// Takes the space of one logical block; returns false when there is none.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        let free = self.room.is_none_or(|room| self.taken < room);
        self.taken += u64::from(free);
        free
    }

    /// Returns the space taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// True when a task waits for room.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Adds `task` to those woken when there is space.
    pub(crate) fn wait(&mut self, task: TaskId) {
        self.waiters.push_back(task);
    }

    /// Wakes all waiting tasks: there will be no room for them.
    pub(crate) fn wake_all(&mut self) {
        self.waiters.drain(..).for_each(clock::wake);
    }

    /// Gives back the space of `count` logical blocks.
    #[inline]
    pub(crate) fn give_back(&mut self, count: u32) {
        self.taken -= u64::from(count);
        let woken = self.waiters.len().min(count as usize);
        self.waiters.drain(..woken).for_each(clock::wake);
    }
}
