use super::member::Member;
use controller::{Capsule, DetachedQueue, HostQueue, Port, Response, Responses};
use spec::{AdminOpcode, Command, ConnectData, FabricsType};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use zerocopy::FromBytes;

/// The port of a connection of a tenant: learns the host from the Connect that succeeds, and counts
/// the commands of I/O queues.
pub(in crate::server) struct TenantPort {
    inner: Rc<dyn Port>,
    member: Rc<Member>,
}

impl TenantPort {
    pub(in crate::server) fn new(inner: Rc<dyn Port>, member: Rc<Member>) -> Self {
        Self { inner, member }
    }

    fn answers(&self, to: Rc<dyn Responses>, is_bound: bool) -> Rc<Answers> {
        let (member, is_bound) = (self.member.clone(), Cell::new(is_bound));
        Rc::new(Answers { to, member, is_bound, connects: RefCell::default() })
    }
}

impl Port for TenantPort {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let answers = self.answers(responses, false);
        Rc::new(TenantQueue { inner: self.inner.queue(answers.clone()), answers })
    }

    fn adopt(&self, queue: DetachedQueue, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let answers = self.answers(responses, true);
        Rc::new(TenantQueue { inner: self.inner.adopt(queue, answers.clone()), answers })
    }
}

struct TenantQueue {
    inner: Rc<dyn HostQueue>,
    answers: Rc<Answers>,
}

/// Receives the responses of the queue.
struct Answers {
    to: Rc<dyn Responses>,
    member: Rc<Member>,
    /// Whether a Connect has succeeded: no command succeeds before it.
    is_bound: Cell<bool>,
    /// The command ids and the tenants of the Connects without a response.
    connects: RefCell<Vec<(u16, usize)>>,
}

impl HostQueue for TenantQueue {
    fn submit(&self, capsule: Capsule) {
        let Answers { member, is_bound, connects, .. } = &*self.answers;
        if is_bound.get() {
            member.count_requests(1);
        } else if let Some(tenant) = tenant(&capsule, member) {
            connects.borrow_mut().push((capsule.command.command_id(), tenant));
        }
        self.inner.submit(capsule);
    }

    fn execute_held(&self) {
        self.inner.execute_held();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn may_move(&self) -> bool {
        self.inner.may_move()
    }

    fn detach(&self) -> Option<DetachedQueue> {
        self.inner.detach()
    }
}

impl Responses for Answers {
    fn respond(&self, response: Response) {
        if !self.is_bound.get() {
            let mut connects = self.connects.borrow_mut();
            let id = response.entry.command_id();
            let place = connects.iter().position(|(connect, _)| *connect == id);
            let connect = place.map(|place| connects.remove(place));
            if response.entry.status().is_success() {
                self.is_bound.set(true);
                *connects = Vec::new();
                if let Some((_, tenant)) = connect {
                    self.member.assign(tenant);
                }
            }
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

/// Returns the tenant of the Connect of an I/O queue. An admin queue belongs to none, so that no
/// Keep Alive waits.
fn tenant(capsule: &Capsule, member: &Member) -> Option<usize> {
    let command = &capsule.command;
    let is_connect = command.admin_opcode() == AdminOpcode::FABRICS
        && command.fabrics_type() == FabricsType::CONNECT;
    if !is_connect || command.queue_id() == 0 {
        return None;
    }
    let data = capsule.data.bytes().and_then(|it| ConnectData::read_from_prefix(it).ok());
    let host = data.as_ref().and_then(|(data, _)| data.host.as_str()).unwrap_or_default();
    Some(member.gate().tenants().of_host(host))
}
