use crate::controller::Controller;
use crate::fabrics::association::{Association, Associations, Service};
use crate::fabrics::discovery::{discovery_entries, discovery_log};
use crate::fabrics::rules::Rules;
use crate::fabrics::subsystem::Subsystem;
use crate::fabrics::transport_address::TransportAddress;
use spec::{DiscoveryEntry, QualifiedName};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// All subsystems for hosts by name, and the discovery subsystem, which lists them.
pub struct Subsystems {
    list: RefCell<Vec<Rc<Subsystem>>>,
    /// The names of subsystems that are in another reactor.
    elsewhere: RefCell<Vec<String>>,
    discovery: Rc<Associations>,
    generation: Cell<u64>,
    rules: RefCell<Rc<Rules>>,
    /// Called for the first host that connects without a name.
    on_unnamed_host: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Subsystems {
    /// Creates the discovery subsystem alone, with the default rules.
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            list: RefCell::default(),
            elsewhere: RefCell::default(),
            discovery: Rc::default(),
            generation: Cell::new(1),
            rules: RefCell::default(),
            on_unnamed_host: RefCell::default(),
        })
    }

    /// Adds a subsystem and reports it to hosts with discovery events.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add(&self, subsystem: Rc<Subsystem>) {
        self.check_new(subsystem.nqn());
        self.change(|| self.list.borrow_mut().push(subsystem));
    }

    /// Adds a subsystem of another reactor to discovery.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add_elsewhere(&self, nqn: &str) {
        self.check_new(nqn);
        self.change(|| self.elsewhere.borrow_mut().push(nqn.to_owned()));
    }

    /// Replaces the access rules of hosts. Existing associations stay, even if the new rules refuse
    /// their hosts.
    pub fn set_rules(&self, rules: Rules) {
        if **self.rules.borrow() != rules {
            self.change(|| *self.rules.borrow_mut() = Rc::new(rules));
        }
    }

    /// Sets a function that is called when the first host without a name connects.
    pub fn on_unnamed_host(&self, notice: impl FnOnce() + 'static) {
        *self.on_unnamed_host.borrow_mut() = Some(Box::new(notice));
    }

    pub(crate) fn notice_unnamed_host(&self) {
        if let Some(notice) = self.on_unnamed_host.take() {
            notice();
        }
    }

    fn check_new(&self, nqn: &str) {
        let is_new = nqn != QualifiedName::DISCOVERY && !self.names().iter().any(|it| it == nqn);
        assert!(is_new, "there is a subsystem {nqn:?}");
    }

    /// Applies `change` and sends discovery events to the hosts whose discovery log page differs
    /// afterwards.
    fn change(&self, change: impl FnOnce()) {
        let seen = |association: &Association| match &association.service {
            Service::Discovery(used) => self.discovery_entries(used, &association.host),
            Service::Storage(_) => Vec::new(),
        };
        let before = self.discovery.all().into_iter().map(|host| (seen(&host), host));
        let before: Vec<_> = before.collect();
        change();
        self.generation.set(self.generation.get() + 1);
        for (entries, association) in before {
            if seen(&association) != entries {
                association.events.notice_discovery(association.admin_queue().as_deref());
            }
        }
    }

    /// Returns the discovery log page for `host`, which has connected to the address `used`.
    pub(crate) fn discovery_log(&self, used: &TransportAddress, host: &QualifiedName) -> Vec<u8> {
        discovery_log(self.generation.get(), &self.discovery_entries(used, host))
    }

    fn discovery_entries(
        &self,
        used: &TransportAddress,
        host: &QualifiedName,
    ) -> Vec<DiscoveryEntry> {
        discovery_entries(&self.names(), &self.rules(), used, host)
    }

    pub(crate) fn rules(&self) -> Rc<Rules> {
        self.rules.borrow().clone()
    }

    /// Returns the names of all subsystems except discovery.
    pub(crate) fn names(&self) -> Vec<String> {
        let here = self.list.borrow();
        let here = here.iter().map(|subsystem| subsystem.nqn().to_owned());
        here.chain(self.elsewhere.borrow().iter().cloned()).collect()
    }

    /// Returns the subsystem with this name, if this reactor has it.
    pub(crate) fn find(&self, nqn: &str) -> Option<Rc<Subsystem>> {
        self.list.borrow().iter().find(|subsystem| subsystem.nqn() == nqn).cloned()
    }

    /// Returns the subsystems of a device.
    pub(crate) fn of_device(&self, device: &Arc<Controller>) -> Vec<Rc<Subsystem>> {
        let list = self.list.borrow();
        list.iter().filter(|subsystem| Arc::ptr_eq(&subsystem.device, device)).cloned().collect()
    }

    /// Returns all subsystems of this reactor except discovery.
    pub(crate) fn all(&self) -> Vec<Rc<Subsystem>> {
        self.list.borrow().clone()
    }

    pub(crate) fn discovery(&self) -> &Rc<Associations> {
        &self.discovery
    }
}

impl fmt::Debug for Subsystems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.borrow().iter()).finish()
    }
}

/// An address at which hosts connect to all [`Subsystems`].
#[derive(Clone, Debug)]
pub struct Entrance {
    subsystems: Rc<Subsystems>,
    address: Rc<TransportAddress>,
    connection: Option<u64>,
}

impl Entrance {
    /// Creates the entrance for hosts that connect to `address`, which discovery then reports. A
    /// server with several addresses creates an entrance for each.
    pub fn new(subsystems: Rc<Subsystems>, address: TransportAddress) -> Self {
        Self { subsystems, address: Rc::new(address), connection: None }
    }

    /// Sets the connection number, which [`Census`] reports for the connection's queue.
    ///
    /// [`Census`]: crate::AssociationCensus
    #[must_use]
    pub fn of_connection(self, number: u64) -> Self {
        Self { connection: Some(number), ..self }
    }

    pub(crate) fn subsystems(&self) -> &Rc<Subsystems> {
        &self.subsystems
    }

    pub(crate) fn connection(&self) -> Option<u64> {
        self.connection
    }

    pub(crate) fn address(&self) -> &Rc<TransportAddress> {
        &self.address
    }
}
