use crate::driver::{self, PolledInbox};
use crate::remote::Remote;
use crate::sync::{AtomicBool, Consumer, Producer, PushError, RingBuffer, fence};
use crate::virtual_time::Arrivals;
use base::Nanos;
use clock::{Notify, Rank, Stage, TaskId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// A mailbox of `capacity` messages from the reactor under `from` to the one under `to`. Each end
/// is opened in its reactor.
pub fn mailbox<T: 'static>(
    capacity: usize,
    from: &Remote,
    to: &Remote,
) -> (SendEnd<T>, ReceiveEnd<T>) {
    assert!(capacity > 0, "a mailbox holds a message or more");
    let (producer, consumer) = RingBuffer::new(capacity);
    let wants_room = Arc::new(AtomicBool::new(false));
    let arrivals = to.virtual_time().map(|time| Arc::new(Arrivals::new(time.clone())));
    let send = SendEnd {
        producer,
        arrivals: arrivals.clone(),
        wants_room: wants_room.clone(),
        to: RingWhenGone(to.clone()),
        from: from.clone(),
    };
    let from = RingWhenGone(from.clone());
    let receive = ReceiveEnd { consumer, arrivals, wants_room, from, to: to.clone() };
    (send, receive)
}

/// The end of a mailbox that messages go into, on its way to its reactor.
pub struct SendEnd<T> {
    producer: Producer<T>,
    /// In virtual time.
    arrivals: Option<Arc<Arrivals>>,
    /// Whether the sender's reactor is to be woken when there is room.
    wants_room: Arc<AtomicBool>,
    /// Dropped after `producer`: fields drop in order.
    to: RingWhenGone,
    from: Remote,
}

/// The end of a mailbox that messages come out of, on its way to its reactor.
pub struct ReceiveEnd<T> {
    consumer: Consumer<T>,
    /// In virtual time.
    arrivals: Option<Arc<Arrivals>>,
    wants_room: Arc<AtomicBool>,
    /// Dropped after `consumer`.
    from: RingWhenGone,
    to: Remote,
}

/// Tells the reactor at the other end when this one is gone.
struct RingWhenGone(Remote);

impl Drop for RingWhenGone {
    fn drop(&mut self) {
        self.0.notify();
    }
}

/// Sends messages to another reactor. Clones are handles of the same one; with the last of them
/// goes what has found no room yet.
pub struct Outbox<T: 'static>(Rc<Sending<T>>);

struct Sending<T> {
    end: RefCell<SendEnd<T>>,
    /// What found no room, in order.
    overflow: RefCell<VecDeque<T>>,
    /// Tasks that wait for a free slot, in order.
    waiting: RefCell<VecDeque<TaskId>>,
}

/// Receives messages from another reactor.
pub struct Inbox<T: 'static>(Rc<Receiving<T>>);

struct Receiving<T> {
    end: RefCell<ReceiveEnd<T>>,
    notify: Notify,
}

impl<T: 'static> SendEnd<T> {
    /// Attaches the sending end to the running reactor, which is the `from` of the mailbox.
    pub fn open(self) -> Outbox<T> {
        assert_here(&self.from);
        let (outbox, polled) = self.attached();
        driver::with(|driver| driver.add_inbox(polled));
        outbox
    }

    /// Returns the outbox, and what the driver of its reactor polls.
    pub(crate) fn attached(self) -> (Outbox<T>, Rc<dyn PolledInbox>) {
        let sending = Rc::new(Sending {
            end: RefCell::new(self),
            overflow: RefCell::default(),
            waiting: RefCell::default(),
        });
        (Outbox(sending.clone()), sending)
    }
}

impl<T: 'static> ReceiveEnd<T> {
    /// Attaches the receiving end to the running reactor, which is the `to` of the mailbox.
    pub fn open(self) -> Inbox<T> {
        assert_here(&self.to);
        let (inbox, polled) = self.attached();
        driver::with(|driver| driver.add_inbox(polled));
        inbox
    }

    /// Returns the inbox, and what the driver of its reactor polls.
    pub(crate) fn attached(self) -> (Inbox<T>, Rc<dyn PolledInbox>) {
        let receiving = Rc::new(Receiving { end: RefCell::new(self), notify: Notify::new() });
        (Inbox(receiving.clone()), receiving)
    }
}

