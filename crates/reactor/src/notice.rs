use crate::driver::{self, PolledInbox};
use crate::remote::Remote;
use crate::sync::{AtomicBool, Mutex};
use base::Nanos;
use clock::Notify;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};

/// A board for notices of any threads to the reactor under `to`. What was not read when the next
/// one comes is never read.
pub fn notices<T: 'static>(to: &Remote) -> (NoticeWriter<T>, NoticeEnd<T>) {
    let board = Arc::new(Board { is_new: AtomicBool::new(false), latest: Mutex::new(None) });
    let writer = NoticeWriter { board: board.clone(), to: to.clone() };
    (writer, NoticeEnd { board, to: to.clone() })
}

struct Board<T> {
    /// Polled instead of the lock, so that an unchanged notice costs no lock.
    is_new: AtomicBool,
    latest: Mutex<Option<T>>,
}

/// Where notices are put up. Clones are handles of the same board.
pub struct NoticeWriter<T> {
    board: Arc<Board<T>>,
    to: Remote,
}

/// Where they are read, on its way to its reactor.
pub struct NoticeEnd<T> {
    board: Arc<Board<T>>,
    to: Remote,
}

/// Where they are read.
pub struct NoticeReader<T: 'static>(Rc<Reading<T>>);

struct Reading<T> {
    board: Arc<Board<T>>,
    notify: Notify,
}

impl<T> NoticeWriter<T> {
    /// Puts up `notice` in place of the one before, and never waits.
    pub fn put_up(&self, notice: T) {
        *self.board.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(notice);
        self.board.is_new.store(true, Release);
        self.to.notify();
    }
}

impl<T: 'static> NoticeEnd<T> {
    /// Attaches the reading end to the running reactor, which is the addressed one.
    pub fn open(self) -> NoticeReader<T> {
        let is_here = driver::with(|driver| driver.remote().is(&self.to));
        assert!(is_here, "notices are read in the reactor that they were meant for");
        let (reader, polled) = self.attached();
        driver::with(|driver| driver.add_inbox(polled));
        reader
    }

    /// Returns the reader, and what the driver of its reactor polls.
    pub(crate) fn attached(self) -> (NoticeReader<T>, Rc<dyn PolledInbox>) {
        let reading = Rc::new(Reading { board: self.board, notify: Notify::new() });
        (NoticeReader(reading.clone()), reading)
    }
}

impl<T: 'static> NoticeReader<T> {
    /// Waits for the next notice. One task at a time waits.
    pub async fn read(&self) -> T {
        let Reading { board, notify } = &*self.0;
        loop {
            if board.is_new.swap(false, Acquire) {
                let latest = board.latest.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(notice) = latest {
                    return notice;
                }
            }
            notify.wait().await;
            clock::catch_up().await;
        }
    }
}

impl<T> PolledInbox for Reading<T> {
    fn look(&self) -> bool {
        let is_news = self.notify.is_awaited() && self.board.is_new.load(Acquire);
        if is_news {
            self.notify.notify();
        }
        is_news
    }

    fn due(&self) -> Option<Nanos> {
        let is_news = self.notify.is_awaited() && self.board.is_new.load(Acquire);
        is_news.then_some(Nanos::ZERO)
    }
}

impl<T: 'static> Drop for NoticeReader<T> {
    fn drop(&mut self) {
        let inbox: Rc<dyn PolledInbox> = self.0.clone();
        driver::with_installed(|driver| driver.remove_inbox(&inbox));
    }
}

impl<T> Clone for NoticeWriter<T> {
    fn clone(&self) -> Self {
        Self { board: self.board.clone(), to: self.to.clone() }
    }
}

impl<T> fmt::Debug for NoticeWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeWriter")
    }
}

impl<T> fmt::Debug for NoticeEnd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeEnd")
    }
}

impl<T> fmt::Debug for NoticeReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeReader")
    }
}
