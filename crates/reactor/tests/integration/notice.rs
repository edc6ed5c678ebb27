//! Notices of threads that have no reactor.

use reactor::{Reactor, Remote, notices};
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn a_sleeping_reactor_reads_each_notice_that_it_had_time_for() {
    let remote = Remote::new().unwrap();
    let (writer, end) = notices::<u32>(&remote);
    let (sender, receiver) = channel();
    let reading = thread::spawn(move || {
        let reader = async {
            let reader = end.open();
            loop {
                let notice = reader.read().await;
                sender.send(notice).unwrap();
                if notice == 99 {
                    return;
                }
            }
        };
        Reactor::new(None).serve(&remote, reader).unwrap();
        remote.load().sleeps
    });
    for notice in 0..100 {
        // It is asleep by now, or about to be.
        thread::sleep(std::time::Duration::from_micros(100 * u64::from(notice % 5)));
        writer.put_up(notice);
        assert_eq!(receiver.recv(), Ok(notice));
    }
    assert!(reading.join().unwrap() > 0);
}

#[test]
fn a_reader_sees_the_last_of_unread_notices() {
    let remote = Remote::new().unwrap();
    let (writer, end) = notices::<u32>(&remote);
    for notice in [1, 2, 3] {
        writer.clone().put_up(notice);
    }
    let (read, _) = Reactor::new(None).serve(&remote, async { end.open().read().await }).unwrap();
    assert_eq!(read, 3);
}
