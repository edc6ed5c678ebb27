mod parts;
#[cfg(test)]
mod tests;

use crate::counters::Counters;
use crate::limits::Limits;
use crate::protocol_error::ProtocolError;
use crate::request::{Arg, Plain, Request, Value};
use crate::spares::Spares;
use base::{Buf, BufMut, BufPool};
use net::{Broken, Stream};
use std::io::IoSliceMut;
use std::sync::Arc;

/// Bytes that end a line and a bulk.
const END: usize = 2;

/// Bytes that are read while the next request may have a value which belongs elsewhere.
const READ_BYTES: usize = 1 << 10;
/// Bytes that are read at once when more and more comes.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// Arguments for which a connection keeps memory while nothing comes.
const RESTING_ARGS: usize = 32;

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

    /// Sets how many bytes of memory each of the next requests may take.
    pub(crate) fn set_request_bytes_max(&mut self, bytes: usize) {
        self.limits.request_bytes_max = bytes;
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
        while !matches!(self.part, Part::Whole) {
            let is_empty = matches!(self.part, Part::Start) && self.at == self.end;
            if is_empty || !self.advance()? {
                return Ok(None);
            }
        }
        self.requests += 1;
        let typed = self.typed.as_deref();
        let (start, end) = typed.map_or((self.start, self.at), |typed| (0, typed.len()));
        Ok(Some(Request {
            staging: &self.staging,
            typed,
            start,
            end,
            args: &self.args,
            apart: &self.apart,
            counters: &self.counters,
            pool: &self.pool,
            is_last: self.at == self.end,
        }))
    }

    /// Calls `take` with the next request if it is a GET or a SET without options and has arrived.
    /// Otherwise [`Self::next`] decides about it. Returns what `take` does; if that is false, the
    /// request stays the next one.
    #[inline]
    pub(crate) fn plain(&mut self, take: impl FnOnce(Plain<'_>) -> bool) -> Option<bool> {
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
            (*arg, left) = bulk(left)?;
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
        let is_taken = take(Plain { key, value, is_last: left.is_empty() });
        if is_taken {
            if matches!(self.part, Part::Whole) {
                self.begin();
            }
            (self.start, self.at) = (end, end);
            self.requests += 1;
        }
        Some(is_taken)
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

    /// The bytes that [`Request::staged`] counts from, until the next read.
    pub(crate) fn staging(&self) -> &[u8] {
        &self.staging
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

    /// Frees memory that is not needed until bytes arrive. To be called when [`Self::next`] has
    /// found nothing. Returns true if no part of a request is here.
    pub(crate) fn rest(&mut self) -> bool {
        if !matches!(self.part, Part::Start) || self.start < self.end {
            return false;
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
        true
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

/// Returns the bulk that `bytes` begin with, if its length has at most four digits, and the bytes
/// behind it. A zero ahead of other digits is no number.
#[inline]
fn bulk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONGEST: usize = b"$1234\r\n".len();
    let line: &[u8; LONGEST] = bytes.first_chunk()?;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    let (len, start) = match *line {
        [b'$', a, b'\r', b'\n', ..] => (digit(a)?, 4),
        [_, b'0', ..] => return None,
        [b'$', a, b, b'\r', b'\n', ..] => (digit(a)? * 10 + digit(b)?, 5),
        [b'$', a, b, c, b'\r', b'\n', _] => (digit(a)? * 100 + digit(b)? * 10 + digit(c)?, 6),
        [b'$', a, b, c, d, b'\r', b'\n'] => {
            (digit(a)? * 1000 + digit(b)? * 100 + digit(c)? * 10 + digit(d)?, 7)
        }
        _ => return None,
    };
    let (bulk, left) = bytes[start..].split_at_checked(len)?;
    Some((bulk, left.get(END..)?))
}
