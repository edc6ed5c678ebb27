//! NVMe commands from a queue pair of the same process.

use crate::aside::aside;
use crate::drives;
use base::{Buf, Key, Rng};
use controller::{Queue, QueuePair, Submission};
use drive::Durability;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Store,
    Retrieve,
}

/// Commands on an emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    /// Stores of new pairs.
    Store,
    /// Stores of random pairs that the device has.
    Overwrite,
    /// Retrieves of random pairs.
    Retrieve,
}

/// Pairs of a drive.
pub(crate) const KEYS: u64 = 4_096;

const NSID: u32 = 1;
const DEPTH: u64 = 64;

/// Commands of one kind on keys drawn at random, or on one key after the other.
struct Load {
    kind: Kind,
    value: Buf,
    keys: u64,
    /// `None`: keys in order.
    drawn: Option<Rng>,
    next: u64,
}

/// Executes `operations` on a drive on a disk that has all pairs.
pub(crate) fn on_a_disk(kind: Kind, operations: u64) {
    Reactor::new(None).run(async {
        let drive = drives::on_a_disk(Durability::Capacitor).await;
        let queue = drive.controller().queue_pair();
        let value = Buf::copy_from(&[0xa5; 8_192]);
        Load::in_order(Kind::Store, value.clone(), KEYS).run(&queue, KEYS).await;
        Load::at_random(kind, value, KEYS).run(&queue, operations).await;
    });
}

/// Executes `operations` on the emulated device `moke`.
pub(crate) fn simulated(simulated: Simulated, operations: u64) {
    const PAIRS: u64 = 20_000;
    let profile = Profile::load("moke").expect("moke is built in");
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default());
        let device = device.await.expect("moke is a whole device");
        let queue = device.controller().queue_pair();
        let value = Buf::phantom(4_096, 1);
        let mut stores = Load::in_order(Kind::Store, value.clone(), u64::MAX);
        stores.run(&queue, PAIRS).await;
        let mut load = match simulated {
            Simulated::Store => stores,
            Simulated::Overwrite => Load::at_random(Kind::Store, value, PAIRS),
            Simulated::Retrieve => Load::at_random(Kind::Retrieve, value, PAIRS),
        };
        load.run(&queue, operations).await;
    });
}

impl Load {
    fn in_order(kind: Kind, value: Buf, keys: u64) -> Self {
        Self { kind, value, keys, drawn: None, next: 0 }
    }

    fn at_random(kind: Kind, value: Buf, keys: u64) -> Self {
        Self { drawn: Some(Rng::new(1)), ..Self::in_order(kind, value, keys) }
    }

    fn next(&mut self) -> Submission {
        let number = match &mut self.drawn {
            Some(rng) => rng.below(self.keys),
            None => self.next % self.keys,
        };
        self.next += 1;
        let key = key(number);
        let len = self.value.len();
        match self.kind {
            Kind::Store => {
                let command = Command::store(NSID, key.as_bytes(), len, StoreOptions::NONE);
                Submission::with_data(command, &key, self.value.clone())
            }
            Kind::Retrieve => Submission::new(Command::retrieve(NSID, key.as_bytes(), len), &key),
        }
    }

    /// Executes `operations`, [`DEPTH`] at a time.
    async fn run(&mut self, queue: &QueuePair, operations: u64) {
        let (mut submitted, mut completed) = (0, 0);
        while completed < operations {
            while submitted < operations && submitted - completed < DEPTH {
                queue.submit(aside(|| self.next()));
                submitted += 1;
            }
            let completion = Queue::next(queue).await;
            aside(|| assert_eq!(completion.status, Status::SUCCESS, "every command succeeds"));
            completed += 1;
        }
    }
}

/// Returns a key of 16 bytes.
pub(crate) fn key(number: u64) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Key::new(&bytes).expect("it has 16 bytes")
}
