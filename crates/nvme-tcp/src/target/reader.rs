use super::config::Config;
use super::connection::{Connection, ConnectionHandle, Course};
use super::ended::Ended;
use super::limits::{H2C_DATA_MAX, TIMEOUT};
use super::parked::ParkedConnection;
use crate::framing::{Arrival, Brought, Fault, Inbox, Read, Terms};
use crate::pdu::{FatalError, H2cData, Header, IcReq, IcResp, Side};
use base::BufMut;
use controller::{DetachedQueue, Port};
use net::Stream;
use std::rc::Rc;

/// Commands, or parts of them, that are taken before other tasks have their turn: the commands are
/// executed in the reader's poll.
const TURN_MAX: usize = 256;

/// Why the reader stops taking PDUs that have arrived.
enum Pause {
    /// The next part of a PDU has not arrived.
    Missing,
    /// Other tasks have their turn.
    Turn,
    /// The inbox's command, with this data, finds no free command slot.
    Full(Brought),
}

/// What [`Reader::take_other`] has found.
enum Other {
    Taken,
    /// It has not arrived.
    Missing,
    /// The inbox's command, with this data.
    Capsule(Brought),
}

/// Receives and handles the PDUs of a host.
pub(super) struct Reader<S> {
    connection: Rc<Connection<S>>,
    port: Rc<dyn Port>,
    inbox: Inbox,
    /// The tag of the transfer whose data comes next.
    filled: u16,
    is_initialized: bool,
    /// The arrival for which the deadline is set.
    awaited: Option<u64>,
}

impl<S: Stream> Reader<S> {
    pub(super) fn new(connection: Rc<Connection<S>>, port: Rc<dyn Port>) -> Self {
        let config = &connection.config;
        let inbox = Inbox::new(Side::Controller, config.counters.clone());
        let inbox = inbox.with_pool(config.pool.clone());
        Self { connection, port, inbox, filled: 0, is_initialized: false, awaited: None }
    }

    /// Continues a connection that has come from another reactor.
    pub(super) fn resumed(
        connection: Rc<Connection<S>>,
        port: Rc<dyn Port>,
        parked: ParkedConnection,
    ) -> Self {
        let ParkedConnection { queue, inbox, queue_head, waiting } = parked;
        let Config { pool, counters } = &connection.config;
        let inbox = Inbox::resumed(inbox, counters.clone()).with_pool(pool.clone());
        let queue = port.adopt(queue, Rc::new(ConnectionHandle(connection.clone())));
        connection.resume(queue, &inbox, queue_head, waiting);
        Self { connection, port, inbox, filled: 0, is_initialized: true, awaited: None }
    }

    /// Reads PDUs until the connection ends. Returns the connection if it moves.
    pub(super) async fn read_all(mut self) -> Option<ParkedConnection> {
        match self.take_all().await {
            Ok(queue) => {
                let (queue_head, waiting) = self.connection.part().await;
                Some(ParkedConnection { queue, inbox: self.inbox.park(), queue_head, waiting })
            }
            Err(ended) => {
                self.end(ended).await;
                None
            }
        }
    }

    /// Ends the connection because of `ended`.
    async fn end(&mut self, ended: Ended) {
        let connection = &self.connection;
        connection.close_queue();
        if let (Ended::ByFault(fault), Course::Open) = (ended, connection.course()) {
            let header = self.inbox.last_header();
            connection.state.borrow_mut().outbox.push_termination(fault, header);
            connection.wind_up(Course::Terminating, ended);
        }
        connection.note_reason(ended);
        if let Course::Ending | Course::Terminating = connection.course() {
            self.discard_all().await;
        }
    }

