//! One stream to a target: a queue of commands.

mod handshake;
mod reader;
mod request;
mod table;
mod watch;
mod writer;

pub(crate) use request::{Reply, Request, Then};

use crate::error::Error;
use crate::settings::Settings;
use base::{Buf, BufPool};
use clock::Notify;
use controller::IN_CAPSULE_BYTES_MAX;
use net::Stream;
use nvme_tcp::framing::{Counters, DataDigest, Outbox, Terms};
use nvme_tcp::pdu::{CapsuleCmd, H2cData, R2t, Side};
use request::Answer;
use spec::{Command, Completion, DataPointer, Status, Transfer};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use table::{Outstanding, Table};

/// The most bytes of freed buffers of one size kept for later data.
const POOL_CLASS_BYTES_MAX: usize = 64 << 20;

/// An open connection. Clones share it; dropping the last one ends it.
pub(crate) struct Connection<S: Stream>(Rc<Handle<S>>);

struct Handle<S: Stream>(Rc<Shared<S>>);

/// The state that a connection's tasks share with submitters.
struct Shared<S: Stream> {
    stream: S,
    outbox: RefCell<Outbox>,
    /// Rung when there is data to write, or the connection has ended.
    to_write: Notify,
    table: RefCell<Table>,
    terms: Cell<Terms>,
    /// The bytes that data digests cover, if the target does not decide that.
    data_digest: Option<DataDigest>,
    /// The most bytes of data in the capsule of a command.
    in_capsule_max: Cell<u32>,
    pool: BufPool,
    counters: Rc<Counters>,
}

impl<S: Stream> Connection<S> {
    /// Opens `stream` for `depth` outstanding commands.
    pub(crate) async fn open(
        stream: S,
        settings: &Settings,
        depth: u16,
        counters: &Rc<Counters>,
    ) -> Result<Self, Error> {
        let shared = Rc::new(Shared {
            stream,
            outbox: RefCell::new(Outbox::new(Side::Host, counters.clone())),
            to_write: Notify::new(),
            table: RefCell::new(Table::new(depth)),
            terms: Cell::new(Terms::BEFORE),
            data_digest: settings.data_digest,
            in_capsule_max: Cell::new(IN_CAPSULE_BYTES_MAX),
            pool: BufPool::new(POOL_CLASS_BYTES_MAX),
            counters: counters.clone(),
        });
        let connection = Self(Rc::new(Handle(shared.clone())));
        watch::start(&shared, settings.timeout);
        let inbox = handshake::shake_hands(&shared, settings.digests).await?;
        clock::spawn(writer::write(shared.clone()));
        clock::spawn(reader::read(shared, inbox));
        Ok(connection)
    }

    /// Limits the bytes of data in the capsule of a later command, and the number of outstanding
    /// commands.
    pub(crate) fn limit(&self, in_capsule_max: u32, depth: u16) {
        let Handle(shared) = &*self.0;
        shared.in_capsule_max.set(in_capsule_max);
        shared.table.borrow_mut().limit(depth);
    }

    /// Returns the most outstanding commands.
    pub(crate) fn depth(&self) -> usize {
        self.0.0.table.borrow().depth()
    }

    /// Starts a command, or queues it until another one ends.
    pub(crate) fn submit(&self, request: Request) {
        self.0.0.submit(request);
    }

    /// Executes a command that brings `data`, or has `room` bytes for a reply, or neither.
    pub(crate) async fn execute(
        &self,
        command: Command,
        data: Buf,
        room: u32,
    ) -> Result<Reply, Error> {
        execute(&self.0.0, command, data, room).await
    }

    /// Returns why it ended, if it has.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.0.0.table.borrow().end().cloned()
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.0.0.end(Error::Closed);
    }

    /// Returns a handle for tasks that must not keep the connection open.
    pub(crate) fn weak(&self) -> WeakConnection<S> {
        WeakConnection(Rc::downgrade(&self.0.0))
    }
}

impl<S: Stream> Clone for Connection<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Stream> Drop for Handle<S> {
    fn drop(&mut self) {
        // Without a schedule its tasks are gone, so no task waits for a reply.
        if clock::is_installed() && !std::thread::panicking() {
            self.0.end(Error::Closed);
        }
    }
}

