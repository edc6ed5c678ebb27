//! Controllers of the memory-based transport model: a host reaches them over PCIe, by registers and
//! by queues in its own memory (Base 2.1, Memory-Based Transport Queue Model).

use crate::fabrics::association::{Association, Host, Service, TransportModel};
use crate::fabrics::pair::Pair;
use crate::fabrics::port::Entrance;
use crate::fabrics::property;
use crate::fabrics::slots::CommandHead;
use crate::host_queue::{HostQueue, Responses};
use crate::io_command;
use crate::namespace::NamespaceInUse;
use spec::{
    AdminOpcode, Command, CommandSet, Completion, Feature, NamespaceManagement, Opcode, Property,
};
use spec::{IDENTIFY_BYTES, QualifiedName, Transfer};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The PCI vendor id of controllers, "KV": the PCI-SIG has given it to no vendor.
pub const PCI_VENDOR_ID: u16 = 0x4b56;

/// A controller of a subsystem for one host, which reaches it over PCIe. The function that holds it
/// owns the registers and queues in host memory, and passes on properties and commands.
///
/// Each access is executed at once, in the reactor that created the controller.
pub struct PcieController {
    entrance: Entrance,
    association: Arc<Association>,
    /// The admin queue since the controller was enabled.
    admin: RefCell<Option<Rc<Pair>>>,
    /// The namespace of the last I/O command, and its id, until [`Self::end_commands`].
    last: RefCell<Option<(u32, Arc<NamespaceInUse>)>>,
}

impl Entrance {
    /// Creates a controller of the subsystem `nqn`, with at most `io_queues_max` I/O queues, for a
    /// host without a name: lists of hosts do not hold for it. Returns `None` if there is no such
    /// subsystem, or if it has as many controllers as the rules allow.
    pub fn pcie_controller(
        &self,
        nqn: &str,
        io_queues_max: u16,
        offers_shadow_doorbells: bool,
    ) -> Option<PcieController> {
        let subsystem = self.subsystems().find(nqn)?;
        let host = Host {
            id: [0; 16],
            name: QualifiedName::new(""),
            reactor: self.reactor(),
            keep_alive_ms: 0,
            model: TransportModel::Memory { offers_shadow_doorbells },
        };
        let mut limits = self.subsystems().rules().limits;
        limits.io_queues = limits.io_queues.min(io_queues_max);
        let associations = subsystem.associations.clone();
        let association = associations.add(&host, Service::Storage(subsystem), limits)?;
        Some(PcieController {
            entrance: self.clone(),
            association,
            admin: RefCell::default(),
            last: RefCell::default(),
        })
    }
}

impl PcieController {
    /// Returns the value of a property; 0 if there is no such property.
    pub fn get(&self, property: Property) -> u64 {
        property::value(&self.association, property).unwrap_or(0)
    }

    /// Writes a property. Nothing changes if it is read-only or does not exist. When this disables
    /// the controller, all of its queues end.
    pub fn set(&self, property: Property, value: u32) {
        self.end_disabled();
        let _ = property::change(&self.association, property, value);
        self.end_disabled();
    }

    /// Returns whether the controller is enabled, and neither failed nor shut down.
    #[inline]
    pub fn takes_commands(&self) -> bool {
        self.association.registers.takes_commands()
    }

