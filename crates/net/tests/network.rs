//! A simulated network: what arrives is what was sent, within the conditions, and as the seed says.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Nanos, Rng};
use clock::Stage;
use net::{Broken, Conditions, End, Network, Refused, Stream};
use reactor::Reactor;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

const US: Nanos = Nanos::from_micros(1);

fn us(count: u64) -> Nanos {
    Nanos(count * US.0)
}

/// Every piece takes 10 us.
const STEADY: Conditions = Conditions {
    delay: (Nanos(10_000), Nanos(10_000)),
    piece_max: 64,
    capacity: 1_000,
    life: None,
};

fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).unwrap()
}

/// Writes `bytes` in calls of a few parts each.
async fn write_all(end: &End, bytes: &[u8], rng: &mut Rng) -> Result<(), Broken> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (first, more) = rest.split_at(below(rng, rest.len() + 1));
        let (second, _) = more.split_at(below(rng, more.len() + 1));
        let parts = [IoSlice::new(first), IoSlice::new(&[]), IoSlice::new(second)];
        if first.len() + second.len() == 0 {
            continue;
        }
        match end.try_write(&parts)? {
            Some(len) => rest = &rest[len..],
            None => end.writable().await,
        }
    }
    Ok(())
}

/// Reads until the peer ends, into two parts a call; says when each read was and how long.
async fn read_all(end: &End, log: &mut Vec<(Nanos, usize)>) -> Result<Vec<u8>, Broken> {
    let mut bytes = Vec::new();
    loop {
        let (mut a, mut b) = ([0; 7], [0; 300]);
        match end.try_read(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)])? {
            Some(0) => return Ok(bytes),
            Some(len) => {
                log.push((clock::now(), len));
                bytes.extend_from_slice(&a[..len.min(7)]);
                bytes.extend_from_slice(&b[..len.saturating_sub(7)]);
            }
            None => end.readable().await,
        }
    }
}

fn drawn_conditions(rng: &mut Rng) -> Conditions {
    let least = rng.below(20_000);
    Conditions {
        delay: (Nanos(least), Nanos(least + rng.below(50_000))),
        piece_max: 1 + below(rng, 3_000),
        capacity: 1 + below(rng, 5_000),
        life: None,
    }
}

/// One run of a seed: what each side read, and when.
fn exchange(seed: u64) -> Vec<(Nanos, usize)> {
    let mut rng = Rng::new(seed);
    let conditions = drawn_conditions(&mut rng);
    let mut messages = [vec![0; below(&mut rng, 20_000)], vec![0; below(&mut rng, 20_000)]];
    for message in &mut messages {
        rng.fill(message);
    }
    Reactor::new(None).run(async {
        let (near, far) = Network::new(seed, conditions).pair();
        let ends = [Rc::new(near), Rc::new(far)];
        let mut sides = Vec::new();
        for side in 0..2 {
            let (writer, reader) = (ends[side].clone(), ends[side].clone());
            let (sent, expected) = (messages[side].clone(), messages[1 - side].clone());
            let mut rng = Rng::fork(seed, side as u64);
            clock::spawn(async move {
                write_all(&writer, &sent, &mut rng).await.expect("the stream does not break");
            });
            sides.push(async move {
                let mut log = Vec::new();
                let mut got = Vec::new();
                while got.len() < expected.len() {
                    let mut part = [0; 333];
                    let into = &mut [IoSliceMut::new(&mut part)];
                    match reader.try_read(into).expect("the stream does not break") {
                        Some(len) => {
                            log.push((clock::now(), len));
                            got.extend_from_slice(&part[..len]);
                        }
                        None => reader.readable().await,
                    }
                }
                assert_eq!(got, expected, "seed {seed}");
                log
            });
        }
        clock::join_all(sides).await.concat()
    })
}

#[test]
fn what_arrives_is_what_was_sent_and_equal_seeds_give_equal_runs() {
    for seed in 0..100 {
        let log = exchange(seed);
        assert_eq!(log, exchange(seed), "seed {seed}");
        assert_ne!(log, exchange(seed + 1_000));
    }
}

#[test]
fn a_connection_holds_no_more_than_its_capacity() {
    Reactor::new(None).run(async {
        let (near, far) = Network::new(1, STEADY).pair();
        let mut held = 0;
        while let Some(len) = near.try_write(&[IoSlice::new(&[7; 90])]).unwrap() {
            held += len;
        }
        assert_eq!(held, 1_000);
        assert_eq!(far.try_read(&mut [IoSliceMut::new(&mut [0; 9])]), Ok(None));
        far.readable().await;
        assert_eq!(clock::now(), us(10));
        let read = far.try_read(&mut [IoSliceMut::new(&mut [0; 300])]).unwrap().unwrap();
        near.writable().await;
        let mut taken = 0;
        while let Some(len) = near.try_write(&[IoSlice::new(&[7; 1_000])]).unwrap() {
            taken += len;
        }
        assert_eq!(taken, read);
        assert_eq!(clock::now(), us(10), "room is there at once");
    });
}

#[test]
fn pieces_take_as_long_as_the_conditions_say() {
    let conditions = Conditions { delay: (us(3), us(9)), ..STEADY };
    Reactor::new(None).run(async {
        let network = Network::new(5, conditions);
        let (mut least, mut most) = (us(1_000), Nanos::ZERO);
        for _ in 0..500 {
            let (near, far) = network.pair();
            let sent = clock::now();
            near.try_write(&[IoSlice::new(b"x")]).unwrap();
            far.readable().await;
            assert_eq!(far.try_read(&mut [IoSliceMut::new(&mut [0])]), Ok(Some(1)));
            let taken = clock::now() - sent;
            (least, most) = (least.min(taken), most.max(taken));
        }
        assert!(least >= us(3) && least < us(4), "{least}");
        assert!(most <= us(9) && most > us(8), "{most}");
    });
}

