use crate::operation::Operation;
use crate::remote::Remote;
use crate::ring::{Event, Ring, RingError, TOKENS};
use base::Nanos;
use clock::{Rank, Stage, TaskId};
use rustix::event::PollFlags;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// Something that other threads put news into.
pub(crate) trait PolledInbox {
    /// Wakes tasks whose messages have arrived. Returns true if it woke one.
    fn look(&self) -> bool;

    /// In virtual time: returns when a look wakes a task, unless more happens before.
    fn due(&self) -> Option<Nanos>;
}

/// Memory that others write without a notification, while the reactor is awake.
pub trait PolledMemory {
    /// Wakes tasks for which there is something new. Returns true if it woke one.
    fn look(&self) -> bool;

    /// Returns whether the writers can be asked to notify the reactor. It does not sleep otherwise.
    fn can_arm(&self) -> bool;

    /// Asks the writers to notify the reactor from now on. It looks once more, and then may sleep.
    fn arm(&self);
}

/// Has the reactor on this thread poll `memory` until [`stop_polling`].
pub fn poll(memory: Rc<dyn PolledMemory>) {
    with(|driver| driver.memories.push(memory));
}

/// Has the reactor on this thread, if there is one, poll `memory` no more.
pub fn stop_polling(memory: &Rc<dyn PolledMemory>) {
    with_installed(|driver| driver.memories.retain(|other| !Rc::ptr_eq(other, memory)));
}

/// Looks for events from outside the reactor on this thread, as it does after every 64 polls, and
/// wakes their tasks. Does nothing outside of [`crate::Reactor::serve`] and a
/// [`crate::PeerGroup`] on cores.
pub fn look_outside() {
    with_installed(|driver| {
        driver.look();
        driver.try_hot();
    });
}

/// Tasks that wait for events from outside the reactor.
pub(crate) struct Driver {
    /// `None` in virtual time, without sockets and files.
    ring: Option<Ring>,
    remote: Remote,
    /// Tasks that try their sockets again and again while the reactor does not sleep.
    hot: Vec<Hot>,
    /// By token: the tasks that wait for the ring.
    watched: Vec<Option<TaskId>>,
    free: Vec<usize>,
    inboxes: Vec<Rc<dyn PolledInbox>>,
    memories: Vec<Rc<dyn PolledMemory>>,
    /// Tasks that wait for the reactor to be stopped.
    stopped: Vec<TaskId>,
    event_is_watched: bool,
}

#[derive(Clone, Copy)]
struct Hot {
    task: TaskId,
    fd: RawFd,
}

/// Sockets that are tried again and not watched by the ring. A try is one call, which often is the
/// read that was waited for; being told by the ring takes two calls before it. Many tries for
/// nothing take more than that.
const HOT_MAX: usize = 4;

/// The token of the event by which other threads wake the reactor.
const EVENT: u64 = TOKENS - 1;

thread_local! {
    static INSTALLED: RefCell<Option<Box<Driver>>> = const { RefCell::new(None) };
    static READS: Cell<u64> = const { Cell::new(0) };
}

#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut Driver) -> T) -> T {
    INSTALLED.with_borrow_mut(|installed| {
        f(installed
            .as_mut()
            .expect("sockets, files and messages are waited for inside `Reactor::serve`"))
    })
}

/// As [`with`], or nothing outside of [`crate::Reactor::serve`]: for destructors.
pub(crate) fn with_installed(f: impl FnOnce(&mut Driver)) {
    INSTALLED.with_borrow_mut(|installed| {
        if let Some(driver) = installed.as_mut() {
            f(driver);
        }
    });
}

/// Keeps a driver installed, and gives it back to its owner at the end, also when a task panics.
pub(crate) struct Installed<'a>(&'a mut Option<Box<Driver>>);

impl<'a> Installed<'a> {
    pub(crate) fn new(driver: &'a mut Option<Box<Driver>>) -> Self {
        let before = INSTALLED.replace(driver.take());
        assert!(before.is_none(), "a thread serves one reactor at a time");
        Self(driver)
    }
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        *self.0 = INSTALLED.take();
    }
}

/// Does `work` without the installed driver: it may install others.
pub(crate) fn set_aside<T>(work: impl FnOnce() -> T) -> T {
    let mut aside = INSTALLED.take();
    let done = work();
    INSTALLED.set(aside.take());
    done
}

/// Counts reads from sockets that found something.
#[inline]
pub(crate) fn count_read() {
    READS.set(READS.get().wrapping_add(1));
}

/// How many there were on this thread.
#[inline]
pub(crate) fn reads() -> u64 {
    READS.get()
}

/// Waits until a read from `fd` may succeed: to try it soon (`is_hot`), or until the ring says so.
/// The caller keeps `fd` open.
#[inline]
pub(crate) async fn wait_to_read(fd: BorrowedFd<'_>, is_hot: bool) {
    let task = clock::current();
    with(|driver| driver.wait_to_read(fd.as_raw_fd(), is_hot, task));
    clock::park(Rank::Free, Stage::Queue).await;
}

/// Waits until `fd` is ready for `what`, or broken. The caller keeps `fd` open.
pub(crate) async fn wait_until_ready(fd: BorrowedFd<'_>, what: PollFlags) {
    let task = clock::current();
    with(|driver| driver.watch(fd.as_raw_fd(), what, task));
    clock::park(Rank::Free, Stage::Queue).await;
}

/// Waits until the reactor on this thread is told to stop: see [`Remote::stop`].
pub async fn stopped() {
    let task = clock::current();
    let is_stopping = with(|driver| {
        let is_stopping = driver.remote.is_stopping();
        if !is_stopping {
            driver.stopped.push(task);
        }
        is_stopping
    });
    if !is_stopping {
        clock::park(Rank::Free, Stage::Queue).await;
    }
}

