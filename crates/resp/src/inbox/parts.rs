//! The long way through a request: in parts, as they arrive.

use super::{END, Inbox, Part};
use crate::inline::words;
use crate::number::integer;
use crate::protocol_error::ProtocolError;
use crate::request::Arg;

/// The most arguments of a request.
const ARGS_MAX: i64 = 1 << 20;
/// The longest line: an inline request, or the line of a count.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest bulk that is passed over. One that claims more is no request.
const BULK_BYTES_MAX: i64 = 512 << 20;

/// The most arguments of a request of a stranger.
const STRANGE_ARGS_MAX: i64 = 10;
/// The longest argument of a stranger.
const STRANGE_BYTES_MAX: i64 = 16 << 10;

/// A bulk of so many bytes that are not all there yet gets a place of its own.
const APART_BYTES_MIN: usize = 512;

impl Inbox {
    /// Understands one part more; false when that has not come. At the start of a request, a byte
    /// of it has.
    pub(super) fn advance(&mut self) -> Result<bool, ProtocolError> {
        let here = self.end - self.at;
        match &mut self.part {
            Part::Start if self.staging[self.at] == b'*' => return self.take_count(),
            Part::Start => return self.take_line(),
            Part::Length if self.missing == 0 => self.part = Part::Whole,
            Part::Length => return self.take_length(),
            Part::Staged(len) => {
                let len = *len;
                if here < len + END {
                    return Ok(false);
                }
                let from = self.at - self.start;
                self.args.push(Arg::Staged(from, from + len));
                self.at += len + END;
                self.part = Part::Length;
            }
            Part::Apart(_, filled, len) if *filled < *len => return Ok(false),
            Part::Apart(..) => {
                let Part::Apart(buf, ..) = std::mem::replace(&mut self.part, Part::EndOfArg) else {
                    return Ok(false);
                };
                self.args.push(Arg::Apart(self.apart.len()));
                self.apart.push(buf.freeze());
            }
            Part::Unwanted(left) => {
                let passed = here.min(*left);
                *left -= passed;
                let is_over = *left == 0;
                self.staging.copy_within(self.at + passed..self.end, self.at);
                self.end -= passed;
                if !is_over {
                    return Ok(false);
                }
                self.args.push(Arg::TooLong);
                self.part = Part::EndOfArg;
            }
            Part::EndOfArg if here < END => return Ok(false),
            Part::EndOfArg => {
                self.at += END;
                self.part = Part::Length;
            }
            Part::Whole => {}
        }
        Ok(true)
    }

    /// The line that is next, without its first byte and its end, and where it ends.
    fn counted_line(&self) -> Option<(&[u8], usize)> {
        let come = &self.staging[self.at..self.end];
        let len = come.iter().position(|byte| *byte == b'\r')?;
        let is_whole = come.len() >= len + END;
        is_whole.then(|| (&come[1..len.max(1)], self.at + len + END))
    }

    fn take_count(&mut self) -> Result<bool, ProtocolError> {
        let Some((line, end)) = self.counted_line() else {
            let is_long = self.end - self.at > LINE_BYTES_MAX;
            return if is_long { Err(ProtocolError::LongCount) } else { Ok(false) };
        };
        let count = integer(line).filter(|count| *count <= ARGS_MAX);
        let count = count.ok_or(ProtocolError::Count)?;
        if self.is_of_stranger && count > STRANGE_ARGS_MAX {
            return Err(ProtocolError::StrangeCount);
        }
        self.at = end;
        match usize::try_from(count) {
            Ok(count @ 1..) => {
                self.missing = count;
                self.part = Part::Length;
            }
            _ => self.begin(),
        }
        Ok(true)
    }

    fn take_length(&mut self) -> Result<bool, ProtocolError> {
        let Some((line, end)) = self.counted_line() else {
            let is_long = self.end - self.at > LINE_BYTES_MAX;
            return if is_long { Err(ProtocolError::LongLength) } else { Ok(false) };
        };
        let first = self.staging[self.at];
        if first != b'$' {
            return Err(ProtocolError::NoArgument(first));
        }
        let len = integer(line).filter(|len| (0..=BULK_BYTES_MAX).contains(len));
        let len = len.ok_or(ProtocolError::Length)?;
        if self.is_of_stranger && len > STRANGE_BYTES_MAX {
            return Err(ProtocolError::StrangeLength);
        }
        let len = usize::try_from(len).expect("it is not negative");
        self.at = end;
        self.missing -= 1;
        if len > self.limits.value_bytes_max as usize {
            self.part = Part::Unwanted(len);
            return Ok(true);
        }
        let here = self.end - self.at;
        let taken = self.at - self.start + self.apart_bytes + size_of_val(&self.args[..]);
        if taken + len > self.limits.request_bytes_max {
            return Err(ProtocolError::TooMuch(self.limits.request_bytes_max));
        }
        if len < APART_BYTES_MIN || len <= here {
            self.part = Part::Staged(len);
            return Ok(true);
        }
        let mut buf = self.pool.take(len);
        buf.as_mut()[..here].copy_from_slice(&self.staging[self.at..self.end]);
        self.counters.count_copy(here);
        self.end = self.at;
        self.apart_bytes += len;
        self.part = Part::Apart(buf, here, len);
        Ok(true)
    }

    /// Takes an inline request.
    fn take_line(&mut self) -> Result<bool, ProtocolError> {
        let come = &self.staging[self.at..self.end];
        let Some(len) = come.iter().position(|byte| *byte == b'\n') else {
            let is_long = come.len() > LINE_BYTES_MAX;
            return if is_long { Err(ProtocolError::LongLine) } else { Ok(false) };
        };
        let line = come[..len].strip_suffix(b"\r").unwrap_or(&come[..len]);
        let mut typed = Vec::new();
        let words = words(line, &mut typed).ok_or(ProtocolError::Quotes)?;
        self.at += len + 1;
        if words.is_empty() {
            self.begin();
            return Ok(true);
        }
        self.args.extend(words.into_iter().map(|(start, end)| Arg::Staged(start, end)));
        self.typed = Some(typed);
        self.part = Part::Whole;
        Ok(true)
    }
}
