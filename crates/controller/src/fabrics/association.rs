use crate::admin::{Changes, Events, Features, critical_warnings};
use crate::fabrics::count::PerReactor;
use crate::fabrics::error_log::ErrorLog;
use crate::fabrics::keep_alive::{KeepAlive, TICK};
use crate::fabrics::queue_link::QueueLink;
use crate::fabrics::registers::Registers;
use crate::fabrics::rules::Limits;
use crate::fabrics::subsystem::Subsystem;
use crate::fabrics::transport_address::TransportAddress;
use crate::fabrics::work::WorkCount;
use crate::namespace::NamespaceInUse;
use crate::shared::Shared;
use base::Nanos;
use clock::Stage;
use spec::{Completion, ControllerStatus, QualifiedName, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The largest id of a dynamic controller (Base 2.1, Connect command).
const CONTROLLER_ID_MAX: u16 = 0xffef;

/// Queue and command id of an error without a command (Base 2.1, Error Information log page).
const NO_QUEUE: u16 = 0xffff;

/// The subsystem that a host has connected to.
pub(crate) enum Service {
    Storage(Arc<Subsystem>),
    /// The discovery subsystem, through this address.
    Discovery(Arc<TransportAddress>),
}

/// How a host reaches its controller (Base 2.1, Transport Models).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportModel {
    /// By capsules of a fabric.
    Message,
    /// By registers, and by queues in its own memory.
    Memory {
        /// Whether it may move the doorbells into its memory too (Doorbell Buffer Config).
        offers_shadow_doorbells: bool,
    },
}

/// A host's controller: created by the Connect of its admin queue, deleted with that queue (Base
/// 2.1, dynamic controller model). Its queues may be in several reactors, which all use it.
pub(crate) struct Association {
    /// The controller's id, which is unique in its subsystem.
    pub(crate) id: u16,
    pub(crate) host_id: [u8; 16],
    pub(crate) host: QualifiedName,
    pub(crate) service: Service,
    pub(crate) model: TransportModel,
    /// The limits at the time of the Connect.
    pub(crate) limits: Limits,
    /// The number of the reactor that has the admin queue.
    pub(crate) reactor: u32,
    /// Time of the Connect, by the clock of that reactor.
    pub(crate) since: Nanos,
    pub(crate) work: PerReactor<WorkCount>,
    pub(crate) registers: Registers,
    pub(crate) keep_alive: KeepAlive,
    pub(crate) features: Features,
    pub(crate) events: Events,
    pub(crate) errors: ErrorLog,
    pub(crate) changes: Changes,
    siblings: Weak<Associations>,
    queues: Shared<Queues>,
}

/// The open queues of an association.
#[derive(Default)]
struct Queues {
    by_id: BTreeMap<u16, Arc<QueueLink>>,
    /// Whether the association has ended and takes no more queues.
    is_over: bool,
}

impl Association {
    /// Returns the namespace with this id, if it is attached to the host.
    #[inline]
    pub(crate) fn namespace(&self, nsid: u32) -> Option<Arc<NamespaceInUse>> {
        match &self.service {
            Service::Storage(subsystem) => subsystem.namespace(nsid, &self.host),
            Service::Discovery(_) => None,
        }
    }

    /// Reports an added, removed or replaced namespace to the host, if it has enabled that event.
    pub(crate) fn namespace_changed(&self, nsid: u32) {
        self.changes.add(nsid);
        self.events.notice_namespaces(self.admin_queue().as_deref());
    }

    /// Reports critical warnings that are new since the last check, if the host has enabled them.
    pub(crate) fn notice_health(&self) {
        let Service::Storage(subsystem) = &self.service else { return };
        if !self.events.wants_warnings() {
            return;
        }
        let spare_percent = subsystem.flash().spare_percent;
        let warnings = critical_warnings(spare_percent, self.features.temperatures());
        self.events.notice_warnings(self.admin_queue().as_deref(), warnings);
    }

    /// Adds a queue. Returns false if the id is in use, or if the association takes no queues: it
    /// has ended, or it was reset after the Connect began.
    pub(crate) fn add_queue(&self, id: u16, queue: &Arc<QueueLink>) -> bool {
        let mut queues = self.queues.lock();
        let is_ready = id == 0 || self.registers.takes_commands();
        let may_join = is_ready && !queues.is_over && !queues.by_id.contains_key(&id);
        if may_join {
            queues.by_id.insert(id, queue.clone());
        }
        may_join
    }

    /// Sets the admin queue of a controller on PCIe, which has another one each time that it is
    /// enabled.
    pub(crate) fn set_admin_queue(&self, queue: &Arc<QueueLink>) {
        self.queues.lock().by_id.insert(0, queue.clone());
    }

    /// Returns the admin queue, unless it has closed.
    pub(crate) fn admin_queue(&self) -> Option<Arc<QueueLink>> {
        self.queue(0)
    }

    /// Returns the queue with this id, 0 for the admin queue.
    pub(crate) fn queue(&self, id: u16) -> Option<Arc<QueueLink>> {
        self.queues.lock().by_id.get(&id).cloned()
    }

    /// Returns all queues with their ids.
    pub(crate) fn queues(&self) -> Vec<(u16, Arc<QueueLink>)> {
        self.queues.lock().by_id.iter().map(|(&id, queue)| (id, queue.clone())).collect()
    }

    pub(crate) fn has_io_queues(&self) -> bool {
        self.queues.lock().by_id.keys().any(|&id| id > 0)
    }

