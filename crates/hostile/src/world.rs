use crate::calm::Calm;
use crate::device::device;
use crate::watch::{Ledger, Watched};
use base::{BufPool, Nanos};
use clock::{Gate, Stage};
use controller::{
    Controller, Entrance, FlashFigures, Port, Subsystem, SubsystemConfig, Subsystems,
    TransportAddress,
};
use net::{Conditions, Network};
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{Config, TIMEOUT, serve};
use reactor::Reactor;
use spec::{AddressFamily, Text};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";

/// The address for attackers, and the one for the well-behaved host.
pub(crate) const ADDRESS: &str = "192.0.2.7";
pub(crate) const CALM_ADDRESS: &str = "192.0.2.8";

/// No delay, and pieces of any length.
const QUICK: Conditions = Conditions {
    delay: (Nanos::ZERO, Nanos::ZERO),
    piece_max: 1 << 20,
    capacity: 1 << 18,
    life: None,
};

/// All commands end within this time: a run has far less work.
const DONE_WITHIN: Nanos = Nanos::from_secs(1);

/// After this time a disconnected host has left no state: a target waits [`TIMEOUT`] for its host.
const GONE_WITHIN: Nanos = Nanos(2 * TIMEOUT.0);

/// A device that hosts reach by NVMe/TCP on a simulated network, and in the process.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) device: Arc<Controller>,
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) flash: Arc<Mutex<FlashFigures>>,
    /// Queues without a transport.
    pub(crate) entrance: Watched,
    gate: Arc<Gate>,
    subsystems: Arc<Subsystems>,
    counters: Rc<Counters>,
    /// The number of connections being served.
    served: Rc<Cell<usize>>,
    ledgers: Rc<RefCell<Vec<Rc<Ledger>>>>,
}

/// Reference counts of objects that hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handles {
    /// Held by each association and by each command in progress.
    subsystem: usize,
    /// Held by each queue.
    subsystems: usize,
    /// Held by each connection.
    counters: usize,
    served: usize,
    connections: usize,
}

/// Runs `attack` and a well-behaved host in virtual time, with ties broken by `seed`. Drops what
/// `attack` returns when all its commands must have been answered.
///
/// # Panics
/// When a command is not answered as required, when the well-behaved host does not get its data, or
/// when state is left after all hosts have disconnected.
pub(crate) fn run<T>(seed: u64, attack: impl AsyncFnOnce(&World) -> T) {
    let mut reactor = Reactor::new(Some(seed));
    let world = reactor.run(World::new());
    let (tasks, handles) = (reactor.tasks(), world.handles());
    reactor.run(async {
        let calm = Calm::connect(&world).await;
        let attackers = attack(&world).await;
        pass(DONE_WITHIN).await;
        world.ledgers.borrow().iter().for_each(|ledger| ledger.check());
        drop(attackers);
        calm.leave().await;
        pass(GONE_WITHIN).await;
    });
    assert_eq!(world.handles(), handles, "something is left of hosts that have gone");
    assert_eq!(reactor.tasks(), tasks, "a task is left of hosts that have gone");
}

impl World {
    async fn new() -> Self {
        let (device, gate) = device().await;
        let flash = Arc::new(Mutex::new(FlashFigures::NEW));
        let told = flash.clone();
        let config = SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "KV-0001".to_owned(),
            firmware: "1.2.3".to_owned(),
            flash: Box::new(move || *told.lock().expect("no thread panics")),
        };
        let subsystem = Subsystem::new(config, device.clone());
        let subsystems = Subsystems::new();
        subsystems.add(subsystem.clone());
        let ledgers = Rc::default();
        let world = Self {
            network: Network::new(1, QUICK),
            device,
            subsystem,
            flash,
            entrance: watched(&subsystems, &ledgers, true),
            gate,
            subsystems,
            counters: Rc::default(),
            served: Rc::default(),
            ledgers,
        };
        world.listen(ADDRESS, true);
        world.listen(CALM_ADDRESS, false);
        // The listening tasks start.
        pass(Nanos(1)).await;
        world
    }

    fn listen(&self, address: &str, is_kept_out: bool) {
        let port: Rc<dyn Port> = Rc::new(watched(&self.subsystems, &self.ledgers, is_kept_out));
        let config = Config { pool: BufPool::new(1 << 20), counters: self.counters.clone() };
        let (listener, served) = (self.network.listen(address), self.served.clone());
        clock::spawn(async move {
            while let Some(end) = listener.accept().await {
                let (port, config, served) = (port.clone(), config.clone(), served.clone());
                served.set(served.get() + 1);
                clock::spawn(async move {
                    serve(Rc::new(end), port, config, Rc::default()).await;
                    served.set(served.get() - 1);
                });
            }
        });
    }

    fn handles(&self) -> Handles {
        Handles {
            subsystem: Arc::strong_count(&self.subsystem),
            subsystems: Arc::strong_count(&self.subsystems),
            counters: Rc::strong_count(&self.counters),
            served: self.served.get(),
            connections: self.network.open().len(),
        }
    }

    /// Delays every I/O command for `duration`.
    pub(crate) async fn hold_up(&self, duration: Nanos) {
        let closed = self.gate.close();
        pass(duration).await;
        drop(closed);
    }

    /// Closes the gate until the guard drops.
    pub(crate) fn close_gate(&self) -> clock::Closed<'_> {
        self.gate.close()
    }
}

fn watched(
    subsystems: &Arc<Subsystems>,
    ledgers: &Rc<RefCell<Vec<Rc<Ledger>>>>,
    is_kept_out: bool,
) -> Watched {
    let address =
        TransportAddress { family: AddressFamily::IPV4, address: Text::new(ADDRESS), port: 4420 };
    let entrance = Entrance::new(subsystems.clone(), address);
    Watched::new(entrance, ledgers.clone(), is_kept_out)
}

/// Waits for `duration`.
pub(crate) async fn pass(duration: Nanos) {
    clock::sleep(duration, Stage::Queue).await;
}
