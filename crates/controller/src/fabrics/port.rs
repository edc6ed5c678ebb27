use crate::controller::Controller;
use crate::fabrics::association::{Association, Associations, Service};
use crate::fabrics::discovery::{discovery_entries, discovery_log};
use crate::fabrics::pair::Pair;
use crate::fabrics::placement::Placement;
use crate::fabrics::queue_link::QueueLink;
use crate::fabrics::rules::Rules;
use crate::fabrics::subsystem::Subsystem;
use crate::fabrics::transport_address::TransportAddress;
use crate::host_queue::Responses;
use crate::shared::Shared;
use clock::Users;
use spec::{DiscoveryEntry, QualifiedName};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// All subsystems for hosts by name, and the discovery subsystem, which lists them.
pub struct Subsystems {
    list: Shared<Vec<Arc<Subsystem>>>,
    /// The names of subsystems in another list.
    elsewhere: Shared<Vec<String>>,
    discovery: Arc<Associations>,
    generation: Shared<u64>,
    rules: Shared<Arc<Rules>>,
    /// Called for the first host that connects without a name.
    on_unnamed_host: Shared<Option<Box<dyn FnOnce() + Send>>>,
}

impl Subsystems {
    /// Creates the discovery subsystem alone, with the default rules.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            list: Shared::default(),
            elsewhere: Shared::default(),
            discovery: Arc::default(),
            generation: Shared::new(1),
            rules: Shared::default(),
            on_unnamed_host: Shared::default(),
        })
    }

    /// Adds a subsystem and reports it to hosts with discovery events.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add(&self, subsystem: Arc<Subsystem>) {
        self.check_new(subsystem.nqn());
        self.change(|| self.list.lock().push(subsystem));
    }

    /// Adds a subsystem of another list to discovery.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add_elsewhere(&self, nqn: &str) {
        self.check_new(nqn);
        self.change(|| self.elsewhere.lock().push(nqn.to_owned()));
    }

    /// Replaces the access rules of hosts. Existing associations stay, even if the new rules refuse
    /// their hosts.
    pub fn set_rules(&self, rules: Rules) {
        if **self.rules.lock() != rules {
            self.change(|| *self.rules.lock() = Arc::new(rules));
        }
    }

    /// Sets a function that is called when the first host without a name connects.
    pub fn on_unnamed_host(&self, notice: impl FnOnce() + Send + 'static) {
        *self.on_unnamed_host.lock() = Some(Box::new(notice));
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

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.lock().clone()
    }

    /// Returns the names of all subsystems except discovery.
    pub(crate) fn names(&self) -> Vec<String> {
        let here = self.all().into_iter().map(|subsystem| subsystem.nqn().to_owned());
        let mut names: Vec<_> = here.collect();
        names.extend_from_slice(&self.elsewhere.lock());
        names
    }

    /// Returns the subsystem with this name, if this list has it.
    pub(crate) fn find(&self, nqn: &str) -> Option<Arc<Subsystem>> {
        self.list.lock().iter().find(|subsystem| subsystem.nqn() == nqn).cloned()
    }

    /// Returns the subsystems of a device.
    pub(crate) fn of_device(&self, device: &Arc<Controller>) -> Vec<Arc<Subsystem>> {
        let list = self.list.lock();
        list.iter().filter(|subsystem| Arc::ptr_eq(&subsystem.device, device)).cloned().collect()
    }

    /// Returns all subsystems of this list except discovery.
    pub(crate) fn all(&self) -> Vec<Arc<Subsystem>> {
        self.list.lock().clone()
    }

    pub(crate) fn discovery(&self) -> &Arc<Associations> {
        &self.discovery
    }
}

impl fmt::Debug for Subsystems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.lock().iter()).finish()
    }
}

/// An address at which hosts connect to all [`Subsystems`].
#[derive(Clone)]
pub struct Entrance {
    subsystems: Arc<Subsystems>,
    address: Arc<TransportAddress>,
    connection: Option<u64>,
    reactor: u32,
    users: Users,
    placement: Option<Rc<dyn Placement>>,
}

impl Entrance {
    /// Creates the entrance for hosts that connect to `address`, which discovery then reports. A
    /// server with several addresses creates an entrance for each.
    pub fn new(subsystems: Arc<Subsystems>, address: TransportAddress) -> Self {
        let (address, users) = (Arc::new(address), Users::default());
        Self { subsystems, address, connection: None, reactor: 0, users, placement: None }
    }

    /// Sets the connection number, which [`Census`] reports for the connection's queue.
    ///
    /// [`Census`]: crate::AssociationCensus
    #[must_use]
    pub fn of_connection(self, number: u64) -> Self {
        Self { connection: Some(number), ..self }
    }

    /// Sets the number of this reactor, by which work is counted. Each queue is one of `users`
    /// until its last command has ended.
    #[must_use]
    pub fn in_reactor(self, number: u32, users: Users) -> Self {
        Self { reactor: number, users, ..self }
    }

    /// Has `placement` choose the reactors that execute the commands of its queues, if they may
    /// move. Without one this reactor executes all.
    #[must_use]
    pub fn placed_by(self, placement: Option<Rc<dyn Placement>>) -> Self {
        Self { placement, ..self }
    }

    pub(crate) fn reactor(&self) -> u32 {
        self.reactor
    }

    /// Creates an unbound queue.
    pub(crate) fn pair(&self, responses: Rc<dyn Responses>) -> Rc<Pair> {
        self.pair_of(QueueLink::new(self.connection), responses)
    }

    /// Creates an unbound queue, which other reactors reach by `link`.
    pub(crate) fn pair_of(&self, link: Arc<QueueLink>, responses: Rc<dyn Responses>) -> Rc<Pair> {
        Pair::new(responses, link, self.users.add(), self.placement.clone())
    }

    pub(crate) fn subsystems(&self) -> &Arc<Subsystems> {
        &self.subsystems
    }

    pub(crate) fn address(&self) -> &Arc<TransportAddress> {
        &self.address
    }
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("address", &self.address).finish_non_exhaustive()
    }
}
