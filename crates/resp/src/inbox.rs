mod whole;

use self::whole::{END, whole_request};
use crate::counters::Counters;
use crate::inline::words;
use crate::limits::Limits;
use crate::number::integer;
use crate::protocol_error::ProtocolError;
use crate::request::{Arg, Request};
use crate::spares::Spares;
use base::{Buf, BufMut, BufPool};
use net::{Broken, Stream};
use std::io::IoSliceMut;
use std::sync::Arc;

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

/// Bytes that are read while the next request may have a value which belongs elsewhere.
const READ_BYTES: usize = 1 << 10;
/// Bytes that are read at once when more and more comes.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// Arguments for which a connection keeps memory while nothing comes.
const RESTING_ARGS: usize = 32;
/// A bulk of so many bytes that are not all there yet gets a place of its own.
const APART_BYTES_MIN: usize = 512;

/// What [`Inbox::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Something.
    Some,
    /// Nothing is there now.
    Nothing,
    /// The peer has ended the stream.
    End,
}

/// The part of a request that is parsed next.
#[derive(Debug)]
enum Part {
    /// Its beginning.
    Start,
    /// The length of an argument, or nothing if none is missing.
    Length,
    /// An argument of this length, which stays in staging.
    Staged(usize),
    /// The rest of an argument: so much of it is there.
    Apart(BufMut, usize, usize),
    /// So many bytes of an argument that is skipped.
    Unwanted(usize),
    /// The end of an argument that is not in staging.
    EndOfArg,
    /// Nothing: it is whole.
    Whole,
}

/// The receiving end of a connection: makes requests of what a stream brings.
///
/// Call [`Self::next`] until it has no more, then [`Self::read`], and so on. An inbox reads little
/// at a time while it expects a request, and the missing part of a long argument straight into its
/// buffer. So of a value that arrives alone, only the bytes that came with its length are copied.
/// As long as reads fill the buffer, or bring several requests, an inbox reads much at a time and
/// copies each value once.
#[derive(Debug)]
pub struct Inbox {
    staging: Vec<u8>,
    /// The request that comes begins here in staging,
    start: usize,
    /// it is understood up to here,
    at: usize,
    /// and has come up to here.
    end: usize,
    part: Part,
    args: Vec<Arg>,
    /// Arguments with buffers of their own.
    apart: Vec<Buf>,
    missing: usize,
    /// The words of a typed line.
    typed: Option<Vec<u8>>,
    /// Bytes of arguments with places of their own.
    apart_bytes: usize,
    was_full: bool,
    reads_ahead: bool,
    /// Requests of the last read, and 1 more if bytes followed a value that ended a request.
    requests: u32,
    is_of_stranger: bool,
    limits: Limits,
    pool: BufPool,
    spares: Arc<Spares>,
    counters: Arc<Counters>,
}

impl Inbox {
    /// Of a connection that brings nothing yet. Values get their places from `pool`.
    pub fn new(limits: Limits, pool: BufPool, counters: Arc<Counters>) -> Self {
        Self {
            staging: Vec::new(),
            start: 0,
            at: 0,
            end: 0,
            part: Part::Start,
            args: Vec::new(),
            apart: Vec::new(),
            missing: 0,
            typed: None,
            apart_bytes: 0,
            was_full: false,
            reads_ahead: false,
            requests: 0,
            is_of_stranger: false,
            limits,
            pool,
            spares: Arc::default(),
            counters,
        }
    }

    /// The same, which leaves to others what it does not need, and takes what they leave.
    pub(crate) fn sharing(mut self, spares: Arc<Spares>) -> Self {
        self.spares = spares;
        self
    }

    /// Whether the client has not authenticated: the server keeps little memory for it.
    pub fn set_stranger(&mut self, is_stranger: bool) {
        self.is_of_stranger = is_stranger;
    }

