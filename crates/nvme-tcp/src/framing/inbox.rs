use super::check::{Layout, digest_len, layout};
use super::data_digest::PeerDigest;
use super::shared_copy::SharedCopy;
use super::{Counters, DataDigest, Fault, Terms};
use crate::pdu::{
    CapsuleCmd, CommonHeader, DIGEST_BYTES, Digests, FatalError, H2cData, Header, PduType, Side,
};
use base::checksum::crc32c;
use base::limits::BUF_ALIGN;
use base::{Buf, BufMut, BufPool};
use controller::IN_CAPSULE_BYTES_MAX;
use net::{Broken, Stream};
use spec::Command;
use std::io::IoSliceMut;
use std::ops::Range;
use std::rc::Rc;
use zerocopy::FromBytes;

/// Maximum bytes read ahead. Room for 31 capsules with 4 KiB of data: with fewer than 32 commands
/// answered in a write the rate drops.
const STAGING_BYTES: usize = 128 << 10;

/// The shortest header.
const HEADER_BYTES_MIN: usize = 24;

/// The result of [`Inbox::next`].
#[derive(Debug)]
pub enum Arrival<'a> {
    /// The data of the capsule of [`Inbox::command`].
    Capsule(Brought),
    /// The checked header of another PDU, and the length of its data. If that is not 0, call
    /// [`Inbox::keep`] or [`Inbox::fill`] before the next call.
    Header(Header<'a>, u32),
    /// The data after [`Inbox::keep`], and whether its digest is correct.
    Kept(Buf, bool),
    /// The buffer passed to [`Inbox::fill`], and whether the digest of its data is correct.
    Filled(BufMut, bool),
}

/// The data in a command capsule.
#[derive(Debug)]
pub enum Brought {
    /// None. If the command moves data, the controller asks for it by an R2T.
    Nothing,
    /// All of it.
    Data(Buf),
    /// Data with a wrong digest.
    Damaged,
}

/// The result of [`Inbox::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// As much as was asked for: the stream may have more.
    Full,
    /// Less than was asked for: the stream probably has no more for now.
    Some,
    /// The stream has no bytes now.
    Nothing,
    /// The peer has closed the stream.
    End,
}

/// Where the next received bytes belong.
#[derive(Debug)]
enum Part {
    /// To a header, with what is before the data.
    Header,
    /// To data whose buffer the caller has not chosen yet.
    Unplaced { len: u32 },
    /// To `len` bytes at `at` of a buffer, `filled` of which are there; then to their digest.
    Data { buf: BufMut, at: usize, len: usize, filled: usize, owner: Owner },
    /// Nowhere: all of the data is in staging.
    Staged { len: usize },
}

/// What the receiving end of a connection needs in another reactor.
#[derive(Debug)]
pub struct ParkedInbox {
    side: Side,
    terms: Terms,
    peer_digest: PeerDigest,
    /// Received bytes that are not parsed.
    unread: Box<[u8]>,
}

/// What data belongs to.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The capsule of the last command.
    Capsule,
    /// A PDU whose data the caller keeps.
    Kept,
    /// A PDU whose data the caller has placed.
    Filled,
}

/// The receiving end of a connection: parses PDUs from a stream.
///
/// Callers repeat [`Self::next`] until it returns nothing, then call [`Self::read`]. Bytes are read
/// into a staging area. Data that arrives after the caller has chosen its buffer goes straight into
/// that buffer. So data that arrives with its header is copied once, other data not at all.
#[derive(Debug)]
pub struct Inbox {
    side: Side,
    terms: Terms,
    /// Whether [`Self::next_capsule`] may take capsules: the terms ask for no more than it checks.
    is_plain: bool,
    /// Memory for whole pages of data.
    pool: BufPool,
    staging: Box<[u8]>,
    /// Start of the bytes in staging.
    start: usize,
    /// End of the bytes in staging.
    end: usize,
    shared: SharedCopy,
    part: Part,
    /// The command of the last capsule.
    command: Command,
    /// Whether the PDU of the last received header has a data digest.
    has_data_digest: bool,
    peer_digest: PeerDigest,
    /// Bytes of the header needed in staging, as far as known.
    wanted: usize,
    /// Position of the last received header in staging, valid until the next read.
    last_header: (usize, usize),
    reads_ahead: bool,
    arrivals: u64,
    counters: Rc<Counters>,
}

