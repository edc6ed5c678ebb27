use crate::pcie_queues::{Content, PcieQueues};
use crate::pcie_target::{DoorbellMode, PcieTarget};
use base::Rng;
use base::limits::BLOCK_BYTES;
use controller::{Completion, Controller, Queue, QueuePair, Submission};
use std::rc::Rc;
use std::sync::Arc;

/// How a host reaches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// By a queue pair of this process.
    Process,
    /// By a PCIe function, whose queues are in the host's memory.
    Pcie,
}

/// A host's queue of a device with logical blocks.
#[derive(Clone)]
pub(crate) enum HostQueue {
    Pair(QueuePair),
    Pcie(PcieQueues),
}

impl HostQueue {
    pub(crate) async fn open(
        transport: Transport,
        controller: &Arc<Controller>,
        rng: &mut Rng,
    ) -> Self {
        match transport {
            Transport::Process => Self::Pair(controller.queue_pair()),
            Transport::Pcie => {
                let mode = DoorbellMode::draw(rng);
                let target = Rc::new(PcieTarget::new(controller));
                let driver = Rc::new(target.attach(mode));
                let (content, rng) = (Content::Blocks(BLOCK_BYTES), Rng::new(rng.next_u64()));
                let entries = &[17, 5, 64];
                Self::Pcie(PcieQueues::open(&target, driver, mode, content, entries, rng).await)
            }
        }
    }
}

impl Queue for HostQueue {
    fn submit(&self, submission: Submission) -> u64 {
        match self {
            Self::Pair(queue) => Queue::submit(queue, submission),
            Self::Pcie(queues) => queues.submit(submission),
        }
    }

    async fn next(&self) -> Completion {
        match self {
            Self::Pair(queue) => Queue::next(queue).await,
            Self::Pcie(queues) => queues.next().await,
        }
    }
}