impl<T> SendEnd<T> {
    /// Tells the receiver of `sent` messages.
    #[inline]
    fn tell(&self, sent: usize) {
        if sent == 0 {
            return;
        }
        if let Some(arrivals) = &self.arrivals {
            arrivals.send(sent);
        }
        self.to.0.notify();
    }
}

impl<T> ReceiveEnd<T> {
    fn has_message(&self) -> bool {
        let arrivals = self.arrivals.as_ref();
        arrivals.map_or_else(|| !self.consumer.is_empty(), |arrivals| arrivals.is_due())
    }

    /// Returns whether the sender is gone, and nothing is on its way.
    fn is_closed(&self) -> bool {
        let is_last = || self.arrivals.as_ref().is_none_or(|it| it.next().is_none());
        self.consumer.is_abandoned() && is_last()
    }
}

fn assert_here(remote: &Remote) {
    let is_here = driver::with(|driver| driver.remote().is(remote));
    assert!(is_here, "an end of a mailbox is opened in the reactor that it was made for");
}

impl<T: 'static> Outbox<T> {
    /// Sends `message` and never waits: what finds no room in the mailbox stays here, in order,
    /// until there is. So two reactors that send to each other cannot stop each other, if each
    /// waits for [`Self::room`] before it sends what the other has not asked for, and does not wait
    /// before it answers. When the receiver is gone the message is dropped.
    pub fn send(&self, message: T) {
        self.send_all(std::iter::once(message));
    }

    /// Sends `messages` in order, as [`Self::send`], and wakes the receiver once.
    pub fn send_all(&self, messages: impl Iterator<Item = T>) {
        let Sending { end, overflow, .. } = &*self.0;
        let mut end = end.borrow_mut();
        if end.producer.is_abandoned() {
            let unsent = std::mem::take(&mut *overflow.borrow_mut());
            drop(end);
            drop(unsent);
            messages.for_each(drop);
            return;
        }
        let mut overflow = overflow.borrow_mut();
        let mut sent = 0;
        for message in messages {
            if !overflow.is_empty() {
                overflow.push_back(message);
                continue;
            }
            match end.producer.push(message) {
                Ok(()) => sent += 1,
                Err(PushError::Full(message)) => {
                    end.wants_room.store(true, Relaxed);
                    overflow.push_back(message);
                }
            }
        }
        end.tell(sent);
    }

    /// Returns when the mailbox has room for a message, or when the receiver is gone.
    pub async fn room(&self) {
        let has_room = self.0.overflow.borrow().is_empty()
            && self.0.waiting.borrow().is_empty()
            && !self.0.end.borrow().producer.is_full();
        if has_room || self.is_closed() {
            return;
        }
        self.0.end.borrow().wants_room.store(true, Relaxed);
        self.0.waiting.borrow_mut().push_back(clock::current());
        clock::park(Rank::Free, Stage::Queue).await;
    }

    /// True when the receiver is gone; later messages are dropped.
    pub fn is_closed(&self) -> bool {
        self.0.end.borrow().producer.is_abandoned()
    }
}

impl<T> PolledInbox for Sending<T> {
    /// Moves overflowed messages into free slots, then wakes as many senders as there are slots
    /// left.
    fn look(&self) -> bool {
        let (mut overflow, mut waiting) = (self.overflow.borrow_mut(), self.waiting.borrow_mut());
        if overflow.is_empty() && waiting.is_empty() {
            return false;
        }
        let mut end = self.end.borrow_mut();
        if end.producer.is_abandoned() {
            let is_news = !waiting.is_empty();
            waiting.drain(..).for_each(clock::wake);
            let unsent = std::mem::take(&mut *overflow);
            drop((overflow, waiting, end));
            drop(unsent);
            return is_news;
        }
        let mut room = end.producer.slots();
        if room == 0 {
            return false;
        }
        let sent = room.min(overflow.len());
        for message in overflow.drain(..sent) {
            let pushed = end.producer.push(message);
            assert!(pushed.is_ok(), "this end is the only producer");
        }
        end.tell(sent);
        room -= sent;
        let woken = room.min(waiting.len());
        waiting.drain(..woken).for_each(clock::wake);
        if overflow.is_empty() && waiting.is_empty() {
            end.wants_room.store(false, Relaxed);
        }
        true
    }

