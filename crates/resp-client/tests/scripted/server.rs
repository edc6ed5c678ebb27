//! A server that expects some bytes and answers with some, over a simulated network.

use base::Nanos;
use net::{Conditions, End, Network, Stream};
use reactor::Reactor;
use resp_client::{Connection, Error, Settings};
use std::io::{IoSlice, IoSliceMut};

/// The client's greeting without a password, and its answer.
pub(crate) const GREETING: (&[u8], &[u8]) = (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n");

pub(crate) fn settings() -> Settings {
    Settings { user: None, password: None, database: 0, timeout: Nanos::from_secs(5) }
}

/// Runs `act` with the opening of a connection to a server that expects requests and sends answers
/// by `script`, in turn.
pub(crate) fn with<T>(
    seed: u64,
    settings: Settings,
    script: Vec<(Vec<u8>, Vec<u8>)>,
    act: impl AsyncFnOnce(Result<Connection<End>, Error>) -> T,
) -> T {
    Reactor::new(None).run(async move {
        let conditions = Conditions {
            delay: (Nanos(10), Nanos(400)),
            piece_max: 1 << 13,
            capacity: 1 << 17,
            life: None,
        };
        let (near, far) = Network::new(seed, conditions).pair();
        clock::spawn(serve(far, script));
        act(Connection::open(near, &settings).await).await
    })
}

async fn serve(stream: End, script: Vec<(Vec<u8>, Vec<u8>)>) {
    for (expected, answer) in script {
        let mut come = Vec::new();
        while come.len() < expected.len() {
            let mut part = vec![0; expected.len() - come.len()];
            match stream.try_read(&mut [IoSliceMut::new(&mut part)]) {
                Ok(Some(0)) | Err(_) => return,
                Ok(Some(len)) => come.extend_from_slice(&part[..len]),
                Ok(None) => stream.readable().await,
            }
        }
        assert_eq!(come.escape_ascii().to_string(), expected.escape_ascii().to_string());
        let mut left = &answer[..];
        while !left.is_empty() {
            match stream.try_write(&[IoSlice::new(left)]) {
                Ok(Some(taken)) => left = &left[taken..],
                Ok(None) => stream.writable().await,
                Err(_) => return,
            }
        }
    }
    // The server sends nothing more, and waits for the end of the stream.
    while let Ok(None) = stream.try_read(&mut [IoSliceMut::new(&mut [0; 64])]) {
        stream.readable().await;
    }
}
