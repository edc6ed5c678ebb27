use crate::line::{HOST_ID, HOST_NQN};
use crate::world::{ADDRESS, World, pass};
use base::{Buf, Nanos};
use net::{Broken, End, Stream};
use nvme_tcp::framing::{Arrival, Inbox, Outbox, Read, Terms, Written};
use nvme_tcp::pdu::{CapsuleCmd, CapsuleResp, Digests, H2cData, Header, IcReq, Side};
use spec::{Command, Configuration, ConnectAttributes, ConnectData, Property, Status};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The most bytes of data that a host sends on request in a run.
const GIVEN_MAX: u64 = 4 << 20;

/// How often a host retries to send bytes that the target does not read.
const TRIES: usize = 40;

/// A request of the target for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed {
    pub(crate) id: u16,
    pub(crate) tag: u16,
    pub(crate) len: u32,
}

/// A host's end of a connection: makes PDUs, and sends them unchanged or corrupted. It asserts that
/// the target's PDUs follow the protocol.
pub(crate) struct Peer {
    stream: End,
    inbox: Inbox,
    outbox: Outbox,
    /// Bytes to send.
    unsent: VecDeque<u8>,
    /// The first bytes sent, which may have been an `ICReq`.
    first: Vec<u8>,
    terms: Option<Terms>,
    /// True when it reads the target's bytes.
    pub(crate) reads: bool,
    pub(crate) owed: VecDeque<Owed>,
    given: u64,
    is_over: bool,
    is_bound: bool,
    /// The last answer: its result, or its failing status.
    answered: Option<Result<u64, Status>>,
    next_id: Cell<u16>,
}

impl Peer {
    /// Connects, and sends nothing.
    pub(crate) async fn connect(world: &World) -> Self {
        Self {
            stream: world.network.connect(ADDRESS).await.expect("the target listens"),
            inbox: Inbox::new(Side::Host, Rc::default()),
            outbox: Outbox::new(Side::Host, Rc::default()),
            unsent: VecDeque::new(),
            first: Vec::new(),
            terms: None,
            reads: true,
            owed: VecDeque::new(),
            given: 0,
            is_over: false,
            is_bound: false,
            answered: None,
            next_id: Cell::new(0),
        }
    }

    /// True when the target has ended the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// True when it has become a queue of a controller.
    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Takes the last answer, if one has arrived since the last call.
    #[cfg(test)]
    pub(crate) fn take_answer(&mut self) -> Option<Result<u64, Status>> {
        self.answered.take()
    }

    /// Performs the handshake.
    pub(crate) async fn initialize(&mut self, alignment: u8, digests: Digests) {
        self.push(&IcReq::new(alignment, digests, 1));
        self.exchange().await;
    }

    /// Connects as queue `queue` of `controller`, and returns the controller's id.
    pub(crate) async fn bind(&mut self, service: &str, queue: u16, controller: u16) -> Option<u16> {
        let data = ConnectData::new(HOST_ID, HOST_NQN, service, controller);
        let connect = Command::connect(queue, 31, ConnectAttributes::NONE, 0);
        self.push_capsule(connect, data.as_bytes());
        self.exchange().await;
        let id = u16::try_from(self.answered?.ok()?).ok()?;
        self.is_bound = true;
        if queue == 0 {
            let enable = Configuration::ENABLE_ALL_COMMAND_SETS;
            self.push_capsule(Command::property_set(Property::CC, enable.0.into()), &[]);
            self.exchange().await;
        }
        Some(id)
    }

    /// Queues a PDU with its digests.
    pub(crate) fn push(&mut self, header: &(impl IntoBytes + Immutable)) {
        self.outbox.push(header);
        self.take_out();
    }

    /// Queues a PDU with data and its digests.
    pub(crate) fn push_with_data(&mut self, header: &(impl IntoBytes + Immutable), data: &[u8]) {
        if data.is_empty() {
            return self.push(header);
        }
        self.outbox.push_with_data(header, Buf::copy_from(data));
        self.take_out();
    }

    /// Queues a command with the next id, of few.
    pub(crate) fn push_capsule(&mut self, command: Command, data: &[u8]) {
        let id = self.next_id.get();
        self.next_id.set((id + 1) % 64);
        self.push_with_data(&CapsuleCmd::new(command.with_command_id(id)), data);
    }

