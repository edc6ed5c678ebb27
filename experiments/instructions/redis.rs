//! SET and GET of Redis clients, as of `redis-benchmark -c 50 -P 16 -d 64 -r 10000`, but on keys in
//! a fixed order.

use crate::drives;
use crate::tape::Tape;
use base::BufPool;
use clock::Notify;
use drive::Durability;
use engine::Store;
use reactor::Reactor;
use resp::{Door, Ends, Settings, Users, serve_from};
use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Set,
    Get,
}

const CLIENTS: u64 = 50;
const PIPELINE: u64 = 16;
const KEYS: u64 = 10_000;
const VALUE: &[u8] = &[b'x'; 64];

/// Executes `operations` on a drive in memory that has all keys.
pub(crate) fn in_memory(kind: Kind, operations: u64) {
    Reactor::new(None).run(async {
        let drive = drives::in_memory().await;
        let door = door(drive.kv().expect("the drive has pairs").clone()).await;
        serve(&door, kind, operations).await;
    });
}

/// Executes SETs on a drive on a disk that has all keys and is flushed every second.
pub(crate) fn on_a_disk(operations: u64) {
    Reactor::new(None).run(async {
        let drive = drives::on_a_disk(Durability::EverySecond).await;
        let door = door(drive.store().clone()).await;
        serve(&door, Kind::Set, operations).await;
    });
}

async fn door(store: Arc<Store>) -> Arc<Door> {
    let door = Door::new(store, Users::default(), Settings::default(), BufPool::new(16 << 20));
    door.prepare().await.expect("the drive is new");
    Arc::new(door)
}

/// Stores all keys, then executes `operations` of one kind.
async fn serve(door: &Arc<Door>, kind: Kind, operations: u64) {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let tape = Rc::new(Tape::default());
            let serving = Box::pin(serve_from(tape.clone(), door.clone(), Ends::default()));
            clock::spawn(async move {
                serving.await;
            });
            tape
        })
        .collect();
    for (kind, operations) in [(Kind::Set, KEYS), (kind, operations)] {
        let open = Rc::new(Cell::new(CLIENTS));
        let is_over = Rc::new(Notify::new());
        for (number, tape) in (0..).zip(&clients) {
            let (tape, open, is_over) = (tape.clone(), open.clone(), is_over.clone());
            clock::spawn(async move {
                exchange(&tape, kind, number, operations / CLIENTS).await;
                open.set(open.get() - 1);
                if open.get() == 0 {
                    is_over.notify();
                }
            });
        }
        is_over.wait().await;
    }
}

/// Executes `operations` of one client.
async fn exchange(tape: &Tape, kind: Kind, client: u64, operations: u64) {
    let reply: Vec<u8> = match kind {
        Kind::Set => b"+OK\r\n".to_vec(),
        Kind::Get => [b"$64\r\n", VALUE, b"\r\n"].concat(),
    };
    for first in (0..operations).step_by(usize::try_from(PIPELINE).expect("it is small")) {
        let count = PIPELINE.min(operations - first);
        let send = |bytes: &mut Vec<u8>| {
            for number in first..first + count {
                request(bytes, kind, (client * KEYS / CLIENTS + number) * 7 % KEYS);
            }
        };
        let expected = usize::try_from(count).expect("it is small") * reply.len();
        let check = |replies: &[u8]| {
            for found in replies.chunks(reply.len()) {
                assert_eq!(found, reply, "every command succeeds");
            }
        };
        tape.exchange(send, expected, check).await;
    }
}

fn request(bytes: &mut Vec<u8>, kind: Kind, key: u64) {
    let done = match kind {
        Kind::Set => write!(bytes, "*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n$64\r\n")
            .and_then(|()| bytes.write_all(VALUE))
            .and_then(|()| bytes.write_all(b"\r\n")),
        Kind::Get => write!(bytes, "*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n"),
    };
    done.expect("memory takes all");
}
