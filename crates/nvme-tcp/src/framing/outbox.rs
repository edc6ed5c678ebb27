use super::check::digest_len;
use super::{Counters, DataDigest, Fault, Terms};
use crate::pdu::{CommonHeader, DIGEST_BYTES, Side, TERMINATION_DATA_MAX, TermReq};
use base::checksum::crc32c;
use base::{Buf, BufMut};
use net::{Broken, Stream};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum parts of a gathering write: the limit of Linux (`UIO_MAXIOV`).
const PARTS_MAX: usize = 1024;

/// Bytes of sent headers above which the unsent ones are moved to the front.
const SENT_HEADERS_MAX: usize = 64 << 10;

/// Maximum bytes of data that is copied to its header, so that many small responses are one part of
/// a write.
const COPIED_MAX: usize = 512;

/// Padding between a header and its data: alignments are 128 bytes at most.
const PADDING: [u8; 128] = [0; 128];

/// The parts of a gathering write.
type Slices<'a> = SmallVec<[IoSlice<'a>; 64]>;

/// The result of [`Outbox::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All that was queued is sent.
    All,
    /// The stream has no room now.
    Full,
}

/// A part of the queue, in the order of sending: header bytes and the data behind them.
#[derive(Debug)]
struct Part {
    headers: usize,
    data: Buf,
}

impl Part {
    fn len(&self) -> usize {
        self.headers + self.data.len() as usize
    }
}

/// The sending end of a connection: a queue of PDUs.
///
/// It uses as few writes as the stream allows. Data of more than 512 bytes is not copied.
#[derive(Debug)]
pub struct Outbox {
    side: Side,
    terms: Terms,
    data_digest: DataDigest,
    /// Headers with their digests and padding, digests of data.
    headers: Vec<u8>,
    /// Sent bytes of `headers`.
    headers_sent: usize,
    parts: VecDeque<Part>,
    /// Where the header bytes behind the last part begin.
    tail_at: usize,
    /// Sent bytes of the first part.
    front_sent: usize,
    /// Bytes ever queued that are not in `headers`.
    outside: u64,
    sent: u64,
    counters: Rc<Counters>,
}

impl Outbox {
    /// Creates the outbox of the end that is `side`.
    pub fn new(side: Side, counters: Rc<Counters>) -> Self {
        Self {
            side,
            terms: Terms::BEFORE,
            data_digest: DataDigest::default(),
            headers: Vec::new(),
            headers_sent: 0,
            parts: VecDeque::new(),
            tail_at: 0,
            front_sent: 0,
            outside: 0,
            sent: 0,
            counters,
        }
    }

    /// Encodes PDUs queued after this call by `terms`.
    pub fn agree(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// Sets which bytes the digests of later data cover.
    pub fn set_data_digest(&mut self, data_digest: DataDigest) {
        self.data_digest = data_digest;
    }

    /// Returns whether all is sent.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.tail_at == self.headers.len()
    }

    /// Returns all bytes ever queued: the stream position after the last queued PDU.
    pub fn queued_to(&self) -> u64 {
        self.outside + self.headers.len() as u64
    }

    /// Returns all bytes ever sent: the stream position up to which PDUs have left.
    pub fn sent_to(&self) -> u64 {
        self.sent
    }

    /// Queues a PDU that consists of its header only.
    #[inline]
    pub fn push(&mut self, header: &(impl IntoBytes + Immutable)) {
        let at = self.headers.len();
        self.headers.extend_from_slice(header.as_bytes());
        self.counters.count_sent();
        if self.terms.digests.header {
            self.push_header_digest(at);
        }
    }

    /// Queues a PDU with `data`, at least one byte. A phantom is sent as zeros.
    #[inline]
    pub fn push_with_data(&mut self, header: &(impl IntoBytes + Immutable), data: Buf) {
        assert!(data.len() > 0, "a PDU with data has data");
        let Some(bytes) = data.bytes() else {
            return self.push_with_data(header, zeros(data.len()));
        };
        let Terms { digests, .. } = self.terms;
        let (at, header) = (self.headers.len(), header.as_bytes());
        self.headers.extend_from_slice(header);
        self.counters.count_sent();
        let header_end = header.len() + digest_len(digests.header);
        // Most hosts ask for the smallest alignment, which needs no division.
        let data_at = match self.terms.alignment(self.side.peer()) {
            4 => header_end.next_multiple_of(4),
            alignment => header_end.next_multiple_of(alignment.into()),
        };
        let flags = if digests.data { CommonHeader::DATA_DIGEST } else { 0 };
        self.patch(at, flags, data_at, data_at + bytes.len() + digest_len(digests.data));
        if digests.header {
            self.push_header_digest(at);
        }
        if data_at > header_end {
            self.headers.extend_from_slice(&PADDING[..data_at - header_end]);
        }
        let digest = digests.data.then(|| self.data_digest.of(crc32c(bytes), bytes.len()));
        if bytes.len() <= COPIED_MAX {
            self.headers.extend_from_slice(bytes);
            self.counters.count_copy(bytes.len());
        } else {
            let headers = self.headers.len() - self.tail_at;
            self.tail_at = self.headers.len();
            self.outside += bytes.len() as u64;
            self.parts.push_back(Part { headers, data });
        }
        if let Some(digest) = digest {
            self.headers.extend_from_slice(&digest.to_le_bytes());
        }
    }

