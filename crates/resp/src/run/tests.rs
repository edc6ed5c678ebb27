use super::Run;
use crate::counters::Counters;
use crate::door::Door;
use crate::hidden::roots;
use crate::outbox::Outbox;
use crate::request::{Arg, Request};
use crate::session::Session;
use crate::transaction::tests::{SPACE, door_that, key};
use crate::wire::{Ends, Wire};
use engine::Ack;
use net::{Broken, Stream};
use reactor::Reactor;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

/// Keeps what is written.
#[derive(Default)]
struct Written(RefCell<Vec<u8>>);

impl Stream for Written {
    fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        Err(Broken)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        self.0.borrow_mut().extend_from_slice(&bytes);
        Ok(Some(bytes.len()))
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

/// Executes `lines` as one run. Returns the replies, and whether one had to wait.
async fn execute(door: &Arc<Door>, lines: &[&str]) -> (String, bool) {
    let mut session =
        Session::new(door, Arc::new(Wire::new(Ends::default()))).expect("there is room");
    let (staging, mut run) = (lines.concat().into_bytes(), Run::default());
    let mut end = 0;
    for line in lines {
        let (start, mut at) = (end, 0);
        let args: Vec<Arg> = line
            .split(' ')
            .map(|word| {
                let range = at..at + word.len();
                at = range.end + 1;
                Arg::Staged(range.start, range.end)
            })
            .collect();
        end += line.len();
        let (counters, pool) = (&**door.counters(), door.pool());
        let (apart, typed, is_last) = (&[][..], None, false);
        let args = &args[..];
        let staging = &staging[..];
        let request = Request { staging, typed, start, end, args, apart, counters, pool, is_last };
        assert!(run.take(door, &session, request), "{line}");
    }
    let (mut outbox, written) = (Outbox::new(Arc::new(Counters::default())), Written::default());
    let waiting = run.begin(door, &mut session, &staging, &mut outbox);
    let waits = waiting.is_some();
    if let Some(waiting) = waiting {
        waiting.finish(&mut run.steps).await;
    }
    if run.answered < run.len {
        run.answer_rest(&mut session, &mut outbox);
    }
    outbox.send(&written).expect("it takes all");
    (String::from_utf8(written.0.take()).expect("letters"), waits)
}

/// Calls of GET and SET, and keys that GETs have found.
fn counts(door: &Door) -> (u64, u64, u64) {
    let calls = door.watcher().plain.map(|number| door.watcher().tallies.get(number).calls);
    (calls[0], calls[1], door.counters().keyspace_hits())
}

#[test]
fn requests_are_counted_whether_they_wait_or_not() {
    for ack in [Ack::Program, Ack::Buffer { bytes: 1 << 20 }] {
        Reactor::new(None).run(async {
            let door = Arc::new(door_that(ack).await);
            let sets = ["SET a one", "set b two", "SET a three", "SET c four"];
            let (replies, waits) = execute(&door, &sets).await;
            assert_eq!(replies, "+OK\r\n".repeat(4));
            assert_eq!(waits, ack == Ack::Program);
            assert_eq!(counts(&door), (0, 4, 0));
            let value = door.store().get(SPACE, &key("a")).await.unwrap();
            assert_eq!(value.bytes().unwrap(), b"three", "the last SET of a key counts");
            door.store().flush().await.unwrap();
            let gets = ["GET c", "GET a", "GET c", "get b"];
            let (replies, waits) = execute(&door, &gets).await;
            assert_eq!(replies, "$4\r\nfour\r\n$5\r\nthree\r\n$4\r\nfour\r\n$3\r\ntwo\r\n");
            assert!(!waits, "all are in memory");
            assert_eq!(counts(&door), (4, 4, 4));
            let (replies, waits) = execute(&door, &["GET a", "GET d", "GET d"]).await;
            assert_eq!((&replies[..], waits), ("$5\r\nthree\r\n$-1\r\n$-1\r\n", false));
            assert_eq!((counts(&door), door.counters().keyspace_misses()), ((7, 4, 5), 2));
            door.store().create_key_space(roots(SPACE)).await.unwrap();
            let (replies, waits) = execute(&door, &["GET a", "GET d"]).await;
            // Only a wait tells whether there is a collection.
            assert_eq!((&replies[..], waits), ("$5\r\nthree\r\n$-1\r\n", true));
            assert_eq!((counts(&door), door.counters().keyspace_misses()), ((9, 4, 6), 3));
        });
    }
}
