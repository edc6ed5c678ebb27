use crate::class::Class;
use crate::park::assert_not_waiting;
use crate::queue::{Group, GroupOrder, Queue, ResourceInfo};
use crate::rank::Rank;
use crate::schedule::{Schedule, with, with_installed};
use crate::stage::Stage;
use crate::task_state::{Task, Wait};
use base::Nanos;
use base::limits::BYPASS_MAX;
use std::pin::Pin;
use std::task::{Context, Poll};

impl Group {
    /// A group of the installed schedule, in the usual order of classes.
    #[expect(
        clippy::new_without_default,
        reason = "it registers itself; nothing about it is a default"
    )]
    pub fn new() -> Self {
        with(|schedule| {
            schedule.groups.push(GroupOrder::default());
            Self(u32::try_from(schedule.groups.len() - 1).expect("few devices"))
        })
    }

    /// Serves by arrival in all resources of this group, whatever the class. Called before any task
    /// waits.
    pub fn serve_in_order_of_arrival(self) {
        with(|schedule| {
            schedule.groups[self.0 as usize].by_arrival = true;
            let mine = schedule.queues.iter_mut().filter(|queue| queue.group == self);
            mine.for_each(Queue::serve_in_order_of_arrival);
        });
    }

    /// Returns a resource of `units` equal units, all free. `name` appears in reports.
    pub fn resource(self, name: &'static str, rank: Rank, units: u32) -> Resource {
        assert!(units > 0, "{name} has no units, so a waiter would wait forever");
        with(|schedule| {
            let mut queue = Queue::new(name, rank, units, self);
            queue.by_arrival = schedule.groups[self.0 as usize].by_arrival;
            schedule.queues.push(queue);
            Resource(u32::try_from(schedule.queues.len() - 1).expect("few resources"))
        })
    }
}

/// Returns all resources, in the order in which they were made.
pub fn resources() -> Vec<ResourceInfo> {
    with(|schedule| schedule.queues.iter().map(Queue::info).collect())
}

/// Something that serves a bounded number of tasks at a time.
#[derive(Clone, Copy, Debug)]
pub struct Resource(u32);

impl Resource {
    pub(crate) const fn index(self) -> u32 {
        self.0
    }

    /// Waits for a unit, holds it for `duration` and gives it back. The time held goes to `stage`.
    /// The time waited goes to [`Stage::Queue`], or to [`Stage::Gc`] while garbage collection held
    /// the resource.
    #[inline]
    pub fn serve(self, class: Class, stage: Stage, duration: Nanos) -> Serve {
        let (wait_stage, work) = (Stage::Queue, None);
        Serve { resource: self, class, stage, wait_stage, duration, work, waiting: false }
    }

    /// Waits for a unit and holds it until the guard drops. Accounts for the wait as
    /// [`Self::serve`].
    #[inline]
    pub fn acquire(self, class: Class) -> Acquire {
        Acquire { resource: self, class, wait_stage: Stage::Queue, work: "held", waiting: false }
    }

    /// Returns the time for which its units were held so far, summed over the units.
    pub fn busy(self) -> Nanos {
        with(|schedule| {
            let now = schedule.now;
            schedule.queues[self.0 as usize].busy_until(now)
        })
    }
}

impl Schedule {
    /// Puts the current task at the end of its class's list.
    #[inline]
    fn enqueue(&mut self, queue: u32, class: Class) {
        let index = self.current;
        let tail = {
            let queue = &mut self.queues[queue as usize];
            let place = if queue.by_arrival { 0 } else { class as usize };
            let list = &mut queue.lists[place];
            let tail = std::mem::replace(&mut list.tail, index);
            if tail == Queue::NO_TASK {
                list.head = index;
                queue.waiting |= 1 << place;
            }
            tail
        };
        if tail != Queue::NO_TASK {
            self.task(tail).next = index;
        }
        self.task(index).next = Queue::NO_TASK;
    }

