use crate::counters::Counters;
use crate::spares::Spares;
use base::{Buf, BufMut};
use net::{Broken, Stream};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Parts that a write gathers at most: what Linux takes (`UIO_MAXIOV`).
const PARTS_MAX: usize = 1024;
/// A value of no more bytes is copied behind the bytes before it. So many small answers are one
/// part of a write, and none keeps a page of other values in memory.
const COPIED_MAX: u32 = 512;
/// Sent bytes that may lie before those that are not, before these are moved to the front.
const SENT_BYTES_MAX: usize = 64 << 10;

/// What ends a line and a bulk.
const END: &[u8] = b"\r\n";

/// Bytes of the line ahead of a bulk and of what ends it, about.
const LINE_BYTES: usize = 16;

/// Bytes for which there is room at first: that for an answer is not made byte by byte.
const FIRST_BYTES: usize = 128;
/// Bytes and parts for which a connection keeps memory while nothing is queued.
const RESTING_BYTES: usize = 1 << 10;
const RESTING_PARTS: usize = 32;

/// What [`Outbox::send`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All that was queued is sent.
    All,
    /// The stream takes no more now.
    Full,
}

/// What goes out one after the other.
#[derive(Debug)]
enum Part {
    /// This many of the small bytes.
    Small(usize),
    Value(Buf),
}

/// The sending end of a connection, a server's or a client's: a queue of answers or of requests,
/// which go out in as few writes as the stream takes. Values of more than 512 bytes are not copied.
#[derive(Debug)]
pub struct Outbox {
    small: Vec<u8>,
    /// How many of those are sent.
    small_sent: usize,
    parts: VecDeque<Part>,
    /// How much of the first part is sent.
    front_sent: usize,
    waiting: usize,
    spares: Arc<Spares>,
    counters: Arc<Counters>,
}

impl Outbox {
    /// Nothing is queued yet. What is sent and copied is counted.
    pub fn new(counters: Arc<Counters>) -> Self {
        let (small, parts) = (Vec::new(), VecDeque::new());
        let spares = Arc::default();
        Self { small, small_sent: 0, parts, front_sent: 0, waiting: 0, spares, counters }
    }

    /// The same, which leaves to others what it does not need, and takes what they leave.
    pub(crate) fn sharing(mut self, spares: Arc<Spares>) -> Self {
        self.spares = spares;
        self
    }

