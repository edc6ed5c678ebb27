//! A device in memory behind the target, at an address of a simulated network.

use base::{BufPool, Nanos};
use client::{Association, Host, IoQueue, Reads, Settings};
use clock::{Group, Stage};
use controller::{
    Config, Controller, Entrance, FlashFigures, Namespace, Subsystem, SubsystemConfig, Subsystems,
    TransportAddress,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{Blocks, BlocksShape, Memory, MemoryBlocks, Shape, Victims};
use net::{Conditions, End, MoveRequest, Network};
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{self, Left};
use reactor::Reactor;
use spec::{AddressFamily, Text};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";
pub(crate) const ADDRESS: &str = "192.0.2.7";

/// The ids of the namespace of pairs and of the other one.
pub(crate) const KV: u32 = 1;
pub(crate) const BLOCKS: u32 = 2;

const CAPACITY: u64 = 64 << 20;

/// Small pieces with delays.
pub(crate) const ROUGH: Conditions = Conditions {
    delay: (Nanos::from_micros(1), Nanos::from_micros(50)),
    piece_max: 3_000,
    capacity: 9_000,
    life: None,
};

pub(crate) struct World {
    pub(crate) network: Network,
}

/// How the target's connections move between reactors, which are one reactor here.
#[derive(Clone, Default)]
pub(crate) struct Moves {
    /// How often a connection is asked to move. `None`: it stays.
    pub(crate) every: Option<Nanos>,
    /// How long a connection is on its way.
    pub(crate) pause: Nanos,
    /// Moves so far.
    pub(crate) count: Rc<Cell<u64>>,
}

/// Runs `test` in virtual time on a network like `conditions`.
pub(crate) fn run<T>(seed: u64, conditions: Conditions, test: impl AsyncFnOnce(World) -> T) -> T {
    let blocks = BlocksShape { block_bytes: 4_096, blocks: 100, parallelism: 1 };
    run_on(Arc::new(MemoryBlocks::new(blocks)), seed, conditions, test)
}

/// As [`run`], with connections that move.
pub(crate) fn run_moving<T>(
    seed: u64,
    conditions: Conditions,
    moves: Moves,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    let blocks = BlocksShape { block_bytes: 4_096, blocks: 100, parallelism: 1 };
    Reactor::new(Some(seed)).run(async {
        let network = Network::new(seed, conditions);
        serve(&network, Arc::new(MemoryBlocks::new(blocks)), moves).await;
        test(World { network }).await
    })
}

/// As [`run`], with these blocks as the other namespace.
pub(crate) fn run_on<T>(
    blocks: Arc<dyn Blocks>,
    seed: u64,
    conditions: Conditions,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    Reactor::new(Some(seed)).run(async {
        let network = Network::new(seed, conditions);
        serve(&network, blocks, Moves::default()).await;
        test(World { network }).await
    })
}

pub(crate) fn host(number: u8) -> Host {
    Host::of_uuid([number.max(1); 16])
}

impl World {
    pub(crate) async fn stream(&self) -> End {
        self.network.connect(ADDRESS).await.unwrap()
    }

    pub(crate) async fn associate(&self, settings: Settings) -> Association<End> {
        Association::connect(settings, self.stream().await).await.unwrap()
    }

    pub(crate) async fn connect(
        &self,
        settings: Settings,
        queues: usize,
    ) -> (Association<End>, IoQueue<End>) {
        self.connect_reading(settings, queues, Reads::Pairs).await
    }

    /// As [`Self::connect`], for commands that read as `reads` says.
    pub(crate) async fn connect_reading(
        &self,
        settings: Settings,
        queues: usize,
        reads: Reads,
    ) -> (Association<End>, IoQueue<End>) {
        let association = self.associate(settings).await;
        let mut streams = Vec::new();
        for _ in 0..queues {
            streams.push(self.stream().await);
        }
        let queue = association.io_queue(streams, reads).await.unwrap();
        (association, queue)
    }
}

async fn serve(network: &Network, blocks: Arc<dyn Blocks>, moves: Moves) {
    let group = Group::new();
    let namespaces = vec![Namespace::Kv(store(group).await), Namespace::Block(blocks)];
    let config = Config { emulation: None, has_volatile_cache: false };
    let subsystem = SubsystemConfig {
        nqn: NQN.to_owned(),
        serial: "KV-0001".to_owned(),
        firmware: "1.2.3".to_owned(),
        flash: Box::new(|| FlashFigures::NEW),
    };
    let subsystems = Subsystems::new();
    subsystems.add(Subsystem::new(subsystem, Controller::new(namespaces, config)));
    let address =
        TransportAddress { family: AddressFamily::IPV4, address: Text::new(ADDRESS), port: 4420 };
    let entrance = Rc::new(Entrance::new(subsystems, address));
    let listener = network.listen(ADDRESS);
    clock::spawn(async move {
        let config =
            target::Config { pool: BufPool::new(16 << 20), counters: Rc::<Counters>::default() };
        while let Some(end) = listener.accept().await {
            let (entrance, config) = (entrance.clone(), config.clone());
            clock::spawn(moves.clone().serve(Rc::new(end), entrance, config));
        }
    });
}

impl Moves {
    /// Serves a connection to its end.
    async fn serve(self, stream: Rc<End>, entrance: Rc<Entrance>, config: target::Config) {
        let mut parked = None;
        loop {
            let request = Rc::<MoveRequest>::default();
            if let Some(every) = self.every {
                let request = Rc::downgrade(&request);
                clock::spawn(async move {
                    while let Some(request) = request.upgrade() {
                        request.ask();
                        drop(request);
                        clock::sleep(every, Stage::Queue).await;
                    }
                });
            }
            let shared = (Rc::default(), request);
            let (stream, config) = (stream.clone(), config.clone());
            let left =
                target::serve_until_moved(stream, entrance.clone(), config, shared, parked).await;
            let Left::Moved(moved) = left else { return };
            self.count.set(self.count.get() + 1);
            clock::sleep(self.pause, Stage::Queue).await;
            parked = Some(moved);
        }
    }
}

async fn store(group: Group) -> Arc<Store> {
    let shape = Shape {
        page_bytes: 16_384,
        spare_bytes: 1_000,
        pages_per_extent: 256,
        extents: 30,
        parallelism: 4,
        frames: None,
    };
    let config = engine::Config {
        capacity_bytes: CAPACITY,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group,
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(shape)), config);
    store.create_key_space(KeySpaceId(1)).await.expect("the store is empty");
    store
}
