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
/// Bytes around a value that is copied, at most.
const FRAME_MAX: usize = b"$512\r\n\r\n".len();
/// Sent bytes that may lie before those that are not, before these are moved to the front.
const SENT_BYTES_MAX: usize = 64 << 10;

/// What ends a line and a bulk.
const END: &[u8] = b"\r\n";

/// Bytes for which there is room at first: that for an answer is not made byte by byte.
const FIRST_BYTES: usize = 128;
/// Bytes and values for which a connection keeps memory while nothing is queued.
const RESTING_BYTES: usize = 1 << 10;
const RESTING_VALUES: usize = 32;

/// What [`Outbox::send`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All that was queued is sent.
    All,
    /// The stream takes no more now.
    Full,
}

/// The sending end of a connection, a server's or a client's: a queue of answers or of requests,
/// which go out in as few writes as the stream takes. Values of more than 512 bytes are not copied.
#[derive(Debug)]
pub struct Outbox {
    /// All bytes but those of long values.
    small: Vec<u8>,
    /// How many of those are sent.
    small_sent: usize,
    /// Long values, each with its place among the small bytes.
    values: VecDeque<(usize, Buf)>,
    /// How much of the first value is sent.
    value_sent: usize,
    /// Bytes of long values that are not sent.
    values_bytes: usize,
    /// Bytes of values that were copied and are not counted yet.
    copied_bytes: usize,
    spares: Arc<Spares>,
    counters: Arc<Counters>,
}

impl Outbox {
    /// Nothing is queued yet. What is sent and copied is counted.
    pub fn new(counters: Arc<Counters>) -> Self {
        Self {
            small: Vec::new(),
            small_sent: 0,
            values: VecDeque::new(),
            value_sent: 0,
            values_bytes: 0,
            copied_bytes: 0,
            spares: Arc::default(),
            counters,
        }
    }

    /// The same, which leaves to others what it does not need, and takes what they leave.
    pub(crate) fn sharing(mut self, spares: Arc<Spares>) -> Self {
        self.spares = spares;
        self
    }

