//! The short way through a request that has arrived as a whole: one pass without states.

use crate::limits::Limits;
use crate::request::Arg;

/// Bytes that end a line and a bulk.
pub(super) const END: usize = 2;

/// Requests with more arguments take the long way.
const ARGS_MAX: usize = 64;

/// Appends the arguments of the request at the start of `bytes` to `args` and returns its length in
/// bytes. Returns `None` if the request is incomplete or not plain: the long way decides about it.
pub(super) fn whole_request(bytes: &[u8], limits: Limits, args: &mut Vec<Arg>) -> Option<usize> {
    let (count, mut at) = counted(bytes, 0, b'*')?;
    if !(1..=ARGS_MAX).contains(&count) {
        return None;
    }
    for _ in 0..count {
        let (len, start) = counted(bytes, at, b'$')?;
        let end = start + len;
        if len > limits.value_bytes_max as usize || end + END > bytes.len() {
            return None;
        }
        args.push(Arg::Staged(start, end));
        at = end + END;
    }
    (at + size_of_val(&args[..]) <= limits.request_bytes_max).then_some(at)
}

/// The number of at most four digits on the line at `at`, which begins with `kind`, and the place
/// of the next line.
#[inline]
fn counted(bytes: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let (&first, line) = bytes.get(at..)?.split_first()?;
    if first != kind {
        return None;
    }
    let digit = |byte: u8| usize::from(byte - b'0');
    match *line {
        [a @ b'0'..=b'9', b'\r', b'\n', ..] => Some((digit(a), at + 4)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((digit(a) * 10 + digit(b), at + 5))
        }
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some(((digit(a) * 10 + digit(b)) * 10 + digit(c), at + 6))
        }
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', d @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((((digit(a) * 10 + digit(b)) * 10 + digit(c)) * 10 + digit(d), at + 7))
        }
        _ => None,
    }
}
