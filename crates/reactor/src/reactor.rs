use crate::brake::Brake;
use crate::driver::{self, Driver};
use crate::lateness::Lateness;
use crate::peers::Peer;
use base::Nanos;
use clock::{BusyMeter, LocalFuture, Schedule, TaskId, TraceSink, Turn, Wall};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Tasks that began during a turn, with their futures.
type Spawned = Vec<(TaskId, LocalFuture<'static, ()>)>;

/// An executor for one thread.
pub struct Reactor {
    futures: Vec<Option<LocalFuture<'static, ()>>>,
    /// `None` only while it is installed.
    schedule: Option<Box<Schedule>>,
    /// From when it is first served; then `None` only while it is installed.
    pub(crate) driver: Option<Box<Driver>>,
    /// Its place among others, if its tasks may wait for theirs.
    pub(crate) peer: Option<Peer>,
}

/// Takes the schedule back into its reactor, and the wall and the meter out of it, also when a task
/// panics.
struct Installed<'a>(&'a mut Option<Box<Schedule>>);

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        let mut schedule = clock::uninstall();
        schedule.set_wall(None);
        schedule.set_busy_meter(None);
        *self.0 = Some(schedule);
    }
}

impl Reactor {
    /// A reactor whose clock stands at zero; see [`Schedule::new`] for `shuffle`.
    pub fn new(shuffle: Option<u64>) -> Self {
        let schedule = Some(Box::new(Schedule::new(shuffle)));
        Self { futures: Vec::new(), schedule, driver: None, peer: None }
    }

    /// A reactor whose clock stands at zero, in its place among others. What they share is used
    /// once they are served, under the remotes that the places are for.
    pub fn among(peer: Peer, shuffle: Option<u64>) -> Self {
        let mut schedule = Schedule::new(shuffle);
        schedule.join_peers(peer.number(), peer.remote_waker());
        let schedule = Some(Box::new(schedule));
        Self { futures: Vec::new(), schedule, driver: None, peer: Some(peer) }
    }

    /// Runs `root` to its end in virtual time, and everything else as far as that takes.
    ///
    /// # Panics
    /// When no event is left before `root` is done; the message lists the waiting tasks.
    pub fn run<T>(&mut self, root: impl Future<Output = T>) -> T {
        self.drive(root, clock::turn)
    }

    /// As [`Self::run`], in real time: an event happens when the wall clock reaches it, and
    /// external events get their time from the wall clock. How late the events were comes with the
    /// output.
    pub fn run_in_real_time<T>(&mut self, root: impl Future<Output = T>) -> (T, Lateness) {
        let brake = self.set_wall();
        let mut lateness = Lateness::new();
        let output = self.drive(root, |mut finished, spawned| {
            loop {
                match clock::turn_by_the_wall(finished.take(), spawned)? {
                    Turn::Ready(task) => return Some(task),
                    Turn::Due { task, late } => {
                        lateness.record(late);
                        return Some(task);
                    }
                    Turn::Wait(until) => brake.wait(until),
                }
            }
        });
        (output, lateness)
    }

    /// Runs everything until nothing is left to happen: who still waits then waits for something
    /// from outside.
    pub fn settle(&mut self) {
        let schedule = self.schedule.take().expect("a reactor is not run from within itself");
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        let mut context = Context::from_waker(Waker::noop());
        let mut spawned = Spawned::new();
        let mut finished = None;
        loop {
            let next = clock::turn(finished.take(), &mut spawned);
            adopt_all(&mut self.futures, &mut spawned);
            let Some(task) = next else { return };
            finished = poll(&mut self.futures, task, &mut context);
        }
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.futures.iter().flatten().count()
    }

    /// Reports each span for which a resource is held to `sink`, in all later runs.
    pub fn set_trace(&mut self, sink: Option<TraceSink>) {
        self.schedule.as_mut().expect("a reactor is not run from within itself").set_trace(sink);
    }

    /// A task that the caller polls.
    pub(crate) fn add_task(&mut self) -> TaskId {
        self.schedule.as_mut().expect("a reactor is not run from within itself").add_task()
    }

