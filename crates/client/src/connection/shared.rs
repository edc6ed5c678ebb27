use super::request::Request;
use super::table::{Outstanding, Table};
use crate::error::Error;
use base::{Buf, BufPool};
use clock::Notify;
use net::Stream;
use nvme_tcp::framing::{Counters, DataDigest, Outbox, Terms};
use nvme_tcp::pdu::{CapsuleCmd, H2cData, R2t};
use spec::{Completion, DataPointer, Status, Transfer};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The state that a connection's tasks share with submitters.
pub(super) struct Shared<S: Stream> {
    pub(super) stream: S,
    pub(super) outbox: RefCell<Outbox>,
    /// Notified when there is data to write, or the connection has ended.
    pub(super) to_write: Notify,
    pub(super) table: RefCell<Table>,
    pub(super) terms: Cell<Terms>,
    /// The bytes that data digests cover, if the target does not decide that.
    pub(super) data_digest: Option<DataDigest>,
    /// The most bytes of data in the capsule of a command.
    pub(super) in_capsule_max: Cell<u32>,
    pub(super) pool: BufPool,
    pub(super) counters: Rc<Counters>,
}

impl<S: Stream> Shared<S> {
    /// Returns why it ended; it must have.
    pub(super) fn failure(&self) -> Error {
        self.table.borrow().end().cloned().unwrap_or(Error::Broken)
    }

    pub(super) fn submit(&self, request: Request) {
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
    pub(super) fn complete(&self, id: u16, status: Status, result: u64) {
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
    pub(super) fn complete_by(&self, entry: &Completion) {
        self.complete(entry.command_id(), entry.status(), entry.result());
    }

    /// Sends the data that an R2T requests.
    pub(super) fn send_data(&self, request: &R2t, part: &Buf) {
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
    pub(super) fn end(&self, error: Error) {
        if self.give_up(error) {
            self.stream.shut_down();
        }
    }

    /// Fails outstanding commands with `error` at once, and ends the connection after the queued
    /// bytes are sent.
    pub(super) fn give_up(&self, error: Error) -> bool {
        let Some(lost) = self.table.borrow_mut().end_for(error) else { return false };
        lost.into_iter().for_each(Request::lose);
        self.to_write.notify();
        true
    }
}
