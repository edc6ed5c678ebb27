use crate::busy_meter::BusyMeter;
use crate::busy_stage::BusyStage;
use crate::queue::{GroupOrder, Queue};
use crate::station_state::StationState;
use crate::sync::thread_local;
use crate::task_state::{Task, TaskId};
use crate::timer::{Timer, Timers};
use crate::trace::{TraceSink, Tracer};
use crate::unix_millis::UnixMillis;
use base::{Nanos, Rng};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;

/// A boxed future of the device: it need not be `Send`, since it never leaves its reactor.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Reads the wall clock on this clock's time scale.
pub type Wall = Box<dyn Fn() -> Nanos>;

/// Wakes a task of a peer schedule: its thread then calls [`wake`](crate::wake). Calls nothing of
/// this crate itself.
pub type RemoteWaker = Box<dyn Fn(TaskId)>;

/// The next step in real time: see [`turn_by_the_wall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A task that is ready.
    Ready(TaskId),
    /// A task whose timer has fired.
    Due {
        /// The task.
        task: TaskId,
        /// How late the first event of that instant happened.
        late: Nanos,
    },
    /// No task until the wall reaches this instant.
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
    /// Its number among peer schedules, whose tasks wait for one another.
    pub(crate) reactor_id: u32,
    /// Wakes a task of a peer schedule.
    remote_waker: Option<RemoteWaker>,
    wall: Option<Wall>,
    /// Counts the time of the thread, if a reactor wants to know it.
    pub(crate) busy_meter: Option<Rc<BusyMeter>>,
    /// How late the clock came to the present instant.
    late: Nanos,
    free_tasks: Vec<u32>,
    ready: VecDeque<u32>,
    timers: Timers,
    pub(crate) next_tie: u64,
    pub(crate) shuffle: Option<Rng>,
    /// Locks that its tasks found taken.
    pub(crate) lock_waits: u64,
    /// How long they waited for them, by the wall.
    pub(crate) lock_wait_time: Nanos,
}

thread_local! {
    // Without a destructor, it is used without a look at whether the thread ends.
    static INSTALLED: RefCell<Option<ManuallyDrop<Box<Schedule>>>> =
        const { RefCell::new(None) };
}

#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut Schedule) -> T) -> T {
    INSTALLED.with_borrow_mut(|installed| {
        f(installed.as_mut().expect("device code runs inside a reactor, which installs a schedule"))
    })
}

/// As [`with`], but does nothing when no schedule is installed. For destructors, which also run
/// when a reactor is dropped with all its tasks.
#[inline]
pub(crate) fn with_installed(f: impl FnOnce(&mut Schedule)) {
    INSTALLED.with_borrow_mut(|installed| {
        if let Some(schedule) = installed.as_mut() {
            f(schedule);
        }
    });
}

/// True inside a reactor. Destructors run outside of any when a reactor is dropped.
pub fn is_installed() -> bool {
    INSTALLED.with_borrow(Option::is_some)
}

/// Installs `schedule` for the device code on this thread.
pub fn install(schedule: Box<Schedule>) {
    let before = INSTALLED.replace(Some(ManuallyDrop::new(schedule)));
    assert!(before.is_none(), "a thread runs one schedule at a time");
}

/// Removes and returns the installed schedule.
pub fn uninstall() -> Box<Schedule> {
    ManuallyDrop::into_inner(INSTALLED.take().expect("a schedule was installed before"))
}

/// Does `work` without the installed schedule: it may install others.
pub fn set_aside<T>(work: impl FnOnce() -> T) -> T {
    struct Aside(Option<Box<Schedule>>);

    impl Drop for Aside {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(install);
        }
    }

    let _aside = Aside(Some(uninstall()));
    work()
}