    /// When something happens in it next, which `now` at least is when others have woken a task.
    pub(crate) fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let schedule = self.schedule.as_ref().expect("a reactor is not run from within itself");
        let is_woken = self.peer.as_ref().is_some_and(Peer::has_news);
        let sent = self.driver.as_ref().and_then(|driver| driver.due());
        let news = is_woken.then_some(now).into_iter().chain(sent.map(|due| due.max(now)));
        schedule.next_event().into_iter().chain(news).min()
    }

    /// Lets others' tasks of it go on at `now`, before which nothing is left to happen in it, and
    /// polls the next one: by `poll_root`, unless that says that it is not the root.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        poll_root: impl FnOnce(TaskId, &mut Context<'_>) -> bool,
    ) {
        let schedule = self.schedule.take().expect("a reactor is not run from within itself");
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        clock::move_on(now);
        if let Some(peer) = &self.peer {
            peer.wake_all();
        }
        let mut spawned = Spawned::new();
        let next = clock::turn(None, &mut spawned);
        adopt_all(&mut self.futures, &mut spawned);
        let Some(task) = next else { return };
        let mut context = Context::from_waker(Waker::noop());
        if poll_root(task, &mut context) {
            return;
        }
        if let Some(finished) = poll(&mut self.futures, task, &mut context) {
            clock::end_task(finished);
        }
    }

    /// As [`Self::step`], but as a served reactor: the wall says what is due. If nothing is, or
    /// with `looks_first`, takes what others have for it.
    pub(crate) fn step_by_the_wall(
        &mut self,
        (now, wall): (Nanos, Wall),
        meter: &Rc<BusyMeter>,
        looks_first: bool,
        poll_root: impl FnOnce(TaskId, &mut Context<'_>) -> bool,
    ) {
        let mut schedule = self.schedule.take().expect("a reactor is not run from within itself");
        schedule.set_wall(Some(wall));
        schedule.set_busy_meter(Some(meter.clone()));
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        let mut spawned = Spawned::new();
        let (mut may_look, mut next) = (true, None);
        if looks_first {
            look(self.peer.as_ref());
        }
        while next.is_none() {
            match clock::turn_by_the_wall(None, &mut spawned) {
                Some(Turn::Ready(task) | Turn::Due { task, .. }) => next = Some(task),
                Some(Turn::Wait(until)) if until <= now => {}
                Some(Turn::Wait(_)) | None if may_look => {
                    clock::move_on(now);
                    look(self.peer.as_ref());
                    may_look = false;
                }
                Some(Turn::Wait(_)) | None => break,
            }
        }
        adopt_all(&mut self.futures, &mut spawned);
        let Some(task) = next else { return };
        meter.switch(clock::busy_stage(), clock::host_now());
        let mut context = Context::from_waker(Waker::noop());
        if poll_root(task, &mut context) {
            return;
        }
        if let Some(finished) = poll(&mut self.futures, task, &mut context) {
            clock::end_task(finished);
        }
    }

    /// Starts `future` in it.
    pub(crate) fn spawn(&mut self, future: LocalFuture<'static, ()>) {
        let schedule = self.schedule.take().expect("a reactor is not run from within itself");
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        clock::spawn(future);
    }

    /// Makes the clock follow the wall clock from the next run on.
    pub(crate) fn set_wall(&mut self) -> Rc<Brake> {
        let schedule = self.schedule.as_mut().expect("a reactor is not run from within itself");
        let brake = Rc::new(Brake::new(schedule.now()));
        let wall = brake.clone();
        schedule.set_wall(Some(Box::new(move || wall.wall())));
        brake
    }

    /// Has `meter` count the stages of the next run, which follows the wall clock.
    pub(crate) fn set_busy_meter(&mut self, meter: Rc<BusyMeter>) {
        self.schedule
            .as_mut()
            .expect("a reactor is not run from within itself")
            .set_busy_meter(Some(meter));
    }

    /// See [`Schedule::set_date`].
    pub(crate) fn set_date(&mut self, since_1970: Duration) {
        self.schedule
            .as_mut()
            .expect("a reactor is not run from within itself")
            .set_date(since_1970);
    }

    pub(crate) fn drive<T>(
        &mut self,
        root: impl Future<Output = T>,
        mut turn: impl FnMut(Option<TaskId>, &mut Spawned) -> Option<TaskId>,
    ) -> T {
        let mut schedule = self.schedule.take().expect("a reactor is not run from within itself");
        let root_task = schedule.add_task();
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        let mut root = pin!(root);
        let mut context = Context::from_waker(Waker::noop());
        let mut spawned = Spawned::new();
        let mut finished = None;
        loop {
            let next = turn(finished.take(), &mut spawned);
            adopt_all(&mut self.futures, &mut spawned);
            let Some(task) = next else { panic!("{}", clock::stuck()) };
            if task == root_task {
                if let Poll::Ready(output) = root.as_mut().poll(&mut context) {
                    clock::end_task(task);
                    return output;
                }
                continue;
            }
            finished = poll(&mut self.futures, task, &mut context);
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if let Some(schedule) = self.schedule.take() {
            clock::lose_power(schedule, std::mem::take(&mut self.futures));
        }
    }
}

/// Takes what the others have for a reactor, that of `peer`.
fn look(peer: Option<&Peer>) {
    if let Some(peer) = peer {
        peer.wake_all();
    }
    driver::look_outside();
}

/// Polls `task`, and returns it if it has finished.
#[inline]
fn poll(
    futures: &mut [Option<LocalFuture<'static, ()>>],
    task: TaskId,
    context: &mut Context<'_>,
) -> Option<TaskId> {
    let slot = &mut futures[task.index()];
    let future = slot.as_mut().expect("the clock names only tasks that still run");
    if future.as_mut().poll(context).is_pending() {
        return None;
    }
    *slot = None;
    Some(task)
}

/// Puts the futures of tasks that began into their places. Most turns begin none.
#[inline]
fn adopt_all(futures: &mut Vec<Option<LocalFuture<'static, ()>>>, spawned: &mut Spawned) {
    while let Some((task, future)) = spawned.pop() {
        if futures.len() <= task.index() {
            futures.resize_with(task.index() + 1, || None);
        }
        futures[task.index()] = Some(future);
    }
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reactor with {} tasks, {:?}", self.tasks(), self.schedule)
    }
}
