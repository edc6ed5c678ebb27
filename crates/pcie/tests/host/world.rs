use base::Nanos;
use clock::{CodeCosts, Cores, Gate, Group};
use controller::{
    Config, Controller, Emulation, Entrance, FirmwareCosts, FlashFigures, LinkTiming, Namespace,
    Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{BlocksShape, Memory, MemoryBlocks, Shape, Victims};
use pcie::host::{Driver, MappedPage, Raised};
use pcie::{DoorbellPage, HostRam, NvmeFunction};
use reactor::Reactor;
use spec::{AddressFamily, Text};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";

/// Namespaces.
pub(crate) const KV: u32 = 1;
pub(crate) const BLOCK: u32 = 2;

/// A device with pairs and with blocks of 4 KiB, for functions.
pub(crate) struct World {
    entrance: Entrance,
    /// Closed, it holds every I/O command up.
    pub(crate) gate: Arc<Gate>,
}

/// Runs `test` in virtual time, with ties at one instant broken by `seed`.
pub(crate) fn run(seed: u64, test: impl AsyncFnOnce(World)) {
    Reactor::new(Some(seed)).run(async { test(World::new(true).await).await });
}

/// The same with a drive without emulation.
pub(crate) fn run_real(seed: u64, test: impl AsyncFnOnce(World)) {
    Reactor::new(Some(seed)).run(async { test(World::new(false).await).await });
}

impl World {
    async fn new(is_emulated: bool) -> Self {
        let (group, gate) = (Group::new(), Arc::new(Gate::new()));
        let blocks = BlocksShape { block_bytes: 4_096, blocks: 2_000, parallelism: 1 };
        let blocks = Namespace::Block(Arc::new(MemoryBlocks::new(blocks)));
        let namespaces = vec![Namespace::Kv(store(group).await), blocks];
        let emulation = is_emulated.then(|| Emulation {
            group,
            link: LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) },
            handlers: 1,
            costs: FirmwareCosts::default(),
            cores: Cores::new(group, 1, CodeCosts::default()),
            gate: gate.clone(),
        });
        let device = Controller::new(namespaces, Config { emulation, has_volatile_cache: false });
        let config = SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "KV-0001".to_owned(),
            firmware: "1.2.3".to_owned(),
            flash: Box::new(|| FlashFigures::NEW),
        };
        let subsystems = Subsystems::new();
        subsystems.add(Subsystem::new(config, device));
        let (family, address) = (AddressFamily::IPV4, Text::new("192.0.2.7"));
        let address = TransportAddress { family, address, port: 4420 };
        Self { entrance: Entrance::new(subsystems, address), gate }
    }

    /// Attaches a function to a new host, which has not enabled it.
    pub(crate) fn attach(&self) -> Driver {
        let (ram, raised) = (Rc::<HostRam>::default(), Rc::<Raised>::default());
        let function = NvmeFunction::new(&self.entrance, NQN, ram.clone(), raised.clone(), None);
        Driver::new(function.expect("there is room"), ram, raised)
    }

    /// The same with a host that has mapped the page of doorbells.
    pub(crate) fn attach_mapped(&self) -> Driver {
        let (ram, raised) = (Rc::<HostRam>::default(), Rc::<Raised>::default());
        let page = Rc::<MappedPage>::default();
        let (memory, doorbells) = (ram.clone(), Some(page.clone() as Rc<dyn DoorbellPage>));
        let function = NvmeFunction::new(&self.entrance, NQN, memory, raised.clone(), doorbells)
            .expect("room");
        function.set_polled();
        let mut driver = Driver::new(function, ram, raised);
        driver.mapped = Some(page);
        driver
    }

    /// Attaches a function to a host that enables it and creates I/O queue 1 of `entries`.
    pub(crate) async fn host(&self, entries: u16) -> Driver {
        let driver = self.attach();
        driver.enable();
        driver.create_queue(1, entries).await;
        driver
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
        capacity_bytes: 64 << 20,
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