    /// Takes the next waiter out of its list: one of the most urgent class, or the longest waiter
    /// after too many bypasses.
    #[inline]
    fn dequeue(&mut self, queue: u32) -> u32 {
        let waiting = self.queues[queue as usize].waiting;
        let class = if waiting.is_power_of_two() {
            waiting.trailing_zeros() as usize
        } else {
            self.most_urgent(queue, waiting)
        };
        let index = self.queues[queue as usize].lists[class].head;
        let next = self.task(index).next;
        let queue = &mut self.queues[queue as usize];
        queue.lists[class].head = next;
        if next == Queue::NO_TASK {
            queue.lists[class].tail = Queue::NO_TASK;
            queue.waiting &= !(1 << class);
        }
        index
    }

    fn most_urgent(&mut self, queue: u32, waiting: u8) -> usize {
        let at = queue as usize;
        let order = self.groups[self.queues[at].group.index()].classes();
        let waits = |class: &&Class| waiting & (1 << **class as u8) != 0;
        let arrival = |class: &Class| {
            let head = self.queues[at].lists[*class as usize].head;
            self.tasks[head as usize].since
        };
        let first = *order.iter().find(waits).expect("a class waits");
        let oldest = *order.iter().filter(waits).min_by_key(|class| arrival(class)).expect("one");
        let bypassed = &mut self.queues[at].bypassed;
        if first == oldest {
            *bypassed = 0;
            return first as usize;
        }
        *bypassed += 1;
        if *bypassed > BYPASS_MAX {
            *bypassed = 0;
            return oldest as usize;
        }
        first as usize
    }

    /// Returns the tasks that wait for a unit.
    pub(crate) fn waiters(&self, queue: u32) -> impl Iterator<Item = u32> {
        let real = |index: u32| Some(index).filter(|index| *index != Queue::NO_TASK);
        let heads = self.queues[queue as usize].lists.iter().map(|list| list.head);
        heads.flat_map(move |head| {
            std::iter::successors(real(head), move |index| real(self.tasks[*index as usize].next))
        })
    }

    /// True when the current task, if it may wait for the resource, would get a unit at once.
    #[inline]
    fn has_free(&mut self, queue: u32) -> bool {
        let Queue { rank, free, .. } = self.queues[queue as usize];
        self.task(self.current).assert_may_wait(rank);
        free > 0
    }

    /// Starts the current task's wait for a unit. Returns true when one was free.
    #[inline]
    fn request(&mut self, queue_index: u32, class: Class, wait_stage: Stage, wait: Wait) -> bool {
        let now = self.now;
        let current = self.current;
        let queue = &mut self.queues[queue_index as usize];
        let task = &mut self.tasks[current as usize];
        task.start_wait(wait, queue.rank);
        task.class = class;
        task.wait_stage = wait_stage;
        task.since = now;
        task.gc_mark = queue.gc_time(now);
        let free = queue.free > 0;
        if free {
            queue.take(class, now);
            self.trace_taken(queue_index, current);
        } else {
            self.enqueue(queue_index, class);
        }
        free
    }

    /// Gives the unit of `task` back and hands it to the next waiter, if any.
    #[inline]
    pub(crate) fn release(&mut self, queue: u32, task: u32, class: Class) {
        let now = self.now;
        if let Some(tracer) = &mut self.tracer {
            tracer.gave_back(queue, task, now);
        }
        if self.queues[queue as usize].give_back(class, now) {
            let waiter = self.dequeue(queue);
            self.grant(queue, waiter);
        }
    }

    /// Tells the tracer, if there is one, that `task` holds a unit.
    #[inline]
    pub(crate) fn trace_taken(&mut self, resource: u32, task: u32) {
        if let Some(tracer) = &mut self.tracer {
            let Task { stage, class, .. } = self.tasks[task as usize];
            tracer.took(task, resource, stage, class, self.now);
        }
    }