/// Has [`turn`] return `task`, which it returned last and which was not polled, once more.
pub fn put_back(task: TaskId) {
    with(|schedule| schedule.ready.push_front(task.index));
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

/// As [`turn`], but moves the clock to a timer only when the wall has reached it. Requires
/// [`Schedule::set_wall`].
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

/// Moves the clock to `to`, which the wall has reached and before which no event is left. Tasks
/// that the caller then wakes for an input run at that instant.
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
    /// Returns a clock at zero. With `shuffle`, timers due at one instant fire in an order drawn
    /// from the seed, otherwise in the order in which they were set.
    pub fn new(shuffle: Option<u64>) -> Self {
        Self { shuffle: shuffle.map(Rng::new), ..Self::default() }
    }

    /// The present instant.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Stamps input from outside by `wall`, which begins at [`Self::now`] and is monotonic. `None`:
    /// outside, time passes only with this clock.
    pub fn set_wall(&mut self, wall: Option<Wall>) {
        self.wall = wall;
    }

    /// Has its tasks switch the stages of `meter`, which counts by the wall.
    pub fn set_busy_meter(&mut self, meter: Option<Rc<BusyMeter>>) {
        self.busy_meter = meter;
    }

    /// Begins `stage`. Returns the stage that it ends, if that is another one.
    #[inline]
    pub(crate) fn switch_busy_stage(&self, stage: BusyStage) -> Option<BusyStage> {
        let meter = self.busy_meter.as_ref()?;
        if meter.stage() == stage {
            return None;
        }
        let wall = self.wall.as_ref().expect("a meter counts by the wall");
        Some(meter.switch(stage, wall()))
    }

    /// Makes this schedule number `reactor_id` among peers whose tasks wait for one another.
    /// `remote_waker` wakes tasks of the other numbers. Called before there are tasks.
    pub fn join_peers(&mut self, reactor_id: u32, remote_waker: RemoteWaker) {
        assert!(self.tasks.is_empty(), "a task keeps the number of its schedule");
        (self.reactor_id, self.remote_waker) = (reactor_id, Some(remote_waker));
    }

    #[inline]
    pub(crate) const fn id(&self, index: u32) -> TaskId {
        TaskId { index, reactor_id: self.reactor_id }
    }

    #[cold]
    pub(crate) fn wake_remote(&self, task: TaskId) {
        let remote_waker =
            self.remote_waker.as_ref().expect("a task of another schedule belongs to a peer");
        remote_waker(task);
    }

    /// Returns the instant of the next event, unless input comes first.
    pub fn next_event(&self) -> Option<Nanos> {
        if self.ready.is_empty() { self.timers.earliest() } else { Some(self.now) }
    }

    #[inline]
    pub(crate) fn ready_tasks(&self) -> usize {
        self.ready.len()
    }

    /// Has `sink` called for every later span of work.
    pub fn set_trace(&mut self, sink: Option<TraceSink>) {
        self.tracer = sink.map(|sink| Box::new(Tracer::new(sink)));
    }

    /// Adds a task that the caller polls itself: the root of a run. It has no name.
    pub fn add_task(&mut self) -> TaskId {
        let task = self.add_ready_task();
        let root = self.task(task.index);
        (root.name, root.busy_stage) = (Task::UNNAMED, BusyStage::default());
        task
    }

    /// Adds a task behind the ready tasks.
    pub(crate) fn add_ready_task(&mut self) -> TaskId {
        let index = self.new_task();
        self.ready.push_back(index);
        self.id(index)
    }

    /// Returns the name of the task that was polled last.
    pub(crate) fn current_name(&self) -> &'static str {
        self.tasks.get(self.current as usize).map_or(Task::UNNAMED, |task| task.name)
    }

    /// Adds a task that the caller polls at once, ahead of the ready tasks.
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
            return self.add_ready_task();
        }
        let index = self.new_task();
        self.set_timer(at, index, Timer::ARRIVAL);
        self.id(index)
    }

    /// Adds a task with the name of the current one, which begins in the present stage.
    fn new_task(&mut self) -> u32 {
        let name = self.current_name();
        let busy_stage = self.busy_meter.as_ref().map(|meter| meter.stage()).unwrap_or_default();
        let index = self.free_tasks.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            u32::try_from(self.tasks.len() - 1).expect("far fewer than 2^32 tasks at a time")
        });
        self.tasks[index as usize].begin(name, busy_stage);
        if let Some(tracer) = &mut self.tracer {
            tracer.begin(index);
        }
        index
    }

    #[inline]
    pub(crate) fn host_now(&self) -> Nanos {
        self.wall.as_ref().map_or(self.now, |wall| wall().max(self.now))
    }

    /// Moves the clock to `to`, unless an event is left before it. Returns whether it moved.
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
        if !self.spawned.is_empty() {
            spawned.append(&mut self.spawned);
        }
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

    /// True when a timer is set.
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
        // The wall itself stamped the arrival, so it counts as on time.
        let is_arrival = timer.resource == Timer::ARRIVAL;
        Some(if is_arrival { Turn::Ready(task) } else { Turn::Due { task, late: self.late } })
    }

    /// Moves the clock to `timer` and gives back the unit that its task held. False when no task is
    /// ready by it: a station's event, or a timer of work that was suspended since.
    #[inline]
    fn fire(&mut self, timer: &Timer) -> bool {
        assert!(timer.at >= self.now, "time runs forward");
        self.now = timer.at;
        let is_of_station = (Timer::STATION..Timer::ARRIVAL).contains(&timer.resource);
        if is_of_station && !self.fire_station(timer) {
            return false;
        }
        let task = self.task(timer.task);
        task.fired = true;
        if timer.resource < Timer::STATION {
            let class = task.class;
            self.release(timer.resource, timer.task, class);
        }
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
