//! TCP over loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Nanos, Rng};
use clock::Stage;
use net::{Broken, Stream};
use reactor::{AcceptError, ConnectError, Load, Reactor, Remote, TcpListener, TcpStream, stopped};
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LIMIT: Nanos = Nanos::from_secs(30);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn serve<T>(root: impl Future<Output = T>) -> T {
    Reactor::new(None).serve(&Remote::new().unwrap(), root).unwrap().0
}

/// Both ends of a connection through a listener of this reactor.
async fn pair(address: SocketAddr) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let near = TcpStream::connect(listener.local_address().unwrap(), LIMIT).await.unwrap();
    let (far, from) = listener.accept().await.unwrap();
    assert_eq!(near.local_address().unwrap(), from);
    assert_eq!(far.peer_address().unwrap(), from);
    (near, far)
}

async fn write_all(stream: &TcpStream, bytes: &[u8]) -> Result<(), Broken> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (a, b) = rest.split_at(rest.len() / 3);
        match stream.try_write(&[IoSlice::new(a), IoSlice::new(b)])? {
            Some(len) => rest = &rest[len..],
            None => stream.writable().await,
        }
    }
    Ok(())
}

async fn read_exactly(stream: &TcpStream, bytes: &mut [u8]) -> Result<(), Broken> {
    let mut read = 0;
    while read < bytes.len() {
        let rest = &mut bytes[read..];
        let (a, b) = rest.split_at_mut(rest.len() / 3);
        match stream.try_read(&mut [IoSliceMut::new(a), IoSliceMut::new(b)])? {
            Some(0) => return Err(Broken),
            Some(len) => read += len,
            None => stream.readable().await,
        }
    }
    Ok(())
}

/// Echoes until the peer ends.
async fn echo(stream: TcpStream) {
    let mut bytes = vec![0; 100_000];
    loop {
        match stream.try_read(&mut [IoSliceMut::new(&mut bytes)]) {
            Ok(Some(0)) | Err(Broken) => return,
            Ok(Some(len)) => {
                if write_all(&stream, &bytes[..len]).await.is_err() {
                    return;
                }
            }
            Ok(None) => stream.readable().await,
        }
    }
}

/// Accepts connections that are echoed, until the listener closes.
fn spawn_echo(listener: &Rc<TcpListener>) {
    let listener = listener.clone();
    clock::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    clock::spawn(echo(stream));
                }
                Err(AcceptError::Closed) => return,
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// Many connections with messages from a byte to far more than a socket holds, while a timer ticks.
#[test]
fn many_connections_are_echoed_while_timers_are_kept() {
    let connections = 64;
    serve(async move {
        let listener = Rc::new(TcpListener::bind(loopback()).unwrap());
        let address = listener.local_address().unwrap();
        spawn_echo(&listener);
        let ticks = Rc::new(Cell::new(0));
        let (ticking, started) = (ticks.clone(), clock::now());
        clock::spawn(async move {
            loop {
                clock::sleep(Nanos::from_micros(200), Stage::Queue).await;
                ticking.set(ticking.get() + 1);
            }
        });
        let clients = (0..connections).map(|client| async move {
            let stream = Rc::new(TcpStream::connect(address, LIMIT).await.unwrap());
            let mut rng = Rng::new(client);
            for round in 0..20 {
                let len = 1 + rng.below([10, 5_000, 200_000][round % 3]);
                let mut sent = vec![0; usize::try_from(len).unwrap()];
                rng.fill(&mut sent);
                let sent = Rc::new(sent);
                let (writer, to_write) = (stream.clone(), sent.clone());
                clock::spawn(async move { write_all(&writer, &to_write).await.unwrap() });
                let mut got = vec![0; sent.len()];
                read_exactly(&stream, &mut got).await.unwrap();
                assert!(got == *sent, "client {client}, round {round}");
            }
        });
        clock::join_all(clients.collect()).await;
        // Each tick is set when the one before it fired: none is lost, however late it was.
        let elapsed = clock::now() - started;
        let expected = elapsed.0 / 200_000;
        assert!((expected - 1..=expected).contains(&ticks.get()), "{ticks:?} in {elapsed}");
        listener.close();
    });
}

#[test]
fn ipv6_is_served_as_well() {
    serve(async {
        let (near, far) = pair("[::1]:0".parse().unwrap()).await;
        write_all(&near, b"over six").await.unwrap();
        let mut got = [0; 8];
        read_exactly(&far, &mut got).await.unwrap();
        assert_eq!(&got, b"over six");
    });
}