    /// Hands a unit that was held until now to `waiter`.
    #[inline]
    fn grant(&mut self, queue_index: u32, waiter: u32) {
        self.trace_taken(queue_index, waiter);
        let now = self.now;
        let queue = &mut self.queues[queue_index as usize];
        let gc_time = queue.gc_time(now);
        let task = &mut self.tasks[waiter as usize];
        queue.begin_work(task.class, now);
        task.end_queueing(now, gc_time);
        match task.wait {
            Wait::Serve(_) => {
                let (stage, duration) = (task.stage, task.duration);
                task.stages.add(stage, duration);
                self.set_timer(now + duration, waiter, queue_index);
            }
            Wait::Acquire(_) => {
                task.fired = true;
                task.held |= queue.rank.bit();
                self.make_ready(waiter);
            }
            other => panic!("a task in the queue of {} waits for {other:?}", queue.name),
        }
    }
}

/// See [`Resource::serve`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Serve {
    resource: Resource,
    class: Class,
    stage: Stage,
    wait_stage: Stage,
    duration: Nanos,
    work: Option<&'static str>,
    waiting: bool,
}

impl Serve {
    /// Names the work `work` in place of the stage's name, in a [`Span`](crate::Span).
    #[inline]
    pub fn named(mut self, work: &'static str) -> Self {
        self.work = Some(work);
        self
    }

    /// Adds the time waited to `stage` in place of [`Stage::Queue`].
    #[inline]
    pub fn waiting_in(mut self, stage: Stage) -> Self {
        self.wait_stage = stage;
        self
    }
}

impl Future for Serve {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        with(|schedule| {
            let current = schedule.current;
            if self.waiting {
                if schedule.task(current).end_wait() {
                    self.waiting = false;
                    return Poll::Ready(());
                }
                return Poll::Pending;
            }
            if let Some(tracer) = &mut schedule.tracer {
                tracer.name(current, self.work.unwrap_or(self.stage.name()));
            }
            let queue = self.resource.0;
            if self.duration == Nanos::ZERO && schedule.has_free(queue) {
                return Poll::Ready(());
            }
            if schedule.request(queue, self.class, self.wait_stage, Wait::Serve(queue)) {
                let at = schedule.now + self.duration;
                schedule.task(current).stages.add(self.stage, self.duration);
                schedule.set_timer(at, current, queue);
            } else {
                let task = schedule.task(current);
                task.stage = self.stage;
                task.duration = self.duration;
            }
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for Serve {
    #[inline]
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}

/// See [`Resource::acquire`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Acquire {
    resource: Resource,
    class: Class,
    wait_stage: Stage,
    work: &'static str,
    waiting: bool,
}

impl Acquire {
    /// Names the work `work`, in a [`Span`](crate::Span).
    #[inline]
    pub fn named(mut self, work: &'static str) -> Self {
        self.work = work;
        self
    }

    /// Adds the time waited to `stage` in place of [`Stage::Queue`].
    #[inline]
    pub fn waiting_in(mut self, stage: Stage) -> Self {
        self.wait_stage = stage;
        self
    }

    #[inline]
    fn hold(&self, task: u32) -> Hold {
        Hold { resource: self.resource, class: self.class, task }
    }
}

impl Future for Acquire {
    type Output = Hold;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Hold> {
        with(|schedule| {
            let current = schedule.current;
            let queue = self.resource.0;
            if self.waiting {
                if schedule.task(current).end_wait() {
                    self.waiting = false;
                    return Poll::Ready(self.hold(current));
                }
                return Poll::Pending;
            }
            if let Some(tracer) = &mut schedule.tracer {
                tracer.name(current, self.work);
            }
            if schedule.request(queue, self.class, self.wait_stage, Wait::Acquire(queue)) {
                let bit = schedule.queues[queue as usize].rank.bit();
                let task = schedule.task(current);
                task.wait = Wait::Nothing;
                task.held |= bit;
                return Poll::Ready(self.hold(current));
            }
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for Acquire {
    #[inline]
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}

/// A held unit of a resource. Dropping it gives the unit back.
#[must_use = "dropping it gives the unit back"]
#[derive(Debug)]
pub struct Hold {
    resource: Resource,
    class: Class,
    task: u32,
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        with_installed(|schedule| {
            let bit = schedule.queues[self.resource.0 as usize].rank.bit();
            schedule.task(self.task).held &= !bit;
            schedule.release(self.resource.0, self.task, self.class);
        });
    }
}
