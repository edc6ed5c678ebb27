use base::Nanos;
use clock::{CodeCosts, Cores, Gate, Group};
use controller::{Config, Controller, Emulation, FirmwareCosts, LinkTiming, Namespace};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use ftl::{Zones, ZonesConfig};
use media::{BlocksShape, Memory, MemoryBlocks, Shape, Victims};
use std::sync::Arc;

/// Namespaces of the attackers: one of each kind.
pub(crate) const KV: u32 = 1;
pub(crate) const BLOCK: u32 = 2;
pub(crate) const ZONED: u32 = 3;

/// Namespaces of the well-behaved host.
pub(crate) const CALM_KV: u32 = 4;
pub(crate) const CALM_BLOCK: u32 = 5;
pub(crate) const CALM_ZONED: u32 = 6;

/// Bytes of a logical block.
pub(crate) const BLOCK_BYTES: u32 = 4_096;

/// Blocks from the start of a zone to that of the next: 8 zones of 12 blocks, in pages of 4.
pub(crate) const ZONE_BLOCKS: u32 = 16;

/// Logical blocks of a block namespace.
const BLOCKS: u64 = 500;

const ZONES: Shape = Shape {
    page_bytes: 4 * BLOCK_BYTES,
    spare_bytes: 52,
    pages_per_extent: 3,
    extents: 8 + Zones::SPARE_EXTENTS,
    parallelism: 4,
    frames: None,
};

/// A log so small that a few long values cause cleaning.
const LOG: Shape = Shape {
    page_bytes: 16_384,
    spare_bytes: 1_000,
    pages_per_extent: 16,
    extents: 24,
    parallelism: 4,
    frames: None,
};

/// The store's capacity in bytes of pairs.
const CAPACITY: u64 = 2 << 20;

/// Returns a device in memory with all namespaces above, and the gate that delays every I/O command
/// while it is closed.
pub(crate) async fn device() -> (Arc<Controller>, Arc<Gate>) {
    let group = Group::new();
    let gate = Arc::new(Gate::new());
    let store = store(group).await;
    let namespaces = vec![
        Namespace::Kv(store.clone()),
        blocks(),
        zones(),
        Namespace::Kv(store),
        blocks(),
        zones(),
    ];
    let config = Config {
        emulation: Some(Emulation {
            group,
            link: LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) },
            handlers: 2,
            costs: FirmwareCosts::default(),
            cores: Cores::new(group, 1, CodeCosts::default()),
            gate: gate.clone(),
        }),
        // Makes every log and feature available to hosts.
        has_volatile_cache: true,
    };
    (Controller::new(namespaces, config), gate)
}

pub(crate) async fn store(group: Group) -> Arc<Store> {
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
    let store = Store::format(Arc::new(Memory::new(LOG)), config);
    for space in [1, 4] {
        // The namespaces' ids.
        store.create_key_space(KeySpaceId(space)).await.expect("the store is empty");
    }
    store
}

fn blocks() -> Namespace {
    let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks: BLOCKS, parallelism: 1 };
    Namespace::Block(Arc::new(MemoryBlocks::new(shape)))
}

fn zones() -> Namespace {
    let limits = ZonesConfig { max_open: 2, max_active: 3, buffer_bytes: 1 << 20, zones: None };
    Namespace::Zoned(Zones::format(Arc::new(Memory::new(ZONES)), limits))
}