#[test]
fn may_read_looks_without_taking() {
    serve(async {
        let (near, far) = pair(loopback()).await;
        assert!(!near.may_read(), "nothing has come");
        far.try_write(&[IoSlice::new(b"ab")]).unwrap();
        while !near.may_read() {
            clock::give_way().await;
        }
        let mut bytes = [0; 8];
        assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut bytes)]), Ok(Some(2)));
        assert!(!near.may_read());
        far.shut_down();
        while !near.may_read() {
            clock::give_way().await;
        }
        assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut bytes)]), Ok(Some(0)));
        near.shut_down();
        assert!(near.may_read());
    });
}

#[test]
fn connection_that_is_handed_over_outlives_its_first_handle() {
    serve(async {
        let (near, far) = pair(loopback()).await;
        let next = far.hand_over().unwrap();
        assert_eq!(far.try_read(&mut [IoSliceMut::new(&mut [0])]), Ok(Some(0)), "it is shut");
        drop(far);
        write_all(&near, b"over").await.unwrap();
        let mut got = [0; 4];
        read_exactly(&next, &mut got).await.unwrap();
        assert_eq!(&got, b"over");
        let ((writes, sent), (reads, received)) = (near.traffic(), next.traffic());
        assert!((sent, received) == (4, 4) && writes > 0 && reads > 0, "{writes} {reads}");
        drop(next);
        assert!(read_exactly(&near, &mut got).await.is_err(), "it has ended");
    });
}

/// A reactor reads the socket of an idle connection again and again, if it is hot.
#[test]
fn calls_that_move_nothing_are_no_traffic() {
    serve(async {
        let (near, far) = pair(loopback()).await;
        let mut bytes = vec![0; 1 << 16];
        for _ in 0..100 {
            assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut bytes)]), Ok(None));
        }
        assert_eq!(near.traffic(), (0, 0));
        write_all(&far, b"two").await.unwrap();
        let read = loop {
            near.readable().await;
            let read = near.try_read(&mut [IoSliceMut::new(&mut bytes)]).unwrap();
            if let Some(read) = read {
                break read;
            }
        };
        assert_eq!(read, 3);
        assert_eq!(near.traffic(), (1, 3));
        let (mut calls, mut sent) = (1, 3);
        while let Some(written) = near.try_write(&[IoSlice::new(&bytes)]).unwrap() {
            (calls, sent) = (calls + 1, sent + written as u64);
        }
        assert_eq!(near.traffic(), (calls, sent), "the last write found no room");
    });
}

#[test]
fn ends_and_resets_are_told_apart() {
    serve(async {
        // The peer ends after its last byte.
        let (near, far) = pair(loopback()).await;
        write_all(&near, b"bye").await.unwrap();
        drop(near);
        let mut got = [0; 3];
        read_exactly(&far, &mut got).await.unwrap();
        far.readable().await;
        assert_eq!(far.try_read(&mut [IoSliceMut::new(&mut [0; 9])]), Ok(Some(0)));
        // The peer goes while something for it is unread: TCP resets.
        let (near, far) = pair(loopback()).await;
        write_all(&near, b"unread").await.unwrap();
        far.readable().await;
        drop(far);
        near.readable().await;
        let mut read = near.try_read(&mut [IoSliceMut::new(&mut [0; 9])]);
        while read == Ok(None) {
            near.readable().await;
            read = near.try_read(&mut [IoSliceMut::new(&mut [0; 9])]);
        }
        // Linux ends the stream before it resets it, so that either may be seen first.
        assert!(matches!(read, Ok(Some(0)) | Err(Broken)), "{read:?}");
        while near.try_write(&[IoSlice::new(b"x")]).is_ok() {
            near.writable().await;
        }
    });
}

#[test]
fn who_shuts_down_lets_its_own_waiters_go_on() {
    serve(async {
        let (near, far) = pair(loopback()).await;
        while near.try_write(&[IoSlice::new(&[0; 9_999])]).unwrap().is_some() {}
        let near = Rc::new(near);
        let (reader, writer) = (near.clone(), near.clone());
        let reading = async move {
            reader.readable().await;
            while reader.try_read(&mut [IoSliceMut::new(&mut [0])]) == Ok(None) {
                reader.readable().await;
            }
            reader.try_read(&mut [IoSliceMut::new(&mut [0])])
        };
        let writing = async move {
            while writer.try_write(&[IoSlice::new(b"x")]) == Ok(None) {
                writer.writable().await;
            }
            writer.try_write(&[IoSlice::new(b"x")])
        };
        // Long enough that the reader is watched by the ring and no longer tried.
        clock::spawn(async move {
            clock::sleep(Nanos::from_millis(5), Stage::Queue).await;
            near.shut_down();
            near.readable().await;
            near.writable().await;
        });
        let results = clock::join_all::<_, std::pin::Pin<Box<dyn Future<Output = _>>>>(vec![
            Box::pin(reading),
            Box::pin(writing),
        ]);
        assert_eq!(results.await, [Ok(Some(0)), Err(Broken)]);
        drop(far);
    });
}

