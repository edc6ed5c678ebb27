//! The short way through a GET or a SET that has arrived as a whole: one pass without states.

use super::{END, Inbox, Part};
use crate::request::{Arg, Plain, Value};

impl Inbox {
    /// The next request, and where it ends in staging, if it is a GET or a SET without options and
    /// has arrived. Otherwise [`Self::next`] decides about it. It stays the next one until
    /// [`Self::pass`].
    #[inline]
    pub(crate) fn plain(&self) -> Option<(Plain<'_>, usize)> {
        if !matches!(self.part, Part::Start | Part::Whole) {
            return None;
        }
        let bytes = &self.staging[self.at..self.end];
        let (head, bytes) = bytes.split_first_chunk()?;
        let (name, mut left) = bytes.split_first_chunk()?;
        let count = match name {
            [b'G' | b'g', b'E' | b'e', b'T' | b't', b'\r', b'\n'] if head == b"*2\r\n$3\r\n" => 1,
            [b'S' | b's', b'E' | b'e', b'T' | b't', b'\r', b'\n'] if head == b"*3\r\n$3\r\n" => 2,
            _ => return None,
        };
        let mut args = [&b""[..]; 2];
        for arg in &mut args[..count] {
            let (len, bytes) = length(left)?;
            left = bytes.get(len + END..)?;
            *arg = &bytes[..len];
        }
        let [key, value] = args;
        let end = self.end - left.len();
        let held_bytes = end - self.at + (1 + count) * size_of::<Arg>();
        if key.len().max(value.len()) > self.limits.value_bytes_max as usize
            || held_bytes > self.limits.request_bytes_max
        {
            return None;
        }
        let value_end = end - END;
        let value = (count > 1).then(|| Value::Staged(value_end - value.len()..value_end));
        Some((Plain { key, value, is_last: left.is_empty() }, end))
    }

    /// Passes over the request that [`Self::plain`] has returned, which ends at `end`.
    #[inline]
    pub(crate) fn pass(&mut self, end: usize) {
        if matches!(self.part, Part::Whole) {
            self.begin();
        }
        (self.start, self.at) = (end, end);
        self.requests += 1;
    }
}

/// Returns the length of a bulk, of at most four digits, and the bytes behind its line. A zero
/// ahead of other digits is no number.
#[inline]
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    const LONGEST: usize = b"$1234\r\n".len();
    let line: &[u8; LONGEST] = bytes.first_chunk()?;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    let (number, len) = match *line {
        [b'$', a, b'\r', b'\n', ..] => (digit(a)?, 4),
        [_, b'0', ..] => return None,
        [b'$', a, b, b'\r', b'\n', ..] => (digit(a)? * 10 + digit(b)?, 5),
        [b'$', a, b, c, b'\r', b'\n', _] => (digit(a)? * 100 + digit(b)? * 10 + digit(c)?, 6),
        [b'$', a, b, c, d, b'\r', b'\n'] => {
            (digit(a)? * 1000 + digit(b)? * 100 + digit(c)? * 10 + digit(d)?, 7)
        }
        _ => return None,
    };
    Some((number, &bytes[len..]))
}

#[cfg(test)]
mod tests {
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
        let (short, mut long) = (inbox(bytes), inbox(bytes));
        let Some((plain, end)) = short.plain() else { return false };
        let request = long.next().expect("it is a request").expect("it has arrived");
        assert_eq!((request.end, request.is_last), (end, plain.is_last));
        let same = request.plain().expect("it is plain");
        assert_eq!(same.key, plain.key);
        match (same.value, plain.value) {
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
}
