//! What both ends of a connection do in tests.

use base::Nanos;
use net::{Broken, Conditions, End, Network, Stream};
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use tls::{Client, NoHandshake, Server, TlsStream};

/// How long a handshake may take.
pub(crate) const LIMIT: Nanos = Nanos::from_secs(10);

/// A network that delivers what is sent in pieces of up to `piece_max` bytes.
pub(crate) fn network(seed: u64, piece_max: usize, capacity: usize) -> Network {
    let delay = (Nanos(10), Nanos(400));
    Network::new(seed, Conditions { delay, piece_max, capacity, life: None })
}

/// A value that another task sets.
pub(crate) type Told<T> = Rc<RefCell<Option<T>>>;

/// Serves `far` in a task: echoes until the stream ends and returns how it ended. Waits before its
/// first read.
pub(crate) fn echo<S: Stream>(
    far: S,
    server: &Server,
) -> (Rc<TlsStream<S>>, Told<Result<bool, NoHandshake>>) {
    let (stream, told) = (Rc::new(TlsStream::of_server(far, server)), Told::default());
    let (serving, ended) = (stream.clone(), told.clone());
    clock::spawn(async move {
        let made = serving.handshake(LIMIT).await;
        let is_whole = match &made {
            Ok(()) => send_back(&*serving).await.is_ok(),
            Err(_) => false,
        };
        serving.shut_down();
        *ended.borrow_mut() = Some(made.map(|()| is_whole));
    });
    (stream, told)
}

async fn send_back(stream: &impl Stream) -> Result<(), Broken> {
    let mut part = vec![0; 50_000];
    loop {
        match stream.try_read(&mut [IoSliceMut::new(&mut part)])? {
            Some(0) => return Ok(()),
            Some(len) => send(stream, &part[..len]).await?,
            None => stream.readable().await,
        }
    }
}

pub(crate) async fn send(stream: &impl Stream, bytes: &[u8]) -> Result<(), Broken> {
    let mut sent = 0;
    while sent < bytes.len() {
        // In two parts, so that both are seen.
        let (first, second) = bytes[sent..].split_at((bytes.len() - sent) / 3);
        match stream.try_write(&[IoSlice::new(first), IoSlice::new(second)])? {
            Some(taken) => sent += taken,
            None => stream.writable().await,
        }
    }
    Ok(())
}

/// Receives up to `len` bytes.
pub(crate) async fn receive(stream: &impl Stream, len: usize) -> Result<Vec<u8>, Broken> {
    let (mut come, mut first, mut second) = (Vec::new(), [0; 7], vec![0; 30_000]);
    while come.len() < len {
        let parts = &mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        match stream.try_read(parts)? {
            Some(0) => break,
            Some(read) => {
                come.extend_from_slice(&first[..read.min(7)]);
                come.extend_from_slice(&second[..read.saturating_sub(7)]);
            }
            None => stream.readable().await,
        }
    }
    Ok(come)
}

/// The end of a client of the server that is called `server`.
pub(crate) fn client<S: Stream>(near: S, client: &Client) -> Rc<TlsStream<S>> {
    Rc::new(TlsStream::of_client(near, client, "server").expect("it is a name"))
}

/// Sends `bytes` on, and takes back as many, side by side.
pub(crate) async fn ask<S: Stream>(stream: &Rc<TlsStream<S>>, bytes: &[u8]) -> Vec<u8> {
    let (sender, all) = (stream.clone(), bytes.to_vec());
    clock::spawn(async move {
        // Who receives sees that it ended.
        let _ = send(&*sender, &all).await;
    });
    receive(&**stream, bytes.len()).await.unwrap_or_default()
}

/// Both ends of a new connection.
pub(crate) fn pair(seed: u64) -> (End, End) {
    network(seed, 1 << 16, 1 << 17).pair()
}

/// Lets time pass.
pub(crate) async fn pass(time: Nanos) {
    clock::sleep(time, clock::Stage::Queue).await;
}

/// A stream with two owners.
pub(crate) struct Shared(pub(crate) Rc<End>);

impl Stream for Shared {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        self.0.try_read(into)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        self.0.try_write(parts)
    }

    async fn readable(&self) {
        self.0.readable().await;
    }

    async fn writable(&self) {
        self.0.writable().await;
    }

    fn shut_down(&self) {
        self.0.shut_down();
    }
}
