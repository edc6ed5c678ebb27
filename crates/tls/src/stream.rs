use crate::carrier::Carrier;
use crate::client::{Client, NoName};
use crate::handshake::{NoHandshake, words};
use crate::inbound::Inbound;
use crate::room::Room;
use crate::server::Server;
use base::Nanos;
use clock::Notify;
use net::{Broken, Stream};
use rustls::Connection;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::rc::Rc;

/// Encrypted bytes that wait for room below, before no more are taken: four of the longest records.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// How long those that wait may take to go when an end is shut down. The kernel has as many again,
/// and these go as those of any socket.
const LINGER: Nanos = Nanos::from_secs(2);

/// A stream over TLS. It carries nothing before [`Self::handshake`]. Dropping it shuts it down.
pub struct TlsStream<S: Stream>(Rc<Shared<S>>);

struct Shared<S> {
    stream: S,
    session: RefCell<Connection>,
    inbound: RefCell<Inbound>,
    /// A task sends what waits.
    is_draining: Cell<bool>,
    /// Notified when all bytes were sent, and when this end is shut down.
    room: Notify,
    is_shut: Cell<bool>,
    is_late: Cell<bool>,
    /// What ended the session, if the two ends did not understand each other.
    failure: RefCell<Option<rustls::Error>>,
}

/// What the session was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fed {
    Some,
    /// Nothing is there now.
    Nothing,
    /// The peer has ended its direction.
    End,
}

impl<S: Stream> TlsStream<S> {
    /// A server's end over `stream`.
    pub fn of_server(stream: S, server: &Server) -> Self {
        Self::over(stream, server.session().into())
    }

    /// The end over `stream` of a client of the server that is called `host`.
    pub fn of_client(stream: S, client: &Client, host: &str) -> Result<Self, NoName> {
        Ok(Self::over(stream, client.session(host)?.into()))
    }

    fn over(stream: S, mut session: Connection) -> Self {
        session.set_buffer_limit(Some(WAITING_BYTES_MAX));
        Self(Rc::new(Shared {
            stream,
            session: RefCell::new(session),
            inbound: RefCell::default(),
            is_draining: Cell::new(false),
            room: Notify::new(),
            is_shut: Cell::new(false),
            is_late: Cell::new(false),
            failure: RefCell::default(),
        }))
    }

    /// Makes the connection, if the peer does its part within `limit`.
    pub async fn handshake(&self, limit: Nanos) -> Result<(), NoHandshake> {
        let guard = Rc::downgrade(&self.0);
        clock::spawn_at(clock::host_now() + limit, async move || {
            if let Some(shared) = guard.upgrade() {
                shared.time_out();
            }
        });
        let shared = &*self.0;
        loop {
            let sent = self.0.flush();
            if shared.is_shut.get() {
                let is_late = shared.is_late.get();
                return Err(if is_late { NoHandshake::Late(limit) } else { NoHandshake::Closed });
            }
            match sent {
                Err(Broken) => return Err(NoHandshake::Left),
                Ok(false) => {
                    self.writable().await;
                    continue;
                }
                Ok(true) if !shared.session.borrow().is_handshaking() => return Ok(()),
                Ok(true) => {}
            }
            match self.0.feed(true) {
                Ok(Fed::Some) => {}
                Ok(Fed::Nothing) => shared.stream.readable().await,
                Ok(Fed::End) => return Err(NoHandshake::Left),
                Err(Broken) => {
                    let failure = shared.failure.borrow().clone();
                    return Err(failure.map_or(NoHandshake::Left, NoHandshake::Refused));
                }
            }
        }
    }

    /// Returns when all bytes were sent; after [`Stream::shut_down`] within seconds in any case.
    pub async fn drained(&self) {
        while self.0.is_draining.get() {
            self.0.room.wait().await;
        }
    }

    /// Why it broke, if the two ends did not understand each other. A client learns only here that
    /// its certificate was refused: its own handshake is over by then.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.borrow().as_ref().map(words)
    }
}

impl<S: Stream> Shared<S> {
    /// Sends what waits as far as there is room, and leaves the rest to a task. Says whether all is
    /// gone.
    fn flush(self: &Rc<Self>) -> Result<bool, Broken> {
        let is_gone = self.send()?;
        if !is_gone && !self.is_draining.replace(true) {
            let shared = self.clone();
            clock::spawn(async move { shared.drain().await });
        }
        Ok(is_gone)
    }

