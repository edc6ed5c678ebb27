//! What an emulated device adds to the execution of a command: the time of its link, its firmware
//! and its code. Drives on a disk and in memory have none of it.

use crate::firmware::{Firmware, FirmwareCosts};
use crate::link::{Link, LinkTiming};
use base::{Key, Nanos};
use clock::{Code, Cores, Gate, Group, Serve};
use std::sync::Arc;

/// The parts of an emulated device that take time for each command.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The device's resources.
    pub group: Group,
    /// The link to the host.
    pub link: LinkTiming,
    /// Number of request handlers of the firmware.
    pub handlers: u32,
    /// Firmware times of commands.
    pub costs: FirmwareCosts,
    /// The cores that code runs on.
    pub cores: Cores,
    /// The gate that every command passes first. Garbage collection that blocks the whole
    /// controller closes it.
    pub gate: Arc<Gate>,
}

/// Delays commands as an [`Emulation`] says. Each function waits for one step of a command.
pub(crate) struct Delays {
    link: Link,
    firmware: Firmware,
    cores: Cores,
    gate: Arc<Gate>,
}

impl Delays {
    pub(crate) fn new(emulation: Emulation) -> Self {
        let Emulation { group, link, handlers, costs, cores, gate } = emulation;
        let link = Link::new(group, link);
        Self { link, firmware: Firmware::new(group, handlers, costs), cores, gate }
    }

    /// True when nothing takes time, so that no command waits for another here.
    pub(crate) fn take_no_time(&self) -> bool {
        self.link.is_free()
            && self.firmware.costs == FirmwareCosts::default()
            && self.cores.are_free()
            && self.gate.is_open()
    }

    /// Takes `commands` from their queue, once the gate is open.
    pub(crate) async fn begin(&self, commands: u64) {
        self.gate.pass().await;
        if let Some(parse) = self.cores.charge(Code::Parse, commands) {
            parse.await;
        }
    }

    /// Posts the completions of `commands`. `None` if that takes no time.
    pub(crate) fn complete(&self, commands: u64) -> Option<Serve> {
        self.cores.charge(Code::Complete, commands)
    }

    /// Moves `bytes` from the host.
    pub(crate) fn fetch(&self, bytes: u32) -> Serve {
        self.link.fetch(bytes)
    }

    /// Moves `bytes` to the host.
    pub(crate) fn deliver(&self, bytes: u32) -> Serve {
        self.link.deliver(bytes)
    }

    /// Handles a command called `work` that reads.
    pub(crate) fn read(&self, work: &'static str) -> Serve {
        self.firmware.handle(work, self.firmware.costs.t_read)
    }

    /// Handles a command called `work` that writes.
    pub(crate) fn write(&self, work: &'static str) -> Serve {
        self.firmware.handle(work, self.firmware.costs.t_write)
    }

    /// Fetches the value of a Store, and handles it up to the look-up of `key`.
    pub(crate) async fn store(&self, bytes: u32, key: &Key) {
        if bytes > 0 {
            self.link.fetch(bytes).await;
        }
        self.look_up("store", self.firmware.costs.store(bytes), key).await;
    }

    /// Handles the rest of a Store that has overwritten a value. `None` if that takes no time.
    pub(crate) fn update(&self) -> Option<Serve> {
        self.firmware.handle_more("store", self.firmware.costs.t_update)
    }

    /// Handles a Retrieve up to the look-up of `key`.
    pub(crate) fn retrieve(&self, key: &Key) -> impl Future<Output = ()> {
        self.look_up("retrieve", self.firmware.costs.t_read, key)
    }

    /// Delivers the `bytes` of a value that the host has room for.
    pub(crate) async fn deliver_value(&self, bytes: u32) {
        if bytes > 0 {
            let cost = self.firmware.costs.deliver(bytes);
            if let Some(more) = self.firmware.handle_more("retrieve", cost) {
                more.await;
            }
            self.link.deliver(bytes).await;
        }
    }

    /// Handles a Delete up to the look-up of `key`.
    pub(crate) fn delete(&self, key: &Key) -> impl Future<Output = ()> {
        self.look_up("delete", self.firmware.costs.t_delete, key)
    }

    /// Handles an Exist up to the look-up of `key`.
    pub(crate) fn exist(&self, key: &Key) -> impl Future<Output = ()> {
        self.look_up("exist", self.firmware.costs.t_exist, key)
    }

    /// Handles a List up to the look-up of its first key, if it names one.
    pub(crate) async fn list(&self, start: Option<&Key>) {
        self.look_up_any("list", self.firmware.costs.t_read, start.is_some_and(Key::is_long)).await;
    }

    fn look_up(&self, work: &'static str, cost: Nanos, key: &Key) -> impl Future<Output = ()> {
        self.look_up_any(work, cost, key.is_long())
    }

    async fn look_up_any(&self, work: &'static str, cost: Nanos, has_long_key: bool) {
        if has_long_key {
            self.firmware.handle_long_key(work, cost, &self.link).await;
        } else {
            self.firmware.handle(work, cost).await;
        }
        if let Some(probe) = self.cores.charge(Code::Probe, 1) {
            probe.await;
        }
    }
}
