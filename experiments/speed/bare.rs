//! The bare model: the cost of the clock and one index probe without a device.

use crate::rate::millions_a_second;
use base::{Nanos, Rng, mix};
use clock::{Class, Group, Rank, Resource, Stage};
use reactor::Reactor;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

const DIES: usize = 64;
const CHANNELS: usize = 8;

struct Model {
    link: Resource,
    handler: Resource,
    dies: Vec<Resource>,
    channels: Vec<Resource>,
    /// Open addressing with linear probing: a key in each slot, 0 for an empty one.
    index: Vec<u64>,
}

impl Model {
    fn new(keys: u64) -> Self {
        let group = Group::new();
        let slots = usize::try_from((keys * 3 / 2).next_power_of_two()).expect("it fits memory");
        let mut index = vec![0; slots];
        for key in 1..=keys {
            let mut at = place(key, slots);
            while index[at] != 0 {
                at = (at + 1) % slots;
            }
            index[at] = key;
        }
        let of = |rank| group.resource("a resource of the bare model", rank, 1);
        Self {
            link: of(Rank::Link),
            handler: of(Rank::Handler),
            dies: (0..DIES).map(|_| of(Rank::Array)).collect(),
            channels: (0..CHANNELS).map(|_| of(Rank::Channel)).collect(),
            index,
        }
    }

    fn probe(&self, key: u64) -> usize {
        let mut at = place(key, self.index.len());
        while self.index[at] != key {
            at = (at + 1) % self.index.len();
        }
        at
    }

    /// Runs one retrieve: link, handler and probe, die, channel, link, with the times of `moke`.
    async fn retrieve(&self, key: u64) {
        let class = Class::HostRead;
        self.link.serve(class, Stage::Link, Nanos(1_000)).await;
        self.handler.serve(class, Stage::Index, Nanos(4_200)).await;
        let die = self.probe(key) % DIES;
        self.dies[die].serve(class, Stage::Array, Nanos(45_000)).await;
        self.channels[die % CHANNELS].serve(class, Stage::Channel, Nanos(5_120)).await;
        self.link.serve(class, Stage::Link, Nanos(2_280)).await;
    }
}

fn place(key: u64, slots: usize) -> usize {
    usize::try_from(mix(key) % slots as u64).expect("below the number of slots")
}

/// Returns millions of retrieves a second of wall time: `operations` of them at queue depth 64 over
/// `keys` keys.
pub(crate) fn rate(keys: u64, operations: u64) -> f64 {
    Reactor::new(None).run(async {
        let model = Rc::new(Model::new(keys));
        let start = Instant::now();
        let clients: Vec<_> = (0..64)
            .map(|client| {
                let model = model.clone();
                async move {
                    let mut rng = Rng::fork(1, client);
                    for _ in 0..operations / 64 {
                        model.retrieve(1 + rng.below(keys)).await;
                    }
                }
            })
            .collect();
        black_box(clock::join_all(clients).await);
        millions_a_second(operations, start)
    })
}
