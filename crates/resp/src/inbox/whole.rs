//! The short way through a request that has arrived as a whole: one pass without states.

use crate::limits::Limits;
use crate::request::Arg;

/// Bytes that end a line and a bulk.
pub(super) const END: usize = 2;

/// Digits of a length at most, else the request takes the long way.
const DIGITS_MAX: usize = 4;

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
    let line = bytes.get(at..)?;
    let digit = |at: usize| line.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|it| *it < 10);
    if line.first() != Some(&kind) {
        return None;
    }
    let mut number = usize::from(digit(1)?);
    let mut len = 2;
    // A zero ahead of other digits is no number.
    while number > 0
        && len <= DIGITS_MAX
        && let Some(more) = digit(len)
    {
        number = number * 10 + usize::from(more);
        len += 1;
    }
    (line.get(len..len + END) == Some(b"\r\n")).then_some((number, at + len + END))
}
