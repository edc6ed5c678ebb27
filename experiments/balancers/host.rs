//! A host inside a reactor.

use base::{Buf, BufPool};
use clock::Notify;
use controller::{Capsule, HostQueue, Port, Response, Responses};
use spec::{
    Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property, StoreOptions,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use zerocopy::IntoBytes;

pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000002";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000001";
const HOST_ID: [u8; 16] = *b"an experiment's.";

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

/// Commands outstanding of a host.
const DEPTH: u16 = 32;

/// Keys of all hosts together.
const KEYS: u64 = 4_096;

/// A queue, and the responses that it has given.
struct Line {
    queue: Rc<dyn HostQueue>,
    answers: Rc<Answers>,
}

#[derive(Default)]
struct Answers {
    /// The ids of answered commands.
    ids: RefCell<Vec<u16>>,
    result: Cell<u64>,
    notify: Notify,
}

impl Responses for Answers {
    fn respond(&self, Response { entry, .. }: Response) {
        assert!(entry.status().is_success(), "the drive has room and takes all commands");
        self.result.set(entry.result());
        self.ids.borrow_mut().push(entry.command_id());
        self.notify.notify();
    }

    fn end(&self) {
        panic!("the controller ends no connection");
    }

    fn withdraw(&self, _: u16) -> Option<Command> {
        None
    }
}

impl Line {
    fn new(port: &dyn Port) -> Self {
        let answers = Rc::new(Answers::default());
        Self { queue: port.queue(answers.clone()), answers }
    }

    /// Executes a command, and returns its result.
    async fn call(&self, command: Command, data: &[u8]) -> u64 {
        let len = u32::try_from(data.len()).expect("a kilobyte");
        let command = command.with_data_pointer(DataPointer::InCapsule { offset: 0, len });
        self.queue.submit(Capsule::new(command, Buf::copy_from(data)));
        while self.answers.ids.take().is_empty() {
            self.answers.notify.wait().await;
        }
        self.answers.result.get()
    }
}

/// Connects to the drive behind `port`, and stores values of `value_bytes` until `is_over`, in
/// buffers of `pool`, as a connection of NVMe/TCP does. Counts the answered commands by `count`.
pub(crate) async fn run(
    port: Rc<dyn Port>,
    pool: &BufPool,
    value_bytes: usize,
    is_over: &AtomicBool,
    count: impl Fn(u64),
) {
    let (admin, io) = (Line::new(&*port), Line::new(&*port));
    let data = |controller| ConnectData::new(HOST_ID, HOST, NQN, controller);
    let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
    let reply = admin.call(connect, data(ConnectData::ANY_CONTROLLER).as_bytes()).await;
    let reply = u32::try_from(reply).expect("the result of a Connect has 32 bits");
    let controller = ConnectReply(reply).controller_id();
    admin.call(Command::property_set(Property::CC, ENABLED), &[]).await;
    let connect = Command::connect(1, 127, ConnectAttributes::NO_FLOW_CONTROL, 0);
    io.call(connect, data(controller).as_bytes()).await;
    let value = vec![0xa5; value_bytes];
    let len = u32::try_from(value_bytes).expect("a value has at most 2 MiB");
    let (mut free, mut number) = ((0..DEPTH).collect::<Vec<u16>>(), 0_u64);
    while !is_over.load(Ordering::Relaxed) {
        clock::catch_up().await;
        for id in free.drain(..) {
            number += 1;
            let key = (number * 7 % KEYS).to_le_bytes();
            let command = Command::store(1, &key, len, StoreOptions::NONE);
            let pointer = DataPointer::Transport { len };
            let command = command.with_data_pointer(pointer).with_command_id(id);
            let mut data = pool.take(value_bytes);
            data.as_mut().copy_from_slice(&value);
            io.queue.submit(Capsule::new(command, data.freeze()));
        }
        io.queue.execute_held();
        if io.answers.ids.borrow().is_empty() {
            io.answers.notify.wait().await;
        } else {
            clock::give_way().await;
        }
        free.append(&mut io.answers.ids.borrow_mut());
        count(free.len() as u64);
    }
    while free.len() < usize::from(DEPTH) {
        io.answers.notify.wait().await;
        free.append(&mut io.answers.ids.borrow_mut());
    }
    io.queue.close();
    admin.queue.close();
}
