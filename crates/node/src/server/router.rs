//! Routes a queue to the device that its Connect names, where not all devices are in one place.
//!
//! A queue has no place until its Connect succeeds. Until then each Connect goes to the place of
//! the subsystem that it names, unless an earlier command is outstanding. The first devices'
//! reactor has the discovery subsystem, which also answers each Connect that names no subsystem of
//! this server.

use super::arrivals::ConnectionInfo;
use super::bridge::{PeerDevices, connected_subsystem};
use controller::{Capsule, DetachedQueue, HostQueue, Port, Response, Responses};
use spec::Command;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Where the commands of a subsystem are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Home {
    /// The reactor that has opened the device.
    pub(super) reactor: usize,
    /// Whether the reactor of a connection executes its commands. Otherwise that of the device.
    pub(super) is_near: bool,
}

/// The homes of the subsystems by name, and that of discovery and of all other names.
#[derive(Clone, Debug)]
pub(super) struct Homes {
    pub(super) by_name: Arc<BTreeMap<String, Home>>,
    pub(super) others: Home,
}

/// The devices of all other reactors, as this reactor's connections use them.
pub(super) struct Router {
    devices: Vec<Rc<PeerDevices>>,
    homes: Homes,
}

impl Router {
    pub(super) fn new(devices: Vec<Rc<PeerDevices>>, homes: Homes) -> Rc<Self> {
        Rc::new(Self { devices, homes })
    }

    /// Returns the port for a host that connected by `way`.
    pub(super) fn port(self: &Rc<Self>, way: ConnectionInfo) -> Rc<dyn Port> {
        let Homes { by_name, others } = &self.homes;
        if by_name.values().all(|home| home == others) {
            return self.port_of(*others, way);
        }
        Rc::new(RoutedPort { router: self.clone(), way })
    }

    fn port_of(&self, home: Home, way: ConnectionInfo) -> Rc<dyn Port> {
        let device = &self.devices[home.reactor];
        if home.is_near { device.near_port(way) } else { device.far_port(way) }
    }

    /// Returns when all devices are open, or their reactors have ended.
    pub(super) async fn opened(&self) {
        for device in &self.devices {
            device.opened().await;
        }
    }

    /// Closes the connections whose commands other reactors execute.
    pub(super) fn end(&self) {
        for device in &self.devices {
            device.end();
        }
    }

    /// Waits until this reactor has left all devices.
    pub(super) async fn leave(&self) {
        for device in &self.devices {
            device.leave().await;
        }
    }

    /// Returns when all devices are closed.
    pub(super) async fn gone(&self) {
        for device in &self.devices {
            device.gone().await;
        }
    }

    /// Returns the home of the subsystem that `capsule` connects to, if it is a Connect.
    fn home(&self, capsule: &Capsule) -> Option<Home> {
        connected_subsystem(capsule).map(|name| self.home_of(&name))
    }

    /// Returns the home of the subsystem with this name.
    fn home_of(&self, name: &str) -> Home {
        let Homes { by_name, others } = &self.homes;
        by_name.get(name).copied().unwrap_or(*others)
    }
}

struct RoutedPort {
    router: Rc<Router>,
    way: ConnectionInfo,
}

impl Port for RoutedPort {
    /// Continues a queue of a drive: its Connect has selected the device.
    fn adopt(&self, queue: DetachedQueue, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let home = self.router.home_of(queue.subsystem());
        self.router.port_of(home, self.way).adopt(queue, responses)
    }

    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        Rc::new(RoutedQueue {
            router: self.router.clone(),
            way: self.way,
            answers: Rc::new(Answers {
                to: responses,
                is_bound: Cell::new(false),
                awaited: Cell::new(0),
            }),
            home: Cell::new(self.router.homes.others),
            open: RefCell::default(),
        })
    }
}

/// A queue before and after its Connect has selected a device.
struct RoutedQueue {
    router: Rc<Router>,
    way: ConnectionInfo,
    answers: Rc<Answers>,
    home: Cell<Home>,
    /// The open queues, by home.
    open: RefCell<BTreeMap<Home, Rc<dyn HostQueue>>>,
}

impl RoutedQueue {
    fn at_home(&self) -> Rc<dyn HostQueue> {
        let mut open = self.open.borrow_mut();
        let home = self.home.get();
        let queue = open
            .entry(home)
            .or_insert_with(|| self.router.port_of(home, self.way).queue(self.answers.clone()));
        queue.clone()
    }
}

impl HostQueue for RoutedQueue {
    fn submit(&self, capsule: Capsule) {
        let Answers { is_bound, awaited, .. } = &*self.answers;
        if !is_bound.get() {
            if awaited.get() == 0
                && let Some(home) = self.router.home(&capsule)
            {
                self.home.set(home);
            }
            awaited.set(awaited.get() + 1);
        }
        self.at_home().submit(capsule);
    }

    fn execute_held(&self) {
        // Only a bound queue holds commands.
        if let Some(queue) = self.open.borrow().get(&self.home.get()) {
            queue.execute_held();
        }
    }

    fn close(&self) {
        for queue in self.open.take().into_values() {
            queue.close();
        }
    }

    fn may_move(&self) -> bool {
        // Queues to which commands came before a Connect are closed with the connection.
        let open = self.open.borrow();
        open.len() == 1 && open.get(&self.home.get()).is_some_and(|queue| queue.may_move())
    }

    fn detach(&self) -> Option<DetachedQueue> {
        self.open.borrow().get(&self.home.get())?.detach()
    }
}

/// Receives the responses of the queue.
struct Answers {
    to: Rc<dyn Responses>,
    /// Whether a Connect has succeeded: no command succeeds before it.
    is_bound: Cell<bool>,
    /// Commands in flight from before the Connect.
    awaited: Cell<usize>,
}

impl Responses for Answers {
    fn respond(&self, response: Response) {
        if !self.is_bound.get() {
            self.awaited.set(self.awaited.get() - 1);
            self.is_bound.set(response.entry.status().is_success());
        }
        self.to.respond(response);
    }

    fn end(&self) {
        self.to.end();
    }

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        self.to.withdraw(command_id)
    }
}
