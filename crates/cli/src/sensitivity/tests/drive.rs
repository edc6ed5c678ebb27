use crate::rig::device_failure;
use crate::sensitivity::SEED;
use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos};
use clock::{Stage, sleep};
use controller::{Completion, QueuePair, Submission};
use node::{Device, FaultPlan, PowerLoss, Profile};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions, ZoneSendAction};

const NSID: u32 = Device::NAMESPACE;

/// A device to which a test submits commands one by one.
pub(super) struct Drive {
    reactor: Reactor,
    device: Device,
}

impl Drive {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut reactor = Reactor::new(None);
        let cells = Device::manufacture(profile, SEED);
        let device = reactor
            .run(Device::format(profile, cells, SEED, FaultPlan::default()))
            .map_err(device_failure);
        Self { reactor, device: device.unwrap() }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the completions of `commands` in the order of completion; each is submitted at its
    /// time.
    pub(super) fn run(&mut self, commands: &[(Nanos, Submission)]) -> Vec<Completion> {
        let queue = self.device.controller().queue_pair();
        self.reactor.run(submit_all(&queue, commands))
    }

    /// Cuts the power.
    pub(super) fn lose_power(&mut self) -> PowerLoss {
        self.reactor.run(self.device.lose_power())
    }

    /// The same for commands one after the other; each must succeed.
    pub(super) fn prepare(&mut self, commands: &[Submission]) {
        for command in commands {
            let ended = self.run(&[(Nanos::ZERO, command.clone())]);
            assert_eq!(ended[0].status, Status::SUCCESS);
        }
        self.reactor.run(self.device.flush()).unwrap();
    }
}

async fn submit_all(queue: &QueuePair, commands: &[(Nanos, Submission)]) -> Vec<Completion> {
    let mut now = Nanos::ZERO;
    for (at, command) in commands {
        if *at > now {
            sleep(*at - now, Stage::Queue).await;
            now = *at;
        }
        queue.submit(command.clone());
    }
    let mut ended = Vec::new();
    for _ in commands {
        ended.push(queue.next().await);
    }
    ended.sort_by_key(|completion| completion.id);
    ended
}

pub(super) fn read(lba: u64) -> Submission {
    submission(Command::read(NSID, lba, 1), 0)
}

pub(super) fn write(lba: u64) -> Submission {
    submission(Command::write(NSID, lba, 1), 1)
}

/// The pair with key `number`.
pub(super) fn store(number: u64) -> Submission {
    let key = number.to_be_bytes();
    submission(Command::store(NSID, &key, BLOCK_BYTES, StoreOptions::NONE), 1)
}

pub(super) fn zone(start: u64, action: ZoneSendAction) -> Submission {
    submission(Command::zone_management_send(NSID, start, action), 0)
}

fn submission(command: Command, blocks: u32) -> Submission {
    Submission { command, long_key: None, data: Buf::phantom(blocks * BLOCK_BYTES, 1) }
}