    fn due(&self) -> Option<Nanos> {
        if self.overflow.borrow().is_empty() && self.waiting.borrow().is_empty() {
            return None;
        }
        let producer = &self.end.borrow().producer;
        (producer.is_abandoned() || !producer.is_full()).then_some(Nanos::ZERO)
    }
}

impl<T: 'static> Inbox<T> {
    /// The next message, if there is one.
    pub fn try_receive(&self) -> Option<T> {
        let mut next = None;
        self.receive_some(1, |message| next = Some(message));
        next
    }

    /// Gives the next messages to `take`, at most `most`, and then wakes a sender that waits for
    /// room. Returns how many there were.
    pub fn receive_some(&self, most: usize, mut take: impl FnMut(T)) -> usize {
        let end = &mut *self.0.end.borrow_mut();
        let most = end.arrivals.as_ref().map_or(most, |arrivals| arrivals.take(most));
        let messages = std::iter::from_fn(|| end.consumer.pop().ok()).take(most);
        let received = messages.map(&mut take).count();
        if received > 0 {
            // The room is the news, `wants_room` is read beside `asleep`: see `Remote::notify`.
            fence(SeqCst);
            if end.wants_room.load(Relaxed) {
                end.from.0.notify_after_fence();
            }
        }
        received
    }

    /// Waits for the next message; one that is waited for arrives at the wall's present
    /// ([`clock::catch_up`]). `None` when the sender is gone, and all it sent has been
    /// received. One task at a time waits.
    pub async fn receive(&self) -> Option<T> {
        loop {
            let is_closed = self.0.end.borrow().is_closed();
            let message = self.try_receive();
            if message.is_some() || is_closed {
                return message;
            }
            self.0.notify.wait().await;
            clock::catch_up().await;
        }
    }
}

impl<T> PolledInbox for Receiving<T> {
    fn look(&self) -> bool {
        if !self.notify.is_awaited() {
            return false;
        }
        let end = self.end.borrow();
        let is_news = end.has_message() || end.is_closed();
        if is_news {
            self.notify.notify();
        }
        is_news
    }

    fn due(&self) -> Option<Nanos> {
        if !self.notify.is_awaited() {
            return None;
        }
        let end = self.end.borrow();
        let next = end.arrivals.as_ref().and_then(|arrivals| arrivals.next());
        next.or_else(|| end.is_closed().then_some(Nanos::ZERO))
    }
}

impl<T: 'static> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: 'static> Drop for Outbox<T> {
    fn drop(&mut self) {
        // This handle and the driver's: the last is gone.
        if Rc::strong_count(&self.0) == 2 {
            let inbox: Rc<dyn PolledInbox> = self.0.clone();
            driver::with_installed(|driver| driver.remove_inbox(&inbox));
        }
    }
}

impl<T: 'static> Drop for Inbox<T> {
    fn drop(&mut self) {
        let inbox: Rc<dyn PolledInbox> = self.0.clone();
        driver::with_installed(|driver| driver.remove_inbox(&inbox));
    }
}

impl<T> fmt::Debug for SendEnd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendEnd")
    }
}

impl<T> fmt::Debug for ReceiveEnd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiveEnd")
    }
}

impl<T: 'static> fmt::Debug for Outbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox that keeps {} messages", self.0.overflow.borrow().len())
    }
}

impl<T: 'static> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox with {} messages", self.0.end.borrow().consumer.slots())
    }
}
