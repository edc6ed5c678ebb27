use crate::pcie_queues::{PcieQueues, WeakQueues};
use base::{Nanos, Rng};
use clock::Stage;
use controller::{
    Controller, Entrance, FlashFigures, Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use pcie::host::{Driver, MappedPage, Raised};
use pcie::{DoorbellPage, HostRam, NvmeFunction};
use spec::{AddressFamily, Text};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";

/// How long commands may run on after all hosts have left.
const IDLE_WITHIN: Nanos = Nanos::from_secs(5);

/// How often [`PcieTarget::wait_until_idle`] counts the handles on the subsystem.
const STEP: Nanos = Nanos::from_millis(1);

/// A device whose PCIe functions hosts attach.
pub(crate) struct PcieTarget {
    subsystem: Arc<Subsystem>,
    entrance: Entrance,
    /// The number of handles on the subsystem before a host attaches a function.
    idle: usize,
    /// Queues of all hosts.
    queues: RefCell<Vec<WeakQueues>>,
}

/// How a host writes the doorbells of I/O queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorbellMode {
    Registers,
    Shadow,
    Mapped,
}

impl DoorbellMode {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        [Self::Registers, Self::Shadow, Self::Mapped]
            [usize::try_from(rng.below(3)).expect("below 3")]
    }
}

impl PcieTarget {
    pub(crate) fn new(controller: &Arc<Controller>) -> Self {
        let config = SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "KV-0001".to_owned(),
            firmware: "1.2.3".to_owned(),
            flash: Box::new(|| FlashFigures::NEW),
        };
        let subsystem = Subsystem::new(config, controller.clone());
        let subsystems = Subsystems::new();
        subsystems.add(subsystem.clone());
        let (family, address) = (AddressFamily::IPV4, Text::new("192.0.2.7"));
        let address = TransportAddress { family, address, port: 4420 };
        let entrance = Entrance::new(subsystems, address);
        let idle = Arc::strong_count(&subsystem);
        let queues = RefCell::default();
        Self { subsystem, entrance, idle, queues }
    }

    /// Attaches a function to a new host, which has not enabled it.
    pub(crate) fn attach(&self, mode: DoorbellMode) -> Driver {
        let (ram, raised) = (Rc::<HostRam>::default(), Rc::<Raised>::default());
        let page = (mode == DoorbellMode::Mapped).then(Rc::<MappedPage>::default);
        let doorbells = page.clone().map(|page| page as Rc<dyn DoorbellPage>);
        let (memory, interrupts) = (ram.clone(), raised.clone());
        let function = NvmeFunction::new(&self.entrance, NQN, memory, interrupts, doorbells);
        let function = function.expect("the subsystem takes one host more");
        if page.is_some() {
            function.set_polled();
        }
        let mut driver = Driver::new(function, ram, raised);
        driver.mapped = page;
        driver
    }

    /// Adds queues that end when the subsystem is reset.
    pub(crate) fn add(&self, queues: WeakQueues) {
        let mut all = self.queues.borrow_mut();
        all.retain(|queues| queues.upgrade().is_some());
        all.push(queues);
    }

    /// Returns the queues that hosts have.
    pub(crate) fn open_queues(&self) -> Vec<PcieQueues> {
        self.queues.borrow().iter().filter_map(WeakQueues::upgrade).collect()
    }

    /// Waits until hosts that have left, and their commands, hold no handle on the subsystem.
    ///
    /// # Panics
    /// If one of them still holds a handle after [`IDLE_WITHIN`].
    pub(crate) async fn wait_until_idle(&self) {
        let until = clock::now() + IDLE_WITHIN;
        while Arc::strong_count(&self.subsystem) != self.idle {
            assert!(
                clock::now() < until,
                "the subsystem has {} handles after all hosts have left, instead of {}",
                Arc::strong_count(&self.subsystem),
                self.idle
            );
            clock::sleep(STEP, Stage::Queue).await;
        }
    }
}
