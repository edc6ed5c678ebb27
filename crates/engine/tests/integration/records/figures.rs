//! Figures of a store that another thread reads.

use crate::records::medium::Wary;
use crate::records::rig::{SPACES, format, shape, store_one, value};
use engine::Ack;
use reactor::Reactor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Stores that are made while the other thread reads.
const STORES: u64 = 30_000;
const KEYS: u64 = 500;

#[test]
fn figures_are_read_while_another_thread_writes() {
    let (sender, receiver) = mpsc::channel();
    let (shared, ended) = (sender.clone(), Arc::new(AtomicBool::new(false)));
    let has_ended = ended.clone();
    thread::spawn(move || {
        Reactor::new(None).run(async {
            let store = format(&Arc::new(Wary::new(shape(4_096, 256))), Ack::Program).await;
            shared.send(Some(store.clone())).expect("the test waits");
            for number in 0..STORES {
                store_one(&store, SPACES[0], number % KEYS, &value(40, number)).await;
            }
            store.end_cleaning().await;
        });
        ended.store(true, Ordering::Relaxed);
    });
    let store = receiver.recv().expect("it is formatted").expect("it is the store");
    thread::spawn(move || {
        let mut host_bytes = 0;
        while !has_ended.load(Ordering::Relaxed) {
            let usage = store.usage();
            assert!((1..=KEYS + 10).contains(&usage.values.records), "{usage:?}");
            assert!(store.live_pairs().records <= KEYS);
            let bytes = store.counters().host_bytes;
            assert!(bytes >= host_bytes, "{bytes} after {host_bytes}");
            host_bytes = bytes;
        }
        sender.send(None).expect("the test waits");
    });
    let end = receiver.recv_timeout(Duration::from_mins(1));
    assert!(matches!(end, Ok(None)), "the threads wait for each other: {end:?}");
}