impl Driver {
    pub(crate) fn new(remote: &Remote) -> Result<Self, RingError> {
        Ok(Self { ring: Some(Ring::new()?), ..Self::without_ring(remote) })
    }

    /// A driver that has only what other reactors send.
    pub(crate) fn without_ring(remote: &Remote) -> Self {
        Self {
            ring: None,
            remote: remote.clone(),
            hot: Vec::with_capacity(HOT_MAX),
            watched: Vec::new(),
            free: Vec::new(),
            inboxes: Vec::new(),
            memories: Vec::new(),
            stopped: Vec::new(),
            event_is_watched: false,
        }
    }

    fn ring(&mut self) -> &mut Ring {
        self.ring.as_mut().expect("virtual time has no sockets and files")
    }

    /// In virtual time: returns when a look wakes a task, unless more happens before.
    pub(crate) fn due(&self) -> Option<Nanos> {
        if !self.stopped.is_empty() && self.remote.is_stopping() {
            return Some(Nanos::ZERO);
        }
        self.inboxes.iter().filter_map(|inbox| inbox.due()).min()
    }

    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(crate) fn add_inbox(&mut self, inbox: Rc<dyn PolledInbox>) {
        self.inboxes.push(inbox);
    }

    pub(crate) fn remove_inbox(&mut self, inbox: &Rc<dyn PolledInbox>) {
        self.inboxes.retain(|other| !Rc::ptr_eq(other, inbox));
    }

    /// Gives the kernel what tasks asked for, and wakes tasks whose messages or completions have
    /// arrived, without sleeping. Returns true if it did either.
    pub(crate) fn look(&mut self) -> bool {
        let mut is_news = look_at(&self.inboxes, &mut self.stopped, &self.remote);
        is_news |= look_into(&self.memories);
        let Some(ring) = &mut self.ring else { return is_news };
        is_news |= ring.pass();
        while let Some(event) = ring.next() {
            match event {
                Event::Ready(EVENT) => {
                    self.remote.clear_event();
                    self.event_is_watched = false;
                    continue;
                }
                Event::Ready(token) => {
                    let token = usize::try_from(token).expect("tokens are places");
                    let task = self.watched[token].take();
                    self.free.push(token);
                    clock::wake(task.expect("a token comes back once"));
                }
                Event::Ended(task) => clock::wake(task),
            }
            is_news = true;
        }
        is_news
    }

    /// Submits `operation` to the kernel and returns its slot. At its end the driver wakes `task`,
    /// which takes the result from that slot.
    #[inline]
    pub(crate) fn start(&mut self, operation: Operation, task: TaskId) -> usize {
        self.ring().start(operation, task)
    }

    /// The operation of `place`, which has ended, and what the kernel said.
    #[inline]
    pub(crate) fn take(&mut self, place: usize) -> (Operation, i32) {
        self.ring().take(place)
    }

    /// Wakes the tasks that try hot sockets. Returns how many.
    #[inline]
    pub(crate) fn try_hot(&mut self) -> usize {
        let tries = self.hot.len();
        self.hot.drain(..).for_each(|hot| clock::wake(hot.task));
        tries
    }

    /// Returns whether it would be notified of everything that comes from outside.
    pub(crate) fn can_sleep(&self) -> bool {
        self.memories.iter().all(|memory| memory.can_arm())
    }

    /// Sleeps until something comes from outside, or for `limit`. Returns at once when something
    /// has come, and then says so.
    pub(crate) fn sleep(&mut self, limit: Option<Duration>) -> bool {
        for hot in std::mem::take(&mut self.hot) {
            self.watch(hot.fd, PollFlags::IN, hot.task);
        }
        if !self.event_is_watched {
            self.event_is_watched = true;
            let event = self.remote.event();
            self.ring().watch(event, PollFlags::IN, EVENT);
        }
        self.memories.iter().for_each(|memory| memory.arm());
        let Self { ring, remote, inboxes, memories, stopped, .. } = self;
        let ring = ring.as_mut().expect("a reactor sleeps in real time");
        let look = || look_at(inboxes, stopped, remote) | look_into(memories);
        remote.sleep_unless(look, || ring.sleep(limit))
    }

    #[inline]
    fn wait_to_read(&mut self, fd: RawFd, is_hot: bool, task: TaskId) {
        if is_hot && self.hot.len() < HOT_MAX {
            self.hot.push(Hot { task, fd });
        } else {
            self.watch(fd, PollFlags::IN, task);
        }
    }

    fn watch(&mut self, fd: RawFd, what: PollFlags, task: TaskId) {
        let token = self.free.pop().unwrap_or_else(|| {
            self.watched.push(None);
            self.watched.len() - 1
        });
        self.watched[token] = Some(task);
        self.ring().watch(fd, what, token as u64);
    }
}

/// Wakes tasks for which there is something new in polled memory. Returns true if it woke one.
#[inline]
fn look_into(memories: &[Rc<dyn PolledMemory>]) -> bool {
    memories.iter().fold(false, |is_news, memory| is_news | memory.look())
}

/// Wakes tasks for which something has come from other threads. Returns true if it woke one.
pub(crate) fn look_at(
    inboxes: &[Rc<dyn PolledInbox>],
    stopped: &mut Vec<TaskId>,
    remote: &Remote,
) -> bool {
    let mut is_news = false;
    for inbox in inboxes {
        is_news |= inbox.look();
    }
    if !stopped.is_empty() && remote.is_stopping() {
        stopped.drain(..).for_each(clock::wake);
        is_news = true;
    }
    is_news
}
