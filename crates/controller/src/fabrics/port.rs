use crate::controller::Controller;
use crate::fabrics::association::{Association, Associations, Service};
use crate::fabrics::discovery::{TransportAddress, discovery_entries};
use crate::fabrics::lease::Tenant;
use crate::fabrics::queue::FabricQueue;
use crate::fabrics::rules::Rules;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::{HostQueue, Port, Responses};
use spec::QualifiedName;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Everything that hosts can connect to: subsystems by name, and the discovery subsystem, which
/// tells of them.
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
    /// Nothing but the discovery subsystem, under the rules that there are without any.
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

    /// Lets hosts connect to one more, and tells those that asked the discovery subsystem for it.
    ///
    /// # Panics
    /// When there is one of this name.
    pub fn add(&self, subsystem: Rc<Subsystem>) {
        self.check_new(subsystem.nqn());
        self.change(|| self.list.borrow_mut().push(subsystem));
    }

    /// Tells hosts of one more, to which they connect in another reactor.
    ///
    /// # Panics
    /// When there is one of this name.
    pub fn add_elsewhere(&self, nqn: &str) {
        self.check_new(nqn);
        self.change(|| self.elsewhere.borrow_mut().push(nqn.to_owned()));
    }

    /// What hosts may do from here on. Associations stay as they are, also those of hosts that may
    /// not connect any more.
    pub fn set_rules(&self, rules: Rules) {
        if **self.rules.borrow() != rules {
            self.change(|| *self.rules.borrow_mut() = Rc::new(rules));
        }
    }

    /// Calls `notice` when a host connects without a name for the first time.
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

    /// Does `change`, and tells those hosts that asked for it for whom the discovery log page is
    /// another then.
    fn change(&self, change: impl FnOnce()) {
        let seen = |association: &Association| match &association.service {
            Service::Discovery(entrance) => discovery_entries(entrance, &association.host),
            Service::Storage(_) => Vec::new(),
        };
        let before = self.discovery.all().into_iter().map(|host| (seen(&host), host));
        let before: Vec<_> = before.collect();
        change();
        self.generation.set(self.generation.get() + 1);
        for (entries, association) in before {
            if seen(&association) != entries {
                association.events.notice_discovery(&association);
            }
        }
    }

    /// How often what is here has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    pub(crate) fn rules(&self) -> Rc<Rules> {
        self.rules.borrow().clone()
    }

    /// The names of all but the discovery subsystem.
    pub(crate) fn names(&self) -> Vec<String> {
        let here = self.list.borrow();
        let here = here.iter().map(|subsystem| subsystem.nqn().to_owned());
        here.chain(self.elsewhere.borrow().iter().cloned()).collect()
    }

    /// The subsystem of this name, if it is in this reactor.
    pub(crate) fn find(&self, nqn: &str) -> Option<Rc<Subsystem>> {
        self.list.borrow().iter().find(|subsystem| subsystem.nqn() == nqn).cloned()
    }

    /// The subsystems of a device.
    pub(crate) fn of_device(&self, device: &Arc<Controller>) -> Vec<Rc<Subsystem>> {
        let list = self.list.borrow();
        list.iter().filter(|subsystem| Arc::ptr_eq(&subsystem.device, device)).cloned().collect()
    }

    /// All that there are in this reactor, but for the discovery subsystem.
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

/// An address at which hosts come in to all [`Subsystems`].
#[derive(Clone, Debug)]
pub struct Entrance {
    subsystems: Rc<Subsystems>,
    address: Rc<TransportAddress>,
    connection: Option<u64>,
}

impl Entrance {
    /// The entrance of hosts that come by `address`, which is what they are told to use. A server
    /// of many addresses makes an entrance for each that a connection came by.
    pub fn new(subsystems: Rc<Subsystems>, address: TransportAddress) -> Self {
        Self { subsystems, address: Rc::new(address), connection: None }
    }

    /// The same, of the connection that whoever serves it knows by this number: what [`Census`]
    /// calls its queue's.
    ///
    /// [`Census`]: crate::AssociationCensus
    #[must_use]
    pub fn of_connection(self, number: u64) -> Self {
        Self { connection: Some(number), ..self }
    }

    /// A new queue, whose connection is in another reactor, which may execute its I/O commands.
    pub fn queue_of(&self, tenant: Rc<dyn Tenant>, responses: Rc<dyn Responses>) -> FabricQueue {
        FabricQueue::new(self.clone(), responses, Some(tenant))
    }

    pub(crate) fn subsystems(&self) -> &Rc<Subsystems> {
        &self.subsystems
    }

    pub(crate) fn connection(&self) -> Option<u64> {
        self.connection
    }

    pub(crate) fn address(&self) -> &TransportAddress {
        &self.address
    }
}

impl Port for Entrance {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        Rc::new(FabricQueue::new(self.clone(), responses, None))
    }
}
