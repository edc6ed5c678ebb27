use crate::authority::Authority;
use crate::line::{LIMIT, Shared, ask, client, echo, network, pair, pass, receive, send};
use base::{Nanos, Rng};
use net::{Broken, Stream};
use reactor::Reactor;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use tls::TlsStream;

fn noise(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(5);
    (0..len).map(|_| u8::try_from(rng.below(256)).expect("a byte")).collect()
}

#[test]
fn long_values_go_both_ways_whatever_the_pieces_are() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    let value = noise((2 << 20) + 77);
    for (seed, piece_max, capacity) in [(1, 1 << 16, 1 << 17), (2, 700, 5_000), (3, 1 << 20, 900)] {
        Reactor::new(None).run(async {
            let (near, far) = network(seed, piece_max, capacity).pair();
            let (_, told) = echo(far, &server);
            let near = client(near, &trusting);
            near.handshake(LIMIT).await.expect("they trust each other");
            assert!(ask(&near, &value).await == value, "{piece_max}");
            near.shut_down();
            pass(Nanos::from_secs(1)).await;
            assert_eq!(*told.borrow(), Some(Ok(true)));
        });
    }
}

#[test]
fn an_unread_stream_stops_taking_bytes() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    Reactor::new(None).run(async {
        let capacity = 10_000;
        let (near, far) = network(4, 1 << 16, capacity).pair();
        let far = Rc::new(TlsStream::of_server(far, &server));
        let serving = far.clone();
        clock::spawn(async move { serving.handshake(LIMIT).await.expect("it is no other") });
        let near = client(near, &trusting);
        near.handshake(LIMIT).await.expect("they trust each other");
        pass(Nanos::from_millis(1)).await;
        // The other end does not read.
        let (value, mut taken) = (noise(1 << 20), 0);
        for _ in 0..1_000 {
            let took = near.try_write(&[IoSlice::new(&value[taken..])]).expect("it is open");
            taken += took.unwrap_or(0);
            pass(Nanos::from_micros(1)).await;
        }
        assert!(taken <= capacity + (64 << 10), "{taken} unread bytes were taken");
        // What was taken arrives, and the rest.
        let sender = near.clone();
        let rest = value[taken..].to_vec();
        clock::spawn(async move { send(&*sender, &rest).await.expect("it is open") });
        assert!(receive(&*far, value.len()).await.as_ref() == Ok(&value));
    });
}

#[test]
fn what_was_taken_arrives_though_the_end_is_shut_down() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    Reactor::new(None).run(async {
        let (near, far) = network(6, 1 << 16, 3_000).pair();
        let far = Rc::new(TlsStream::of_server(far, &server));
        let serving = far.clone();
        clock::spawn(async move { serving.handshake(LIMIT).await.expect("it is no other") });
        let near = client(near, &trusting);
        near.handshake(LIMIT).await.expect("they trust each other");
        pass(Nanos::from_millis(1)).await;
        let value = noise(1 << 20);
        let taken = near.try_write(&[IoSlice::new(&value)]).expect("it is open").expect("some");
        assert!(taken > 3_000, "more than the network holds");
        near.shut_down();
        assert_eq!(near.try_write(&[IoSlice::new(b"x")]), Err(Broken));
        assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut [0; 9])]), Ok(Some(0)));
        // And nothing more: the end is told.
        assert!(receive(&*far, value.len()).await.as_deref() == Ok(&value[..taken]));
        near.drained().await;
    });
    // The peer does not read: draining ends all the same.
    Reactor::new(None).run(async {
        let (near, far) = network(6, 1 << 16, 3_000).pair();
        let far = Rc::new(TlsStream::of_server(far, &server));
        let serving = far.clone();
        clock::spawn(async move { serving.handshake(LIMIT).await.expect("it is no other") });
        let near = client(near, &trusting);
        near.handshake(LIMIT).await.expect("they trust each other");
        near.try_write(&[IoSlice::new(&noise(1 << 20))]).expect("it is open");
        near.shut_down();
        let since = clock::now();
        near.drained().await;
        assert!(clock::now() - since <= Nanos::from_secs(3));
    });
}

#[test]
fn an_end_is_one_only_if_it_is_said() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    Reactor::new(None).run(async {
        for says_so in [true, false] {
            let (near, far) = pair(8);
            let near = Rc::new(near);
            let (_, told) = echo(far, &server);
            let guest = client(Shared(near.clone()), &trusting);
            guest.handshake(LIMIT).await.expect("they trust each other");
            assert_eq!(ask(&guest, b"some").await, b"some");
            if says_so {
                guest.shut_down();
            } else {
                near.shut_down();
            }
            pass(Nanos::from_secs(1)).await;
            assert_eq!(*told.borrow(), Some(Ok(says_so)));
        }
    });
}
