use crate::monitor::Monitor;
use crate::plane_group::StationState;
use crate::resource::{GroupOrder, Queue};
use crate::task::{Task, TaskId};
use crate::timer::{Timer, Timers};
use crate::trace::{TraceSink, Tracer};
use crate::unix::UnixMillis;
use base::{Nanos, Rng};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future of the device: it need not be `Send`, since it never leaves its reactor.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Reads the wall clock, as the time of this clock.
pub type Wall = Box<dyn Fn() -> Nanos>;

/// Lets a task of a fellow's schedule go on. Calls nothing of this crate itself: the fellow calls
/// [`wake`](crate::wake).
pub type Abroad = Box<dyn Fn(TaskId)>;

/// What there is to do next in real time: see [`turn_by_the_wall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A task that needs no waiting for.
    Ready(TaskId),
    /// A task whose time has come.
    Due {
        /// The task.
        task: TaskId,
        /// How long ago its time had come when the first event of that instant happened.
        late: Nanos,
    },
    /// Nothing, until the wall has reached this.
    Wait(Nanos),
}

/// The state of one clock: its tasks, its timers and the queues of its resources.
#[derive(Default)]
pub struct Schedule {
    pub(crate) now: Nanos,
    /// The date at which the clock stood at zero, and by how much less than a millisecond later.
    pub(crate) unix_start: UnixMillis,
    pub(crate) unix_part: Nanos,
    pub(crate) current: u32,
    pub(crate) tasks: Vec<Task>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) stations: Vec<StationState>,
    pub(crate) groups: Vec<GroupOrder>,
    pub(crate) spawned: Vec<(TaskId, LocalFuture<'static, ()>)>,
    pub(crate) tracer: Option<Box<Tracer>>,
    /// Its number among schedules whose tasks wait for one another.
    pub(crate) home: u32,
    /// Where the tasks of the others are let go on.
    abroad: Option<Abroad>,
    /// What the task that is polled is inside of.
    pub(crate) monitor: Option<Arc<Monitor>>,
    wall: Option<Wall>,
    /// How late the clock came to the present instant.
    late: Nanos,
    free_tasks: Vec<u32>,
    ready: VecDeque<u32>,
    timers: Timers,
    pub(crate) next_tie: u64,
    pub(crate) shuffle: Option<Rng>,
}

thread_local! {
    static INSTALLED: RefCell<Option<Box<Schedule>>> = const { RefCell::new(None) };
}

#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut Schedule) -> T) -> T {
    INSTALLED.with_borrow_mut(|installed| {
        f(installed.as_mut().expect("device code runs inside a reactor, which installs a schedule"))
    })
}

/// As [`with`], or nothing when no schedule is installed: for destructors, which also run when a
/// reactor is thrown away with all its tasks.
#[inline]
pub(crate) fn with_installed(f: impl FnOnce(&mut Schedule)) {
    INSTALLED.with_borrow_mut(|installed| {
        if let Some(schedule) = installed.as_mut() {
            f(schedule);
        }
    });
}

/// True inside a reactor. Destructors run outside of any when a reactor is thrown away.
pub fn is_installed() -> bool {
    INSTALLED.with_borrow(Option::is_some)
}

/// Makes `schedule` the one that device code on this thread runs under.
pub fn install(schedule: Box<Schedule>) {
    let before = INSTALLED.replace(Some(schedule));
    assert!(before.is_none(), "a thread runs one schedule at a time");
}

/// Takes back the installed schedule.
pub fn uninstall() -> Box<Schedule> {
    INSTALLED.take().expect("a schedule was installed before")
}