    /// Bytes that are queued and not sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// Queues a few bytes.
    #[inline]
    pub(crate) fn push_array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.reserve(N);
        self.small.extend_from_slice(&bytes);
        self.count(N);
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.small.extend_from_slice(bytes);
        self.count(bytes.len());
    }

    /// Makes room for so many small bytes: see [`Self::small_bytes`].
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.small.len() + len > self.small.capacity() {
            self.grow(len);
        }
    }

    /// Counts `len` small bytes that were appended.
    #[inline]
    fn count(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        self.waiting += len;
        match self.parts.back_mut() {
            Some(Part::Small(before)) => *before += len,
            _ => self.parts.push_back(Part::Small(len)),
        }
    }

    /// Makes room for more small bytes: much of it is what others leave.
    fn grow(&mut self, more: usize) {
        let (len, capacity) = (self.small.len(), self.small.capacity());
        if len + more <= RESTING_BYTES {
            let room = (2 * capacity).max(len + more).clamp(FIRST_BYTES, RESTING_BYTES);
            self.small.reserve_exact(room - len);
        } else if capacity <= RESTING_BYTES {
            let mut spare = self.spares.take();
            spare.clear();
            spare.extend_from_slice(&self.small);
            self.small = spare;
        }
    }

    pub(crate) fn push_line(&mut self, kind: u8, line: &[u8]) {
        let len = 1 + line.len() + END.len();
        self.reserve(len);
        self.small.push(kind);
        self.small.extend_from_slice(line);
        self.small.extend_from_slice(END);
        self.count(len);
    }

    pub(crate) fn push_number(&mut self, kind: u8, number: i64) {
        self.push_line(kind, itoa::Buffer::new().format(number).as_bytes());
    }

    /// Queues the line that begins an array or a bulk, as `kind` says, of `len`.
    #[inline]
    pub fn push_len(&mut self, kind: u8, len: usize) {
        let digit = |value: usize| b"0123456789"[value % 10];
        match len {
            0..10 => self.push_array([kind, digit(len), b'\r', b'\n']),
            10..100 => self.push_array([kind, digit(len / 10), digit(len), b'\r', b'\n']),
            100..1000 => {
                let [hundreds, tens] = [digit(len / 100), digit(len / 10)];
                self.push_array([kind, hundreds, tens, digit(len), b'\r', b'\n']);
            }
            _ => self.push_number(kind, i64::try_from(len).expect("a length fits memory")),
        }
    }

    /// Queues a bulk of `bytes`.
    #[inline]
    pub fn push_bulk(&mut self, bytes: &[u8]) {
        self.push_len(b'$', bytes.len());
        self.reserve(bytes.len() + END.len());
        self.small.extend_from_slice(bytes);
        self.small.extend_from_slice(END);
        self.count(bytes.len() + END.len());
    }

    /// About how many small bytes a bulk of `value` takes: none of the value if it is not copied.
    pub(crate) fn small_bytes(value: &Buf) -> usize {
        let copied = if value.len() <= COPIED_MAX { value.len() as usize } else { 0 };
        copied + LINE_BYTES
    }

    /// Queues a bulk that is `value`; a phantom as zeros.
    pub fn push_bulk_of(&mut self, value: Buf) {
        match value.bytes() {
            Some(bytes) if value.len() <= COPIED_MAX => {
                self.counters.count_copy(bytes.len());
                self.push_bulk(bytes);
            }
            Some(bytes) => {
                self.push_len(b'$', bytes.len());
                self.waiting += bytes.len();
                self.parts.push_back(Part::Value(value));
                self.push_bytes(END);
            }
            None if value.len() == 0 => self.push_bulk(b""),
            None => self.push_bulk_of(BufMut::unpooled(value.len() as usize).freeze()),
        }
    }

    /// Sends as much as `stream` takes.
    pub fn send(&mut self, stream: &impl Stream) -> Result<Sent, Broken> {
        while !self.parts.is_empty() {
            let (gathered, taken) = {
                let parts = self.gather();
                (parts.iter().map(|part| part.len()).sum::<usize>(), stream.try_write(&parts)?)
            };
            let Some(taken) = taken else { return Ok(Sent::Full) };
            assert!(taken <= gathered, "a stream takes no more than it is given");
            self.counters.count_write(taken);
            self.advance(taken);
            if taken < gathered {
                return Ok(Sent::Full);
            }
        }
        Ok(Sent::All)
    }

    /// Leaves to others what nothing needs as long as nothing is queued.
    pub(crate) fn rest(&mut self) {
        if !self.parts.is_empty() {
            return;
        }
        if self.small.capacity() > RESTING_BYTES {
            self.spares.leave(std::mem::take(&mut self.small));
        }
        if self.parts.capacity() > RESTING_PARTS {
            self.parts = VecDeque::new();
        }
    }

    fn gather(&self) -> SmallVec<[IoSlice<'_>; 64]> {
        let (mut skip, mut at) = (self.front_sent, self.small_sent);
        let parts = self.parts.iter().take(PARTS_MAX).map(|part| {
            let bytes = match part {
                Part::Small(len) => {
                    let end = at + len - skip;
                    &self.small[std::mem::replace(&mut at, end)..end]
                }
                Part::Value(value) => {
                    &value.bytes().expect("phantoms were replaced as they came")[skip..]
                }
            };
            skip = 0;
            IoSlice::new(bytes)
        });
        parts.collect()
    }

    fn advance(&mut self, mut taken: usize) {
        self.waiting -= taken;
        while let Some(part) = self.parts.front() {
            let len = match part {
                Part::Small(len) => *len,
                Part::Value(value) => value.len() as usize,
            };
            let of_part = (len - self.front_sent).min(taken);
            if let Part::Small(_) = part {
                self.small_sent += of_part;
            }
            taken -= of_part;
            self.front_sent += of_part;
            if self.front_sent < len {
                break;
            }
            self.front_sent = 0;
            self.parts.pop_front();
        }
        if self.small_sent == self.small.len() {
            self.small.clear();
            self.small.shrink_to(SENT_BYTES_MAX);
            self.small_sent = 0;
        } else if self.small_sent >= SENT_BYTES_MAX {
            self.small.drain(..self.small_sent);
            self.small_sent = 0;
        }
    }
}
