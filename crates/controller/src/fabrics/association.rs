use crate::admin::{Changes, Events, Features, critical_warnings};
use crate::fabrics::association_state::AssociationState;
use crate::fabrics::count::PerReactor;
use crate::fabrics::error_log::ErrorLog;
use crate::fabrics::io_context::AssociationIo;
use crate::fabrics::keep_alive::{KeepAlive, TICK};
use crate::fabrics::queue::Queue;
use crate::fabrics::registers::Registers;
use crate::fabrics::rules::Limits;
use crate::fabrics::subsystem::Subsystem;
use crate::fabrics::transport_address::TransportAddress;
use crate::fabrics::work::WorkCount;
use crate::namespace::NamespaceInUse;
use base::Nanos;
use clock::Stage;
use spec::{Completion, QualifiedName, Status};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The largest id of a dynamic controller (Base 2.1, Connect command).
const CONTROLLER_ID_MAX: u16 = 0xffef;

/// Queue and command id of an error without a command (Base 2.1, Error Information log page).
const NO_QUEUE: u16 = 0xffff;

/// The subsystem that a host has connected to.
pub(crate) enum Service {
    Storage(Rc<Subsystem>),
    /// The discovery subsystem, through this address.
    Discovery(Rc<TransportAddress>),
}

/// A host's controller: created by the Connect of its admin queue, deleted with that queue (Base
/// 2.1, dynamic controller model).
pub(crate) struct Association {
    /// The controller's id, which is unique in its subsystem.
    pub(crate) id: u16,
    pub(crate) host_id: [u8; 16],
    pub(crate) host: QualifiedName,
    pub(crate) service: Service,
    /// The limits at the time of the Connect.
    pub(crate) limits: Limits,
    /// Time of the Connect, by the clock.
    pub(crate) since: Nanos,
    pub(crate) work: PerReactor<WorkCount>,
    /// State shared with its I/O queues in all reactors.
    pub(crate) state: Arc<AssociationState>,
    pub(crate) registers: Registers,
    pub(crate) keep_alive: KeepAlive,
    pub(crate) features: Features,
    pub(crate) events: Events,
    pub(crate) errors: Arc<ErrorLog>,
    pub(crate) changes: Changes,
    siblings: Weak<Associations>,
    queues: RefCell<BTreeMap<u16, Weak<Queue>>>,
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

