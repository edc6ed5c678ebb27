//! A host of a controller that has a namespace of each kind.

use crate::fragile::Fragile;
use base::{Buf, Nanos};
use clock::{CodeCosts, Cores, Gate, Group};
use controller::{
    Completion, Config, Controller, Emulation, FirmwareCosts, LinkTiming, Namespace, QueuePair,
    Submission,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use ftl::{Zones, ZonesConfig};
use media::{BlocksShape, Error, ExtentId, Memory, MemoryBlocks, PageId, Shape, Victims};
use reactor::Reactor;
use spec::{Command, Status};
use std::sync::Arc;

/// Namespaces.
pub(crate) const KV: u32 = 1;
pub(crate) const BLOCK: u32 = 2;
pub(crate) const ZONED: u32 = 3;

/// Bytes of a logical block.
pub(crate) const BLOCK_BYTES: u32 = 4_096;

/// Logical blocks of the block namespace.
pub(crate) const BLOCKS: u64 = 2_000;

/// What a medium that fails says.
pub(crate) const UNRECOVERED: Error = Error::Unrecovered(PageId { extent: ExtentId(0), page: 0 });

/// Eight zones of 12 blocks, in pages of 4. So they start 16 blocks apart.
const ZONES: Shape = Shape {
    page_bytes: 4 * BLOCK_BYTES,
    spare_bytes: 52,
    pages_per_extent: 3,
    extents: 8 + Zones::SPARE_EXTENTS,
    parallelism: 4,
    frames: None,
};

const LIMITS: ZonesConfig =
    ZonesConfig { max_open: 2, max_active: 3, buffer_bytes: 1 << 20, zones: None };

/// A link on which 1,000 bytes take 1 us.
const LINK: LinkTiming = LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) };

pub(crate) struct Host {
    pub(crate) controller: Arc<Controller>,
    pub(crate) queue: QueuePair,
    pub(crate) gate: Arc<Gate>,
    pub(crate) blocks: Arc<Fragile<MemoryBlocks>>,
    /// What the zones are on.
    pub(crate) medium: Arc<Fragile<Memory>>,
}

/// Runs `test` on a device whose firmware costs nothing.
pub(crate) fn run(test: impl AsyncFnOnce(Host)) {
    run_with(FirmwareCosts::default(), test);
}

/// Runs `test` on a device whose one request handler costs `costs`.
pub(crate) fn run_with(costs: FirmwareCosts, test: impl AsyncFnOnce(Host)) {
    run_on(&mut Reactor::new(None), costs, test);
}

/// The same on a reactor of the test's own.
pub(crate) fn run_on(reactor: &mut Reactor, costs: FirmwareCosts, test: impl AsyncFnOnce(Host)) {
    reactor.run(async {
        let group = Group::new();
        let gate = Arc::new(Gate::new());
        let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks: BLOCKS, parallelism: 4 };
        let blocks = Arc::new(Fragile::new(MemoryBlocks::new(shape)));
        let medium = Arc::new(Fragile::new(Memory::new(ZONES)));
        let namespaces = vec![
            Namespace::Kv(store(group).await),
            Namespace::Block(blocks.clone()),
            Namespace::Zoned(Zones::format(medium.clone(), LIMITS)),
        ];
        let cores = Cores::new(group, 1, CodeCosts::default());
        let config = Config {
            emulation: Some(Emulation {
                group,
                link: LINK,
                handlers: 1,
                costs,
                cores,
                gate: gate.clone(),
            }),
            has_volatile_cache: false,
        };
        let controller = Controller::new(namespaces, config);
        let queue = controller.queue_pair();
        test(Host { controller, queue, gate, blocks, medium }).await;
    });
}

async fn store(group: Group) -> Arc<Store> {
    let shape = Shape {
        page_bytes: 16_384,
        spare_bytes: 1_000,
        pages_per_extent: 256,
        extents: 16,
        parallelism: 4,
        frames: None,
    };
    let config = engine::Config {
        capacity_bytes: 16 << 20,
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

impl Host {
    pub(crate) async fn answer(&self, command: Command, data: Buf) -> Completion {
        self.queue.submit(Submission { command, long_key: None, data });
        self.queue.next().await
    }

    /// The status of a command that brings no data.
    pub(crate) async fn status(&self, command: Command) -> Status {
        self.answer(command, nothing()).await.status
    }

    /// What a Read of `count` blocks returns.
    pub(crate) async fn read(&self, nsid: u32, lba: u64, count: u32) -> Buf {
        let completion = self.answer(Command::read(nsid, lba, count), nothing()).await;
        assert_eq!(completion.status, Status::SUCCESS);
        completion.data
    }
}

pub(crate) const fn nothing() -> Buf {
    Buf::phantom(0, 0)
}

/// `count` blocks of bytes, all of them `byte`.
pub(crate) fn filled(byte: u8, count: u32) -> Buf {
    Buf::copy_from(&vec![byte; (count * BLOCK_BYTES) as usize])
}
