use crate::door::Door;
use crate::execute::execute;
use crate::inbox::{Inbox, Read};
use crate::outbox::{Outbox, Sent};
use crate::protocol_error::ProtocolError;
use crate::reply::Reply;
use crate::run::Run;
use crate::session::Session;
use crate::wire::{Ends, Wire};
use clock::{BusyStage, Notify, set_busy_stage, switch_busy_stage};
use net::Stream;
use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a client is told for which there is no place.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client has ended it, or said that it wants nothing more.
    ByClient,
    /// The client has sent what is no request, and was told so.
    Refused,
    /// The stream broke.
    Broken,
}

/// Is called with the user of a connection, empty before authentication, and with how many commands
/// the connection has executed, after each command that may change the user and whenever the
/// connection is about to read.
pub type Account = Rc<dyn Fn(&str, u64)>;

/// What the tasks that read and write share.
struct Connection<S> {
    stream: Rc<S>,
    account: Option<Account>,
    wire: Arc<Wire>,
    outbox: RefCell<Outbox>,
    /// Rings when the outbox is full, and when nothing more comes.
    work: Notify,
    /// Rings when something was sent, or can be no more.
    room: Notify,
    /// The writer waits for the stream.
    is_full: Cell<bool>,
    is_ending: Cell<bool>,
    is_broken: Cell<bool>,
    /// The writer has ended.
    is_over: Cell<bool>,
}

/// Serves the client at the other end of `stream`, whose address is unknown. Returns when the
/// connection is over.
pub async fn serve<S: Stream>(stream: Rc<S>, door: Arc<Door>) -> Ended {
    serve_from(stream, door, Ends::default()).await
}

/// The same, and says from where.
pub async fn serve_from<S: Stream>(stream: Rc<S>, door: Arc<Door>, ends: Ends) -> Ended {
    serve_for(stream, door, ends, None).await
}

/// The same, and says to which account.
pub async fn serve_for<S: Stream>(
    stream: Rc<S>,
    door: Arc<Door>,
    ends: Ends,
    account: Option<Account>,
) -> Ended {
    let wire = Arc::new(Wire::new(ends));
    let Some(mut session) = Session::new(&door, wire.clone()) else {
        turn_away(&*stream, &door);
        stream.shut_down();
        return Ended::Refused;
    };
    door.counters().count_connection();
    let connection = Rc::new(Connection {
        stream,
        account,
        wire,
        outbox: RefCell::new(door.outbox()),
        work: Notify::new(),
        room: Notify::new(),
        is_full: Cell::new(false),
        is_ending: Cell::new(false),
        is_broken: Cell::new(false),
        is_over: Cell::new(false),
    });
    let (writer, guard) = (connection.clone(), connection.clone());
    clock::spawn(async move { writer.write().await });
    clock::spawn(async move {
        guard.wire.ended().await;
        guard.stream.shut_down();
    });
    let ended = connection.read(&door, &mut session).await;
    door.forget(session.id);
    connection.end(&door).await;
    connection.wire.end();
    if connection.is_broken.get() { Ended::Broken } else { ended }
}

/// Tells the client at the other end of `stream` that there is no place for it.
pub fn turn_away(stream: &impl Stream, door: &Door) {
    door.counters().count_refused();
    // It fits what the kernel keeps for any connection.
    let _told = stream.try_write(&[IoSlice::new(FULL)]);
}

impl<S: Stream> Connection<S> {
    /// Takes requests until there are no more.
    async fn read(&self, door: &Arc<Door>, session: &mut Session) -> Ended {
        let mut inbox = door.inbox();
        let mut run = Run::default();
        inbox.set_stranger(session.is_stranger());
        loop {
            loop {
                if run.fill(door, session, &mut inbox) {
                    run.finish(door, session, inbox.staging(), &self.outbox).await;
                    switch_busy_stage(BusyStage::Receive);
                } else {
                    let request = match inbox.next() {
                        Ok(Some(request)) => request,
                        Ok(None) => break,
                        Err(error) => {
                            run.finish(door, session, inbox.staging(), &self.outbox).await;
                            return self.refuse(door, session, error);
                        }
                    };
                    if run.take(door, session, request) {
                        continue;
                    }
                    run.finish(door, session, request.staging, &self.outbox).await;
                    if request.is_of_a_browser() {
                        return Ended::Refused;
                    }
                    if !run.take(door, session, request) {
                        // One switch for all commands that have arrived, and for parsing them.
                        switch_busy_stage(BusyStage::Kv);
                        // Boxed: a client that waits keeps no memory for what it may ask.
                        let reply = Box::pin(execute(door, session, request)).await;
                        session.answer(reply, &mut self.outbox.borrow_mut());
                        inbox.set_stranger(session.is_stranger());
                        self.account(session);
                    }
                }
                self.drained(door).await;
                if session.is_over || self.is_broken.get() {
                    return Ended::ByClient;
                }
            }
            run.finish(door, session, inbox.staging(), &self.outbox).await;
            self.account(session);
            self.send_replies(door).await;
            if inbox.has_all() {
                inbox.rest();
                self.outbox.borrow_mut().rest();
                self.show_query(&inbox);
                self.wire.is_waiting.store(true, Relaxed);
                self.stream.readable().await;
                self.wire.is_waiting.store(false, Relaxed);
            } else {
                // A client that sends without end does not keep the others waiting.
                clock::give_way().await;
            }
            inbox.set_request_bytes_max(door.parameters().query_bytes_max());
            match inbox.read(&*self.stream) {
                _ if self.is_broken.get() => return Ended::Broken,
                Err(_) => return Ended::Broken,
                Ok(Read::End) => return Ended::ByClient,
                Ok(Read::Nothing) => {}
                Ok(Read::Some) => {
                    self.wire.touch();
                    self.show_query(&inbox);
                }
            }
        }
    }

