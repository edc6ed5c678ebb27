use crate::arriving_client::ArrivingClient;
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
use net::{MoveRequest, Stream};
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

/// How a connection has left its reactor.
#[derive(Debug)]
pub enum Left {
    /// It is over.
    Ended(Ended),
    /// Its owner asked it to move. The stream is open, and no task reads or writes it.
    Moved(ArrivingClient),
}

/// Takes the user of a connection, empty before authentication, and how many commands the
/// connection has executed since the last call. Called after each command that may change the user,
/// and whenever the connection is about to read.
pub type Account = Rc<dyn Fn(&str, u64)>;

/// What the tasks that read and write share.
struct Connection<S> {
    stream: Rc<S>,
    moves: Rc<MoveRequest>,
    account: Option<Account>,
    /// Commands of which the account knows.
    accounted: Cell<u64>,
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
    /// The connection is that of another reactor.
    has_left: Cell<bool>,
}

/// Serves the client at the other end of `stream`, whose address is unknown. Returns when the
/// connection is over.
pub async fn serve<S: Stream>(stream: Rc<S>, door: Arc<Door>) -> Ended {
    serve_from(stream, door, Ends::default()).await
}

/// The same, and says from where.
pub async fn serve_from<S: Stream>(stream: Rc<S>, door: Arc<Door>, ends: Ends) -> Ended {
    let client = ArrivingClient::new(ends);
    match serve_until_moved(stream, door, client, (Rc::default(), None)).await {
        Left::Ended(ended) => ended,
        Left::Moved(_) => panic!("the client was not asked to move"),
    }
}

/// As [`serve`], and says to which account. Returns also when `client` has left as `moves` asks it
/// to: it leaves when it has answered all requests that it has read, before it waits for the next.
pub async fn serve_until_moved<S: Stream>(
    stream: Rc<S>,
    door: Arc<Door>,
    client: ArrivingClient,
    (moves, account): (Rc<MoveRequest>, Option<Account>),
) -> Left {
    let Some(mut session) = client.into_session(&door) else {
        turn_away(&*stream, &door);
        stream.shut_down();
        return Left::Ended(Ended::Refused);
    };
    let wire = session.wire.clone();
    let connection = Rc::new(Connection {
        stream,
        moves,
        account,
        accounted: Cell::new(wire.commands()),
        wire,
        outbox: RefCell::new(door.outbox()),
        work: Notify::new(),
        room: Notify::new(),
        is_full: Cell::new(false),
        is_ending: Cell::new(false),
        is_broken: Cell::new(false),
        is_over: Cell::new(false),
        has_left: Cell::new(false),
    });
    if connection.wire.is_ending() {
        // It was ended on its way here: what it has sent since is not executed.
        connection.stream.shut_down();
    }
    let (writer, guard) = (connection.clone(), connection.clone());
    clock::spawn(async move { writer.write().await });
    clock::spawn(async move {
        if guard.wire.ended(&guard.has_left).await {
            guard.stream.shut_down();
        }
    });
    let Some(ended) = connection.read(&door, &mut session).await else {
        connection.leave().await;
        return Left::Moved(ArrivingClient::of(session));
    };
    drop(session);
    connection.end(&door).await;
    connection.wire.end();
    Left::Ended(if connection.is_broken.get() { Ended::Broken } else { ended })
}

/// Tells the client at the other end of `stream` that there is no place for it.
pub fn turn_away(stream: &impl Stream, door: &Door) {
    door.counters().count_refused();
    // It fits what the kernel keeps for any connection.
    let _told = stream.try_write(&[IoSlice::new(FULL)]);
}

impl<S: Stream> Connection<S> {
    /// Takes requests until there are no more, and says why. `None`: the client is asked to move,
    /// and can.
    async fn read(&self, door: &Arc<Door>, session: &mut Session) -> Option<Ended> {
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
                            return Some(self.refuse(door, session, error));
                        }
                    };
                    if run.take(door, session, request) {
                        continue;
                    }
                    run.finish(door, session, request.staging, &self.outbox).await;
                    if request.is_of_a_browser() {
                        return Some(Ended::Refused);
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
                    return Some(Ended::ByClient);
                }
            }
            run.finish(door, session, inbox.staging(), &self.outbox).await;
            self.account(session);
            self.send_replies(door).await;
            if inbox.has_all() {
                let is_answered = inbox.rest() & self.outbox.borrow_mut().rest();
                self.show_query(&inbox);
                if is_answered && self.moves.is_made() {
                    return None;
                }
                self.wire.is_waiting.store(true, Relaxed);
                self.stream.readable().await;
                self.wire.is_waiting.store(false, Relaxed);
            } else {
                // A client that sends without end does not keep the others waiting.
                clock::give_way().await;
            }
            inbox.set_request_bytes_max(door.parameters().query_bytes_max());
            match inbox.read(&*self.stream) {
                _ if self.is_broken.get() => return Some(Ended::Broken),
                Err(_) => return Some(Ended::Broken),
                Ok(Read::End) => return Some(Ended::ByClient),
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
            let commands = self.wire.commands();
            account(session.user_name(), commands - self.accounted.replace(commands));
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

    /// Ends the tasks of a connection that leaves. Its stream stays open.
    async fn leave(&self) {
        self.moves.begin();
        self.is_ending.set(true);
        self.work.notify();
        while !self.is_over.get() {
            self.room.wait().await;
        }
        self.wire.leave(&self.has_left);
        self.moves.clear();
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