    /// Sets the limits of the next requests.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Bytes that have come and are no whole request yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let missing = match &self.part {
            Part::Apart(_, filled, len) => len - filled,
            _ => 0,
        };
        self.end - self.start + self.apart_bytes - missing
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.staging.len() + self.apart_bytes + size_of_val(&self.args[..])
    }

    /// The next request. `None`: more has to be read.
    #[expect(clippy::should_implement_trait, reason = "what it gives borrows from the inbox")]
    pub fn next(&mut self) -> Result<Option<Request<'_>>, ProtocolError> {
        if matches!(self.part, Part::Whole) {
            self.begin();
        }
        if !self.take_whole() {
            while !matches!(self.part, Part::Whole) {
                if !self.advance()? {
                    return Ok(None);
                }
            }
        }
        self.requests += 1;
        let (staging, start, end) = match &self.typed {
            Some(typed) => (&typed[..], 0, typed.len()),
            None => (&self.staging[..], self.start, self.at),
        };
        Ok(Some(Request {
            staging,
            start,
            end,
            args: &self.args,
            apart: &self.apart,
            counters: &self.counters,
            pool: &self.pool,
            is_typed: self.typed.is_some(),
            is_last: self.at == self.end,
        }))
    }

    /// The bytes that [`Request::staged`] counts from, until the next read.
    pub(crate) fn staging(&self) -> &[u8] {
        &self.staging
    }

    /// Takes the next request if it has arrived as a whole.
    #[inline]
    fn take_whole(&mut self) -> bool {
        if self.is_of_stranger || !matches!(self.part, Part::Start) {
            return false;
        }
        let bytes = &self.staging[self.start..self.end];
        match whole_request(bytes, self.limits, &mut self.args) {
            Some(len) => {
                self.at = self.start + len;
                self.part = Part::Whole;
                true
            }
            None => {
                self.args.clear();
                false
            }
        }
    }

    /// A request begins where the last one ended.
    fn begin(&mut self) {
        self.start = self.at;
        self.args.clear();
        self.apart.clear();
        self.typed = None;
        self.apart_bytes = 0;
        self.part = Part::Start;
    }

    /// Understands one part more; false when that has not come.
    fn advance(&mut self) -> Result<bool, ProtocolError> {
        let here = self.end - self.at;
        match &mut self.part {
            Part::Start if here == 0 => return Ok(false),
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

    /// Takes in what `stream` has. To be called when [`Self::next`] has found nothing.
    pub fn read(&mut self, stream: &impl Stream) -> Result<Read, Broken> {
        let is_apart = matches!(self.part, Part::Apart(..));
        // A full read may have ended in a value that comes alone.
        let more_comes = self.was_full && (self.reads_ahead || !is_apart);
        self.reads_ahead = more_comes || self.requests > 1;
        let room = self.make_room();
        let mut data: &mut [u8] = &mut [];
        if let Part::Apart(buf, filled, len) = &mut self.part {
            data = &mut buf.as_mut()[*filled..*len];
        }
        let staging = &mut self.staging[self.end..self.end + room];
        let (data_len, asked) = (data.len(), data.len() + staging.len());
        let mut parts = [IoSliceMut::new(data), IoSliceMut::new(staging)];
        let parts = if data_len == 0 { &mut parts[1..] } else { &mut parts[..] };
        let read = stream.try_read(parts)?;
        self.was_full = read == Some(asked);
        let is_followed = is_apart && self.missing == 0 && read > Some(data_len + END);
        self.requests = u32::from(is_followed);
        let Some(read) = read else { return Ok(Read::Nothing) };
        assert!(read <= asked, "a stream gives no more than there is room for");
        self.counters.count_read(read);
        if let Part::Apart(_, filled, _) = &mut self.part {
            *filled += read.min(data_len);
        }
        self.end += read.saturating_sub(data_len);
        Ok(if read == 0 { Read::End } else { Read::Some })
    }

    /// Whether the last read took all that the stream had.
    pub fn has_all(&self) -> bool {
        !self.was_full
    }

    /// Leaves to others what nothing needs as long as nothing comes. To be called when
    /// [`Self::next`] has found nothing.
    pub(crate) fn rest(&mut self) {
        if !matches!(self.part, Part::Start) || self.start < self.end {
            return;
        }
        (self.start, self.at, self.end) = (0, 0, 0);
        let staging = std::mem::take(&mut self.staging);
        if staging.len() > READ_BYTES {
            self.spares.leave(staging);
        }
        if self.args.capacity() > RESTING_ARGS {
            self.args = Vec::new();
        }
        self.apart = Vec::new();
    }

    /// Makes room after the bytes that have arrived, and frees a buffer that is not needed. Returns
    /// how much is to be read.
    fn make_room(&mut self) -> usize {
        self.staging.copy_within(self.start..self.end, 0);
        self.at -= self.start;
        self.end -= self.start;
        self.start = 0;
        let room = if self.reads_ahead { READ_AHEAD_BYTES } else { READ_BYTES };
        if self.end == 0 && self.staging.len() > room {
            self.spares.leave(std::mem::take(&mut self.staging));
        }
        let len = self.end + room;
        // A connection leaves a long buffer only if it took one, so their number does not grow.
        let is_short = self.staging.len() <= READ_BYTES;
        if is_short && len > READ_BYTES {
            let short = std::mem::replace(&mut self.staging, self.spares.take());
            self.staging.resize(self.staging.len().max(len), 0);
            self.staging[..self.end].copy_from_slice(&short[..self.end]);
        } else if self.staging.len() < len {
            self.staging.resize(len, 0);
        }
        room
    }
}
