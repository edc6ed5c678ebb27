use crate::device;
use crate::input::Input;
use crate::world::pass;
use base::{BufPool, Nanos};
use clock::Group;
use net::{Conditions, End, Network, Stream};
use reactor::Reactor;
use resp::{ClientLimits, Door, Ended, Settings, Users, serve};
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use std::sync::Arc;

/// Limits so low that inputs reach them.
const SETTINGS: Settings = Settings {
    databases: 16,
    clients: ClientLimits { query_bytes: 100_000, ..ClientLimits::DEFAULT },
    durability: "none",
    output_bytes_max: 20_000,
    read_bytes_max: 1 << 20,
    timeout: Nanos::from_secs(1),
    process: None,
    seed: 1,
};

/// Longer than any request takes.
const DONE_WITHIN: Nanos = Nanos::from_secs(5);

/// Sends any bytes to the Redis service, in pieces of any length, by a client that may not read the
/// answers, or may disconnect. The service still answers a second client at any time.
pub fn resp(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut reactor = Reactor::new(Some(input.byte().into()));
    let conditions = Conditions {
        delay: (Nanos::ZERO, Nanos(u64::from(input.byte()))),
        piece_max: input.pick(&[1 << 20, 3_000, 100, 9, 1]),
        capacity: input.pick(&[1 << 18, 10_000, 500]),
        life: None,
    };
    let (reads, leaves) = (!input.one_in(3), input.one_in(4));
    let said = bytes.get(8..).unwrap_or_default().to_vec();
    reactor.run(async {
        let store = device::store(Group::new()).await;
        let door = Arc::new(Door::new(store, Users::default(), SETTINGS, BufPool::new(1 << 20)));
        let tended = door.clone();
        clock::spawn(async move { tended.tend().await });
        let network = Network::new(1, conditions);
        let (hostile, ended) = connect(&network, &door);
        let (calm, calm_ended) = connect(&network, &door);
        let sender = hostile.clone();
        clock::spawn(async move { send(&sender, &said).await });
        if reads {
            let reader = hostile.clone();
            clock::spawn(async move { while !read(&reader).await.is_empty() {} });
        }
        for number in 0..5 {
            ask(&calm, number).await;
            pass(Nanos::from_micros(200)).await;
        }
        if leaves {
            hostile.shut_down();
        }
        ask(&calm, 9).await;
        pass(DONE_WITHIN).await;
        hostile.shut_down();
        calm.shut_down();
        pass(DONE_WITHIN).await;
        assert!(ended.get().is_some(), "a client that has gone is served no more");
        assert_eq!(calm_ended.get(), Some(Ended::ByClient));
    });
}

type WhyEnded = Rc<Cell<Option<Ended>>>;

fn connect(network: &Network, door: &Arc<Door>) -> (Rc<End>, WhyEnded) {
    let (near, far) = network.pair();
    let (ended, door) = (WhyEnded::default(), door.clone());
    let over = ended.clone();
    clock::spawn(async move { over.set(Some(serve(Rc::new(far), door).await)) });
    (Rc::new(near), ended)
}

async fn send(stream: &End, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.try_write(&[IoSlice::new(bytes)]) {
            Ok(Some(taken)) => bytes = &bytes[taken..],
            Ok(None) => stream.writable().await,
            Err(_) => return,
        }
    }
}

/// Returns the received bytes; empty at the end of the stream.
async fn read(stream: &End) -> Vec<u8> {
    loop {
        let mut part = vec![0; 4_096];
        match stream.try_read(&mut [IoSliceMut::new(&mut part)]) {
            Ok(Some(len)) => {
                part.truncate(len);
                return part;
            }
            Ok(None) => stream.readable().await,
            Err(_) => return Vec::new(),
        }
    }
}

/// Checks that the well-behaved client gets its answer.
async fn ask(stream: &End, number: u32) {
    let (question, answer) =
        (format!("*2\r\n$4\r\nECHO\r\n$1\r\n{number}\r\n"), format!("$1\r\n{number}\r\n"));
    send(stream, question.as_bytes()).await;
    let mut come = Vec::new();
    while come.len() < answer.len() {
        let part = read(stream).await;
        assert!(!part.is_empty(), "the connection of a client that did nothing wrong is over");
        come.extend(part);
    }
    assert_eq!(come, answer.as_bytes());
}
