//! A server that stops while all of its reactors are at work.

use crate::shared_drive::peer::Peer;
use crate::shared_drive::scene::File;
use spec::Status;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

/// Stores new keys until the server is gone, and says after the first that it is answered. Returns
/// how many were answered.
fn store_all(io: &Peer, number: u8, begun: &Sender<()>) -> u32 {
    let mut answered = 0;
    while let Some(status) = io.store(&key(number, answered), &[number; 300]) {
        assert_eq!(status, Status::SUCCESS);
        answered += 1;
        if answered == 1 {
            begun.send(()).expect("the test waits for it");
        }
    }
    answered
}

fn key(number: u8, count: u32) -> Vec<u8> {
    [&[number][..], &count.to_le_bytes()].concat()
}

#[test]
fn what_was_answered_is_there_when_it_was_stopped_under_load() {
    const QUEUES: u8 = 5;
    for (round, reactors) in [2, 3, 4, 3, 3].into_iter().enumerate() {
        let file = File::formatted();
        let scene = file.serve(reactors);
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        let (sender, begun) = mpsc::channel();
        let hosts: Vec<_> = (0..QUEUES)
            .map(|number| {
                let io = Peer::io(scene.address(), controller, u16::from(number) + 1);
                let sender = sender.clone();
                thread::spawn(move || store_all(&io, number, &sender))
            })
            .collect();
        // A busy disk takes long for the first flushes.
        for _ in 0..QUEUES {
            begun.recv_timeout(Duration::from_mins(1)).expect("each queue is answered");
        }
        thread::sleep(Duration::from_millis(100 + 37 * round as u64));
        scene.server.stop().unwrap();
        let answered: Vec<u32> = hosts.into_iter().map(|host| host.join().unwrap()).collect();
        assert!(answered.iter().all(|count| *count > 0), "{answered:?}");

        let scene = file.serve(1);
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        let io = Peer::io(scene.address(), controller, 1);
        for (number, answered) in (0..).zip(answered) {
            assert!((0..answered).all(|count| io.exists(&key(number, count))));
        }
        scene.server.stop().unwrap();
    }
}
