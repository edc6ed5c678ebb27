use crate::busy_stage::BusyStage;
use crate::class::Class;
use crate::queue::Queue;
use crate::rank::Rank;
use crate::stage::{Stage, Stages};
use crate::stretch::assert_nothing_locked;
use base::Nanos;

/// A running task of the installed schedule, or of a peer's. A later task may reuse the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    pub(crate) index: u32,
    /// The number of its schedule among peers.
    pub(crate) reactor_id: u32,
}

impl TaskId {
    /// Returns the number of its schedule among peers.
    #[inline]
    pub const fn reactor_id(self) -> usize {
        self.reactor_id as usize
    }

    /// Returns the task's place in its owner's table of futures.
    #[inline]
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// What a task is waiting for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    #[default]
    Nothing,
    Timer,
    Parked(Rank),
    /// In the queue of a resource; then holds it for `duration`, or until its guard drops.
    Serve(u32),
    Acquire(u32),
}

/// A task's account and its one place in a queue.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) wait: Wait,
    /// Set when what the task waited for has happened. A poll without it is spurious.
    pub(crate) fired: bool,
    pub(crate) class: Class,
    pub(crate) stage: Stage,
    pub(crate) wait_stage: Stage,
    /// Bits of the ranks held, and of those held by the parent on whose behalf this runs.
    pub(crate) held: u16,
    pub(crate) inherited: u16,
    pub(crate) next: u32,
    /// How often its work at a station was suspended.
    pub(crate) suspends: u32,
    pub(crate) since: Nanos,
    pub(crate) duration: Nanos,
    /// The resource's time under garbage collection when the wait began.
    pub(crate) gc_mark: Nanos,
    pub(crate) stages: Stages,
    /// See [`crate::name_task`].
    pub(crate) name: &'static str,
    /// The stage in which its next poll begins.
    pub(crate) busy_stage: BusyStage,
}

impl Task {
    /// The name of tasks without one of their own.
    pub(crate) const UNNAMED: &'static str = "other";
}

impl Default for Task {
    fn default() -> Self {
        Self {
            wait: Wait::Nothing,
            fired: false,
            class: Class::HostRead,
            stage: Stage::Queue,
            wait_stage: Stage::Queue,
            held: 0,
            inherited: 0,
            next: Queue::NO_TASK,
            suspends: 0,
            since: Nanos::ZERO,
            duration: Nanos::ZERO,
            gc_mark: Nanos::ZERO,
            stages: Stages::default(),
            name: Self::UNNAMED,
            busy_stage: BusyStage::default(),
        }
    }
}

impl Task {
    pub(crate) fn begin(&mut self, name: &'static str, busy_stage: BusyStage) {
        (self.name, self.busy_stage) = (name, busy_stage);
        self.fired = false;
        self.held = 0;
        self.inherited = 0;
        self.stages = Stages::default();
    }

    pub(crate) fn end(&self) {
        assert_nothing_locked();
        assert!(self.wait == Wait::Nothing, "a task ended while it waited");
        assert!(self.held == self.inherited, "a task ended holding what others wait for");
    }

    /// Starts a wait. One task waits for one thing at a time.
    #[inline]
    pub(crate) fn start_wait(&mut self, wait: Wait, rank: Rank) {
        self.assert_may_wait(rank);
        self.wait = wait;
        self.fired = false;
    }

    #[inline]
    pub(crate) fn assert_may_wait(&self, rank: Rank) {
        assert_nothing_locked();
        assert!(self.wait == Wait::Nothing, "a task waits for one thing at a time");
        assert!(
            rank.may_follow(self.held),
            "a task that holds ranks {:#b} may not wait for {rank:?}",
            self.held
        );
    }

    /// Accounts for the wait for a resource, which ends `now`. `gc_time` is the resource's time
    /// under garbage collection.
    #[inline]
    pub(crate) fn end_queueing(&mut self, now: Nanos, gc_time: Nanos) {
        let waited = now - self.since;
        let behind_gc = gc_time - self.gc_mark;
        self.stages.add(Stage::Gc, behind_gc);
        self.stages.add(self.wait_stage, waited - behind_gc);
    }

    /// Ends the wait if its event has happened.
    #[inline]
    pub(crate) fn end_wait(&mut self) -> bool {
        if self.fired {
            self.fired = false;
            self.wait = Wait::Nothing;
            return true;
        }
        false
    }

    pub(crate) fn waits_for(&self, queues: &[Queue]) -> Option<String> {
        match self.wait {
            Wait::Nothing => None,
            Wait::Timer => Some("a timer".to_owned()),
            Wait::Parked(rank) => Some(format!("another task ({rank:?})")),
            Wait::Serve(queue) | Wait::Acquire(queue) => {
                Some(queues[queue as usize].name.to_owned())
            }
        }
    }
}
