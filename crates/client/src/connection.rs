//! One stream to a target: a queue of commands.

mod handshake;
mod reader;
mod request;
mod shared;
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
use nvme_tcp::framing::{Counters, Outbox, Terms};
use nvme_tcp::pdu::Side;
use request::Answer;
use shared::Shared;
use spec::Command;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use table::Table;

/// The most bytes of freed buffers of one size kept for later data.
const POOL_CLASS_BYTES_MAX: usize = 64 << 20;

/// An open connection. Clones share it; dropping the last one ends it.
pub(crate) struct Connection<S: Stream>(Rc<Handle<S>>);

struct Handle<S: Stream>(Rc<Shared<S>>);

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