    /// Returns whether the host has enabled the controller (CC.EN).
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.association.registers.configuration.get().is_enabled()
    }

    /// Sets the fatal status (CSTS.CFS): the host broke a rule of queues, or its memory is gone.
    pub fn fail(&self) {
        self.association.registers.fail();
    }

    /// Returns the number of I/O queues that the host may create, by Number of Queues.
    pub fn io_queues(&self) -> u16 {
        self.association.features.io_queues()
    }

    /// Returns the largest number of I/O queues and of entries in one.
    pub fn queues_max(&self) -> (u16, u16) {
        let limits = self.association.limits;
        (limits.io_queues, limits.queue_entries)
    }

    /// Creates the admin queue of an enabled controller. It ends when the controller is disabled.
    pub fn admin_queue(&self, entries: u16, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let (pair, queue) = self.entrance.bound_queue(&self.association, 0, entries, responses);
        self.association.set_admin_queue(&pair.link);
        *self.admin.borrow_mut() = Some(pair);
        queue
    }

    /// Creates an I/O queue. Returns `None` if the id is in use, or if the controller takes no
    /// commands.
    pub fn io_queue(
        &self,
        id: u16,
        entries: u16,
        responses: Rc<dyn Responses>,
    ) -> Option<Rc<dyn HostQueue>> {
        assert!(id > 0, "0 is the admin queue");
        let (pair, queue) = self.entrance.bound_queue(&self.association, id, entries, responses);
        let is_added = self.association.add_queue(id, &pair.link);
        if !is_added {
            pair.finish();
        }
        is_added.then_some(queue)
    }

    /// Returns how many bytes a command of queue `queue_id` moves between the host and the
    /// controller, by its own fields: the length of the data at its PRP entries. The caller calls
    /// [`Self::end_commands`] before it waits.
    pub fn data_bytes(&self, queue_id: u16, command: &Command) -> u64 {
        match (command.transfer(), queue_id) {
            (Transfer::None, _) => 0,
            (_, 0) => admin_bytes(command),
            _ => self.io_bytes(command),
        }
    }

    fn io_bytes(&self, command: &Command) -> u64 {
        let nsid = command.nsid();
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(id, _)| *id != nsid) {
            *last = self.association.namespace(nsid).map(|namespace| (nsid, namespace));
        }
        let Some((_, namespace)) = &*last else { return 0 };
        match (namespace.command_set(), command.opcode()) {
            // The device moves no more than the value has.
            (CommandSet::KEY_VALUE, Opcode::RETRIEVE) => command.size().into(),
            (set, opcode) => io_command::find(set, opcode)
                .map_or(0, |known| (known.bytes)(command, namespace.block_bytes())),
        }
    }

    /// Ends the use of a namespace by [`Self::data_bytes`].
    pub fn end_commands(&self) {
        self.last.take();
    }

    /// Records the failure of a command of queue `queue_id` that the controller never had, or has
    /// completed.
    pub fn record_failure(&self, queue_id: u16, command: &Command, completion: Completion) {
        self.association.errors.record(queue_id, Some(CommandHead::of(command)), completion);
    }

    /// Resets the controller as a function level reset does: all queues end, and all properties are
    /// those of a new controller.
    pub fn reset(&self) {
        property::reset(&self.association);
        self.end_disabled();
    }

    /// Ends the controller when its host is gone.
    pub fn end(&self) {
        self.association.end();
        if let Some(admin) = self.admin.take() {
            admin.finish();
        }
    }

    /// Ends the admin queue of a disabled controller: also one that a reset of the subsystem has
    /// disabled.
    fn end_disabled(&self) {
        if self.is_enabled() {
            return;
        }
        if let Some(admin) = self.admin.take() {
            admin.tell_events(&self.association.events);
            admin.finish();
        }
    }
}

impl Drop for PcieController {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for PcieController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PcieController {}", self.association.id)
    }
}

/// Returns the bytes that an admin command moves.
fn admin_bytes(command: &Command) -> u64 {
    match command.admin_opcode() {
        AdminOpcode::IDENTIFY | AdminOpcode::NAMESPACE_ATTACHMENT => IDENTIFY_BYTES.into(),
        AdminOpcode::NAMESPACE_MANAGEMENT
            if command.namespace_management() == Some(NamespaceManagement::Create) =>
        {
            IDENTIFY_BYTES.into()
        }
        AdminOpcode::GET_LOG_PAGE => command.log_page_bytes(),
        AdminOpcode::GET_FEATURES | AdminOpcode::SET_FEATURES
            if command.feature_id() == Feature::HOST_IDENTIFIER =>
        {
            HOST_ID_BYTES
        }
        _ => 0,
    }
}

/// Bytes of a host identifier: controllers have those of 128 bits only (HIDS).
const HOST_ID_BYTES: u64 = 16;