#[test]
fn a_cut_breaks_both_ends_at_its_instant_and_loses_what_was_on_the_way() {
    Reactor::new(None).run(async {
        let network = Network::new(2, STEADY);
        let (other, _its_peer) = network.pair();
        let (near, far) = network.pair();
        let number = near.number();
        assert_eq!(network.open(), [other.number(), number]);
        near.try_write(&[IoSlice::new(b"lost")]).unwrap();
        let network = network.clone();
        let cutter = network.clone();
        clock::spawn_at(us(4), async move || cutter.cut(number));
        far.readable().await;
        assert_eq!(clock::now(), us(4));
        assert_eq!(far.try_read(&mut [IoSliceMut::new(&mut [0; 9])]), Err(Broken));
        assert_eq!(near.try_write(&[IoSlice::new(b"more")]), Err(Broken));
        near.writable().await;
        near.readable().await;
        assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut [0; 9])]), Err(Broken));
        assert_eq!(clock::now(), us(4), "who tries a broken stream does not wait");
        assert_eq!(network.open(), [other.number()]);
        assert!(other.try_write(&[IoSlice::new(b"y")]).unwrap().is_some());
    });
}

#[test]
fn connections_live_as_long_as_the_conditions_say() {
    let conditions = Conditions { life: Some((us(100), us(200))), ..STEADY };
    Reactor::new(None).run(async {
        let network = Network::new(3, conditions);
        for _ in 0..50 {
            let made = clock::now();
            let (near, far) = network.pair();
            near.readable().await;
            let lived = clock::now() - made;
            assert!(lived >= us(100) && lived <= us(200), "{lived}");
            assert_eq!(far.try_write(&[IoSlice::new(b"x")]), Err(Broken));
        }
    });
}

#[test]
fn who_shuts_down_is_heard_to_the_end() {
    for dropped in [false, true] {
        Reactor::new(None).run(async move {
            let (near, far) = Network::new(4, STEADY).pair();
            let mut sent = 0;
            while sent < 500 {
                sent += near.try_write(&[IoSlice::new(&vec![9; 500 - sent])]).unwrap().unwrap();
            }
            near.shut_down();
            assert_eq!(near.try_read(&mut [IoSliceMut::new(&mut [0])]), Ok(Some(0)));
            assert_eq!(near.try_write(&[IoSlice::new(b"x")]), Err(Broken));
            near.readable().await;
            near.writable().await;
            if dropped {
                drop(near);
            }
            assert_eq!(clock::now(), Nanos::ZERO);
            let unheard = far.try_write(&[IoSlice::new(b"dropped in flight")]);
            assert!(unheard.unwrap().is_some(), "the peer does not know yet");
            let mut log = Vec::new();
            assert_eq!(read_all(&far, &mut log).await.unwrap(), [9; 500]);
            assert_eq!(clock::now(), us(10));
            assert_eq!(far.try_write(&[IoSlice::new(b"x")]), Err(Broken));
        });
    }
}

#[test]
fn a_shut_down_wakes_tasks_at_both_ends() {
    Reactor::new(None).run(async {
        let (near, far) = Network::new(6, STEADY).pair();
        while near.try_write(&[IoSlice::new(&[0; 100])]).unwrap().is_some() {}
        while far.try_write(&[IoSlice::new(&[0; 100])]).unwrap().is_some() {}
        let (near, far) = (Rc::new(near), Rc::new(far));
        let waited = Rc::new(RefCell::new(Vec::new()));
        for (name, end) in [("near", near.clone()), ("far", far.clone())] {
            let waited = waited.clone();
            clock::spawn(async move {
                end.writable().await;
                waited.borrow_mut().push((name, clock::now()));
            });
        }
        clock::sleep(us(30), Stage::Queue).await;
        near.shut_down();
        clock::sleep(us(30), Stage::Queue).await;
        assert_eq!(*waited.borrow(), [("near", us(30)), ("far", us(40))]);
    });
}

#[test]
fn many_hosts_talk_to_one_target() {
    Reactor::new(Some(11)).run(async {
        let network = Network::new(11, Conditions::CALM);
        let refused = network.connect("target").await.map(|end| end.number());
        assert_eq!(refused, Err(Refused { address: "target".to_owned() }));
        let listener = Rc::new(network.listen("target"));
        let accepting = listener.clone();
        clock::spawn(async move {
            while let Some(end) = accepting.accept().await {
                clock::spawn(async move {
                    let bytes = read_exactly(&end, 1_000).await;
                    write_all(&end, &bytes, &mut Rng::new(1)).await.unwrap();
                });
            }
        });
        let hosts = (0..64u8).map(|host| {
            let network = network.clone();
            async move {
                let end = network.connect("target").await.unwrap();
                let sent: Vec<u8> = (0..1_000u16).map(|i| i.to_le_bytes()[0] ^ host).collect();
                write_all(&end, &sent, &mut Rng::new(u64::from(host))).await.unwrap();
                assert_eq!(read_all(&end, &mut Vec::new()).await.unwrap(), sent);
            }
        });
        clock::join_all(hosts.collect()).await;
        listener.close();
        assert!(listener.accept().await.is_none());
        assert!(network.connect("target").await.is_err());
        assert!(network.open().is_empty());
        drop(network.listen("target"));
        drop(network.listen("target"));
    });
}

async fn read_exactly(end: &End, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut read = 0;
    while read < len {
        match end.try_read(&mut [IoSliceMut::new(&mut bytes[read..])]).unwrap() {
            Some(len) => read += len,
            None => end.readable().await,
        }
    }
    bytes
}
