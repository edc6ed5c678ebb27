use base::{Buf, Nanos};
use clock::Stage;
use controller::{Capsule, HostQueue, Port, Response, Responses};
use spec::{Completion, DataPointer, Opcode, Status, Transfer};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A port whose queues keep the data of each Store and return it to Retrieves, in the order in
/// which they came, after `delay`.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) delay: Cell<Nanos>,
    /// Whether its queues say that they can move. None does.
    pub(crate) may_move: Cell<bool>,
    /// Whether responses may do without their capsule.
    pub(crate) may_elide: Cell<bool>,
    /// Data to return: of Stores, and put here by the test.
    pub(crate) values: RefCell<VecDeque<Buf>>,
    /// Ids of the commands that came, in order.
    pub(crate) came: RefCell<Vec<u16>>,
    /// Ids of those that came as one operation.
    pub(crate) fused: RefCell<Vec<(u16, u16)>>,
    /// Bytes that came with the commands, and those that were or will be returned to them.
    pub(crate) moved: Cell<u64>,
    pub(crate) queues: Cell<usize>,
    pub(crate) closed: Cell<usize>,
    pub(crate) under_way: Cell<usize>,
    pub(crate) responses: RefCell<Option<Rc<dyn Responses>>>,
}

#[derive(Clone)]
struct Queue {
    shelf: Rc<Shelf>,
    responses: Rc<dyn Responses>,
    is_closed: Rc<Cell<bool>>,
}

/// What is handed to a connection.
pub(crate) struct Door(pub(crate) Rc<Shelf>);

impl Port for Door {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        self.0.queues.set(self.0.queues.get() + 1);
        *self.0.responses.borrow_mut() = Some(responses.clone());
        Rc::new(Queue { shelf: self.0.clone(), responses, is_closed: Rc::default() })
    }
}

impl HostQueue for Queue {
    fn submit(&self, mut capsule: Capsule) {
        let shelf = &self.shelf;
        if let Some(second) = capsule.second.take() {
            let ids = (capsule.command.command_id(), second.command.command_id());
            shelf.fused.borrow_mut().push(ids);
            self.submit(capsule);
            return self.submit(*second);
        }
        shelf.came.borrow_mut().push(capsule.command.command_id());
        shelf.under_way.set(shelf.under_way.get() + 1);
        let queue = self.clone();
        // A separate task, as commands of a real-time queue are.
        clock::spawn(async move { queue.run(capsule).await });
    }

    /// Executes nothing: a task executes each command.
    fn execute_held(&self) {}

    fn may_move(&self) -> bool {
        self.shelf.may_move.get()
    }

    fn close(&self) {
        self.is_closed.set(true);
        self.shelf.closed.set(self.shelf.closed.get() + 1);
    }
}

impl Queue {
    async fn run(self, capsule: Capsule) {
        let Capsule { command, data, .. } = capsule;
        let shelf = &self.shelf;
        clock::sleep(shelf.delay.get(), Stage::Queue).await;
        let mut status = Status::SUCCESS;
        let mut returned = Buf::phantom(0, 0);
        match (command.transfer(), command.data_pointer()) {
            (Transfer::ToController, DataPointer::Transport { len }) if len != data.len() => {
                status = Status::INVALID_FIELD;
            }
            (Transfer::ToController, DataPointer::InCapsule { len, .. }) if len != data.len() => {
                status = Status::DATA_SGL_LENGTH_INVALID;
            }
            (Transfer::ToController, DataPointer::Other(_)) => status = Status::SGL_TYPE_INVALID,
            (Transfer::ToController, _) => {
                shelf.moved.set(shelf.moved.get() + u64::from(data.len()));
                shelf.values.borrow_mut().push_back(data);
            }
            (Transfer::ToHost, DataPointer::Transport { len }) => {
                let value = shelf.values.borrow_mut().pop_front();
                returned = value.map_or(returned, |value| value.slice(0..len.min(value.len())));
                shelf.moved.set(shelf.moved.get() + u64::from(returned.len()));
            }
            (Transfer::ToHost, _) => status = Status::SGL_TYPE_INVALID,
            (Transfer::None, _) => {}
        }
        shelf.under_way.set(shelf.under_way.get() - 1);
        if self.is_closed.get() {
            return;
        }
        let result = if command.opcode() == Opcode::EXIST { 7 } else { 0 };
        let entry = Completion::new(command.command_id(), status, result).with_queue(3, 0);
        let may_elide = shelf.may_elide.get() && status.is_success() && result == 0;
        self.responses.respond(Response { entry, data: returned, may_elide });
    }
}
