use super::check::{Layout, digest_len, layout};
use super::data_digest::PeerDigest;
use super::{Counters, DataDigest, Fault, Terms};
use crate::pdu::{CommonHeader, DIGEST_BYTES, FatalError, H2cData, Header, Side};
use base::checksum::crc32c;
use base::{Buf, BufMut};
use net::{Broken, Stream};
use std::io::IoSliceMut;
use std::rc::Rc;
use zerocopy::FromBytes;

/// Bytes that are read ahead at most. Room for 31 capsules with 4 KiB of data: replies to fewer
/// than 32 commands a write cost rate.
const STAGING_BYTES: usize = 128 << 10;

/// The shortest header.
const HEADER_BYTES_MIN: usize = 24;

/// What [`Inbox::next`] found.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// The header of a PDU, checked, and how many bytes of data come with it. If there are any, say
    /// where they go before the next call: [`Inbox::keep`] or [`Inbox::fill`].
    Header(Header<'a>, u32),
    /// The data that [`Inbox::keep`] was for, and whether it agrees with its digest.
    Kept(Buf, bool),
    /// The buffer that was given to [`Inbox::fill`], and whether the data in it agrees with its
    /// digest.
    Filled(BufMut, bool),
}

/// What [`Inbox::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// As much as was asked for: there may be more.
    Full,
    /// Something, and probably no more for now.
    Some,
    /// Nothing is there now.
    Nothing,
    /// Nothing comes any more.
    End,
}

/// Where the bytes that come next belong.
#[derive(Debug)]
enum Part {
    /// To a header, with what is before the data.
    Header,
    /// To data that nobody has said yet where it goes.
    Unplaced { len: u32 },
    /// To `len` bytes at `at` of a buffer, `filled` of which are there; then to their digest.
    Data { buf: BufMut, at: usize, len: usize, filled: usize, is_kept: bool },
    /// Nowhere: these are whole, in staging.
    Staged { len: usize },
}

/// The receiving end of a connection: makes PDUs of what a stream brings.
///
/// Call [`Self::next`] until it has no more, then [`Self::read`], and so on. What comes is read
/// into a staging area; the data that is missing when its place is known is read straight into that
/// place. So data is copied once if it came together with its header, and not at all otherwise.
#[derive(Debug)]
pub struct Inbox {
    side: Side,
    terms: Terms,
    staging: Box<[u8]>,
    /// What is in staging: from here
    start: usize,
    /// to here.
    end: usize,
    part: Part,
    /// Whether the PDU whose header came last has a digest of its data.
    has_data_digest: bool,
    peer_digest: PeerDigest,
    /// Bytes that the header needs as far as is known, in staging.
    wanted: usize,
    /// Where the header that came last is, while nothing is read.
    last_header: (usize, usize),
    reads_ahead: bool,
    arrivals: u64,
    counters: Rc<Counters>,
}