    /// Takes PDUs until the connection ends, or its queue is detached to move.
    async fn take_all(&mut self) -> Result<DetachedQueue, Ended> {
        let connection = self.connection.clone();
        // Another reactor may have left commands that wait, and bytes that it has not parsed.
        clock::catch_up().await;
        connection.start_admitted();
        if let Some(queue) = self.take_received().await? {
            return Ok(queue);
        }
        loop {
            let expects_large = connection.state.borrow().transfers.expects_large();
            self.inbox.read_ahead(!expects_large);
            let read = self.inbox.read(&*connection.stream).map_err(|_| Ended::ByHost)?;
            if read == Read::End {
                return Err(Ended::ByHost);
            }
            if read != Read::Nothing {
                clock::catch_up().await;
            }
            if let Some(queue) = self.take_received().await? {
                return Ok(queue);
            }
            self.watch();
            if connection.course() != Course::Open {
                return Err(Ended::ByController);
            }
            if read == Read::Full {
                clock::give_way().await;
            } else {
                connection.stream.readable().await;
            }
        }
    }

    /// Takes what has been received, and detaches the queue if the connection can move then.
    #[inline]
    async fn take_received(&mut self) -> Result<Option<DetachedQueue>, Ended> {
        loop {
            let pause = self.take_arrived()?;
            self.connection.execute_held();
            if let Pause::Full(brought) = pause {
                self.wait_for_room().await?;
                self.connection.arrive(self.inbox.command(), brought);
                continue;
            }
            if self.connection.moves.is_made()
                && let Some(queue) = self.leave().await?
            {
                return Ok(Some(queue));
            }
            match pause {
                Pause::Missing => return Ok(None),
                _ => clock::give_way().await,
            }
        }
    }

    /// Detaches the queue for a move, when the commands in flight are answered. Returns `None` if
    /// the connection stays, also because they take too long, or if the host has to send more
    /// first: the data of a command that was asked for it, or of a PDU that it has begun.
    #[inline(never)]
    async fn leave(&mut self) -> Result<Option<DetachedQueue>, Ended> {
        let connection = &self.connection;
        if !connection.begin_to_leave() || !self.inbox.is_at_header() || connection.awaits_data() {
            return Ok(None);
        }
        // The controller causes this wait.
        self.awaited = None;
        connection.set_deadline(None);
        while connection.course() == Course::Open {
            if !connection.moves.is_leaving() {
                return Ok(None);
            }
            if connection.is_settled() {
                return Ok(connection.detach());
            }
            connection.wait_for_room().await;
        }
        Err(Ended::ByController)
    }

    /// Reads and drops input. Closing a socket with unread input resets the connection, and the
    /// host could lose the last PDUs.
    async fn discard_all(&mut self) {
        let stream = &*self.connection.stream;
        loop {
            match self.inbox.discard(stream) {
                Ok(Read::End) | Err(_) => return,
                Ok(Read::Full) => clock::give_way().await,
                Ok(Read::Some | Read::Nothing) => stream.readable().await,
            }
        }
    }

    /// Sets a deadline while a PDU is incomplete and clears it between PDUs.
    fn watch(&mut self) {
        if !self.connection.is_connected() || self.connection.course() != Course::Open {
            return;
        }
        if self.inbox.is_between_pdus() {
            if self.awaited.take().is_some() {
                self.connection.set_deadline(None);
            }
        } else if self.awaited != Some(self.inbox.arrivals()) {
            self.awaited = Some(self.inbox.arrivals());
            self.connection.set_deadline(Some(clock::host_now() + TIMEOUT));
        }
    }

    /// Takes what has arrived of PDUs, as far as commands have slots.
    fn take_arrived(&mut self) -> Result<Pause, Ended> {
        // A connection that leaves stops before the next PDU.
        let most = if self.connection.moves.is_leaving() { 1 } else { TURN_MAX };
        for _ in 0..most {
            let brought = match self.inbox.next_capsule() {
                Some(brought) => brought,
                None if self.inbox.is_between_pdus() => return Ok(Pause::Missing),
                None => match self.take_other()? {
                    Other::Capsule(brought) => brought,
                    Other::Taken => continue,
                    Other::Missing => return Ok(Pause::Missing),
                },
            };
            if !self.connection.take_command() {
                return Ok(Pause::Full(brought));
            }
            self.connection.arrive(self.inbox.command(), brought);
        }
        Ok(Pause::Turn)
    }