impl Inbox {
    /// Creates the inbox of the end that is `side`.
    pub fn new(side: Side, counters: Rc<Counters>) -> Self {
        Self {
            side,
            terms: Terms::BEFORE,
            is_plain: false,
            pool: BufPool::new(0),
            staging: vec![0; STAGING_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            shared: SharedCopy::default(),
            part: Part::Header,
            command: Command::default(),
            has_data_digest: false,
            peer_digest: PeerDigest::default(),
            wanted: HEADER_BYTES_MIN,
            last_header: (0, 0),
            reads_ahead: true,
            arrivals: 0,
            counters,
        }
    }

    /// Takes memory for capsule data of whole pages from `pool`: it is aligned for direct I/O.
    #[must_use]
    pub fn with_pool(self, pool: BufPool) -> Self {
        Self { pool, ..self }
    }

    /// Continues what [`Self::park`] returned.
    pub fn resumed(parked: ParkedInbox, counters: Rc<Counters>) -> Self {
        let ParkedInbox { side, terms, peer_digest, unread } = parked;
        let mut inbox = Self { peer_digest, ..Self::new(side, counters) };
        inbox.agree(terms);
        inbox.staging[..unread.len()].copy_from_slice(&unread);
        inbox.end = unread.len();
        inbox
    }

    /// Returns what another inbox needs to receive the rest.
    ///
    /// # Panics
    /// If not [`Self::is_at_header`].
    pub fn park(self) -> ParkedInbox {
        assert!(self.is_at_header(), "a part of a PDU is not parked");
        let unread = self.staging[self.start..self.end].into();
        ParkedInbox { side: self.side, terms: self.terms, peer_digest: self.peer_digest, unread }
    }

    /// Returns whether the next unread byte is of a PDU's header.
    pub fn is_at_header(&self) -> bool {
        matches!(self.part, Part::Header)
    }

    /// Checks PDUs after the `ICReq` or `ICResp` against `terms`. Command capsules before this
    /// break the protocol.
    pub fn agree(&mut self, terms: Terms) {
        self.terms = terms;
        self.is_plain = self.side == Side::Controller
            && terms.digests == Digests::NONE
            && terms.controller_alignment == 4;
    }

    /// Returns the terms of the connection.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Sets whether data may be read together with the header before it, and then be copied: so
    /// small PDUs share a read. Callers that expect large data (16 KiB of a command or more) set
    /// false: then each read ends with the next PDU's header.
    pub fn read_ahead(&mut self, may: bool) {
        self.reads_ahead = may;
    }

    /// Returns whether no PDU is partially received.
    pub fn is_between_pdus(&self) -> bool {
        self.is_at_header() && self.start == self.end
    }

    /// Returns the number of arrivals that [`Self::next`] has found. An unchanged number means that
    /// it still waits for the same one.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Returns which bytes the peer's data digests cover. `None` until a PDU whose data length
    /// makes a difference has shown it.
    #[inline]
    pub fn peer_digest(&self) -> Option<DataDigest> {
        self.peer_digest.learned()
    }

    /// Returns the received part of the last PDU header, which a termination request repeats. Valid
    /// until the next [`Self::read`].
    pub fn last_header(&self) -> &[u8] {
        &self.staging[self.last_header.0..self.last_header.1]
    }

    /// Returns the command of the last capsule whose header has come.
    #[inline]
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Returns the data of the next capsule, which is that of [`Self::command`]. `None` means: call
    /// [`Self::next`], because the capsule has not come whole, has digests or breaks the protocol,
    /// or because another PDU comes next.
    #[inline]
    pub fn next_capsule(&mut self) -> Option<Brought> {
        const BYTES: usize = size_of::<CapsuleCmd>();
        if !self.is_plain || !matches!(self.part, Part::Header) {
            return None;
        }
        let staged = &self.staging[self.start..self.end];
        let (capsule, _) = CapsuleCmd::ref_from_prefix(staged).ok()?;
        let common = capsule.common();
        let (at, end) = (usize::from(common.data_offset()), common.len() as usize);
        let is_plain = common.kind() == PduType::CAPSULE_CMD
            && usize::from(common.header_len()) == BYTES
            && !common.has(CommonHeader::HEADER_DIGEST)
            && !common.has(CommonHeader::DATA_DIGEST);
        let has_data = end != BYTES;
        let may_have_data = at >= BYTES
            && at.is_multiple_of(4)
            && end > at
            && end - at <= IN_CAPSULE_BYTES_MAX as usize;
        if !is_plain || end > staged.len() || (has_data && !may_have_data) {
            return None;
        }
        self.command = *capsule.command();
        let (start, next) = (self.start, self.start + end);
        self.last_header = (start, start + BYTES);
        self.start = next;
        self.arrivals += 1;
        self.counters.count_received();
        let data = start + at..next;
        Some(if has_data { Brought::Data(self.copy(data, next)) } else { Brought::Nothing })
    }

    /// Copies the data at `range` out of staging, in which the next PDU begins at `next`.
    #[inline]
    fn copy(&mut self, range: Range<usize>, next: usize) -> Buf {
        let staged = &self.staging[..self.end];
        if range.len() <= SharedCopy::DATA_BYTES_MAX
            && let Some(data) = self.shared.data(staged, range.clone(), next, &self.counters)
        {
            return data;
        }
        self.counters.count_copy(range.len());
        let data = &self.staging[range];
        if !data.len().is_multiple_of(BUF_ALIGN) {
            return Buf::copy_from(data);
        }
        let mut buf = self.pool.take(data.len());
        buf.as_mut().copy_from_slice(data);
        buf.freeze()
    }

    /// Returns the next command capsule, the next other header, or the data of the previous one.
    /// `None` means: call [`Self::read`].
    ///
    /// A caller that expects many capsules asks for [`Self::next_capsule`] first, which is faster.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "what it gives borrows from the inbox")]
    pub fn next(&mut self) -> Result<Option<Arrival<'_>>, Fault> {
        match self.part {
            Part::Header => {}
            Part::Unplaced { .. } => panic!("the place of data is said before the next PDU"),
            Part::Data { .. } | Part::Staged { .. } => return Ok(self.next_data()),
        }
        let start = self.start;
        let staged = &self.staging[start..self.end];
        let Some(first) = staged.first_chunk::<{ CommonHeader::LEN }>() else {
            self.wanted = HEADER_BYTES_MIN + digest_len(self.terms.digests.header);
            return Ok(None);
        };
        let common = CommonHeader::read_from_bytes(first).expect("it has 8 bytes");
        let kind = common.kind();
        let claimed = usize::from(common.header_len()).max(CommonHeader::LEN);
        self.last_header = (start, self.end.min(start + claimed));
        let Layout { header_len, data_at, data_len, digests } =
            layout(common, self.side, self.terms)?;
        if staged.len() < data_at {
            self.wanted = data_at;
            return Ok(None);
        }
        let (header, after) = staged[..data_at].split_at(header_len);
        if digests.header {
            check_header_digest(header, after)?;
        }
        let has_field = matches!(kind, PduType::H2C_DATA | PduType::C2H_DATA);
        if has_field && data_field(header) != data_len {
            return Err(Fault::field(H2cData::LEN_AT));
        }
        self.start += data_at;
        self.arrivals += 1;
        self.counters.count_received();
        self.has_data_digest = digests.data;
        if kind == PduType::CAPSULE_CMD {
            let capsule = CapsuleCmd::ref_from_bytes(header).expect("the layout is of a capsule");
            self.command = *capsule.command();
            return self.take_capsule(data_len as usize);
        }
        if data_len > 0 {
            self.part = Part::Unplaced { len: data_len };
        }
        let header = &self.staging[start..start + header_len];
        let header = Header::read(kind, header).expect("the layout is of a PDU");
        Ok(Some(Arrival::Header(header, data_len)))
    }