    /// Queues the termination for `fault` in the PDU that begins with `header`.
    pub fn push_termination(&mut self, fault: Fault, header: &[u8]) {
        let request = TermReq::new(self.side, fault.error, fault.information);
        let header = &header[..header.len().min(TERMINATION_DATA_MAX as usize)];
        let at = self.headers.len();
        self.headers.extend_from_slice(request.as_bytes());
        self.headers.extend_from_slice(header);
        self.patch(at, 0, 0, size_of::<TermReq>() + header.len());
        self.counters.count_sent();
    }

    /// Adds the digest of the header at `at`, the last one, if PDUs of its type have digests.
    #[cold]
    fn push_header_digest(&mut self, at: usize) {
        let common = common(&mut self.headers[at..]);
        if !common.kind().has_digests() {
            return;
        }
        // Without data the digest is the end of the PDU.
        let digest_bytes = if common.data_offset() == 0 { DIGEST_BYTES } else { 0 };
        let (data_at, len) = (common.data_offset().into(), common.len() as usize + digest_bytes);
        self.patch(at, CommonHeader::HEADER_DIGEST, data_at, len);
        let digest = crc32c(&self.headers[at..]);
        self.headers.extend_from_slice(&digest.to_le_bytes());
    }

    /// Completes the common header at `at`.
    #[inline]
    fn patch(&mut self, at: usize, flags: u8, data_at: usize, len: usize) {
        let data_offset = u8::try_from(data_at).expect("data begins within 200 bytes");
        let len = u32::try_from(len).expect("a PDU is far smaller than 4 GiB");
        let common = common(&mut self.headers[at..]);
        *common = common.with_layout(flags, data_offset, len);
    }

    /// Sends as much as `stream` takes.
    pub fn write(&mut self, stream: &impl Stream) -> Result<Written, Broken> {
        while !self.is_empty() {
            let (gathered, taken) = {
                let mut parts = Slices::new();
                self.gather(&mut parts);
                let gathered = parts.iter().map(|part| part.len()).sum::<usize>();
                (gathered, stream.try_write(&parts)?)
            };
            self.counters.count_write(taken.unwrap_or(0));
            let Some(taken) = taken else { return Ok(Written::Full) };
            assert!(taken <= gathered, "a stream takes no more than it is given");
            self.advance(taken);
            if taken < gathered {
                return Ok(Written::Full);
            }
        }
        Ok(Written::All)
    }

    /// Adds the unsent parts to `slices`, which are 1 KiB: to return them would copy them.
    fn gather<'a>(&'a self, slices: &mut Slices<'a>) {
        let mut skip = self.front_sent;
        let mut header_at = self.headers_sent;
        for Part { headers, data } in self.parts.iter().take(PARTS_MAX / 2) {
            let unsent = headers.saturating_sub(skip);
            if unsent > 0 {
                slices.push(IoSlice::new(&self.headers[header_at..header_at + unsent]));
                header_at += unsent;
            }
            let data = data.bytes().expect("phantoms were replaced as they came");
            slices.push(IoSlice::new(&data[skip.saturating_sub(*headers)..]));
            skip = 0;
        }
        // The tail follows the last part. One slice must be left for it.
        if self.parts.len() < PARTS_MAX / 2 && self.tail_at < self.headers.len() {
            slices.push(IoSlice::new(&self.headers[self.tail_at..]));
        }
    }

    fn advance(&mut self, mut taken: usize) {
        self.sent += taken as u64;
        while let Some(part) = self.parts.front() {
            let left = part.len() - self.front_sent;
            let of_part = left.min(taken);
            self.headers_sent += part.headers.saturating_sub(self.front_sent).min(of_part);
            taken -= of_part;
            if of_part < left {
                self.front_sent += of_part;
                break;
            }
            self.front_sent = 0;
            self.parts.pop_front();
        }
        // Whatever is left is of the tail, which is sent last.
        self.headers_sent += taken;
        self.tail_at = self.tail_at.max(self.headers_sent);
        if self.headers_sent == self.headers.len() || self.headers_sent >= SENT_HEADERS_MAX {
            self.outside += self.headers_sent as u64;
            self.tail_at -= self.headers_sent;
            self.headers.drain(..self.headers_sent);
            self.headers_sent = 0;
        }
    }
}

/// Returns the common header that `header` begins with.
#[inline]
fn common(header: &mut [u8]) -> &mut CommonHeader {
    let (common, _) = CommonHeader::mut_from_prefix(header).expect("each begins with it");
    common
}

#[cold]
fn zeros(len: u32) -> Buf {
    BufMut::unpooled(len as usize).freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::R2t;
    use std::cell::Cell;

    /// Takes a number of bytes for each write.
    struct Narrow(Cell<usize>);

    impl Stream for Narrow {
        fn try_read(&self, _: &mut [std::io::IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
            Ok(None)
        }

        fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
            Ok(Some(self.0.get().min(parts.iter().map(|part| part.len()).sum())))
        }

        async fn readable(&self) {}

        async fn writable(&self) {}

        fn shut_down(&self) {}
    }

    #[test]
    fn an_outbox_that_is_never_empty_does_not_grow() {
        let mut outbox = Outbox::new(Side::Controller, Rc::default());
        let stream = Narrow(Cell::new(24));
        outbox.push(&R2t::new(0, 0, 0, 1));
        for _ in 0..20_000 {
            outbox.push(&R2t::new(0, 0, 0, 1));
            assert_eq!(outbox.write(&stream), Ok(Written::Full));
            assert!(!outbox.is_empty());
        }
        assert!(outbox.headers.capacity() < 4 * SENT_HEADERS_MAX, "{}", outbox.headers.capacity());
        assert_eq!(outbox.queued_to() - outbox.sent_to(), 24);
    }
}
