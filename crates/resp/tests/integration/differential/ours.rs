//! The door under test, over a store in memory and a simulated network.

use crate::differential::answer::Answer;
use crate::differential::slow::Slow;
use base::{BufPool, Nanos};
use clock::{Group, Stage};
use engine::{Ack, Config, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{Media, Memory, Shape, Victims};
use net::{Conditions, End, MoveRequest, Network, Stream};
use resp::{ArrivingClient, Door, Ends, Left, Settings, Users, serve, serve_until_moved};
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const SHAPE: Shape = Shape {
    page_bytes: 16 << 10,
    spare_bytes: 1 << 10,
    pages_per_extent: 256,
    extents: 24,
    parallelism: 4,
    frames: None,
};

const BUFFER: Ack = Ack::Buffer { bytes: 8 << 20 };

/// A door to an empty store.
pub(crate) async fn door(seed: u64) -> Arc<Door> {
    door_to(Arc::new(Memory::new(SHAPE)), Users::default(), seed, BUFFER).await
}

/// The same, for these users.
pub(crate) async fn door_for(users: Users) -> Arc<Door> {
    door_to(Arc::new(Memory::new(SHAPE)), users, 1, BUFFER).await
}

/// The same, of a store that takes its time to write, and answers when that is done.
pub(crate) async fn slow_door(seed: u64) -> Arc<Door> {
    failing_door(seed).await.0
}

/// The same, and what it writes to.
pub(crate) async fn failing_door(seed: u64) -> (Arc<Door>, Arc<Slow>) {
    let slow = Arc::new(Slow::new(SHAPE, seed));
    (door_to(slow.clone(), Users::default(), seed, Ack::Program).await, slow)
}

/// A door to a store that takes its time to write, and the store, as NVMe hosts use it.
pub(crate) async fn beside_hosts(seed: u64) -> (Arc<Door>, Arc<Store>) {
    let store = store(Arc::new(Slow::new(SHAPE, seed)), seed, Ack::Program).await;
    (door_of(store.clone(), Users::default(), seed), store)
}

async fn door_to(media: Arc<dyn Media>, users: Users, seed: u64, ack: Ack) -> Arc<Door> {
    door_of(store(media, seed, ack).await, users, seed)
}

async fn store(media: Arc<dyn Media>, seed: u64, ack: Ack) -> Arc<Store> {
    let config = Config {
        capacity_bytes: 32 << 20,
        ack,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: Group::new(),
        seed,
    };
    let store = Store::format(media, config);
    store.create_key_space(KeySpaceId(1)).await.expect("there is room");
    store
}

fn door_of(store: Arc<Store>, users: Users, seed: u64) -> Arc<Door> {
    let settings = Settings { seed, ..Settings::default() };
    let door = Arc::new(Door::new(store, users, settings, BufPool::new(1 << 22)));
    let tended = door.clone();
    clock::spawn(async move { tended.tend().await });
    door
}

/// A connection to it.
pub(crate) struct Client {
    stream: Rc<End>,
    come: Vec<u8>,
}

impl Client {
    /// Through a network that cuts what is sent into pieces.
    pub(crate) fn connect(door: &Arc<Door>, seed: u64) -> Self {
        Self::connect_counted(door, seed, Rc::default())
    }

    /// The same, and counts the polls of the task that serves it.
    pub(crate) fn connect_counted(door: &Arc<Door>, seed: u64, polls: Rc<Cell<u64>>) -> Self {
        let (client, far) = Self::unserved(seed);
        let mut served = Box::pin(serve(Rc::new(far), door.clone()));
        clock::spawn(async move {
            poll_fn(|context| {
                polls.set(polls.get() + 1);
                served.as_mut().poll(context)
            })
            .await;
        });
        client
    }

    /// As [`Self::connect`], of a client that `moves`.
    pub(crate) fn connect_moving(door: &Arc<Door>, seed: u64, moves: Moves) -> Self {
        let (client, far) = Self::unserved(seed);
        clock::spawn(moves.serve(Rc::new(far), door.clone()));
        client
    }

    /// A client, and the end of its connection that a server has.
    fn unserved(seed: u64) -> (Self, End) {
        let conditions = Conditions {
            delay: (Nanos(10), Nanos(400)),
            piece_max: 1 << 16,
            capacity: 1 << 17,
            life: None,
        };
        let (near, far) = Network::new(seed, conditions).pair();
        (Self { stream: Rc::new(near), come: Vec::new() }, far)
    }

    /// Sends `bytes`, and reads nothing.
    pub(crate) fn say(&self, bytes: &[u8]) {
        let (stream, sent) = (self.stream.clone(), bytes.to_vec());
        clock::spawn(async move {
            let mut left = &sent[..];
            while !left.is_empty() {
                match stream.try_write(&[IoSlice::new(left)]) {
                    Ok(Some(taken)) => left = &left[taken..],
                    Ok(None) => stream.writable().await,
                    Err(_) => break,
                }
            }
        });
    }

    /// Whether the connection is over. Skips the bytes before its end.
    pub(crate) fn is_over(&mut self) -> bool {
        loop {
            let mut part = vec![0; 65_536];
            match self.stream.try_read(&mut [IoSliceMut::new(&mut part)]) {
                Ok(Some(0)) | Err(_) => return true,
                Ok(Some(_)) => {}
                Ok(None) => return false,
            }
        }
    }

    /// Sends `bytes`, and returns so many answers.
    pub(crate) async fn ask(&mut self, bytes: &[u8], answers: usize) -> Vec<Answer> {
        self.say(bytes);
        let mut all = Vec::new();
        while all.len() < answers {
            if let Some((answer, len)) =
                (!self.come.is_empty()).then(|| Answer::parse(&self.come)).flatten()
            {
                self.come.drain(..len);
                all.push(answer);
                continue;
            }
            let mut part = vec![0; 65_536];
            match self.stream.try_read(&mut [IoSliceMut::new(&mut part)]) {
                Ok(Some(0)) | Err(_) => panic!("the connection is over after {all:?}"),
                Ok(Some(len)) => self.come.extend_from_slice(&part[..len]),
                Ok(None) => self.stream.readable().await,
            }
        }
        assert!(self.come.is_empty(), "more came: {}", self.come.escape_ascii());
        all
    }
}

/// Asks clients again and again to move to their own reactor. Counts the moves.
#[derive(Clone)]
pub(crate) struct Moves {
    every: Nanos,
    /// For how long a client is on its way.
    takes: Nanos,
    loses: bool,
    count: Rc<Cell<u64>>,
}

impl Moves {
    pub(crate) fn new(every: Nanos) -> Self {
        Self { every, takes: Nanos::ZERO, loses: false, count: Rc::default() }
    }

    /// No reactor serves a client for so long while it moves.
    pub(crate) fn slow(every: Nanos, takes: Nanos) -> Self {
        Self { takes, ..Self::new(every) }
    }

    /// Loses clients as they move.
    pub(crate) fn losing(every: Nanos) -> Self {
        Self { loses: true, ..Self::new(every) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    async fn serve(self, stream: Rc<End>, door: Arc<Door>) {
        let mut client = ArrivingClient::new(Ends::default());
        loop {
            let moves = Rc::<MoveRequest>::default();
            let (every, asked) = (self.every, Rc::downgrade(&moves));
            clock::spawn(async move {
                clock::sleep(every, Stage::Queue).await;
                if let Some(moves) = asked.upgrade() {
                    moves.ask();
                }
            });
            let served = serve_until_moved(stream.clone(), door.clone(), client, (moves, None));
            let Left::Moved(moved) = Box::pin(served).await else { return };
            self.count.set(self.count.get() + 1);
            assert!(moved.has_moved());
            if self.loses {
                return;
            }
            clock::sleep(self.takes, Stage::Queue).await;
            client = moved;
        }
    }
}

pub(crate) async fn pass(millis: u64) {
    clock::sleep(Nanos::from_micros(1_000 * millis), Stage::Core).await;
}
