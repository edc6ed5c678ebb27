//! The stores that wait for space, in a queue for each writer of the log.
//!
//! A writer appends to an open extent of its own. So a store that waits for an extent holds up only
//! the later stores of its own writer: the others have room as long as theirs is open.

use clock::TaskId;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct RoomQueue {
    /// By writer.
    queues: Vec<VecDeque<Waiter>>,
    /// Number of places that were given.
    places: u64,
}

/// The place of a store in the order in which all came.
// Without 0, `Option<Place>` is as small: each write has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(NonZeroU64);

#[derive(Debug)]
struct Waiter {
    task: TaskId,
    place: Place,
}

impl RoomQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// Returns the writers whose stores wait: the bit of each is set.
    pub(crate) fn writers(&self) -> u64 {
        let bit = |(at, queue): (usize, &VecDeque<_>)| u64::from(!queue.is_empty()) << at;
        self.queues.iter().enumerate().map(bit).sum()
    }

    /// Returns whether a store of `writer` waits.
    pub(crate) fn has_any_of(&self, writer: usize) -> bool {
        self.queues.get(writer).is_some_and(|queue| !queue.is_empty())
    }

    /// Adds a store of `writer`, and returns its place: at the end of its queue, or as the first
    /// if it had a place before, which it keeps.
    pub(crate) fn add(&mut self, writer: usize, task: TaskId, had: Option<Place>) -> Place {
        if self.queues.len() <= writer {
            self.queues.resize_with(writer + 1, VecDeque::new);
        }
        if let Some(place) = had {
            let queue = &mut self.queues[writer];
            let place = queue.front().map_or(place, |first| place.min(first.place));
            queue.push_front(Waiter { task, place });
            return place;
        }
        let place = self.last();
        self.queues[writer].push_back(Waiter { task, place });
        place
    }

    /// Returns a place behind all stores.
    pub(crate) fn last(&mut self) -> Place {
        self.places += 1;
        Place(NonZeroU64::new(self.places).expect("it begins at 1"))
    }

    /// Takes out the first store of `writer`.
    pub(crate) fn next_of(&mut self, writer: usize) -> Option<TaskId> {
        Some(self.queues.get_mut(writer)?.pop_front()?.task)
    }

    /// Takes out the first `count` stores of each of so many writers: of those without an open
    /// extent before the others, which have their bits in `open`, and of the longest waiting first.
    pub(crate) fn next(&mut self, writers: u32, open: u64, count: usize) -> Vec<TaskId> {
        let rank = |(at, queue): (usize, &VecDeque<Waiter>)| {
            let is_open = open >> at & 1;
            Some((is_open, queue.front()?.place, at))
        };
        let mut ranked: Vec<_> = self.queues.iter().enumerate().filter_map(rank).collect();
        ranked.sort_unstable();
        let mut next = Vec::new();
        for (.., writer) in ranked.into_iter().take(writers as usize) {
            let queue = &mut self.queues[writer];
            let count = count.min(queue.len());
            next.extend(queue.drain(..count).map(|waiter| waiter.task));
        }
        next
    }

    /// Takes out all stores, in the order in which they came.
    pub(crate) fn take_all(&mut self) -> Vec<TaskId> {
        let mut all: Vec<_> = self.queues.iter_mut().flat_map(|queue| queue.drain(..)).collect();
        all.sort_by_key(|waiter| waiter.place);
        all.into_iter().map(|waiter| waiter.task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Reactor;

    /// Returns some tasks, by number.
    fn tasks(count: u32) -> Vec<TaskId> {
        Reactor::new(None).run(async move {
            let task = |_| clock::spawn(async {});
            (0..count).map(task).collect()
        })
    }

    #[test]
    fn stores_of_writers_without_an_open_extent_go_first_and_then_the_one_that_came_first() {
        let tasks = tasks(5);
        let mut queue = RoomQueue::default();
        for (writer, task) in [2, 0, 2, 1, 2].into_iter().zip(&tasks) {
            queue.add(writer, *task, None);
        }
        assert_eq!(queue.writers(), 0b111);
        assert_eq!(queue.next(1, 0b100, 9), [tasks[1]]);
        assert_eq!(queue.next(2, 0b100, 2), [tasks[3], tasks[0], tasks[2]]);
        assert_eq!((queue.writers(), queue.next_of(0)), (0b100, None));
        assert_eq!((queue.next_of(2), queue.is_empty()), (Some(tasks[4]), true));
    }

    #[test]
    fn a_store_that_had_its_turn_is_the_first_of_its_writer_again() {
        let tasks = tasks(4);
        let mut queue = RoomQueue::default();
        let first = queue.add(0, tasks[0], None);
        queue.add(1, tasks[1], None);
        queue.add(0, tasks[2], None);
        assert_eq!(queue.next_of(0), Some(tasks[0]));
        assert_eq!(queue.add(0, tasks[0], Some(first)), first);
        assert_eq!(queue.next(1, 0, 9), [tasks[0], tasks[2]]);
        queue.add(0, tasks[0], Some(first));
        queue.add(0, tasks[3], None);
        assert_eq!(queue.take_all(), [tasks[0], tasks[1], tasks[3]], "it keeps its place");
        assert!(queue.is_empty());
    }
}
