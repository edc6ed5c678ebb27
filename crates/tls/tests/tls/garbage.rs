use crate::authority::Authority;
use crate::cut::{After, Cut};
use crate::line::{LIMIT, Shared, ask, client, echo, network, pair, pass, receive, send};
use base::{Nanos, Rng};
use net::{Broken, Stream};
use reactor::Reactor;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use tls::TlsStream;

fn byte(rng: &mut Rng) -> u8 {
    u8::try_from(rng.below(256)).expect("a byte")
}

/// An end that changes bytes that are sent, one of so many.
struct Garbled {
    end: Cut<Shared>,
    rng: RefCell<Rng>,
    one_of: u64,
}

impl Stream for Garbled {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        self.end.try_read(into)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let mut rng = self.rng.borrow_mut();
        let bytes = parts.iter().flat_map(|part| part.iter().copied());
        let garbled =
            bytes.map(|one| if rng.below(self.one_of) == 0 { byte(&mut rng) } else { one });
        let garbled: Vec<u8> = garbled.collect();
        self.end.try_write(&[IoSlice::new(&garbled)])
    }

    async fn readable(&self) {
        self.end.readable().await;
    }

    async fn writable(&self) {
        self.end.writable().await;
    }

    fn shut_down(&self) {
        self.end.shut_down();
    }
}

/// A server that serves one that behaves beside one that does not.
#[test]
fn who_sends_anything_at_all_ends_alone() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    for seed in 0..400 {
        Reactor::new(None).run(async {
            let mut rng = Rng::new(seed);
            let (near, far) = network(seed, 1 << 10, 1 << 14).pair();
            let (_, told) = echo(far, &server);
            let (good, far) = pair(seed);
            echo(far, &server);
            let good = client(good, &trusting);
            good.handshake(LIMIT).await.expect("they trust each other");
            // What looks like the beginning of a record, or does not.
            let heads: [&[u8]; 4] = [&[], &[22, 3, 1], &[22, 3, 3, 255, 255, 1], &[23, 3, 3, 1, 0]];
            let len = usize::try_from(rng.below(100_000)).unwrap();
            let head = heads[usize::try_from(rng.below(4)).unwrap()];
            let bytes: Vec<u8> =
                head.iter().copied().chain((0..len).map(|_| byte(&mut rng))).collect();
            let near = Rc::new(near);
            let sender = near.clone();
            clock::spawn(async move {
                // The server may leave first.
                let _ = send(&*sender, &bytes).await;
            });
            assert_eq!(ask(&good, b"beside").await, b"beside");
            pass(LIMIT + Nanos::from_secs(1)).await;
            assert!(told.borrow().as_ref().is_some_and(Result::is_err), "seed {seed}");
            assert_eq!(ask(&good, b"after").await, b"after");
        });
    }
}

#[test]
fn a_byte_that_is_another_breaks_the_connection_and_is_not_passed_on() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(true), authority.client(Some(&authority)));
    let mut broken = 0;
    for seed in 0..400 {
        Reactor::new(None).run(async {
            let (near, far) = pair(seed);
            let near = Rc::new(near);
            let (_, told) = echo(far, &server);
            let end = Cut::new(Shared(near), usize::MAX, After::Apart);
            let rng = RefCell::new(Rng::new(seed));
            let near = client(Garbled { end, rng, one_of: 2_000 }, &trusting);
            let value = vec![b'v'; 9_000];
            if near.handshake(Nanos::from_secs(1)).await.is_ok() {
                let back = ask(&near, &value).await;
                assert!(value.starts_with(&back), "seed {seed}");
            }
            near.shut_down();
            pass(LIMIT + Nanos::from_secs(1)).await;
            let told = told.borrow().clone().expect("it is over");
            broken += u32::from(told != Ok(true));
        });
    }
    assert!(broken > 200, "{broken} of 400 were changed");
}

#[test]
fn data_before_garbage_is_read_and_then_the_stream_breaks() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(false), authority.client(None));
    Reactor::new(None).run(async {
        let (near, far) = pair(2);
        let (near, far) = (Rc::new(near), Rc::new(TlsStream::of_server(far, &server)));
        let serving = far.clone();
        clock::spawn(async move { serving.handshake(LIMIT).await.expect("it is no other") });
        let good = client(Shared(near.clone()), &trusting);
        good.handshake(LIMIT).await.expect("they trust each other");
        send(&*good, b"some").await.expect("it is open");
        send(&*near, b"garbage").await.expect("it is open");
        pass(Nanos::from_millis(1)).await;
        assert_eq!(receive(&*far, 4).await, Ok(b"some".to_vec()));
        assert_eq!(receive(&*far, 1).await, Err(Broken));
        assert!(far.failure().is_some_and(|why| why.contains("does not speak TLS")));
    });
}