impl Inbox {
    /// Of the end that is `side`.
    pub fn new(side: Side, counters: Rc<Counters>) -> Self {
        Self {
            side,
            terms: Terms::BEFORE,
            staging: vec![0; STAGING_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            part: Part::Header,
            has_data_digest: false,
            peer_digest: PeerDigest::default(),
            wanted: HEADER_BYTES_MIN,
            last_header: (0, 0),
            reads_ahead: true,
            arrivals: 0,
            counters,
        }
    }

    /// Holds what comes after the `ICReq` or `ICResp` to `terms`.
    pub fn agree(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// Whether data may be read together with the header before it, and then be copied: so small
    /// PDUs share a read. While large data is expected (16 KiB of a command and more), say no: then
    /// each read ends with the next PDU's header.
    pub fn read_ahead(&mut self, may: bool) {
        self.reads_ahead = may;
    }

    /// Whether nothing of a PDU has come that is not whole.
    pub fn is_between_pdus(&self) -> bool {
        matches!(self.part, Part::Header) && self.start == self.end
    }

    /// Arrivals that [`Self::next`] has found: tells whether the one that it waits for is still the
    /// same.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Which bytes the data digests of the peer cover. `None` until a PDU has shown it whose data
    /// has a length that makes a difference.
    #[inline]
    pub fn peer_digest(&self) -> Option<DataDigest> {
        self.peer_digest.learned()
    }

    /// What came last of the header of a PDU, for the termination that repeats it. Valid until the
    /// next [`Self::read`].
    pub fn last_header(&self) -> &[u8] {
        &self.staging[self.last_header.0..self.last_header.1]
    }

    /// What has come: a header, or the data of the one before. `None`: more has to be read.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "what it gives borrows from the inbox")]
    pub fn next(&mut self) -> Result<Option<Arrival<'_>>, Fault> {
        match self.part {
            Part::Header => self.next_header(),
            Part::Unplaced { .. } => panic!("the place of data is said before the next PDU"),
            Part::Data { .. } | Part::Staged { .. } => Ok(self.next_data()),
        }
    }

    #[inline]
    fn next_header(&mut self) -> Result<Option<Arrival<'_>>, Fault> {
        let (start, staged) = (self.start, self.end - self.start);
        let first = self.staging[start..self.end].first_chunk::<{ CommonHeader::LEN }>();
        let Some(first) = first else {
            self.wanted = HEADER_BYTES_MIN + digest_len(self.terms.digests.header);
            return Ok(None);
        };
        let common = CommonHeader::read_from_bytes(first).expect("it has 8 bytes");
        let kind = common.kind();
        let claimed = usize::from(common.header_len()).max(CommonHeader::LEN);
        self.last_header = (start, self.end.min(start + claimed));
        let Layout { header_len, data_at, data_len, digests } =
            layout(common, self.side, self.terms)?;
        if staged < data_at {
            self.wanted = data_at;
            return Ok(None);
        }
        let bytes = &self.staging[start..start + data_at];
        if digests.header {
            check_header_digest(&bytes[..header_len], &bytes[header_len..])?;
        }
        let header = Header::read(kind, &bytes[..header_len]).expect("the layout is of a PDU");
        if let Header::H2cData(_) | Header::C2hData(_) = header
            && data_field(&bytes[..header_len]) != data_len
        {
            return Err(Fault::field(H2cData::LEN_AT));
        }
        self.start += data_at;
        self.arrivals += 1;
        self.counters.count_received();
        self.has_data_digest = digests.data;
        if data_len > 0 {
            self.part = Part::Unplaced { len: data_len };
        }
        Ok(Some(Arrival::Header(header, data_len)))
    }

    /// The data of the PDU whose header came goes to a buffer of its own.
    pub fn keep(&mut self) {
        let len = self.unplaced();
        if self.end - self.start >= len + digest_len(self.has_data_digest) {
            self.part = Part::Staged { len };
        } else {
            self.place(BufMut::unpooled(len), 0, len, true);
        }
    }

    /// The data of the PDU whose header came goes into `buf`, from the byte `at` on. It has to have
    /// room there.
    pub fn fill(&mut self, buf: BufMut, at: u32) {
        let len = self.unplaced();
        self.place(buf, at as usize, len, false);
    }

    fn unplaced(&self) -> usize {
        let Part::Unplaced { len } = self.part else {
            panic!("a place is said for the data of a header that came");
        };
        len as usize
    }

    fn place(&mut self, mut buf: BufMut, at: usize, len: usize, is_kept: bool) {
        let filled = len.min(self.end - self.start);
        let staged = &self.staging[self.start..self.start + filled];
        buf.as_mut()[at..at + len][..filled].copy_from_slice(staged);
        self.counters.count_copy(filled);
        self.start += filled;
        self.part = Part::Data { buf, at, len, filled, is_kept };
    }

