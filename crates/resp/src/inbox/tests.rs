use super::*;
use crate::limits::Limits;
use base::BufPool;
use std::sync::Arc;

const LIMITS: Limits = Limits { value_bytes_max: 300, request_bytes_max: 400 };

/// An inbox in which `bytes` have arrived.
fn inbox(bytes: &[u8]) -> Inbox {
    let mut inbox = Inbox::new(LIMITS, BufPool::new(0), Arc::default());
    inbox.staging = bytes.to_vec();
    inbox.end = bytes.len();
    inbox
}

/// Whether the short way takes the first request of `bytes`. If so, the long way finds the same
/// in them.
fn is_plain(bytes: &[u8]) -> bool {
    let (mut short, mut long) = (inbox(bytes), inbox(bytes));
    let mut found = None;
    let at = short.at;
    assert_ne!(short.plain(|_| false), Some(true), "it is not taken");
    assert_eq!(short.at, at, "it stays the next one");
    let is_taken = short.plain(|plain| {
        found = Some((plain.key.to_vec(), plain.value, plain.is_last));
        true
    });
    let Some((key, value, is_last)) = found else { return false };
    assert_eq!(is_taken, Some(true));
    let request = long.next().expect("it is a request").expect("it has arrived");
    assert_eq!((request.end, request.is_last), (short.at, is_last));
    let same = request.plain().expect("it is plain");
    assert_eq!(same.key, key);
    match (same.value, value) {
        (Some(Value::Staged(same)), Some(Value::Staged(value))) => assert_eq!(same, value),
        (None, None) => {}
        both => panic!("{both:?}"),
    }
    true
}

fn bulks(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).into_bytes());
        bytes.extend([arg, &b"\r\n"[..]].concat());
    }
    bytes
}

#[test]
fn both_ways_find_the_same() {
    let lens = [1, 2, 9, 10, 99, 100, 255, 300];
    for (key, value) in lens.into_iter().flat_map(|key| lens.map(|value| (key, value))) {
        let (key, value) = (vec![b'k'; key], vec![b'v'; value]);
        let (get, set) = (bulks(&[b"gEt", &key]), bulks(&[b"SeT", &key, &value]));
        let fits = |bytes: &[u8], args: usize| bytes.len() + 24 * args <= 400;
        for next in [&b""[..], b"*1", b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"] {
            assert_eq!(is_plain(&[&get, next].concat()), fits(&get, 2));
            // The last bytes of a short value and what ends it are shorter than any line.
            assert_eq!(is_plain(&[&set, next].concat()), fits(&set, 3));
        }
        for len in 0..get.len() {
            assert!(!is_plain(&get[..len]), "{len} bytes have arrived");
        }
    }
}

#[test]
fn the_long_way_decides_about_all_else() {
    for bytes in [
        &b"*2\r\n$3\r\nGET\r\n$01\r\nab\r\n"[..],
        b"*2\r\n$3\r\nGET\r\n$-1\r\nab\r\n",
        b"*2\r\n$3\r\nGET\r\n$+1\r\na\r\n",
        b"*2\r\n$3\r\nGET\r\n*1\r\naa\r\n",
        b"*2\r\n$3\r\nGET\r\n$00001\r\na\r\n",
        b"*2\r\n$3\r\nPUT\r\n$1\r\na\r\n",
        b"*3\r\n$3\r\nGET\r\n$1\r\na\r\n$1\r\na\r\n",
        b"*2\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\na\r\n",
        b"*1\r\n$4\r\nPING\r\n$1\r\n",
        b"GET a\r\n",
    ] {
        assert!(!is_plain(bytes), "{}", bytes.escape_ascii());
    }
    assert!(!is_plain(&bulks(&[b"set", b"a", &[0; 301]])), "it is too long");
}
