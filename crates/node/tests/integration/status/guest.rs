//! Hosts that do what can be counted, and stay until they are told to leave.

use base::{Buf, Key, Nanos};
use client::{Association, Host, IoQueue, Pairs, Settings};
use controller::{Queue, Submission};
use reactor::{Reactor, Remote, TcpStream};
use spec::{Command, Status, StoreOptions};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};

/// What a host does.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// Stores of `len` bytes, retrieves of them, and an Exist of each key that was not stored.
    Pairs { stores: u64, retrieves: u64, missing: u64, len: u32 },
    /// Writes and reads of 4 KiB.
    Blocks { writes: u64, reads: u64 },
}

pub(crate) struct Guest {
    /// From where its admin queue comes.
    pub(crate) from: SocketAddr,
    leave: Sender<()>,
    thread: JoinHandle<()>,
}

/// Where a guest goes.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) address: SocketAddr,
    pub(crate) subsystem: &'static str,
    pub(crate) host: &'static str,
    /// I/O queues.
    pub(crate) queues: usize,
}

impl Guest {
    /// Comes, and has done its work when this returns.
    pub(crate) fn come(visit: Visit, load: Load) -> Self {
        let (leave, left) = channel();
        let (done, is_done) = channel();
        let thread = spawn(move || {
            let remote = Remote::new().unwrap();
            Reactor::new(None).serve(&remote, stay(visit, load, &done, &left)).unwrap();
        });
        let from = is_done.recv().expect("a guest can do its work");
        Self { from, leave, thread }
    }

    pub(crate) fn leave(self) {
        self.leave.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

async fn stay(visit: Visit, load: Load, done: &Sender<SocketAddr>, left: &Receiver<()>) {
    let dial = async || TcpStream::connect(visit.address, Nanos::from_secs(10)).await.unwrap();
    let settings = Settings::new(Host::of_name(visit.host), visit.subsystem);
    let admin = dial().await;
    let from = admin.local_address().unwrap();
    let association = Association::connect(settings, admin).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..visit.queues {
        streams.push(dial().await);
    }
    let reads = association.namespace(1).await.unwrap().reads();
    let queue = association.io_queue(streams, reads).await.unwrap();
    match load {
        Load::Pairs { stores, retrieves, missing, len } => {
            pairs(&queue, [stores, retrieves, missing], len).await;
        }
        Load::Blocks { writes, reads } => blocks(&queue, writes, reads).await,
    }
    done.send(from).unwrap();
    left.recv().unwrap();
    queue.close();
    association.shut_down().await.unwrap();
}

async fn pairs(queue: &IoQueue<TcpStream>, [stores, retrieves, missing]: [u64; 3], len: u32) {
    let pairs = Pairs::new(queue.clone(), 1);
    let key = |number: u64| Key::new(&number.to_be_bytes()).unwrap();
    for number in 0..stores {
        let value = Buf::copy_from(&vec![1; len as usize]);
        pairs.store(&key(number), value, StoreOptions::NONE).await.unwrap();
    }
    for number in 0..retrieves {
        assert_eq!(pairs.retrieve(&key(number % stores)).await.unwrap().len(), len);
    }
    for number in 0..missing {
        assert!(!pairs.exist(&key(stores + number)).await.unwrap());
    }
}

/// Of block 0.
async fn blocks(queue: &IoQueue<TcpStream>, writes: u64, reads: u64) {
    for number in 0..writes + reads {
        let (command, data) = if number < writes {
            (Command::write(1, 0, 1), Buf::copy_from(&[2; 4_096]))
        } else {
            (Command::read(1, 0, 1), Buf::phantom(0, 0))
        };
        queue.submit(Submission { command, long_key: None, data });
        assert_eq!(queue.next().await.status, Status::SUCCESS);
    }
}