#[test]
fn connecting_fails_with_a_sentence() {
    serve(async {
        let listener = TcpListener::bind(loopback()).unwrap();
        let address = listener.local_address().unwrap();
        drop(listener);
        let error = TcpStream::connect(address, LIMIT).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("cannot connect to {address}: ")), "{text}");
        // A listener that never accepts: its queue fills, and later attempts get no answer.
        let full = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        rustix::net::bind(&full, &loopback()).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let name = rustix::net::getsockname(&full).unwrap();
        let address = SocketAddr::try_from(name).unwrap();
        let (started, limit) = (Instant::now(), Nanos::from_millis(30));
        let mut taken = Vec::new();
        let error = loop {
            match TcpStream::connect(address, limit).await {
                Ok(stream) => taken.push(stream),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
        assert!(started.elapsed() >= Duration::from_millis(30));
        assert!(taken.len() < 10);
    });
}

#[test]
fn a_closed_listener_accepts_no_connection() {
    serve(async {
        let listener = Rc::new(TcpListener::bind(loopback()).unwrap());
        let address = listener.local_address().unwrap();
        let closing = listener.clone();
        clock::spawn(async move {
            clock::sleep(Nanos::from_millis(2), Stage::Queue).await;
            closing.close();
        });
        assert!(matches!(listener.accept().await, Err(AcceptError::Closed)));
        assert!(matches!(listener.accept().await, Err(AcceptError::Closed)));
        assert!(TcpStream::connect(address, LIMIT).await.is_err());
    });
}

/// Starts a reactor that echoes until it is stopped. Returns its thread and its address.
fn spawn_echo_server(remote: &Remote) -> (JoinHandle<()>, SocketAddr) {
    let (to_test, from_reactor) = std::sync::mpsc::channel();
    let served = remote.clone();
    let server = std::thread::spawn(move || {
        let root = async {
            let listener = Rc::new(TcpListener::bind(loopback()).unwrap());
            to_test.send(listener.local_address().unwrap()).unwrap();
            spawn_echo(&listener);
            stopped().await;
            listener.close();
        };
        Reactor::new(None).serve(&served, root).unwrap();
    });
    (server, from_reactor.recv().unwrap())
}

/// 100 idle connections: the reactor is not woken once in a second, and then answers each.
#[test]
fn idle_connections_cost_nothing() {
    let remote = Remote::new().unwrap();
    let (server, address) = spawn_echo_server(&remote);
    let mut clients: Vec<_> =
        (0..100).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    for client in &mut clients {
        ping(client);
    }
    let asleep = wait_until_asleep(&remote);
    let from = Instant::now();
    while from.elapsed() < Duration::from_secs(1) {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    let after = remote.load();
    assert_eq!(after.sleeps, asleep.sleeps, "nothing woke it");
    for client in &mut clients {
        ping(client);
    }
    assert!(remote.load().idle - asleep.idle >= Nanos::from_millis(990));
    remote.stop();
    server.join().unwrap();
}

/// A request every 100 us, which takes some 10 us: in between the reactor reads nothing again and
/// again.
#[test]
fn reading_nothing_is_idle_time() {
    let remote = Remote::new().unwrap();
    let (server, address) = spawn_echo_server(&remote);
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    // Others on the machine may keep the reactor from the processor while it is busy.
    for attempt in 1.. {
        let before = remote.load();
        for _ in 0..500 {
            ping(&mut client);
            let from = Instant::now();
            while from.elapsed() < Duration::from_micros(100) {}
        }
        let load = remote.load();
        let (busy, idle) = (load.busy - before.busy, load.idle - before.idle);
        if busy < idle {
            break;
        }
        assert!(attempt < 100, "busy {busy}, idle {idle}");
    }
    remote.stop();
    server.join().unwrap();
}

fn ping(client: &mut std::net::TcpStream) {
    client.write_all(b"ping").unwrap();
    let mut got = [0; 4];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
}

/// Returns once the reactor sleeps for good.
fn wait_until_asleep(remote: &Remote) -> Load {
    let mut before = remote.load();
    loop {
        std::thread::park_timeout(Duration::from_millis(50));
        let load = remote.load();
        if load == before {
            return load;
        }
        before = load;
    }
}

#[test]
fn what_a_stopped_reactor_leaves_is_closed() {
    let remote = Remote::new().unwrap();
    let mut reactor = Reactor::new(None);
    let root = async {
        let listener = Rc::new(TcpListener::bind(loopback()).unwrap());
        let address = listener.local_address().unwrap();
        spawn_echo(&listener);
        let clients: Vec<_> =
            (0..20).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        clock::sleep(Nanos::from_millis(5), Stage::Queue).await;
        (address, clients)
    };
    let ((address, clients), _) = reactor.serve(&remote, root).unwrap();
    drop(reactor);
    for mut client in clients {
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    }
    TcpListener::bind(address).unwrap();
}