    /// Removes a closed queue. All queues end with the admin queue.
    pub(crate) fn queue_closed(&self, id: u16, queue: &Arc<QueueLink>) {
        if id == 0 {
            return self.end();
        }
        // After a reset another queue may have the id.
        let queues = &mut self.queues.lock().by_id;
        if queues.get(&id).is_some_and(|it| Arc::ptr_eq(it, queue)) {
            queues.remove(&id);
        }
    }

    /// Sets the Keep Alive timeout in milliseconds; 0 disables it.
    pub(crate) fn set_keep_alive(&self, timeout_ms: u32) {
        self.keep_alive.set_timeout_ms(timeout_ms);
        if let Some(siblings) = self.siblings.upgrade() {
            siblings.watch();
        }
    }

    /// Executes a Controller Level Reset: ends the I/O queues, drops Asynchronous Event Requests
    /// and restores default features. The admin queue stays.
    pub(crate) fn reset(&self) {
        // In this order: a queue must stop answering before the status makes it refuse commands.
        self.end_io_queues();
        self.registers.set_status(ControllerStatus::default());
        // Those that another reactor has added in between.
        self.end_io_queues();
        self.events.reset(self.admin_queue().as_deref());
        self.features.reset();
    }

    fn end_io_queues(&self) {
        let io = self.queues.lock().by_id.split_off(&1);
        for queue in io.values() {
            queue.end();
        }
    }

    /// Ends the association and all of its queues.
    pub(crate) fn end(&self) {
        let over = Queues { is_over: true, ..Queues::default() };
        let queues = self.queues.replace(over).by_id;
        self.events.drop_requests();
        if let Some(siblings) = self.siblings.upgrade() {
            siblings.list.lock().by_id.remove(&self.id);
        }
        for queue in queues.values() {
            queue.end();
        }
    }

    /// Counts a tick and ends the association if its Keep Alive timer has expired.
    fn tick(&self) {
        if self.keep_alive.expires() {
            let expired = Completion::new(NO_QUEUE, Status::KEEP_ALIVE_EXPIRED, 0);
            self.errors.record(NO_QUEUE, None, expired);
            // End first: queues in other reactors must stop answering before they refuse commands.
            self.end();
            self.registers.fail();
            return;
        }
        self.notice_health();
    }
}

/// The associations of a subsystem.
#[derive(Default)]
pub(crate) struct Associations {
    list: Shared<AssociationList>,
    is_ticking: Shared<bool>,
    /// Whether the subsystem was ever reset.
    was_reset: Shared<bool>,
}

#[derive(Default)]
struct AssociationList {
    by_id: BTreeMap<u16, Arc<Association>>,
    last_id: u16,
}

/// The parts of a Connect that an association keeps.
pub(crate) struct Host {
    pub(crate) id: [u8; 16],
    pub(crate) name: QualifiedName,
    /// The number of the reactor that has its admin queue.
    pub(crate) reactor: u32,
    pub(crate) keep_alive_ms: u32,
    pub(crate) model: TransportModel,
}

impl Associations {
    /// Creates an association, unless there are as many as `limits` allow.
    pub(crate) fn add(
        self: &Arc<Self>,
        host: &Host,
        service: Service,
        limits: Limits,
    ) -> Option<Arc<Association>> {
        let was_reset = self.was_reset.get();
        let association = {
            let mut list = self.list.lock();
            if list.by_id.len() >= usize::from(limits.associations) {
                return None;
            }
            let association = Arc::new(Association {
                id: list.next_id(),
                host_id: host.id,
                host: host.name,
                service,
                model: host.model,
                limits,
                reactor: host.reactor,
                since: clock::now(),
                work: PerReactor::default(),
                registers: Registers::new(was_reset),
                keep_alive: KeepAlive::default(),
                features: Features::new(limits.io_queues),
                events: Events::default(),
                errors: ErrorLog::default(),
                changes: Changes::default(),
                siblings: Arc::downgrade(self),
                queues: Shared::default(),
            });
            list.by_id.insert(association.id, association.clone());
            association
        };
        association.set_keep_alive(host.keep_alive_ms);
        Some(association)
    }

    /// Returns the association with this id, if any.
    pub(crate) fn get(&self, id: u16) -> Option<Arc<Association>> {
        self.list.lock().by_id.get(&id).cloned()
    }

    /// Returns all associations in the order of their ids.
    pub(crate) fn all(&self) -> Vec<Arc<Association>> {
        self.list.lock().by_id.values().cloned().collect()
    }

    /// Records a reset of the subsystem, also for later associations. Returns all associations.
    pub(crate) fn reset(&self) -> Vec<Arc<Association>> {
        self.was_reset.set(true);
        self.all()
    }

    /// Checks Keep Alive timers in a task while an association has one.
    fn watch(self: &Arc<Self>) {
        let is_wanted = self.all().iter().any(|each| each.keep_alive.timeout_ms() > 0);
        if is_wanted && !self.is_ticking.replace(true) {
            clock::spawn(self.clone().tick());
        }
    }

    async fn tick(self: Arc<Self>) {
        // Counts from the hosts' time, so that a late tick is not followed by others at once.
        clock::sleep_until(clock::host_now() + TICK, Stage::Queue).await;
        self.all().iter().for_each(|association| association.tick());
        self.is_ticking.set(false);
        self.watch();
    }
}

impl AssociationList {
    /// Returns the next free id, round robin, so that freed ids are not reused soon.
    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = if self.last_id >= CONTROLLER_ID_MAX { 1 } else { self.last_id + 1 };
            if !self.by_id.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}