/// Ends `finished` if there is one, moves what was spawned into `spawned`, and returns the next
/// task to poll, moving the clock on when no task is ready. `None` when nothing is left to happen.
#[inline]
pub fn turn(
    finished: Option<TaskId>,
    spawned: &mut Vec<(TaskId, LocalFuture<'static, ()>)>,
) -> Option<TaskId> {
    with(|schedule| {
        schedule.begin_turn(finished, spawned);
        schedule.next()
    })
}

/// As [`turn`], with a brake: the clock moves on to a timer only when the wall has reached it. The
/// schedule has a wall: see [`Schedule::set_wall`].
#[inline]
pub fn turn_by_the_wall(
    finished: Option<TaskId>,
    spawned: &mut Vec<(TaskId, LocalFuture<'static, ()>)>,
) -> Option<Turn> {
    with(|schedule| {
        schedule.begin_turn(finished, spawned);
        schedule.next_by_the_wall()
    })
}

/// Moves the clock on to `to`, an instant that the wall has reached and before which nothing is
/// left to happen: what is let go on next, for the sake of something outside, happens then.
#[inline]
pub fn move_on(to: Nanos) {
    with(|schedule| {
        if to > schedule.now {
            (schedule.now, schedule.late) = (to, Nanos::ZERO);
        }
    });
}

/// Ends a task that its owner polled itself: the root of a run.
pub fn end_task(task: TaskId) {
    with(|schedule| schedule.end(task.index));
}

/// Lists what each task waits for, one line each: for the message when no event is left.
pub fn stuck() -> String {
    with(|schedule| schedule.stuck())
}

impl Schedule {
    /// A clock at zero. With `shuffle`, timers due at one instant fire in an order drawn from the
    /// seed and not in the order in which they were set.
    pub fn new(shuffle: Option<u64>) -> Self {
        Self { shuffle: shuffle.map(Rng::new), ..Self::default() }
    }

    /// The present instant.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Has what happens outside stamped by `wall`, which begins at [`Self::now`] and does not go
    /// back. `None`: outside no time passes of its own.
    pub fn set_wall(&mut self, wall: Option<Wall>) {
        self.wall = wall;
    }

    /// Makes this the schedule `home` of fellows, whose tasks may wait for one another's: those of
    /// other numbers are woken by `abroad`. Called before there are tasks.
    pub fn join_fellows(&mut self, home: u32, abroad: Abroad) {
        assert!(self.tasks.is_empty(), "a task keeps the number of its schedule");
        (self.home, self.abroad) = (home, Some(abroad));
    }

    #[inline]
    pub(crate) const fn id(&self, index: u32) -> TaskId {
        TaskId { index, home: self.home }
    }

    #[cold]
    pub(crate) fn wake_abroad(&self, task: TaskId) {
        let abroad = self.abroad.as_ref().expect("a task of another schedule is one of a fellow's");
        abroad(task);
    }

    /// When something happens next, if nothing comes from elsewhere.
    pub fn next_event(&self) -> Option<Nanos> {
        if self.ready.is_empty() { self.timers.earliest() } else { Some(self.now) }
    }

    /// Has `sink` called for every later span of work.
    pub fn set_trace(&mut self, sink: Option<TraceSink>) {
        self.tracer = sink.map(|sink| Box::new(Tracer::new(sink)));
    }

    /// A task that the caller polls itself: the root of a run.
    pub fn add_task(&mut self) -> TaskId {
        let index = self.new_task();
        self.ready.push_back(index);
        self.id(index)
    }

    /// A task that is polled at once, and not in its turn.
    pub(crate) fn start_task(&mut self) -> TaskId {
        let index = self.new_task();
        self.id(index)
    }

    /// Has `task` work on behalf of the current one, and hold `inherited` until it ends.
    pub(crate) fn adopt_child(&mut self, task: TaskId, inherited: u16) {
        let child = self.task(task.index);
        (child.held, child.inherited) = (inherited, inherited);
        let current = self.current;
        if let Some(tracer) = &mut self.tracer {
            tracer.begin_child(task.index, current);
        }
    }

    pub(crate) fn add_task_at(&mut self, at: Nanos) -> TaskId {
        if at <= self.now {
            return self.add_task();
        }
        let index = self.new_task();
        self.set_timer(at, index, Timer::ARRIVAL);
        self.id(index)
    }

    fn new_task(&mut self) -> u32 {
        let index = self.free_tasks.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            u32::try_from(self.tasks.len() - 1).expect("far fewer than 2^32 tasks at a time")
        });
        self.tasks[index as usize].begin();
        if let Some(tracer) = &mut self.tracer {
            tracer.begin(index);
        }
        index
    }

    #[inline]
    pub(crate) fn host_now(&self) -> Nanos {
        self.wall.as_ref().map_or(self.now, |wall| wall().max(self.now))
    }

    /// Moves the clock on to `to`, unless something is left to happen by then. Says whether it did.
    #[inline]
    pub(crate) fn move_on(&mut self, to: Nanos) -> bool {
        let is_due = self.timers.earliest().is_some_and(|due| due <= to);
        if is_due || !self.ready.is_empty() {
            return false;
        }
        (self.now, self.late) = (to, Nanos::ZERO);
        true
    }

    #[inline]
    fn begin_turn(
        &mut self,
        finished: Option<TaskId>,
        spawned: &mut Vec<(TaskId, LocalFuture<'static, ()>)>,
    ) {
        if let Some(task) = finished {
            self.end(task.index);
        }
        spawned.append(&mut self.spawned);
    }

    pub(crate) fn end(&mut self, index: u32) {
        self.tasks[index as usize].end();
        self.free_tasks.push(index);
    }

    #[inline]
    pub(crate) fn task(&mut self, index: u32) -> &mut Task {
        &mut self.tasks[index as usize]
    }

    /// True when no task but the one that runs has anything to do, now or later.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_timers() && self.ready.is_empty()
    }

    /// True when something happens by itself later.
    pub(crate) fn has_timers(&self) -> bool {
        self.timers.len() > 0
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32) {
        self.ready.push_back(index);
    }

    /// Sets a timer and returns its tie.
    #[inline]
    pub(crate) fn set_timer(&mut self, at: Nanos, task: u32, resource: u32) -> u64 {
        let tie = match &mut self.shuffle {
            Some(rng) => rng.next_u64(),
            None => {
                self.next_tie += 1;
                self.next_tie
            }
        };
        self.timers.push(Timer { at, tie, task, resource });
        tie
    }

    #[inline]
    fn next(&mut self) -> Option<TaskId> {
        let index = match self.ready.pop_front() {
            Some(index) => index,
            None => loop {
                let timer = self.timers.pop()?;
                if self.fire(&timer) {
                    break timer.task;
                }
            },
        };
        self.current = index;
        Some(self.id(index))
    }

    fn next_by_the_wall(&mut self) -> Option<Turn> {
        if let Some(index) = self.ready.pop_front() {
            self.current = index;
            return Some(Turn::Ready(self.id(index)));
        }
        let due = self.timers.earliest()?;
        if due > self.now {
            let wall = self.host_now();
            if wall < due {
                return Some(Turn::Wait(due));
            }
            self.late = wall - due;
        }
        let timer = self.timers.pop()?;
        if !self.fire(&timer) {
            return Some(Turn::Wait(due));
        }
        self.current = timer.task;
        let task = self.id(timer.task);
        // What arrives was stamped by the wall itself and can hardly be late.
        let is_arrival = timer.resource == Timer::ARRIVAL;
        Some(if is_arrival { Turn::Ready(task) } else { Turn::Due { task, late: self.late } })
    }

    /// Moves the clock to `timer` and gives back what its task held. False when no task goes on:
    /// something happens at a station, or the timer is one of work that was suspended since.
    #[inline]
    fn fire(&mut self, timer: &Timer) -> bool {
        assert!(timer.at >= self.now, "time runs forward");
        self.now = timer.at;
        if timer.resource < Timer::STATION {
            let class = self.task(timer.task).class;
            self.release(timer.resource, timer.task, class);
        } else if timer.resource < Timer::ARRIVAL && !self.fire_station(timer) {
            return false;
        }
        self.task(timer.task).fired = true;
        true
    }

    fn stuck(&self) -> String {
        let mut lines = format!("nothing is left to happen at {}, but:", self.now);
        for (index, task) in self.tasks.iter().enumerate() {
            if let Some(wait) = task.waits_for(&self.queues) {
                let _ = write!(lines, "\n  task {index} waits for {wait}");
            }
        }
        lines
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schedule at {} with {} timers", self.now, self.timers.len())
    }
}
