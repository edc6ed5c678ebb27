use super::request::Request;
use crate::error::Error;
use base::{Buf, BufMut, Nanos};
use nvme_tcp::framing::Fault;
use nvme_tcp::pdu::{C2hData, CommonHeader, FatalError, R2t};
use spec::{Status, Transfer};
use std::collections::VecDeque;

/// Where the command's id is in a `CapsuleResp`: 12 bytes into its completion queue entry.
const RESPONSE_ID_AT: u32 = 8 + 12;

/// The commands of a connection, by their ids.
#[derive(Debug)]
pub(super) struct Table {
    outstanding: Vec<Option<Outstanding>>,
    free: Vec<u16>,
    /// Those that find no id free, first come first served.
    waiting: VecDeque<Request>,
    /// Why the connection has ended, if it has.
    end: Option<Error>,
}

/// A command that was sent.
#[derive(Debug)]
pub(super) struct Outstanding {
    request: Request,
    started: Nanos,
    /// Bytes of its data that were sent, or queued to be.
    sent: u32,
    received: u32,
    data: Received,
    is_damaged: bool,
}

/// Data that a command reads.
#[derive(Debug)]
enum Received {
    None,
    /// It came in one piece, and was short.
    Whole(Buf),
    /// It comes in pieces. Not here while one of them is under way.
    Parts(BufMut),
}

impl Table {
    /// For so many outstanding commands.
    pub(super) fn new(depth: u16) -> Self {
        assert!(depth > 0, "a queue takes one command at least");
        let outstanding = (0..depth).map(|_| None).collect();
        Self { outstanding, free: (0..depth).rev().collect(), waiting: VecDeque::new(), end: None }
    }

    /// For fewer, while none is outstanding.
    pub(super) fn limit(&mut self, depth: u16) {
        assert!(self.outstanding.iter().all(Option::is_none), "a queue in use keeps its depth");
        let depth = depth.min(u16::try_from(self.depth()).expect("it began as one"));
        *self = Self { end: self.end.take(), ..Self::new(depth) };
    }

    pub(super) fn depth(&self) -> usize {
        self.outstanding.len()
    }

    pub(super) fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    pub(super) fn take_id(&mut self) -> Option<u16> {
        self.free.pop()
    }

    pub(super) fn wait(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    pub(super) fn start(&mut self, id: u16, outstanding: Outstanding) {
        let before = self.outstanding[usize::from(id)].replace(outstanding);
        assert!(before.is_none(), "an id is that of one command at a time");
    }

    /// Takes a command out, and with it one that waits for its id. It was found before.
    pub(super) fn complete(&mut self, id: u16) -> (Outstanding, Option<Request>) {
        let outstanding = self.outstanding[usize::from(id)].take();
        self.free.push(id);
        (outstanding.expect("a command that was found"), self.waiting.pop_front())
    }

    /// Ends the connection, and returns what is lost with it; `None` if it has ended before.
    pub(super) fn end_for(&mut self, error: Error) -> Option<Vec<Request>> {
        if self.end.is_some() {
            return None;
        }
        self.end = Some(error);
        let outstanding = self.outstanding.iter_mut().filter_map(Option::take);
        let mut lost: Vec<Request> = outstanding.map(|outstanding| outstanding.request).collect();
        lost.extend(self.waiting.drain(..));
        Some(lost)
    }

    /// Whether a command was sent `timeout` ago or earlier, and is not answered yet.
    pub(super) fn has_been_waiting(&self, now: Nanos, timeout: Nanos) -> bool {
        let outstanding = self.outstanding.iter().flatten();
        outstanding.map(|it| it.started).any(|started| now.saturating_sub(started) >= timeout)
    }

    /// The command of a response.
    pub(super) fn check_response(&self, id: u16) -> Result<(), Fault> {
        match self.outstanding.get(usize::from(id)) {
            Some(Some(_)) => Ok(()),
            _ => Err(Fault::field(RESPONSE_ID_AT)),
        }
    }

    /// The command that data has come for, as far as that may be.
    pub(super) fn reading(&mut self, header: &C2hData) -> Result<&mut Outstanding, Fault> {
        if header.is_success() && !header.is_last() {
            return Err(Fault::field(CommonHeader::FLAGS_AT));
        }
        let found = self.found(header.command_id());
        let outstanding = found.ok_or(Fault::field(C2hData::COMMAND_ID_AT))?;
        if outstanding.request.command.transfer() != Transfer::ToHost {
            return Err(Fault::field(C2hData::COMMAND_ID_AT));
        }
        let end = u64::from(header.offset()) + u64::from(header.len());
        if header.offset() != outstanding.received || end > outstanding.request.room.into() {
            return Err(Fault::of(FatalError::DATA_OUT_OF_RANGE));
        }
        Ok(outstanding)
    }

    /// The data that an R2T asks for.
    pub(super) fn asked_for(&mut self, request: &R2t) -> Result<Buf, Fault> {
        let found = self.found(request.command_id());
        let outstanding = found.ok_or(Fault::field(R2t::COMMAND_ID_AT))?;
        if outstanding.request.command.transfer() != Transfer::ToController {
            return Err(Fault::field(R2t::COMMAND_ID_AT));
        }
        let (offset, len) = (request.offset(), request.len());
        let end = offset.checked_add(len).filter(|end| *end <= outstanding.request.data.len());
        match end {
            Some(end) if offset == outstanding.sent && len > 0 => {
                outstanding.sent = end;
                Ok(outstanding.request.data.slice(offset..end))
            }
            _ => Err(Fault::of(FatalError::DATA_OUT_OF_RANGE)),
        }
    }

    pub(super) fn found(&mut self, id: u16) -> Option<&mut Outstanding> {
        self.outstanding.get_mut(usize::from(id))?.as_mut()
    }
}

impl Outstanding {
    pub(super) fn new(request: Request, is_in_capsule: bool) -> Self {
        let sent = if is_in_capsule { request.data.len() } else { 0 };
        let started = clock::host_now();
        Self { request, started, sent, received: 0, data: Received::None, is_damaged: false }
    }

    /// Bytes that it may read.
    pub(super) fn room(&self) -> u32 {
        self.request.room
    }

    /// Where the next piece goes, if there was one before.
    pub(super) fn take_parts(&mut self) -> Option<BufMut> {
        match std::mem::replace(&mut self.data, Received::None) {
            Received::Parts(parts) => Some(parts),
            _ => None,
        }
    }

    /// All of the data has come.
    pub(super) fn keep(&mut self, data: Buf, is_intact: bool) {
        self.received = data.len();
        self.data = Received::Whole(data);
        self.is_damaged |= !is_intact;
    }

    /// A piece of `len` bytes has come.
    pub(super) fn put_parts(&mut self, parts: BufMut, len: u32, is_intact: bool) {
        self.received += len;
        self.data = Received::Parts(parts);
        self.is_damaged |= !is_intact;
    }

    /// Completes the command with `status`, or with an error if its data was damaged in transfer.
    pub(super) fn complete(self, status: Status, result: u64) {
        let nothing = Buf::phantom(0, 0);
        if !status.is_success() {
            return self.request.complete(status, result, nothing);
        }
        if self.is_damaged {
            return self.request.complete(Status::TRANSIENT_TRANSPORT_ERROR, 0, nothing);
        }
        let data = match self.data {
            Received::None => nothing,
            Received::Whole(data) => data,
            Received::Parts(parts) => parts.freeze().slice(0..self.received),
        };
        self.request.complete(status, result, data);
    }
}