    /// Bytes that are queued and not sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.small.len() - self.small_sent + self.values_bytes
    }

    /// Queues a few bytes.
    #[inline]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.small.extend_from_slice(bytes);
    }

    /// Makes room for so many small bytes.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.small.capacity() - self.small.len() < len {
            self.grow(len);
        }
    }

    /// Makes room for more small bytes: much of it is what others leave.
    #[cold]
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
        self.push_bytes(&[kind]);
        self.push_bytes(line);
        self.push_bytes(END);
    }

    pub(crate) fn push_number(&mut self, kind: u8, number: i64) {
        self.push_line(kind, itoa::Buffer::new().format(number).as_bytes());
    }

    /// Queues the line that begins an array or a bulk, as `kind` says, of `len`.
    #[inline]
    pub fn push_len(&mut self, kind: u8, len: usize) {
        let digit = |value: usize| b"0123456789"[value];
        match len {
            0..10 => self.push_bytes(&[kind, digit(len), b'\r', b'\n']),
            10..100 => self.push_bytes(&[kind, digit(len / 10), digit(len % 10), b'\r', b'\n']),
            _ => self.push_number(kind, i64::try_from(len).expect("a length fits memory")),
        }
    }

    /// Queues a bulk of `bytes`.
    #[inline]
    pub fn push_bulk(&mut self, bytes: &[u8]) {
        self.push_len(b'$', bytes.len());
        self.push_bytes(bytes);
        self.push_bytes(END);
    }

    /// Returns true if a bulk of these bytes is copied, and its memory is there.
    #[inline]
    pub(crate) fn has_room(&self, bytes: &[u8]) -> bool {
        let room = self.small.capacity() - self.small.len();
        bytes.len() <= COPIED_MAX as usize && bytes.len() + FRAME_MAX <= room
    }

    /// As [`Self::push_bulk`], and counts the bytes as copied.
    #[inline]
    pub(crate) fn push_copied(&mut self, bytes: &[u8]) {
        self.copied_bytes += bytes.len();
        self.push_bulk(bytes);
    }

    /// Queues a bulk that is `value`; a phantom as zeros.
    pub fn push_bulk_of(&mut self, value: Buf) {
        match value.bytes() {
            Some(bytes) if value.len() <= COPIED_MAX => self.push_copied(bytes),
            Some(bytes) => {
                self.push_len(b'$', bytes.len());
                self.values_bytes += bytes.len();
                self.values.push_back((self.small.len(), value));
                self.push_bytes(END);
            }
            None if value.len() == 0 => self.push_bulk(b""),
            None => self.push_bulk_of(BufMut::unpooled(value.len() as usize).freeze()),
        }
    }

    /// Sends as much as `stream` takes.
    pub fn send(&mut self, stream: &impl Stream) -> Result<Sent, Broken> {
        self.counters.count_copy(std::mem::take(&mut self.copied_bytes));
        while self.waiting_bytes() > 0 {
            // Small bytes and long values take turns.
            let mut parts = SmallVec::<[IoSlice<'_>; 64]>::new();
            let (mut at, mut skip) = (self.small_sent, self.value_sent);
            for (place, value) in self.values.iter().take(PARTS_MAX / 2) {
                if at < *place {
                    parts.push(IoSlice::new(&self.small[at..*place]));
                }
                let bytes = value.bytes().expect("phantoms were replaced as they came");
                parts.push(IoSlice::new(&bytes[skip..]));
                (at, skip) = (*place, 0);
            }
            if self.values.len() < PARTS_MAX / 2 {
                parts.push(IoSlice::new(&self.small[at..]));
            }
            let gathered = parts.iter().map(|part| part.len()).sum::<usize>();
            let taken = stream.try_write(&parts)?;
            drop(parts);
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

    /// Frees memory that is not needed until a reply is queued. Returns true if no reply is queued.
    pub(crate) fn rest(&mut self) -> bool {
        if self.waiting_bytes() > 0 {
            return false;
        }
        if self.small.capacity() > RESTING_BYTES {
            self.spares.leave(std::mem::take(&mut self.small));
        }
        if self.values.capacity() > RESTING_VALUES {
            self.values = VecDeque::new();
        }
        true
    }

    /// Drops `taken` bytes from the front of the queue.
    fn advance(&mut self, mut taken: usize) {
        while let Some((place, value)) = self.values.front() {
            let small = taken.min(place - self.small_sent);
            let left = value.len() as usize - self.value_sent;
            let of_value = left.min(taken - small);
            self.small_sent += small;
            self.value_sent += of_value;
            self.values_bytes -= of_value;
            taken -= small + of_value;
            if of_value < left {
                break;
            }
            self.value_sent = 0;
            self.values.pop_front();
        }
        self.small_sent += taken;
        assert!(self.small_sent <= self.small.len(), "no more is sent than was queued");
        if self.small_sent == self.small.len() {
            self.small.clear();
            self.small.shrink_to(SENT_BYTES_MAX);
            self.small_sent = 0;
        } else if self.small_sent >= SENT_BYTES_MAX {
            self.small.drain(..self.small_sent);
            self.values.iter_mut().for_each(|(place, _)| *place -= self.small_sent);
            self.small_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::io::IoSliceMut;

    /// Takes so many bytes of each write, and keeps them.
    struct Narrow(usize, RefCell<Vec<u8>>);

    impl Stream for Narrow {
        fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
            Err(Broken)
        }

        fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
            assert!(parts.len() <= PARTS_MAX, "{} parts", parts.len());
            let mut left = self.0;
            for part in parts {
                let taken = part.len().min(left);
                self.1.borrow_mut().extend_from_slice(&part[..taken]);
                left -= taken;
            }
            Ok(Some(self.0 - left))
        }

        async fn readable(&self) {}

        async fn writable(&self) {}

        fn shut_down(&self) {}
    }

    /// Short and long values in turns, some of them next to each other.
    fn values() -> impl Iterator<Item = Vec<u8>> {
        let lens = [513, 7, 512, 90, 4_000, 600, 0, 100].into_iter().cycle().take(1_600);
        lens.zip(0..=u8::MAX).chain([(70_000, 1), (513, 2)]).map(|(len, byte)| vec![byte; len])
    }

    #[test]
    fn bytes_are_sent_in_order_however_much_a_write_takes() {
        for taken in [300, 2_000, 100_000, usize::MAX] {
            let stream = Narrow(taken, RefCell::default());
            let (mut outbox, mut expected) = (Outbox::new(Arc::default()), Vec::new());
            for round in 0..4 {
                for value in values() {
                    expected.extend(format!("${}\r\n", value.len()).into_bytes());
                    expected.extend_from_slice(&value);
                    expected.extend_from_slice(END);
                    outbox.push_bulk_of(Buf::copy_from(&value));
                }
                // The next values come while some of these wait.
                let most = if round == 3 { usize::MAX } else { 40 };
                (0..most).take_while(|_| outbox.send(&stream) == Ok(Sent::Full)).count();
                let sent = stream.1.borrow().len();
                assert_eq!(outbox.waiting_bytes(), expected.len() - sent);
            }
            assert_eq!(outbox.waiting_bytes(), 0);
            assert!(*stream.1.borrow() == expected, "writes of {taken} bytes");
        }
    }
}
