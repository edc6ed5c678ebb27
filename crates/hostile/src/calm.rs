use crate::device::{BLOCK_BYTES, CALM_BLOCK, CALM_KV, CALM_ZONED};
use crate::world::{CALM_ADDRESS, NQN, World, pass};
use base::{Buf, Key, Nanos, Rng};
use client::{Association, Host, IoQueue, Pairs, Reads, Settings};
use controller::{QueuePair, Submission};
use net::End;
use nvme_tcp::pdu::Digests;
use spec::{Command, Status, StoreOptions};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of the values: empty, in the capsule, by R2T, and of more than a page.
const LENS: [usize; 4] = [0, 700, 9_000, 20_000];

/// Logical blocks of each kind that it writes.
const BLOCKS: u32 = 6;

/// How often it checks its data during an attack.
const LOOKS: u32 = 3;

/// A well-behaved host with its own namespaces. It uses NVMe/TCP for keys, and queue pairs in the
/// process for blocks.
pub(crate) struct Calm {
    association: Association<End>,
    data: Rc<Data>,
    looks_left: Rc<Cell<u32>>,
}

struct Data {
    queue: IoQueue<End>,
    pairs: Pairs<IoQueue<End>>,
    /// A queue for one command at a time.
    blocks: QueuePair,
}

impl Calm {
    /// Connects, stores its data, and starts to check it repeatedly.
    pub(crate) async fn connect(world: &World) -> Self {
        let settings = Settings {
            digests: Digests { header: true, data: true },
            keep_alive: Nanos::ZERO,
            ..Settings::new(Host::of_uuid([9; 16]), NQN)
        };
        let stream =
            async || world.network.connect(CALM_ADDRESS).await.expect("the target listens");
        let association = Association::connect(settings, stream().await).await.expect("it is free");
        let queue =
            association.io_queue(vec![stream().await], Reads::Pairs).await.expect("it is free");
        let data = Rc::new(Data {
            pairs: Pairs::new(queue.clone(), CALM_KV),
            queue,
            blocks: world.device.queue_pair(),
        });
        data.store().await;
        let looks_left = Rc::new(Cell::new(LOOKS));
        let (seen, left) = (data.clone(), looks_left.clone());
        clock::spawn(async move {
            while left.get() > 0 {
                pass(Nanos::from_micros(20)).await;
                seen.look().await;
                left.set(left.get() - 1);
            }
        });
        Self { association, data, looks_left }
    }

    /// Checks its data a last time and disconnects.
    pub(crate) async fn leave(self) {
        while self.looks_left.get() > 0 {
            pass(Nanos::from_millis(1)).await;
        }
        self.data.look().await;
        assert_eq!(self.data.queue.failure(), None, "the connection lives on");
        self.data.queue.close();
        drop(self.data);
        self.association.shut_down().await.expect("the controller lives on");
        pass(Nanos(1)).await;
    }
}

impl Data {
    async fn store(&self) {
        for len in LENS {
            let stored = self.pairs.store(&key(len), value(len), StoreOptions::NONE).await;
            stored.expect("there is room");
        }
        for nsid in [CALM_BLOCK, CALM_ZONED] {
            let data = value((BLOCKS * BLOCK_BYTES) as usize);
            let written = self.execute(Command::write(nsid, 0, BLOCKS), data).await;
            assert_eq!(written.0, Status::SUCCESS);
        }
    }

    async fn look(&self) {
        for len in LENS {
            let found = self.pairs.retrieve(&key(len)).await.expect("the pair is there");
            assert_same(&found, &value(len));
        }
        for nsid in [CALM_BLOCK, CALM_ZONED] {
            let nothing = Buf::phantom(0, 0);
            let (status, found) = self.execute(Command::read(nsid, 0, BLOCKS), nothing).await;
            assert_eq!(status, Status::SUCCESS);
            assert_same(&found, &value((BLOCKS * BLOCK_BYTES) as usize));
        }
    }

    async fn execute(&self, command: Command, data: Buf) -> (Status, Buf) {
        self.blocks.submit(Submission { command, long_key: None, data });
        let completion = self.blocks.next().await;
        (completion.status, completion.data)
    }
}

fn assert_same(found: &Buf, stored: &Buf) {
    let bytes = |data: &Buf| data.bytes().unwrap_or_default().to_vec();
    assert!(bytes(found) == bytes(stored), "a host beside has lost its data");
}

/// Returns a key that the attackers use in their namespace too.
fn key(len: usize) -> Key {
    let name: &[u8] = match len {
        0 => &[0],
        700 => &[1],
        9_000 => &[1; 2],
        _ => &[0; 16],
    };
    Key::new(name).expect("a short key")
}

fn value(len: usize) -> Buf {
    let mut bytes = vec![0; len];
    Rng::new(len as u64).fill(&mut bytes);
    Buf::copy_from(&bytes)
}
