//! Queues between the connections of one reactor and the devices on another.
//!
//! Connections number them. A place is given again only with another life, so that a response that
//! was on its way to a connection that is gone reaches nobody.

use super::connections::{Way, transport_address};
use controller::{Capsule, Entrance, HostQueue, Port, Response, Responses, Subsystems};
use reactor::{Inbox, Outbox};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Messages of a mailbox: as many commands as a busy connection has at a time.
pub(super) const MESSAGES: usize = 1_024;

/// A queue's place in the tables of both sides, and how often that was taken before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueId {
    place: u32,
    life: u32,
}

/// From the reactor of a connection to that of the device.
#[derive(Debug)]
pub(super) enum ToDevice {
    /// A host has come in.
    Open(QueueId, Way),
    Submit(QueueId, Capsule),
    Close(QueueId),
}

/// And back.
#[derive(Debug)]
pub(super) enum FromDevice {
    Respond(QueueId, Response),
    End(QueueId),
}

/// The connections of one reactor by the places that their queues have.
#[derive(Default)]
struct Connected {
    /// With how often each was given.
    places: Vec<(u32, Option<Rc<dyn Responses>>)>,
    free: Vec<u32>,
}

impl Connected {
    /// Gives `it` a free place.
    fn add(&mut self, it: Rc<dyn Responses>) -> QueueId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).expect("far fewer than 2^32 connections")
        });
        let (life, slot) = &mut self.places[place as usize];
        *slot = Some(it);
        QueueId { place, life: *life }
    }

    #[inline]
    fn get(&self, id: QueueId) -> Option<Rc<dyn Responses>> {
        let (life, it) = self.places.get(id.place as usize)?;
        it.as_ref().filter(|_| *life == id.life).cloned()
    }

    fn remove(&mut self, id: QueueId) {
        let (life, it) = &mut self.places[id.place as usize];
        assert!(*life == id.life && it.take().is_some(), "a queue is closed once");
        *life = life.wrapping_add(1);
        self.free.push(id.place);
    }
}

/// The device, to the connections of another reactor.
pub(super) struct FarDevice {
    commands: Outbox<ToDevice>,
    queues: Rc<RefCell<Connected>>,
}

impl FarDevice {
    /// Behind `commands`; hands on what comes by `responses` until the device is gone.
    pub(super) fn new(commands: Outbox<ToDevice>, responses: Inbox<FromDevice>) -> Rc<Self> {
        let queues: Rc<RefCell<Connected>> = Rc::default();
        let answered = queues.clone();
        clock::spawn(async move {
            while let Some(message) = responses.receive().await {
                match message {
                    FromDevice::Respond(id, response) => {
                        let queue = answered.borrow().get(id);
                        if let Some(queue) = queue {
                            queue.respond(response);
                        }
                    }
                    FromDevice::End(id) => {
                        let queue = answered.borrow().get(id);
                        if let Some(queue) = queue {
                            queue.end();
                        }
                    }
                }
            }
        });
        Rc::new(Self { commands, queues })
    }

    /// The device, to a host that came in by `way`.
    pub(super) fn port(self: &Rc<Self>, way: Way) -> Rc<dyn Port> {
        Rc::new(FarPort { device: self.clone(), way })
    }
}

struct FarPort {
    device: Rc<FarDevice>,
    way: Way,
}

impl Port for FarPort {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let device = self.device.clone();
        let id = device.queues.borrow_mut().add(responses);
        device.commands.send(ToDevice::Open(id, self.way));
        Rc::new(FarQueue { device, id })
    }
}

struct FarQueue {
    device: Rc<FarDevice>,
    id: QueueId,
}

impl HostQueue for FarQueue {
    fn submit(&self, capsule: Capsule) {
        self.device.commands.send(ToDevice::Submit(self.id, capsule));
    }

    fn close(&self) {
        self.device.commands.send(ToDevice::Close(self.id));
        self.device.queues.borrow_mut().remove(self.id);
    }
}

/// The connections of another reactor, to the device.
struct FarConnection {
    id: QueueId,
    responses: Rc<Outbox<FromDevice>>,
}

impl Responses for FarConnection {
    fn respond(&self, response: Response) {
        self.responses.send(FromDevice::Respond(self.id, response));
    }

    fn end(&self) {
        self.responses.send(FromDevice::End(self.id));
    }
}

/// The queues of another reactor's connections, at the devices.
pub(super) struct FarQueues {
    subsystems: Rc<Subsystems>,
    /// By place alone: the messages of a queue come in order.
    queues: RefCell<Vec<Option<Rc<dyn HostQueue>>>>,
    is_over: Cell<bool>,
}

impl FarQueues {
    /// To `subsystems`.
    pub(super) fn new(subsystems: Rc<Subsystems>) -> Rc<Self> {
        Rc::new(Self { subsystems, queues: RefCell::default(), is_over: Cell::new(false) })
    }

    /// Does what comes by `commands`, until this is ended or the other reactor is gone.
    pub(super) async fn serve(&self, commands: Inbox<ToDevice>, responses: Outbox<FromDevice>) {
        let responses = Rc::new(responses);
        while let Some(message) = commands.receive().await {
            if self.is_over.get() {
                return;
            }
            match message {
                ToDevice::Open(id, way) => self.open(id, way, &responses),
                ToDevice::Submit(id, capsule) => {
                    let queues = self.queues.borrow();
                    let queue = queues[id.place as usize].as_ref();
                    queue.expect("a queue is open until it is closed").submit(capsule);
                }
                ToDevice::Close(id) => {
                    let queue = self.queues.borrow_mut()[id.place as usize].take();
                    queue.expect("a queue is closed once").close();
                }
            }
        }
        self.end();
    }

    fn open(&self, id: QueueId, way: Way, responses: &Rc<Outbox<FromDevice>>) {
        let entrance = Entrance::new(self.subsystems.clone(), transport_address(way.address));
        let entrance = entrance.of_connection(way.number);
        let connection = FarConnection { id, responses: responses.clone() };
        let queue = entrance.queue(Rc::new(connection));
        let place = id.place as usize;
        let mut queues = self.queues.borrow_mut();
        let places = queues.len().max(place + 1);
        queues.resize_with(places, || None);
        queues[place] = Some(queue);
    }

    /// Closes all queues, whatever the other reactor still sends.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        for queue in self.queues.take().into_iter().flatten() {
            queue.close();
        }
    }
}
