use crate::driver::PolledInbox;
use crate::remote::Remote;
use crate::sync::{AtomicBool, Mutex, MutexGuard};
use base::Nanos;
use clock::{RemoteWaker, TaskId};
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};

/// A place among reactors whose tasks wait for one another's.
#[derive(Clone, Debug)]
pub struct Peer {
    number: u32,
    all: Arc<[Desk]>,
}

/// What the others have for a reactor.
#[derive(Debug, Default)]
struct Desk {
    /// Tasks of it that they let go on.
    woken: Mutex<Vec<TaskId>>,
    /// Polled instead of the lock, so that an empty list costs no lock.
    is_new: AtomicBool,
    /// What wakes the reactor. In virtual time there is nothing that does.
    remote: Option<Remote>,
}

/// A place for each of `remotes`, under which these reactors are to be served.
pub fn peers(remotes: &[Remote]) -> Vec<Peer> {
    places(remotes.iter().cloned().map(Some))
}

/// Places for so many reactors in virtual time.
pub(crate) fn peers_in_virtual_time(count: usize) -> Vec<Peer> {
    places(std::iter::repeat_n(None, count))
}

fn places(remotes: impl Iterator<Item = Option<Remote>>) -> Vec<Peer> {
    let all: Arc<[Desk]> = remotes.map(|remote| Desk { remote, ..Desk::default() }).collect();
    let count = u32::try_from(all.len()).expect("a reactor has a thread");
    (0..count).map(|number| Peer { number, all: all.clone() }).collect()
}

impl Peer {
    /// Its number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn is_under(&self, remote: &Remote) -> bool {
        let mine = &self.all[self.number as usize].remote;
        mine.as_ref().is_some_and(|mine| mine.is(remote))
    }

    /// Lets tasks of the others go on.
    pub(crate) fn remote_waker(&self) -> RemoteWaker {
        let all = self.all.clone();
        Box::new(move |task| all[task.reactor_id()].wake(task))
    }

    /// Lets the tasks of this one go on that others have woken, in that order, and says whether
    /// there were any. Its schedule is installed.
    pub(crate) fn wake_all(&self) -> bool {
        let desk = &self.all[self.number as usize];
        if !desk.is_new.swap(false, Acquire) {
            return false;
        }
        let woken = mem::take(&mut *desk.woken());
        for task in &woken {
            clock::wake(*task);
        }
        !woken.is_empty()
    }

    /// Whether others have woken a task of it.
    pub(crate) fn has_news(&self) -> bool {
        self.all[self.number as usize].is_new.load(Acquire)
    }
}

impl Desk {
    fn woken(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, task: TaskId) {
        self.woken().push(task);
        self.is_new.store(true, Release);
        if let Some(remote) = &self.remote {
            remote.notify();
        }
    }
}

impl PolledInbox for Peer {
    fn look(&self) -> bool {
        self.wake_all()
    }

    fn due(&self) -> Option<Nanos> {
        self.has_news().then_some(Nanos::ZERO)
    }
}