    /// Queues bytes unchanged.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.unsent.extend(bytes);
    }

    /// Corrupts the queued byte `at`, counted from the end.
    pub(crate) fn spoil(&mut self, at: usize, byte: u8) {
        let len = self.unsent.len();
        if let Some(unsent) = len.checked_sub(at + 1).and_then(|at| self.unsent.get_mut(at)) {
            *unsent ^= byte;
        }
    }

    /// Drops the last queued bytes.
    pub(crate) fn cut_short(&mut self, bytes: usize) {
        self.unsent.truncate(self.unsent.len().saturating_sub(bytes));
    }

    fn take_out(&mut self) {
        let taken = Taken::default();
        assert_eq!(self.outbox.write(&taken), Ok(Written::All), "it takes all");
        self.unsent.extend(taken.0.take());
    }

    /// Sends the data that the target requested first, in PDUs of at most `len_max` bytes.
    pub(crate) fn give(&mut self, len_max: u32) {
        let Some(Owed { id, tag, len }) = self.owed.pop_front() else { return };
        self.given += u64::from(len);
        if self.given > GIVEN_MAX {
            return;
        }
        let data = vec![tag.to_le_bytes()[0]; len as usize];
        let mut offset = 0;
        while offset < len {
            let end = len.min(offset + len_max.max(1));
            let header = H2cData::new(id, tag, offset, end - offset, end == len);
            self.push_with_data(&header, &data[offset as usize..end as usize]);
            offset = end;
        }
    }

    /// Sends queued bytes as far as the target reads them, and reads the target's bytes.
    pub(crate) async fn exchange(&mut self) {
        for _ in 0..TRIES {
            let is_sent = self.send();
            pass(Nanos::from_micros(20)).await;
            self.read();
            if is_sent {
                return;
            }
        }
        // The target has stopped reading, so the rest has no effect.
        self.unsent.clear();
    }

    /// Sends queued bytes. Returns true when none is left.
    fn send(&mut self) -> bool {
        loop {
            let (front, back) = self.unsent.as_slices();
            if front.is_empty() {
                return true;
            }
            let Ok(sent) = self.stream.try_write(&[IoSlice::new(front), IoSlice::new(back)]) else {
                self.unsent.clear();
                return true;
            };
            let Some(sent) = sent else { return false };
            let missing = size_of::<IcReq>().saturating_sub(self.first.len());
            self.first.extend(self.unsent.iter().take(missing.min(sent)));
            self.unsent.drain(..sent);
        }
    }

    /// Processes received bytes.
    fn read(&mut self) {
        while self.reads && !self.is_over {
            while self.take_next() {}
            match self.inbox.read(&self.stream) {
                Ok(Read::Nothing) => return,
                Ok(Read::End) | Err(Broken) => self.is_over = true,
                Ok(Read::Some | Read::Full) => {}
            }
        }
    }

    fn take_next(&mut self) -> bool {
        let next = self.inbox.next().unwrap_or_else(|fault| panic!("the target: {fault}"));
        let (terms, data_len) = match next {
            None => return false,
            Some(Arrival::Kept(_, is_intact)) => {
                assert!(is_intact, "the target's data agrees with its digest");
                return true;
            }
            Some(Arrival::Filled(..)) => panic!("all data is kept"),
            Some(Arrival::Capsule(..)) => panic!("a target sends no command"),
            Some(Arrival::Header(header, data_len)) => {
                (take_header(&header, &mut self.owed, &mut self.answered, &self.first), data_len)
            }
        };
        if data_len > 0 {
            self.inbox.keep();
        }
        if let Some(terms) = terms {
            assert_eq!(self.terms.replace(terms), None, "terms are agreed on once");
            self.inbox.agree(terms);
            self.outbox.agree(terms);
        }
        true
    }
}

/// Processes a header. Returns the parameters of an `ICResp`.
fn take_header(
    header: &Header<'_>,
    owed: &mut VecDeque<Owed>,
    answered: &mut Option<Result<u64, Status>>,
    first: &[u8],
) -> Option<Terms> {
    match header {
        Header::IcResp(response) => {
            let request = IcReq::read_from_bytes(first).expect("a target answers an ICReq");
            return Some(Terms::of(&request, response).expect("it takes alignments in range"));
        }
        Header::R2t(ready) => {
            assert_eq!(ready.offset(), 0, "all data is asked for at once");
            owed.push_back(Owed { id: ready.command_id(), tag: ready.tag(), len: ready.len() });
        }
        Header::CapsuleResp(response) => note_answer(response, answered),
        Header::C2hData(_) | Header::TermReq(_) => {}
        other => panic!("{other:?} is not from a controller"),
    }
    None
}

fn note_answer(response: &CapsuleResp, answered: &mut Option<Result<u64, Status>>) {
    let (result, status) = (response.entry().result(), response.entry().status());
    *answered = Some(if status.is_success() { Ok(result) } else { Err(status) });
}

/// Discards all bytes written to it.
#[derive(Default)]
struct Taken(RefCell<Vec<u8>>);

impl Stream for Taken {
    fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        Ok(None)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        self.0.borrow_mut().extend(parts.iter().flat_map(|part| part.iter()));
        Ok(Some(parts.iter().map(|part| part.len()).sum()))
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}
