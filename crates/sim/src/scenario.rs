use crate::block::BlockLoad;
use crate::disk_scenarios;
use crate::driver::Driver;
use crate::emulated::Emulated;
use crate::faults::RunFaults;
use crate::host_queue::Transport;
use crate::load::Load;
use crate::pcie;
use crate::remote;
use crate::tally::Tally;
use crate::zoned::ZonedLoad;
use std::cell::RefCell;
use std::rc::Rc;

/// What a device is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Keys and values, by the KV command set.
    Kv,
    /// The same by several hosts over NVMe/TCP, on a network that splits, delays and cuts. The
    /// device keeps its power, and has no faults.
    Remote,
    /// The same by several machines over PCIe, which reset their controllers.
    Pcie,
    /// Batches, and values that expire, by the engine.
    Batches,
    /// Keys and values by two hosts, on a drive on a disk that drops, reorders and tears what was
    /// not flushed, and fails. It loses its power, or its process is killed.
    Disk,
    /// Batches, and values that expire, on such a drive.
    DiskBatches,
    /// Logical blocks, by the NVM command set.
    Block,
    /// Zones, by the ZNS command set.
    Zoned,
    /// As [`Self::Block`], over PCIe.
    PcieBlock,
    /// As [`Self::Zoned`], over PCIe.
    PcieZoned,
}

impl Scenario {
    /// Runs `seed`, and returns what it went through.
    ///
    /// # Panics
    /// When an acknowledged change is lost, a value is there that no host wrote, or a count or list
    /// of the device is wrong.
    pub fn run(self, seed: u64) -> Tally {
        self.run_with(seed, None, &Rc::default())
    }

    /// As [`Self::run`], with the faults that are `given` in place of drawn ones. Those that take
    /// effect go to `happened`.
    pub(crate) fn run_with(
        self,
        seed: u64,
        given: Option<RunFaults>,
        happened: &Rc<RefCell<RunFaults>>,
    ) -> Tally {
        let load: Rc<dyn Load> = match self {
            Self::Kv => Rc::new(Emulated::kv(seed)),
            Self::Remote => return remote::run(seed),
            Self::Pcie => return pcie::run(seed),
            Self::Batches => Rc::new(Emulated::batches(seed)),
            Self::Disk => return disk_scenarios::kv(seed).run(),
            Self::DiskBatches => return disk_scenarios::batches(seed).run(),
            Self::Block => Rc::new(BlockLoad::new(seed, Transport::Process)),
            Self::Zoned => Rc::new(ZonedLoad::new(seed, Transport::Process)),
            Self::PcieBlock => Rc::new(BlockLoad::new(seed, Transport::Pcie)),
            Self::PcieZoned => Rc::new(ZonedLoad::new(seed, Transport::Pcie)),
        };
        Driver::new(load, seed, given, happened.clone()).run()
    }
}