    fn send(&self) -> Result<bool, Broken> {
        let mut session = self.session.borrow_mut();
        while session.wants_write() {
            match session.write_tls(&mut Carrier(&self.stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(Broken),
            }
        }
        Ok(true)
    }

    async fn drain(&self) {
        while self.send() == Ok(false) {
            self.stream.writable().await;
        }
        self.is_draining.set(false);
        if self.is_shut.get() {
            self.stream.shut_down();
        }
        self.room.notify();
    }

    /// Feeds received bytes to the session; reads more from the stream if `reads`.
    fn feed(self: &Rc<Self>, reads: bool) -> Result<Fed, Broken> {
        if self.failure.borrow().is_some() {
            return Err(Broken);
        }
        let mut inbound = self.inbound.borrow_mut();
        let mut fed = Fed::Some;
        if inbound.is_empty() {
            if !reads {
                return Ok(Fed::Nothing);
            }
            match inbound.read(&self.stream)? {
                None => return Ok(Fed::Nothing),
                Some(0) => fed = Fed::End,
                Some(_) => {}
            }
        }
        let processed = {
            let mut session = self.session.borrow_mut();
            // A record that would be longer than records are.
            inbound.give(&mut session).map_err(|_| Broken)?;
            session.process_new_packets()
        };
        // Of what the session has to say to that, who writes learns whether it can be said.
        let _ = self.flush();
        if let Err(error) = processed {
            // Data before the error can still be read; the next read returns the error.
            *self.failure.borrow_mut() = Some(error);
        }
        Ok(fed)
    }

    /// True when a read would return data: the session or the stream below has some.
    fn has_some(&self) -> bool {
        let here = || match self.session.borrow_mut().process_new_packets() {
            Ok(state) => state.plaintext_bytes_to_read() > 0 || state.peer_has_closed(),
            Err(_) => true,
        };
        self.is_shut.get() || !self.inbound.borrow().is_empty() || here()
    }

    /// The peer has had time enough for its handshake.
    fn time_out(&self) {
        if self.session.borrow().is_handshaking() && !self.is_shut.replace(true) {
            self.is_late.set(true);
            self.stream.shut_down();
            self.room.notify();
        }
    }
}

impl<S: Stream> Stream for TlsStream<S> {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        let shared = &self.0;
        let mut room = Room::new(into);
        while !shared.is_shut.get() {
            let Some(rest) = room.rest() else { return Ok(room.read()) };
            let read = shared.session.borrow_mut().reader().read(rest);
            match read {
                Ok(0) => break,
                Ok(len) => {
                    room.fill(len);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The peer has gone and not said so.
                Err(_) => return room.read().map(Some).ok_or(Broken),
            }
            // Once there is something, more is a call to the kernel only if that has much.
            let reads = room.total == 0 || shared.inbound.borrow().was_full();
            match shared.feed(reads) {
                Ok(Fed::Nothing) => return Ok(room.read()),
                Ok(Fed::Some | Fed::End) => {}
                Err(Broken) => return room.read().map(Some).ok_or(Broken),
            }
        }
        Ok(Some(room.total))
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let shared = &self.0;
        let is_open = !shared.session.borrow().is_handshaking();
        assert!(is_open || shared.is_shut.get(), "nothing is sent before the handshake");
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut taken = 0;
        while !shared.is_shut.get() {
            if !shared.flush()? || taken == total {
                return Ok((taken > 0 || total == 0).then_some(taken));
            }
            let left = behind(parts, taken);
            let written = shared.session.borrow_mut().writer().write_vectored(&left);
            taken += written.map_err(|_| Broken)?;
        }
        Err(Broken)
    }

    async fn readable(&self) {
        if !self.0.has_some() {
            self.0.stream.readable().await;
        }
    }

    fn may_read(&self) -> bool {
        self.0.has_some() || self.0.stream.may_read()
    }

    async fn writable(&self) {
        if self.0.is_draining.get() && !self.0.is_shut.get() {
            self.0.room.wait().await;
        }
    }

    /// Sends `close_notify` and all waiting bytes, if the stream below takes them within 2 s. A
    /// reader may wait until then.
    fn shut_down(&self) {
        let shared = &self.0;
        if shared.is_shut.replace(true) {
            return;
        }
        shared.session.borrow_mut().send_close_notify();
        if shared.flush() == Ok(false) {
            let guard = Rc::downgrade(shared);
            clock::spawn_at(clock::host_now() + LINGER, async move || {
                if let Some(shared) = guard.upgrade() {
                    shared.stream.shut_down();
                }
            });
        } else {
            shared.stream.shut_down();
        }
        shared.room.notify();
    }
}

/// What is left of `parts` behind their first `skip` bytes.
fn behind<'a>(parts: &'a [IoSlice<'_>], mut skip: usize) -> SmallVec<[IoSlice<'a>; 64]> {
    let rest = parts.iter().filter_map(|part| {
        let passed = skip.min(part.len());
        skip -= passed;
        (passed < part.len()).then(|| IoSlice::new(&part[passed..]))
    });
    rest.collect()
}

impl<S: Stream> Drop for TlsStream<S> {
    fn drop(&mut self) {
        // Without a clock there is no task left to notify.
        if clock::is_installed() && !std::thread::panicking() {
            self.shut_down();
        }
    }
}

impl<S: Stream> std::fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TlsStream").field(&self.failure()).finish()
    }
}
