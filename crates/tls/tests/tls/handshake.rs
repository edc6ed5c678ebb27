use crate::authority::Authority;
use crate::cut::{After, Cut};
use crate::line::{LIMIT, ask, client, echo, network, pair, pass};
use base::Nanos;
use net::Stream;
use reactor::Reactor;
use std::rc::Rc;
use tls::{NoHandshake, TlsStream};

fn with<T>(act: impl Future<Output = T>) -> T {
    Reactor::new(None).run(act)
}

#[test]
fn however_a_handshake_is_cut_into_pieces_it_comes_to_be() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(true), authority.client(Some(&authority)));
    for piece_max in [1, 2, 3, 100, 5_000] {
        with(async {
            let (near, far) = network(7, piece_max, 1 << 17).pair();
            let (_, told) = echo(far, &server);
            let near = client(near, &trusting);
            assert_eq!(near.handshake(LIMIT).await, Ok(()));
            assert_eq!(ask(&near, b"over TLS").await, b"over TLS");
            near.shut_down();
            pass(Nanos::from_secs(1)).await;
            assert_eq!(*told.borrow(), Some(Ok(true)));
        });
    }
    // Each place at which the bytes of the client can be apart; behind the last they never are.
    for at in 1..1_200 {
        with(async {
            let (near, far) = pair(at);
            let (_, told) = echo(far, &server);
            let at = usize::try_from(at).expect("it is small");
            let near = client(Cut::new(near, at, After::Apart), &trusting);
            assert_eq!(near.handshake(LIMIT).await, Ok(()), "cut at {at}");
            assert_eq!(ask(&near, b"x").await, b"x", "cut at {at}");
            assert_eq!(*told.borrow(), None, "cut at {at}");
        });
    }
}

#[test]
fn a_peer_that_leaves_in_a_handshake_ends_only_its_connection() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(true), authority.client(Some(&authority)));
    let mut whole = 0;
    for at in 0..1_200 {
        let ended = with(async {
            let (near, far) = pair(at);
            let (_, told) = echo(far, &server);
            let near = client(Cut::new(near, usize::try_from(at).unwrap(), After::Gone), &trusting);
            // To a client of TLS 1.3 the handshake is over with its last word.
            let _ = near.handshake(LIMIT).await;
            near.shut_down();
            pass(Nanos::from_secs(1)).await;
            let told = told.borrow();
            told.clone().expect("it is over at once, and not after some time")
        });
        match ended {
            Ok(_) => whole += 1,
            Err(error) => assert_eq!(error, NoHandshake::Left, "{at}"),
        }
    }
    assert!(whole > 0 && whole < 600, "{whole} of 1,200 had said all");
}

#[test]
fn who_does_not_finish_is_let_go() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    for at in [0, 1, 5, 100] {
        with(async {
            let (near, far) = pair(at);
            let (_, told) = echo(far, &server);
            let near =
                client(Cut::new(near, usize::try_from(at).unwrap(), After::Silence), &trusting);
            let waiting = near.clone();
            clock::spawn(async move {
                let _ = waiting.handshake(Nanos::from_secs(100)).await;
            });
            pass(LIMIT - Nanos::from_millis(1)).await;
            assert_eq!(*told.borrow(), None, "{at}");
            pass(Nanos::from_millis(2)).await;
            assert_eq!(*told.borrow(), Some(Err(NoHandshake::Late(LIMIT))), "{at}");
        });
    }
    // Nor does a server that says nothing keep a client.
    with(async {
        let (near, _far) = pair(9);
        let near = client(near, &trusting);
        assert_eq!(near.handshake(LIMIT).await, Err(NoHandshake::Late(LIMIT)));
    });
}

/// What a server and a client say of each other.
fn meet(
    (of_server, of_client): (&Authority, &Authority),
    (demands, shown): (bool, Option<&Authority>),
    host: &str,
) -> (Result<bool, String>, Result<(), String>) {
    let (server, trusting) = (of_server.server(demands), of_client.client(shown));
    with(async {
        let (near, far) = pair(3);
        let (_, told) = echo(far, &server);
        let near = Rc::new(TlsStream::of_client(near, &trusting, host).expect("a name"));
        let mut made = near.handshake(LIMIT).await.map_err(|error| error.to_string());
        if made.is_ok() && ask(&near, b"x").await != b"x" {
            made = Err(near.failure().expect("it says why"));
        }
        near.shut_down();
        pass(Nanos::from_secs(1)).await;
        let told = told.borrow().clone().expect("it is over");
        (told.map_err(|error| error.to_string()), made)
    })
}

#[test]
fn ends_that_do_not_trust_each_other_do_not_meet_and_say_why() {
    let (ours, others) = (Authority::named("ours"), Authority::named("others"));
    let both = (&ours, &ours);
    assert_eq!(meet(both, (false, None), "server"), (Ok(true), Ok(())));
    assert_eq!(meet(both, (true, Some(&ours)), "server"), (Ok(true), Ok(())));
    // A client may show a certificate that the server did not ask for.
    assert_eq!(meet(both, (false, Some(&others)), "server"), (Ok(true), Ok(())));

    let (server, client) = meet(both, (true, None), "server");
    assert_eq!(server, Err("who connects has to show a certificate".to_owned()));
    assert_eq!(client, Err("who connects has to show a certificate".to_owned()));
    let (server, client) = meet(both, (true, Some(&others)), "server");
    let stranger = "the certificate of the other end is not signed by the CA that was given";
    assert_eq!(server, Err(stranger.to_owned()));
    let said = client.expect_err("its certificate is another's");
    assert!(said.contains("does not trust the CA") || said.contains("alert"), "{said}");

    let (server, client) = meet((&others, &ours), (false, None), "server");
    assert_eq!(client, Err(stranger.to_owned()));
    assert!(server.is_err());
    // One that is called as ours is no more trusted.
    let namesake = Authority::named("ours");
    let (_, client) = meet((&namesake, &ours), (false, None), "server");
    assert_eq!(client, Err(stranger.to_owned()));
    let (_, client) = meet(both, (false, None), "elsewhere");
    let name = "the certificate of the other end is that of another name or address";
    assert_eq!(client, Err(name.to_owned()));
    let (_, client) = meet(both, (false, None), "127.0.0.1");
    assert_eq!(client, Err(name.to_owned()));
}
