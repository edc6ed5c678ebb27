use crate::fabrics::association::Associations;
use crate::fabrics::discovery::TransportAddress;
use crate::fabrics::queue::Handle;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::{HostQueue, Port, Responses};
use spec::QualifiedName;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Everything that hosts can connect to: subsystems by name, and the discovery subsystem, which
/// tells of them.
pub struct Subsystems {
    list: RefCell<Vec<Rc<Subsystem>>>,
    discovery: Rc<Associations>,
    generation: Cell<u64>,
}

impl Subsystems {
    /// Nothing but the discovery subsystem.
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            list: RefCell::default(),
            discovery: Rc::default(),
            generation: Cell::new(1),
        })
    }

    /// Lets hosts connect to one more, and tells those that asked the discovery subsystem for it.
    ///
    /// # Panics
    /// When there is one of this name.
    pub fn add(&self, subsystem: Rc<Subsystem>) {
        let is_new =
            self.find(subsystem.nqn()).is_none() && subsystem.nqn() != QualifiedName::DISCOVERY;
        assert!(is_new, "there is a subsystem {:?}", subsystem.nqn());
        self.list.borrow_mut().push(subsystem);
        self.generation.set(self.generation.get() + 1);
        for association in self.discovery.all() {
            association.events.notice_discovery(&association);
        }
    }

    /// How often what is here has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// All but the discovery subsystem.
    pub(crate) fn all(&self) -> Vec<Rc<Subsystem>> {
        self.list.borrow().clone()
    }

    /// The subsystem of this name.
    pub(crate) fn find(&self, nqn: &str) -> Option<Rc<Subsystem>> {
        self.list.borrow().iter().find(|subsystem| subsystem.nqn() == nqn).cloned()
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
}

impl Entrance {
    /// The entrance of hosts that come by `address`, which is what they are told to use. A server
    /// of many addresses makes an entrance for each that a connection came by.
    pub fn new(subsystems: Rc<Subsystems>, address: TransportAddress) -> Self {
        Self { subsystems, address: Rc::new(address) }
    }

    pub(crate) fn subsystems(&self) -> &Rc<Subsystems> {
        &self.subsystems
    }

    pub(crate) fn address(&self) -> &TransportAddress {
        &self.address
    }
}

impl Port for Entrance {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        Rc::new(Handle::new(self.clone(), responses))
    }
}
