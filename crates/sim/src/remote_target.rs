use base::{BufPool, Nanos};
use clock::Stage;
use controller::{
    Entrance, FlashFigures, Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use net::Network;
use node::Device;
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{Config, Ended, serve};
use spec::{AddressFamily, Text};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";
pub(crate) const ADDRESS: &str = "192.0.2.7";

/// Bytes of freed buffers that are kept.
const POOL_BYTES: usize = 1 << 20;

/// How long commands may run on after all hosts have left. It is less than a target waits for a
/// silent host, which would hide what was forgotten.
const IDLE_WITHIN: Nanos = Nanos::from_secs(5);

/// How often it is looked whether the target is idle.
const STEP: Nanos = Nanos::from_millis(1);

/// A device behind NVMe/TCP.
pub(crate) struct Target {
    subsystem: Arc<Subsystem>,
    subsystems: Arc<Subsystems>,
    counters: Rc<Counters>,
    /// Connections that are served.
    served: Rc<Cell<usize>>,
    idle: Handles,
}

/// How many handles there are on what connections share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handles {
    /// Each association has one, and so have commands that are carried out.
    subsystem: usize,
    /// Each queue has one, and so have commands that are carried out.
    subsystems: usize,
    /// Each connection has one.
    counters: usize,
    served: usize,
}

impl Target {
    /// Serves `device` to every host that connects.
    pub(crate) fn start(network: &Network, device: &Device) -> Self {
        let config = SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "KV-0001".to_owned(),
            firmware: "1.2.3".to_owned(),
            flash: Box::new(|| FlashFigures::NEW),
        };
        let subsystem = Subsystem::new(config, device.controller().clone());
        let subsystems = Subsystems::new();
        subsystems.add(subsystem.clone());
        let (counters, served) = (Rc::<Counters>::default(), Rc::<Cell<usize>>::default());
        let idle = Handles { subsystem: 2, subsystems: 2, counters: 2, served: 0 };
        let target = Self { subsystem, subsystems, counters, served, idle };
        target.accept(network);
        assert_eq!(target.handles(), target.idle, "no host has connected");
        target
    }

    fn accept(&self, network: &Network) {
        let address = TransportAddress {
            family: AddressFamily::IPV4,
            address: Text::new(ADDRESS),
            port: 4420,
        };
        let entrance = Rc::new(Entrance::new(self.subsystems.clone(), address));
        let config = Config { pool: BufPool::new(POOL_BYTES), counters: self.counters.clone() };
        let (listener, served) = (network.listen(ADDRESS), self.served.clone());
        clock::spawn(async move {
            while let Some(end) = listener.accept().await {
                let (entrance, config, served) = (entrance.clone(), config.clone(), served.clone());
                served.set(served.get() + 1);
                clock::spawn(async move {
                    let ended = serve(Rc::new(end), entrance, config, Rc::default()).await;
                    let is_expected = matches!(ended, Ended::ByHost | Ended::ByController);
                    assert!(is_expected, "a connection ended for another reason: {ended}");
                    served.set(served.get() - 1);
                });
            }
        });
    }

    /// Waits until nothing is left of hosts and their commands.
    ///
    /// # Panics
    /// When something stays.
    pub(crate) async fn wait_until_idle(&self, network: &Network) {
        let until = clock::now() + IDLE_WITHIN;
        while self.handles() != self.idle || !network.open().is_empty() {
            assert!(
                clock::now() < until,
                "of hosts that have left something stays: {:?} and not {:?}, connections {:?}",
                self.handles(),
                self.idle,
                network.open()
            );
            clock::sleep(STEP, Stage::Queue).await;
        }
    }

    fn handles(&self) -> Handles {
        Handles {
            subsystem: Arc::strong_count(&self.subsystem),
            subsystems: Arc::strong_count(&self.subsystems),
            counters: Rc::strong_count(&self.counters),
            served: self.served.get(),
        }
    }
}
