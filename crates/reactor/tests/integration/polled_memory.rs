//! Memory that another thread writes, as a guest writes its doorbells.

use clock::Notify;
use reactor::{PolledMemory, Reactor, Remote, notices, poll, stop_polling};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// A number, and the number after which the writer is to notify the reactor.
#[derive(Default)]
struct Doorbell {
    value: AtomicU32,
    event_index: AtomicU32,
    /// Whether its writer reads the event index.
    can_notify: bool,
}

/// The reading end.
struct Reading {
    doorbell: Arc<Doorbell>,
    seen: Cell<u32>,
    notify: Notify,
}

impl PolledMemory for Reading {
    fn look(&self) -> bool {
        let is_news =
            self.notify.is_awaited() && self.doorbell.value.load(Acquire) != self.seen.get();
        if is_news {
            self.notify.notify();
        }
        is_news
    }

    fn can_arm(&self) -> bool {
        self.doorbell.can_notify
    }

    fn arm(&self) {
        assert!(self.doorbell.can_notify, "it cannot be asked");
        // What is written now is found only by looking once more.
        spin(Duration::from_micros(30));
        self.doorbell.event_index.store(self.seen.get(), Release);
        fence(SeqCst);
    }
}

/// Writes `count` numbers with pauses, each when the reactor has read the one before. Returns how
/// many notifications it took, and how often the reactor slept.
fn write(count: u32, can_notify: bool, pause: impl Fn(u32)) -> (u32, u64) {
    let remote = Remote::new().expect("there is a descriptor left");
    let (writer, end) = notices::<()>(&remote);
    let (sender, receiver) = channel();
    let doorbell = Arc::new(Doorbell { can_notify, ..Doorbell::default() });
    doorbell.event_index.store(u32::MAX, Relaxed);
    let read = doorbell.clone();
    let reading = thread::spawn(move || {
        let reader = async {
            let reader = end.open();
            clock::spawn(async move {
                loop {
                    reader.read().await;
                }
            });
            let (seen, notify) = (Cell::new(0), Notify::new());
            let reading = Rc::new(Reading { doorbell: read, seen, notify });
            let polled: Rc<dyn PolledMemory> = reading.clone();
            poll(polled.clone());
            while reading.seen.get() < count {
                reading.notify.wait().await;
                reading.seen.set(reading.doorbell.value.load(Acquire));
                sender.send(reading.seen.get()).expect("the writer waits for it");
            }
            stop_polling(&polled);
        };
        Reactor::new(None).serve(&remote, reader).expect("there is an io_uring");
        remote.load().sleeps
    });
    let mut notified = 0;
    for number in 1..=count {
        pause(number);
        doorbell.value.store(number, Release);
        fence(SeqCst);
        if can_notify && doorbell.event_index.load(Acquire) == number - 1 {
            writer.put_up(());
            notified += 1;
        }
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(number), "it was missed");
    }
    (notified, reading.join().expect("the reader does not panic"))
}

fn spin(duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

#[test]
fn nothing_is_missed_however_near_to_a_sleep() {
    // The reactor looks for 50 or 200 us before it sleeps.
    let (notified, sleeps) =
        write(2_000, true, |number| spin(Duration::from_micros((number % 260).into())));
    assert!(notified > 0 && sleeps > 0, "{notified} {sleeps}");
}

#[test]
fn a_reactor_that_is_awake_takes_no_notification() {
    let (notified, _) = write(2_000, true, |_| ());
    assert!(notified < 500, "{notified}");
}

#[test]
fn a_reactor_does_not_sleep_while_a_writer_cannot_notify_it() {
    let pause = |number: u32| spin(Duration::from_micros((number % 500).into()));
    assert_eq!(write(500, false, pause), (0, 0), "notifications and sleeps");
}