    fn account(&self, session: &Session) {
        if let Some(account) = &self.account {
            account(session.user_name(), self.wire.commands());
        }
    }

    /// Sends the replies to the requests that have arrived, and waits as [`Self::drained`] does.
    async fn send_replies(&self, door: &Door) {
        if self.outbox.borrow().waiting_bytes() > 0 {
            // The replies to other clients go out together with these: many sends in a row seldom
            // have to wake a sleeping peer.
            clock::give_way().await;
            // The poll has just begun.
            set_busy_stage(BusyStage::Complete);
        }
        self.send();
        self.drained(door).await;
        switch_busy_stage(BusyStage::Receive);
    }

    fn show_query(&self, inbox: &Inbox) {
        self.wire.query_bytes.store(inbox.waiting_bytes(), Relaxed);
        self.wire.query_memory.store(inbox.held_bytes(), Relaxed);
    }

    /// Tells the client that what it has sent is no request.
    fn refuse(&self, door: &Door, session: &mut Session, error: ProtocolError) -> Ended {
        let reply = Reply::error(format!("ERR {error}"));
        session.answer(reply, &mut self.outbox.borrow_mut());
        if matches!(error, ProtocolError::TooMuch(_)) {
            door.counters().count_query_overrun();
        }
        Ended::Refused
    }

    /// Sends what the stream takes at once; the rest is the writer's.
    fn send(&self) {
        if self.is_full.get() || self.is_broken.get() {
            return;
        }
        let mut outbox = self.outbox.borrow_mut();
        let sent = outbox.send(&*self.stream);
        self.wire.output_bytes.store(outbox.waiting_bytes(), Relaxed);
        match sent {
            Ok(Sent::All) => {}
            Ok(Sent::Full) => {
                self.is_full.set(true);
                self.work.notify();
            }
            Err(_) => self.is_broken.set(true),
        }
    }

    /// Waits while too much waits for the client, and ends the connection if that is more than may
    /// wait at all.
    async fn drained(&self, door: &Door) {
        let waiting = || {
            if self.is_broken.get() { 0 } else { self.outbox.borrow().waiting_bytes() }
        };
        let (pause, most) =
            (door.settings().output_bytes_max, door.parameters().output_bytes_max());
        while waiting() > pause.min(most) {
            self.send();
            if waiting() > most {
                door.counters().count_output_overrun();
                self.is_broken.set(true);
                self.stream.shut_down();
            } else if waiting() > pause {
                self.room.wait().await;
            }
        }
    }

    /// Sends what waits, whenever the stream takes it.
    async fn write(&self) {
        set_busy_stage(BusyStage::Complete);
        loop {
            if self.is_full.get() {
                self.stream.writable().await;
                let sent = self.outbox.borrow_mut().send(&*self.stream);
                // The reading task may wait already.
                self.outbox.borrow_mut().rest();
                self.wire.touch();
                self.wire.output_bytes.store(self.outbox.borrow().waiting_bytes(), Relaxed);
                self.is_full.set(sent == Ok(Sent::Full));
                self.is_broken.set(self.is_broken.get() || sent.is_err());
                self.room.notify();
            } else if self.is_ending.get() {
                break;
            } else {
                self.work.wait().await;
            }
        }
        self.is_over.set(true);
        self.room.notify();
    }

    /// Sends what is left, as long as the client has a right to it, and ends the stream.
    async fn end(self: &Rc<Self>, door: &Door) {
        self.send();
        self.is_ending.set(true);
        self.work.notify();
        let guard = self.clone();
        clock::spawn_at(clock::now() + door.settings().timeout, async move || {
            if !guard.is_over.get() {
                guard.stream.shut_down();
            }
        });
        while !self.is_over.get() {
            self.room.wait().await;
        }
        self.stream.shut_down();
    }
}