/// A handle that does not keep the connection open.
pub(crate) struct WeakConnection<S: Stream>(std::rc::Weak<Shared<S>>);

impl<S: Stream> WeakConnection<S> {
    /// As [`Connection::execute`], or `None` when the connection has ended.
    pub(crate) async fn execute(&self, command: Command) -> Option<Result<Reply, Error>> {
        let shared = self.0.upgrade().filter(|shared| shared.table.borrow().end().is_none())?;
        Some(execute(&shared, command, Buf::phantom(0, 0), 0).await)
    }
}

async fn execute<S: Stream>(
    shared: &Shared<S>,
    command: Command,
    data: Buf,
    room: u32,
) -> Result<Reply, Error> {
    let answer = Rc::<Answer>::default();
    shared.submit(Request::new(0, command, data, room, Then::Answer(answer.clone())));
    match answer.wait().await {
        Some(reply) => Ok(reply),
        None => Err(shared.failure()),
    }
}

impl<S: Stream> Shared<S> {
    /// Returns why it ended; it must have.
    fn failure(&self) -> Error {
        self.table.borrow().end().cloned().unwrap_or(Error::Broken)
    }

    fn submit(&self, request: Request) {
        let mut table = self.table.borrow_mut();
        if table.end().is_some() {
            drop(table);
            return request.lose();
        }
        match table.take_id() {
            Some(id) => self.start(&mut table, id, request),
            None => table.wait(request),
        }
    }

    fn start(&self, table: &mut Table, id: u16, request: Request) {
        let mut outbox = self.outbox.borrow_mut();
        let command = request.command.with_command_id(id);
        let (len, room) = (request.data.len(), request.room);
        let (pointer, is_in_capsule) = match command.transfer() {
            Transfer::ToController if (1..=self.in_capsule_max.get()).contains(&len) => {
                (DataPointer::InCapsule { offset: 0, len }, true)
            }
            Transfer::ToController => (DataPointer::Transport { len }, false),
            Transfer::ToHost => (DataPointer::Transport { len: room }, false),
            Transfer::None => (DataPointer::Transport { len: 0 }, false),
        };
        let capsule = CapsuleCmd::new(command.with_data_pointer(pointer));
        if is_in_capsule {
            outbox.push_with_data(&capsule, request.data.clone());
        } else {
            outbox.push(&capsule);
        }
        table.start(id, Outstanding::new(request, is_in_capsule));
        self.to_write.notify();
    }

    /// Completes a command with `status`.
    fn complete(&self, id: u16, status: Status, result: u64) {
        let mut table = self.table.borrow_mut();
        let (outstanding, next) = table.complete(id);
        if let Some(request) = next {
            let id = table.take_id().expect("one has just been given back");
            self.start(&mut table, id, request);
        }
        drop(table);
        outstanding.complete(status, result);
    }

    /// Completes a command with the completion queue entry of a response.
    fn complete_by(&self, entry: &Completion) {
        self.complete(entry.command_id(), entry.status(), entry.result());
    }

    /// Sends the data that an R2T requests.
    fn send_data(&self, request: &R2t, part: &Buf) {
        let mut outbox = self.outbox.borrow_mut();
        let (id, tag) = (request.command_id(), request.tag());
        let (mut sent, len, max) = (0, part.len(), self.terms.get().h2c_data_max);
        while sent < len {
            let end = len.min(sent + max);
            let header = H2cData::new(id, tag, request.offset() + sent, end - sent, end == len);
            outbox.push_with_data(&header, part.slice(sent..end));
            sent = end;
        }
        self.to_write.notify();
    }

    /// Ends the connection at once with `error`.
    fn end(&self, error: Error) {
        if self.give_up(error) {
            self.stream.shut_down();
        }
    }

    /// Fails outstanding commands with `error` at once, and ends the connection after the queued
    /// bytes are sent.
    fn give_up(&self, error: Error) -> bool {
        let Some(lost) = self.table.borrow_mut().end_for(error) else { return false };
        lost.into_iter().for_each(Request::lose);
        self.to_write.notify();
        true
    }
}
