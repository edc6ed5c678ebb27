//! What bytes are as requests, however they come.

use base::{BufPool, Rng};
use net::{Broken, Stream};
use resp::{Counters, Inbox, Limits, ProtocolError, Read};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

const LIMITS: Limits = Limits { value_bytes_max: 100_000, request_bytes_max: 1 << 20 };

/// Brings pieces, each in reads of its own, and counts these.
struct Tape(RefCell<VecDeque<Vec<u8>>>, Cell<usize>);

impl Tape {
    fn new(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        Self(RefCell::new(pieces.collect()), Cell::new(0))
    }
}

impl Stream for Tape {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        self.1.set(self.1.get() + 1);
        let mut pieces = self.0.borrow_mut();
        let Some(piece) = pieces.front_mut() else { return Ok(Some(0)) };
        let mut read = 0;
        for part in into {
            let len = part.len().min(piece.len());
            part[..len].copy_from_slice(&piece[..len]);
            piece.drain(..len);
            read += len;
        }
        if piece.is_empty() {
            pieces.pop_front();
        }
        Ok(Some(read))
    }

    fn try_write(&self, _: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        Err(Broken)
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

type Requests = Vec<Vec<Vec<u8>>>;

/// All requests, why there are no more, and how many bytes were copied.
fn requests(pieces: Vec<Vec<u8>>, limits: Limits) -> (Requests, Option<ProtocolError>, u64) {
    let counters = Arc::new(Counters::default());
    let mut inbox = Inbox::new(limits, BufPool::new(1 << 20), counters.clone());
    let tape = Tape::new(pieces);
    let mut all = Vec::new();
    loop {
        match inbox.next() {
            Ok(Some(request)) => {
                let args = (0..request.len()).map(|at| {
                    let value = request.value(at);
                    let bytes = value.bytes().expect("real bytes").to_vec();
                    assert_eq!(bytes, request.arg(at));
                    bytes
                });
                all.push(args.collect());
                continue;
            }
            Ok(None) => {}
            Err(error) => return (all, Some(error), counters.copied_bytes()),
        }
        if inbox.read(&tape) == Ok(Read::End) {
            return (all, None, counters.copied_bytes());
        }
    }
}

fn bulk(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn owned(requests: &[&[&[u8]]]) -> Requests {
    let one = |request: &&[&[u8]]| request.iter().map(|arg| arg.to_vec()).collect();
    requests.iter().map(one).collect()
}

#[test]
fn however_bytes_are_split_they_are_the_same_requests() {
    let long = vec![b'v'; 1_500];
    let all: [&[&[u8]]; 6] = [
        &[b"SET", b"key", &long],
        &[b"GET", b"a\r\nb"],
        &[b"PING"],
        &[b"SET", b"", b""],
        &[b"MSET", b"a", &long, b"b", &long[..700]],
        &[b"typed", b"a b", b"A"],
    ];
    let mut bytes: Vec<u8> = all[..5].iter().flat_map(|args| bulk(args)).collect();
    bytes.extend_from_slice(b"*0\r\n\r\n*-1\r\n  typed 'a b' \"\\x41\"\r\n");
    for first in 0..=bytes.len() {
        for step in [0, 1, 613] {
            let second = (first + step).min(bytes.len());
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
            let (found, error, _) = requests(pieces, LIMITS);
            assert_eq!((found, error), (owned(&all), None), "split at {first} and {second}");
        }
    }
    let single = bytes.iter().map(|byte| vec![*byte]).collect();
    assert_eq!(requests(single, LIMITS).0, owned(&all));
    for seed in 0..200 {
        let (mut rng, mut rest, mut pieces) = (Rng::new(seed), &bytes[..], Vec::new());
        while !rest.is_empty() {
            let len = rest.len().min(1 + usize::try_from(rng.below(900)).unwrap());
            pieces.push(rest[..len].to_vec());
            rest = &rest[len..];
        }
        assert_eq!(requests(pieces, LIMITS).0, owned(&all), "seed {seed}");
    }
}

#[test]
fn what_is_no_request_is_said_to_be_none_however_it_comes() {
    let long = vec![b'1'; 70_000];
    let cases = [
        (&b"*x\r\n"[..], ProtocolError::Count),
        (b"*1048577\r\n", ProtocolError::Count),
        (b"*1\r\n$x\r\n", ProtocolError::Length),
        (b"*1\r\n$-1\r\n", ProtocolError::Length),
        (b"*1\r\n$536870913\r\n", ProtocolError::Length),
        (b"*1\r\n:1\r\n", ProtocolError::NoArgument(b':')),
        (b"get \"a\r\n", ProtocolError::Quotes),
        (&long, ProtocolError::LongLine),
    ];
    for (bytes, expected) in cases {
        for after in [0, bytes.len() / 2, bytes.len()] {
            let pieces = vec![bulk(&[b"PING"]), bytes[..after].to_vec(), bytes[after..].to_vec()];
            let (found, error, _) = requests(pieces, LIMITS);
            assert_eq!((found.len(), error), (1, Some(expected)), "{}", bytes.len());
        }
    }
    let count = [b"*", &long[..]].concat();
    assert_eq!(requests(vec![count], LIMITS).1, Some(ProtocolError::LongCount));
    let length = [b"*1\r\n$", &long[..]].concat();
    assert_eq!(requests(vec![length], LIMITS).1, Some(ProtocolError::LongLength));
}

#[test]
fn a_request_takes_no_more_memory_than_it_may() {
    let limits = Limits { request_bytes_max: 50_000, ..LIMITS };
    let value = vec![b'v'; 20_000];
    let fits = bulk(&[b"MSET", b"a", &value, b"b", &value]);
    assert_eq!(requests(vec![fits.clone()], limits).0.len(), 1);
    let more = bulk(&[b"MSET", b"a", &value, b"b", &value, b"c", &value]);
    let (found, error, _) = requests(vec![fits, more], limits);
    assert_eq!((found.len(), error), (1, Some(ProtocolError::TooMuch(50_000))));
    let many = bulk(&vec![&b"x"[..]; 2_000]);
    assert_eq!(requests(vec![many], limits).1, Some(ProtocolError::TooMuch(50_000)));
}

#[test]
fn an_argument_that_is_too_long_is_passed_over() {
    let (long, value) = (vec![b'v'; 300_000], vec![b'w'; 100_000]);
    let bytes = [bulk(&[b"SET", b"a", &long]), bulk(&[b"SET", b"b", &value])].concat();
    for first in [10, 30, 1_000, 200_000, 300_020, 300_030, 300_100] {
        let pieces = vec![bytes[..first].to_vec(), bytes[first..].to_vec()];
        let (found, error, _) = requests(pieces, LIMITS);
        assert_eq!(error, None);
        assert_eq!(found, owned(&[&[b"SET", b"a", b""], &[b"SET", b"b", &value]]), "{first}");
    }
}

#[test]
fn limits_are_the_same_for_requests_that_arrive_whole_and_in_pieces() {
    let value = [b'v'; 120];
    let all = [bulk(&[b"SET", b"key", &value]), bulk(&[b"GET", b"key"])].concat();
    for max in 0..400 {
        let by_value = Limits { value_bytes_max: max, ..LIMITS };
        let by_request = Limits { request_bytes_max: max as usize, ..LIMITS };
        for limits in [by_value, by_request] {
            let (whole, error, _) = requests(vec![all.clone()], limits);
            let single = all.iter().map(|byte| vec![*byte]).collect();
            let (pieces, same, _) = requests(single, limits);
            assert_eq!((whole, error), (pieces, same), "{limits:?}");
        }
    }
}

#[test]
fn numbers_are_the_same_in_requests_that_arrive_whole_and_in_pieces() {
    let numbers = ["0", "00", "01", "1", "-1", "+1", "2", "10", "012", "1x", "", " 1", "99999"];
    for count in numbers {
        for len in numbers {
            let all = format!("*{count}\r\n${len}\r\nabcdefghij\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n");
            let (whole, error, _) = requests(vec![all.clone().into_bytes()], LIMITS);
            let single = all.bytes().map(|byte| vec![byte]).collect();
            let (pieces, same, _) = requests(single, LIMITS);
            assert_eq!((whole, error), (pieces, same), "*{count} ${len}");
        }
    }
}

#[test]
fn of_a_value_that_comes_alone_little_is_copied() {
    let value = vec![b'v'; 8_192];
    let set = bulk(&[b"SET", b"key", &value]);
    let names = 6;
    let (found, _, copied) = requests(vec![set.clone(); 20], LIMITS);
    assert_eq!(found.len(), 20);
    assert!(copied <= 20 * (1_024 + names), "{copied} bytes of 20 values are copied");
    // Values that arrive together are copied once at most.
    let (found, _, copied) = requests(vec![set.repeat(64)], LIMITS);
    assert_eq!(found.len(), 64);
    assert!(copied <= 64 * (8_192 + names), "{copied} bytes of 64 values are copied");
}

#[test]
fn values_that_follow_each_other_are_read_many_at_a_time() {
    let set = bulk(&[b"SET", b"key", &[b'v'; 8_192]]);
    let tape = Tape::new([set.repeat(64)]);
    let mut inbox = Inbox::new(LIMITS, BufPool::new(1 << 20), Arc::new(Counters::default()));
    let mut found = 0;
    while inbox.read(&tape) == Ok(Read::Some) {
        while inbox.next().expect("they are requests").is_some() {
            found += 1;
        }
    }
    assert_eq!(found, 64);
    // Of 64 KiB, but for those that tell that there are many.
    let reads = tape.1.get();
    assert!(reads <= (64 * set.len()).div_ceil(64 << 10) + 4, "{reads} reads");
}