    /// Returns the context of this association's I/O queues with `subsystem`, in the reactor of
    /// tenant number `tenant` or in this reactor.
    pub(crate) fn rights(&self, subsystem: &Subsystem, tenant: Option<u32>) -> AssociationIo {
        AssociationIo {
            host: self.host,
            value_bytes: self.limits.value_bytes,
            state: self.state.clone(),
            errors: self.errors.clone(),
            tally: subsystem.tally.of(tenant),
            work: self.work.of(tenant),
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

    /// Adds a queue. Returns false if the id is in use.
    pub(crate) fn add_queue(&self, id: u16, queue: &Rc<Queue>) -> bool {
        let mut queues = self.queues.borrow_mut();
        let is_new = !queues.contains_key(&id);
        if is_new {
            queues.insert(id, Rc::downgrade(queue));
        }
        is_new
    }

    /// Returns the admin queue, unless it has closed.
    pub(crate) fn admin_queue(&self) -> Option<Rc<Queue>> {
        self.queue(0)
    }

    /// Returns the queue with this id, 0 for the admin queue.
    pub(crate) fn queue(&self, id: u16) -> Option<Rc<Queue>> {
        self.queues.borrow().get(&id).and_then(Weak::upgrade)
    }

    /// Returns all queues with their ids.
    pub(crate) fn queues(&self) -> Vec<(u16, Rc<Queue>)> {
        let queues = self.queues.borrow();
        queues.iter().filter_map(|(&id, queue)| Some((id, queue.upgrade()?))).collect()
    }

    pub(crate) fn has_io_queues(&self) -> bool {
        self.queues.borrow().keys().any(|&id| id > 0)
    }

    /// Removes a closed queue. All queues end with the admin queue.
    pub(crate) fn queue_closed(&self, id: u16) {
        if id > 0 {
            self.queues.borrow_mut().remove(&id);
            return;
        }
        self.end();
    }

    /// Sets the Keep Alive timeout in milliseconds; 0 disables it.
    pub(crate) fn set_keep_alive(&self, timeout_ms: u32) {
        self.keep_alive.set_timeout_ms(timeout_ms);
        if let Some(siblings) = self.siblings.upgrade() {
            siblings.watch();
        }
    }

    /// Ends the I/O queues.
    pub(crate) fn end_io_queues(&self) {
        let io = self.queues.borrow_mut().split_off(&1);
        io.values().filter_map(Weak::upgrade).for_each(|queue| queue.end());
    }

    /// Ends the association and all of its queues.
    pub(crate) fn end(&self) {
        let queues = std::mem::take(&mut *self.queues.borrow_mut());
        self.events.drop_requests();
        if let Some(siblings) = self.siblings.upgrade() {
            siblings.remove(self.id);
        }
        queues.values().filter_map(Weak::upgrade).for_each(|queue| queue.end());
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

/// The associations of a subsystem, in the order of their ids.
#[derive(Default)]
pub(crate) struct Associations {
    list: RefCell<BTreeMap<u16, Rc<Association>>>,
    last_id: Cell<u16>,
    is_ticking: Cell<bool>,
    /// Whether the subsystem was ever reset.
    was_reset: Cell<bool>,
}

impl Associations {
    /// Creates an association, unless there are as many as `limits` allow.
    pub(crate) fn add(
        self: &Rc<Self>,
        host_id: [u8; 16],
        host: QualifiedName,
        service: Service,
        keep_alive_ms: u32,
        limits: Limits,
    ) -> Option<Rc<Association>> {
        if self.list.borrow().len() >= usize::from(limits.associations) {
            return None;
        }
        let state = Arc::<AssociationState>::default();
        let association = Rc::new(Association {
            id: self.next_id(),
            host_id,
            host,
            service,
            limits,
            since: clock::now(),
            work: PerReactor::default(),
            registers: Registers::new(state.clone(), self.was_reset.get()),
            keep_alive: KeepAlive::new(state.clone()),
            state,
            features: Features::new(limits.io_queues),
            events: Events::default(),
            errors: Arc::default(),
            changes: Changes::default(),
            siblings: Rc::downgrade(self),
            queues: RefCell::default(),
        });
        self.list.borrow_mut().insert(association.id, association.clone());
        association.set_keep_alive(keep_alive_ms);
        Some(association)
    }

    /// Returns the association with this id, if any.
    pub(crate) fn get(&self, id: u16) -> Option<Rc<Association>> {
        self.list.borrow().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Rc<Association>> {
        self.list.borrow().values().cloned().collect()
    }

    /// Records a reset of the subsystem, also for later associations. Returns all associations.
    pub(crate) fn reset(&self) -> Vec<Rc<Association>> {
        self.was_reset.set(true);
        self.all()
    }

    fn remove(&self, id: u16) {
        self.list.borrow_mut().remove(&id);
    }

    /// Returns the next free id, round robin, so that freed ids are not reused soon.
    fn next_id(&self) -> u16 {
        let list = self.list.borrow();
        let mut id = self.last_id.get();
        loop {
            id = if id >= CONTROLLER_ID_MAX { 1 } else { id + 1 };
            if !list.contains_key(&id) {
                self.last_id.set(id);
                return id;
            }
        }
    }

    /// Checks Keep Alive timers in a task while an association has one.
    fn watch(self: &Rc<Self>) {
        let is_wanted = self.list.borrow().values().any(|each| each.keep_alive.timeout_ms() > 0);
        if is_wanted && !self.is_ticking.replace(true) {
            clock::spawn(self.clone().tick());
        }
    }

    async fn tick(self: Rc<Self>) {
        // Counts from the hosts' time, so that a late tick is not followed by others at once.
        clock::sleep_until(clock::host_now() + TICK, Stage::Queue).await;
        self.all().iter().for_each(|association| association.tick());
        self.is_ticking.set(false);
        self.watch();
    }
}