    fn next_data(&mut self) -> Option<Arrival<'static>> {
        let digest_len = digest_len(self.has_data_digest);
        let missing = match self.part {
            Part::Data { len, filled, .. } => len - filled,
            _ => 0,
        };
        let staged_len = if let Part::Staged { len } = self.part { len } else { 0 };
        if missing > 0 || self.end - self.start < staged_len + digest_len {
            return None;
        }
        let (data, after) = self.staging[self.start..self.end].split_at(staged_len);
        let digest = self.has_data_digest.then(|| read_digest(after));
        self.start += staged_len + digest_len;
        self.arrivals += 1;
        let peer = &mut self.peer_digest;
        let mut is_intact = |data: &[u8]| digest.is_none_or(|digest| peer.accept(digest, data));
        Some(match std::mem::replace(&mut self.part, Part::Header) {
            Part::Data { mut buf, at, len, is_kept, .. } => {
                let is_intact = is_intact(&buf.as_mut()[at..at + len]);
                if is_kept {
                    Arrival::Kept(buf.freeze(), is_intact)
                } else {
                    Arrival::Filled(buf, is_intact)
                }
            }
            _ => {
                self.counters.count_copy(staged_len);
                Arrival::Kept(Buf::copy_from(data), is_intact(data))
            }
        })
    }

    /// Takes in what `stream` has. To be called when [`Self::next`] has found nothing.
    pub fn read(&mut self, stream: &impl Stream) -> Result<Read, Broken> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.staging.len() - self.end < STAGING_BYTES / 2 {
            // Part of a header or of a digest: data never stays in staging.
            self.staging.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let wanted = self.wanted_in_staging();
        let staging = &mut self.staging[self.end..];
        let staging = if self.reads_ahead { staging } else { &mut staging[..wanted] };
        let mut data: &mut [u8] = &mut [];
        if let Part::Data { buf, at, len, filled, .. } = &mut self.part {
            data = &mut buf.as_mut()[*at..][*filled..*len];
        }
        let (data_len, asked) = (data.len(), data.len() + staging.len());
        let mut parts = [IoSliceMut::new(data), IoSliceMut::new(staging)];
        let parts = if data_len == 0 { &mut parts[1..] } else { &mut parts[..] };
        let read = stream.try_read(parts)?;
        self.counters.count_read(read.unwrap_or(0));
        let Some(read) = read else { return Ok(Read::Nothing) };
        assert!(read <= asked, "a stream gives no more than there is room for");
        if let Part::Data { filled, .. } = &mut self.part {
            *filled += read.min(data_len);
        }
        self.end += read.saturating_sub(data_len);
        Ok(match read {
            0 => Read::End,
            _ if read == asked => Read::Full,
            _ => Read::Some,
        })
    }

    /// Reads what `stream` has for nobody: no PDU comes from it any more.
    pub fn discard(&mut self, stream: &impl Stream) -> Result<Read, Broken> {
        let read = stream.try_read(&mut [IoSliceMut::new(&mut self.staging)])?;
        self.counters.count_read(read.unwrap_or(0));
        Ok(match read {
            None => Read::Nothing,
            Some(0) => Read::End,
            Some(read) if read == self.staging.len() => Read::Full,
            Some(_) => Read::Some,
        })
    }

    /// What has to come into staging before there is a next arrival, or a header after it.
    fn wanted_in_staging(&self) -> usize {
        let staged = self.end - self.start;
        let next = match self.part {
            Part::Header => self.wanted,
            _ => {
                let digests = self.terms.digests;
                digest_len(self.has_data_digest) + HEADER_BYTES_MIN + digest_len(digests.header)
            }
        };
        assert!(next > staged, "what has come is taken before more is read");
        next - staged
    }
}

fn read_digest(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk::<DIGEST_BYTES>().expect("a digest has come whole"))
}

fn check_header_digest(header: &[u8], after: &[u8]) -> Result<(), Fault> {
    let digest = read_digest(after);
    if digest == crc32c(header) {
        return Ok(());
    }
    Err(Fault { error: FatalError::HEADER_DIGEST, information: digest })
}

/// DATAL, which `H2CData` and `C2HData` have in the same place.
fn data_field(header: &[u8]) -> u32 {
    H2cData::ref_from_bytes(header).expect("both have 24 bytes").len()
}
