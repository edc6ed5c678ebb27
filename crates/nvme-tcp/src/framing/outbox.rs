use super::check::digest_len;
use super::{Counters, DataDigest, Fault, Terms};
use crate::pdu::{CommonHeader, Digests, Side, TERMINATION_DATA_MAX, TermReq};
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
    /// Header bytes behind the last part.
    tail: usize,
    /// Sent bytes of the first part.
    front_sent: usize,
    queued: u64,
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
            tail: 0,
            front_sent: 0,
            queued: 0,
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
        self.parts.is_empty() && self.tail == 0
    }

    /// Returns all bytes ever queued: the stream position after the last queued PDU.
    pub fn queued_to(&self) -> u64 {
        self.queued
    }

    /// Returns all bytes ever sent: the stream position up to which PDUs have left.
    pub fn sent_to(&self) -> u64 {
        self.sent
    }

    /// Queues a PDU that consists of its header only.
    #[inline]
    pub fn push(&mut self, header: &(impl IntoBytes + Immutable)) {
        if self.terms.digests.header {
            return self.push_header(header.as_bytes(), None);
        }
        self.push_bytes(header.as_bytes());
        self.counters.count_sent();
    }

    /// Queues a PDU with `data`, at least one byte. A phantom is sent as zeros.
    #[inline]
    pub fn push_with_data(&mut self, header: &(impl IntoBytes + Immutable), data: Buf) {
        assert!(data.len() > 0, "a PDU with data has data");
        let Some(bytes) = data.bytes() else {
            return self.push_with_data(header, zeros(data.len()));
        };
        let len = bytes.len();
        self.push_header(header.as_bytes(), Some(len));
        let digest = self.terms.digests.data.then(|| self.data_digest.of(crc32c(bytes), len));
        if len <= COPIED_MAX {
            self.push_bytes(bytes);
            self.counters.count_copy(len);
        } else {
            let headers = std::mem::take(&mut self.tail);
            self.parts.push_back(Part { headers, data });
            self.queued += len as u64;
        }
        if let Some(digest) = digest {
            self.push_bytes(&digest.to_le_bytes());
        }
    }

    /// Queues the termination for `fault` in the PDU that begins with `header`.
    pub fn push_termination(&mut self, fault: Fault, header: &[u8]) {
        let request = TermReq::new(self.side, fault.error, fault.information);
        let header = &header[..header.len().min(TERMINATION_DATA_MAX as usize)];
        let at = self.headers.len();
        self.push_bytes(request.as_bytes());
        self.push_bytes(header);
        let len = u32::try_from(size_of::<TermReq>() + header.len()).expect("152 at most");
        self.patch(at, 0, 0, len);
        self.counters.count_sent();
    }

    /// Queues `header` with its digest, and the padding before `data_len` bytes of data.
    #[inline]
    fn push_header(&mut self, header: &[u8], data_len: Option<usize>) {
        let at = self.headers.len();
        self.push_bytes(header);
        self.counters.count_sent();
        let (common, _) = CommonHeader::ref_from_prefix(header).expect("each begins with it");
        let has_digests = common.kind().has_digests();
        let digests = if has_digests { self.terms.digests } else { Digests::NONE };
        if data_len.is_none() && !digests.header {
            return;
        }
        let header_end = header.len() + digest_len(digests.header);
        let mut flags = if digests.header { CommonHeader::HEADER_DIGEST } else { 0 };
        let (mut data_at, mut len) = (0, header_end);
        if let Some(data_len) = data_len {
            let alignment = usize::from(self.terms.alignment(self.side.peer()));
            // Most hosts ask for the smallest alignment, which needs no division.
            data_at = match alignment {
                4 => header_end.next_multiple_of(4),
                _ => header_end.next_multiple_of(alignment),
            };
            len = data_at + data_len + digest_len(digests.data);
            flags |= if digests.data { CommonHeader::DATA_DIGEST } else { 0 };
        }
        let len = u32::try_from(len).expect("a PDU is far smaller than 4 GiB");
        let offset = u8::try_from(data_at).expect("data begins within 200 bytes");
        self.patch(at, flags, offset, len);
        if digests.header {
            let digest = crc32c(&self.headers[at..]);
            self.push_bytes(&digest.to_le_bytes());
        }
        if data_at > header_end {
            self.push_bytes(&PADDING[..data_at - header_end]);
        }
    }

    /// Completes the common header at `at`.
    #[inline]
    fn patch(&mut self, at: usize, flags: u8, data_offset: u8, len: u32) {
        let (common, _) =
            CommonHeader::mut_from_prefix(&mut self.headers[at..]).expect("each begins with it");
        *common = common.with_layout(flags, data_offset, len);
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.headers.extend_from_slice(bytes);
        self.queued += bytes.len() as u64;
        self.tail += bytes.len();
    }

    /// Sends as much as `stream` takes.
    pub fn write(&mut self, stream: &impl Stream) -> Result<Written, Broken> {
        while !self.is_empty() {
            let (gathered, taken) = {
                let parts = self.gather();
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

    fn gather(&self) -> SmallVec<[IoSlice<'_>; 64]> {
        let mut skip = self.front_sent;
        let mut header_at = self.headers_sent;
        let mut slices = SmallVec::new();
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
        if self.parts.len() < PARTS_MAX / 2 && self.tail > 0 {
            slices.push(IoSlice::new(&self.headers[header_at..][..self.tail]));
        }
        slices
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
        self.tail -= taken;
        if self.headers_sent == self.headers.len() {
            self.headers.clear();
            self.headers_sent = 0;
        } else if self.headers_sent >= SENT_HEADERS_MAX {
            self.headers.drain(..self.headers_sent);
            self.headers_sent = 0;
        }
    }
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