    /// Takes the next part of a PDU, unless it is the inbox's command.
    fn take_other(&mut self) -> Result<Other, Ended> {
        let Some(arrival) = self.inbox.next()? else { return Ok(Other::Missing) };
        match arrival {
            Arrival::Capsule(brought) => {
                self.follow_digest();
                return Ok(Other::Capsule(brought));
            }
            Arrival::Header(Header::H2cData(data), _) => {
                let data = *data;
                self.take_data(&data)?;
            }
            Arrival::Header(Header::IcReq(request), _) => {
                let request = *request;
                self.initialize(&request)?;
            }
            Arrival::Header(Header::TermReq(request), _) => {
                return Err(Ended::Terminated(request.error()));
            }
            Arrival::Header(header, _) => panic!("{header:?} comes from a controller"),
            Arrival::Kept(..) => panic!("only capsules and transfers have data"),
            Arrival::Filled(buf, is_intact) => {
                self.follow_digest();
                self.place_data(buf, is_intact);
            }
        }
        Ok(Other::Taken)
    }

    /// Waits for a free command slot and takes it. Fails if the host owes data: the reader does not
    /// read it while it waits, so a slot might never become free.
    async fn wait_for_room(&mut self) -> Result<(), Ended> {
        // The controller causes this wait, so the host's deadline does not apply.
        if self.connection.is_connected() {
            self.awaited = None;
            self.connection.set_deadline(None);
        }
        self.connection.stay();
        loop {
            if self.connection.awaits_data() {
                return Err(Ended::Flooded);
            }
            self.connection.wait_for_room().await;
            if self.connection.course() != Course::Open {
                return Err(Ended::ByController);
            }
            if self.connection.take_command() {
                return Ok(());
            }
        }
    }

    fn initialize(&mut self, request: &IcReq) -> Result<(), Fault> {
        if self.is_initialized {
            return Err(Fault::of(FatalError::SEQUENCE));
        }
        if request.format() != 0 {
            return Err(Fault::unsupported(IcReq::FORMAT_AT));
        }
        let response = IcResp::new(4, request.digests(), H2C_DATA_MAX);
        let terms = Terms::of(request, &response).ok_or(Fault::field(IcReq::ALIGNMENT_AT))?;
        let connection = &self.connection;
        let queue = self.port.queue(Rc::new(ConnectionHandle(connection.clone())));
        *connection.queue.borrow_mut() = Some(queue);
        let mut state = connection.state.borrow_mut();
        state.outbox.push(&response);
        state.outbox.agree(terms);
        self.inbox.agree(terms);
        self.is_initialized = true;
        connection.work.notify();
        Ok(())
    }

    /// Computes data digests as the host does, once its PDUs have shown how.
    #[inline]
    fn follow_digest(&self) {
        if let Some(data_digest) = self.inbox.peer_digest() {
            self.connection.state.borrow_mut().outbox.set_data_digest(data_digest);
        }
    }

    fn take_data(&mut self, data: &H2cData) -> Result<(), Fault> {
        if !self.is_initialized {
            return Err(Fault::of(FatalError::SEQUENCE));
        }
        let buf = self.connection.state.borrow_mut().transfers.take_buf(data)?;
        self.filled = data.tag();
        self.inbox.fill(buf, data.offset());
        Ok(())
    }

    fn place_data(&mut self, buf: BufMut, is_intact: bool) {
        let done = self.connection.state.borrow_mut().transfers.filled(self.filled, buf, is_intact);
        if let Some(done) = done {
            let brought = done.data.map_or(Brought::Damaged, Brought::Data);
            self.connection.fill(&done.command, brought);
        }
    }
}