    /// Takes the data of a capsule out of staging, or begins to receive it into a buffer.
    #[inline]
    fn take_capsule(&mut self, len: usize) -> Result<Option<Arrival<'static>>, Fault> {
        if self.terms == Terms::BEFORE {
            return Err(Fault::of(FatalError::SEQUENCE));
        }
        if len == 0 {
            return Ok(Some(Arrival::Capsule(Brought::Nothing)));
        }
        let end = self.start + len + digest_len(self.has_data_digest);
        if end > self.end {
            let is_pooled = len.is_multiple_of(BUF_ALIGN);
            let buf = if is_pooled { self.pool.take(len) } else { BufMut::unpooled(len) };
            self.place(buf, 0, len, Owner::Capsule);
            return Ok(None);
        }
        let (data, digest) = self.staging[self.start..end].split_at(len);
        let is_intact = digest.is_empty() || self.peer_digest.accept(read_digest(digest), data);
        let data = self.start..self.start + len;
        let brought =
            if is_intact { Brought::Data(self.copy(data, end)) } else { Brought::Damaged };
        self.start = end;
        Ok(Some(Arrival::Capsule(brought)))
    }

    /// Receives the data of the current PDU into a buffer of its own.
    pub fn keep(&mut self) {
        let len = self.unplaced();
        if self.end - self.start >= len + digest_len(self.has_data_digest) {
            self.part = Part::Staged { len };
        } else {
            self.place(BufMut::unpooled(len), 0, len, Owner::Kept);
        }
    }

    /// Receives the data of the current PDU into `buf` at byte `at`, where `buf` must have room.
    pub fn fill(&mut self, buf: BufMut, at: u32) {
        let len = self.unplaced();
        self.place(buf, at as usize, len, Owner::Filled);
    }

    fn unplaced(&self) -> usize {
        let Part::Unplaced { len } = self.part else {
            panic!("a place is said for the data of a header that came");
        };
        len as usize
    }

    fn place(&mut self, mut buf: BufMut, at: usize, len: usize, owner: Owner) {
        let filled = len.min(self.end - self.start);
        let staged = &self.staging[self.start..self.start + filled];
        buf.as_mut()[at..at + len][..filled].copy_from_slice(staged);
        self.counters.count_copy(filled);
        self.start += filled;
        self.part = Part::Data { buf, at, len, filled, owner };
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
            Part::Data { mut buf, at, len, owner, .. } => {
                let is_intact = is_intact(&buf.as_mut()[at..at + len]);
                match owner {
                    Owner::Capsule if is_intact => Arrival::Capsule(Brought::Data(buf.freeze())),
                    Owner::Capsule => Arrival::Capsule(Brought::Damaged),
                    Owner::Kept => Arrival::Kept(buf.freeze(), is_intact),
                    Owner::Filled => Arrival::Filled(buf, is_intact),
                }
            }
            _ => {
                self.counters.count_copy(staged_len);
                Arrival::Kept(Buf::copy_from(data), is_intact(data))
            }
        })
    }

    /// Reads from `stream`. Call it after [`Self::next`] has returned `None`.
    pub fn read(&mut self, stream: &impl Stream) -> Result<Read, Broken> {
        self.shared.clear();
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.wanted = HEADER_BYTES_MIN + digest_len(self.terms.digests.header);
        } else if self.staging.len() - self.end < STAGING_BYTES / 2 {
            // Part of a header or of a digest: data never stays in staging.
            self.staging.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // Bytes for the next arrival, or for the header after it.
        let wanted = match self.part {
            Part::Header => self.wanted,
            _ => {
                let digests = self.terms.digests;
                digest_len(self.has_data_digest) + HEADER_BYTES_MIN + digest_len(digests.header)
            }
        };
        assert!(wanted > self.end - self.start, "what has come is taken before more is read");
        let wanted = wanted - (self.end - self.start);
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

    /// Reads from `stream` and drops the bytes, after the last PDU that matters.
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
