use crate::blocks::{Segments, cut};
use crate::{flat, packed};
use base::{Buf, Slice, ValueRef};
use prefetch_index::prefetch_index;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;

/// The content of a page, shared by reference from the log to the cells: nobody changes what others
/// have too.
///
/// A clone is one more reference. A page of which only the spare bytes and the front are real, as
/// phantom values make it, is one allocation: memory holds a page of these for every few values of
/// the device, and reading one is one miss of the cache. One of short values can be made one too.
#[derive(Clone)]
pub struct Page(Repr);

#[derive(Clone)]
enum Repr {
    /// As `packed` lays it out, or `flat`.
    OnePiece(Arc<[u8]>),
    Scattered(Arc<Scattered>),
}

enum Laid<'a> {
    /// Spare bytes, front and a table of phantoms.
    Packed(&'a Arc<[u8]>),
    /// Spare bytes and data, all of them real.
    Flat(&'a Arc<[u8]>),
    Scattered(&'a Scattered),
}

/// A page with data that lie elsewhere.
#[repr(C)]
struct Scattered {
    /// Where this begins in memory, for [`Page::prefetch`].
    start: [u64; 0],
    spare: Spare,
    data: Segments,
    /// Where each segment ends: a page of small values has hundreds.
    ends: SmallVec<[u32; 4]>,
    /// Whether the first segment is headers.
    has_front: bool,
    /// CRC-32C of each segment, if they were computed before.
    crcs: Crcs,
}

type Crcs = SmallVec<[u32; 4]>;

/// The spare bytes of a [`Scattered`] page.
#[derive(Clone)]
enum Spare {
    /// Those of one record.
    Here {
        len: u8,
        bytes: [u8; SPARE_BYTES_HERE],
    },
    Elsewhere(Buf),
}

/// The header of a record with a key of 16 bytes and a date takes 80, its prologue among them. A
/// few more cost no memory.
const SPARE_BYTES_HERE: usize = 87;

impl Spare {
    /// Spare bytes in memory of their own.
    fn of(spare: &[u8]) -> Self {
        Self::Elsewhere(if spare.is_empty() { Buf::phantom(0, 0) } else { Buf::copy_from(spare) })
    }

    /// As [`Self::of`], within the page if they are few.
    #[inline]
    fn here(spare: &[u8]) -> Self {
        let mut bytes = [0; SPARE_BYTES_HERE];
        match (bytes.get_mut(..spare.len()), u8::try_from(spare.len())) {
            (Some(here), Ok(len)) => {
                here.copy_from_slice(spare);
                Self::Here { len, bytes }
            }
            _ => Self::of(spare),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Here { len, bytes } => &bytes[..usize::from(*len)],
            Self::Elsewhere(spare) => spare.bytes().unwrap_or_default(),
        }
    }

    /// The bytes from `start` on: by reference, if they lie elsewhere.
    fn tail(&self, start: usize) -> Option<Buf> {
        let rest = self.bytes().get(start..).filter(|rest| !rest.is_empty())?;
        Some(match self {
            Self::Here { .. } => Buf::copy_from(rest),
            Self::Elsewhere(spare) => {
                let start = u32::try_from(start).expect("a page has far less than 4 GiB");
                spare.slice(start..spare.len())
            }
        })
    }
}

impl Scattered {
    #[inline]
    fn spare(&self) -> &[u8] {
        self.spare.bytes()
    }

    /// `len` bytes from `start`, if they are in one segment.
    #[inline]
    fn one(&self, start: u32, len: u32) -> Option<Buf> {
        let end = start.checked_add(len)?;
        let number = self.ends.partition_point(|end| *end <= start);
        let segment = self.data.get(number).filter(|_| end <= self.ends[number])?;
        let at = self.ends[number] - segment.len();
        Some(segment.slice(start - at..end - at))
    }
}

impl Page {
    /// The longest value of a page in one piece of memory: a reader of one keeps the page for as
    /// long as the value, and longer ones are sent from where they are, to clients that may be
    /// slow.
    pub const FLAT_VALUE_BYTES_MAX: usize = 512;

    /// Makes a page in one piece of memory of spare bytes, a front (or none) and short values, one
    /// behind the other.
    pub fn flat(spare: &[u8], front: &[u8], values: &[u8]) -> Self {
        Self(Repr::OnePiece(flat::of(spare, front, values)))
    }

    /// A page of these spare bytes and this data, in segments from its first byte. What is left of
    /// the page is padding.
    pub fn new(spare: &[u8], data: impl IntoIterator<Item = Buf>) -> Self {
        let data: Segments = data.into_iter().collect();
        if data.iter().all(|segment| segment.bytes().is_none()) {
            return Self(Repr::OnePiece(packed::pack(spare, None, &data)));
        }
        Self::scattered(Spare::of(spare), data, false, Crcs::new())
    }

    /// As [`Self::new`], of data whose CRC-32C is `crc`: a medium that writes it need not compute
    /// it again. A build with debug assertions does, and panics if it is another.
    ///
    /// `emptied` is the memory of another page, by [`Self::emptied`]: it is used again.
    pub fn with_crc(emptied: Option<Self>, spare: &[u8], data: Buf, crc: u32) -> Self {
        if data.bytes().is_none() {
            return Self::new(spare, [data]);
        }
        assert!(
            !cfg!(debug_assertions) || data.crc32c() == crc,
            "{crc:08x} is the CRC of the data"
        );
        let Some(mut page) = emptied else {
            return Self::lone(Spare::here(spare), data, smallvec![crc]);
        };
        let own = page.own().expect("nothing else has a page that is empty");
        own.ends.push(data.len());
        own.data.push(data);
        (own.spare, own.crcs[0]) = (Spare::here(spare), crc);
        page
    }

    /// Adds the CRC-32C of each segment, which [`Self::crc_at`] then returns. A build with debug
    /// assertions computes them again, and panics if they differ.
    #[must_use]
    pub fn with_crcs(mut self, crcs: &[u32]) -> Self {
        if let Some(page) = self.own() {
            assert_eq!(page.data.len(), crcs.len(), "each segment has a CRC");
            assert!(
                !cfg!(debug_assertions)
                    || page.data.iter().zip(crcs).all(|(segment, crc)| segment.crc32c() == *crc),
                "{crcs:08x?} are the CRCs of the segments"
            );
            page.crcs = crcs.into();
        }
        self
    }

    /// Returns the memory of a page of [`Self::with_crc`] without its data, if nothing else has it.
    pub fn emptied(mut self) -> Option<Self> {
        let own = self.own().filter(|own| own.crcs.len() == 1)?;
        own.ends.clear();
        own.data.clear();
        Some(self)
    }

    /// Returns the page if nothing else has it and its data lie elsewhere.
    fn own(&mut self) -> Option<&mut Scattered> {
        match &mut self.0 {
            Repr::Scattered(page) => Arc::get_mut(page),
            Repr::OnePiece(_) => None,
        }
    }

    /// A page of one segment, which has bytes.
    #[inline]
    fn lone(spare: Spare, data: Buf, crcs: Crcs) -> Self {
        Self(Repr::Scattered(Arc::new(Scattered {
            start: [],
            spare,
            ends: smallvec![data.len()],
            data: smallvec![data],
            has_front: false,
            crcs,
        })))
    }

    /// As [`Self::new`], with spare bytes that stay where they are.
    pub fn of_parts(spare: Buf, mut data: Segments) -> Self {
        if let [one] = &data[..]
            && one.bytes().is_some()
        {
            let one = data.pop().expect("it is there");
            return Self::lone(Spare::Elsewhere(spare), one, Crcs::new());
        }
        if data.iter().all(|segment| segment.bytes().is_none()) {
            let spare = spare.bytes().unwrap_or_default();
            return Self(Repr::OnePiece(packed::pack(spare, None, &data)));
        }
        Self::scattered(Spare::Elsewhere(spare), data, false, Crcs::new())
    }

    /// The same with a segment of real bytes before the data.
    pub fn with_front(spare: &[u8], front: &[u8], data: impl IntoIterator<Item = Buf>) -> Self {
        let data: Segments = data.into_iter().collect();
        if data.iter().all(|segment| segment.bytes().is_none()) {
            return Self(Repr::OnePiece(packed::pack(spare, Some(front), &data)));
        }
        let data = std::iter::once(Buf::copy_from(front)).chain(data).collect();
        Self::scattered(Spare::of(spare), data, true, Crcs::new())
    }

    fn scattered(spare: Spare, mut data: Segments, has_front: bool, crcs: Crcs) -> Self {
        data.shrink_to_fit();
        let (mut ends, mut end) = (SmallVec::with_capacity(data.len()), 0);
        for segment in &data {
            end += segment.len();
            ends.push(end);
        }
        Self(Repr::Scattered(Arc::new(Scattered { start: [], spare, data, ends, has_front, crcs })))
    }

    /// The same page, in little memory and few places: short values in one piece; or else those
    /// that are small parts of other memory in memory of their own.
    pub(crate) fn gathered(self) -> Self {
        let Repr::Scattered(page) = &self.0 else { return self };
        let values = &page.data[usize::from(page.has_front)..];
        let is_flat = values.iter().all(is_short);
        let flat = is_flat.then(|| flat::flatten(page.spare(), &page.data)).flatten();
        if let Some(bytes) = flat {
            return Self(Repr::OnePiece(bytes));
        }
        if !page.data.iter().any(keeps_more) {
            return self;
        }
        let own = |part: &Buf| match part.bytes() {
            Some(bytes) if keeps_more(part) => Buf::copy_from(bytes),
            _ => part.clone(),
        };
        let data = page.data.iter().map(own).collect();
        Self::scattered(page.spare.clone(), data, page.has_front, page.crcs.clone())
    }

    #[inline]
    fn laid(&self) -> Laid<'_> {
        match &self.0 {
            Repr::OnePiece(bytes) if flat::is_flat(bytes) => Laid::Flat(bytes),
            Repr::OnePiece(bytes) => Laid::Packed(bytes),
            Repr::Scattered(page) => Laid::Scattered(page),
        }
    }

    /// Record headers and keys; at most `Shape::spare_bytes`.
    #[inline]
    pub fn spare(&self) -> &[u8] {
        match &self.0 {
            Repr::OnePiece(bytes) => packed::spare(bytes),
            Repr::Scattered(page) => page.spare(),
        }
    }

    /// The first segment of the data, unless it is a phantom.
    #[inline]
    pub fn front(&self) -> Option<&[u8]> {
        match self.laid() {
            Laid::Packed(bytes) => packed::front(bytes),
            Laid::Flat(bytes) => Some(flat::front(bytes)),
            Laid::Scattered(page) => page.data.first()?.bytes(),
        }
    }

    /// The segments of the data.
    pub fn segments(&self) -> Segments {
        match self.laid() {
            Laid::Packed(bytes) => packed::segments(bytes).collect(),
            Laid::Flat(bytes) => flat::segments(bytes),
            Laid::Scattered(page) => page.data.clone(),
        }
    }

    /// Calls `visit` with the segments of the data: without a copy, where the page has them so.
    #[inline]
    pub fn with_segments<T>(&self, visit: impl FnOnce(&[Buf]) -> T) -> T {
        match &self.0 {
            Repr::Scattered(page) => visit(&page.data),
            Repr::OnePiece(_) => visit(&self.segments()),
        }
    }

    /// CRC-32C of the data, if it is one segment and [`Self::with_crc`] was told.
    #[inline]
    pub fn crc(&self) -> Option<u32> {
        match &self.0 {
            Repr::Scattered(page) if page.data.len() == 1 => page.crcs.first().copied(),
            _ => None,
        }
    }

    /// CRC-32C of the `len` data bytes from `start`, if they are exactly one segment and the page
    /// was given its CRC by [`Self::with_crcs`] or [`Self::with_crc`].
    #[inline]
    pub fn crc_at(&self, start: u32, len: u32) -> Option<u32> {
        let Repr::Scattered(page) = &self.0 else { return None };
        let number = page.ends.partition_point(|end| *end <= start);
        let end = page.ends.get(number).copied().filter(|end| end.checked_sub(len) == Some(start));
        end.and_then(|_| page.crcs.get(number).copied().filter(|_| page.data[number].len() == len))
    }

    /// Returns whether the page was given the CRCs of its segments. So it is as it was made: a page
    /// that replaces it, with flipped bits or from a saved state, has none.
    #[inline]
    pub fn has_crcs(&self) -> bool {
        matches!(&self.0, Repr::Scattered(page) if !page.crcs.is_empty())
    }

    /// From byte `start` on, the spare bytes and after them `front_len` bytes of the front: what a
    /// list of the headers of many pages is made of. By reference, but for the few spare bytes of
    /// [`Self::with_crc`].
    pub fn headers(&self, start: usize, front_len: usize) -> impl Iterator<Item = Buf> + use<> {
        let parts = match &self.0 {
            Repr::OnePiece(bytes) => {
                let has_them = front_len <= self.front().map_or(0, <[u8]>::len);
                assert!(has_them, "the front has what is asked of it");
                [Some(packed::headers(bytes, start, front_len)), None]
            }
            Repr::Scattered(page) => {
                let len = |len: usize| u32::try_from(len).expect("a page has far less than 4 GiB");
                let spare = page.spare.tail(start);
                let front_start = len(start.saturating_sub(page.spare().len()));
                let front_end = len(front_len);
                let front = page.data.first().filter(|_| front_start < front_end);
                [spare, front.map(|front| front.slice(front_start..front_end))]
            }
        };
        parts.into_iter().flatten()
    }

    /// Asks the processor for the page's memory ahead of its use.
    #[inline]
    pub fn prefetch(&self) {
        match &self.0 {
            Repr::OnePiece(bytes) => packed::prefetch(bytes),
            Repr::Scattered(page) => {
                const LINE_WORDS: usize = 64 / size_of::<u64>();
                /// The reference counts, which lie before the page.
                const COUNTS_WORDS: usize = 2 * size_of::<usize>() / size_of::<u64>();
                // The array by reference: by value it would be a copy, which lies elsewhere.
                let start: &[u64] = &page.start;
                prefetch_index(start, 0_usize.wrapping_sub(COUNTS_WORDS));
                for line in 0..size_of::<Scattered>().div_ceil(64) {
                    prefetch_index(start, line * LINE_WORDS);
                }
            }
        }
    }

    /// The same of its segments up to number `last`, which lie elsewhere if they are many.
    #[inline]
    pub fn prefetch_segments(&self, last: usize) {
        let Repr::Scattered(page) = &self.0 else { return };
        // Each line of the cache begins within two segments of the line before.
        for segment in (0..=last).step_by(2) {
            prefetch_index(&page.data[..], segment);
        }
    }

    /// The same of the spare bytes and of segment `number`, where they lie elsewhere.
    #[inline]
    pub fn prefetch_content(&self, number: usize) {
        let Repr::Scattered(page) = &self.0 else { return };
        if let Spare::Elsewhere(spare) = &page.spare {
            spare.prefetch();
        }
        if let Some(segment) = page.data.get(number) {
            segment.prefetch();
        }
    }

    /// A copy with one bit turned over. `which` chooses a filled data segment or the spare bytes,
    /// in turn, and then the bit in it: what a fault does to a page.
    #[must_use]
    pub fn with_flipped_bit(&self, which: u64) -> Self {
        let (mut spare, mut data) = (self.spare().to_vec(), self.segments());
        let mut filled: Vec<&mut Buf> =
            data.iter_mut().filter(|segment| segment.len() > 0).collect();
        let parts = filled.len() as u64 + u64::from(!spare.is_empty());
        assert!(parts > 0, "an empty page has no bit to flip");
        let part = usize::try_from(which % parts).expect("there are few parts");
        let bit = which / parts;
        match filled.get_mut(part) {
            Some(segment) => **segment = segment.with_flipped_bit(bit),
            None => {
                let at = bit % (spare.len() as u64 * 8);
                let byte = usize::try_from(at / 8).expect("within the spare bytes");
                spare[byte] ^= 1 << (at % 8);
            }
        }
        Self::new(&spare, data)
    }

    /// Bytes of data, without padding.
    pub fn data_bytes(&self) -> u32 {
        match self.laid() {
            Laid::Packed(bytes) => packed::data_bytes(bytes),
            Laid::Flat(bytes) => flat::data_bytes(bytes),
            Laid::Scattered(page) => page.ends.last().copied().unwrap_or(0),
        }
    }

    /// The segments of `len` data bytes from `start`, each cut to the range and then joined; `None`
    /// when the page is shorter. A range in one segment, which is the common case, comes back
    /// without a copy.
    #[inline]
    pub fn data_at(&self, start: u32, len: u32) -> Option<Buf> {
        if len == 0 {
            return Some(Buf::phantom(0, 0));
        }
        let one = match self.laid() {
            Laid::Packed(bytes) => packed::one(bytes, start, len),
            Laid::Flat(bytes) => return flat::one(bytes, start, len).map(Slice::to_buf),
            Laid::Scattered(page) => page.one(start, len),
        };
        one.or_else(|| Buf::join(&self.segments_at(start, len)?))
    }

    /// As [`Self::data_at`]. A value on a page in one piece of memory is borrowed.
    #[inline]
    pub fn value_at(&self, start: u32, len: u32) -> Option<ValueRef<'_>> {
        match self.laid() {
            Laid::Flat(bytes) if len > 0 => flat::one(bytes, start, len).map(ValueRef::Borrowed),
            _ => self.data_at(start, len).map(ValueRef::Owned),
        }
    }

    /// Lets go of the segment that is the `len` data bytes from `start`, if it is one of its own,
    /// and nobody else has the page: a phantom stands in its place.
    pub(crate) fn release(&mut self, start: u32, len: u32) {
        let Some(page) = self.own() else { return };
        let number = page.ends.partition_point(|end| *end <= start);
        if let Some(segment) = page.data.get_mut(number)
            && (page.ends[number] - segment.len(), segment.len()) == (start, len)
        {
            *segment = Buf::phantom(len, 0);
            page.crcs.clear();
        }
    }

    /// As [`Self::data_at`], scattered as the page has it: nothing is joined.
    #[inline]
    pub fn segments_at(&self, start: u32, len: u32) -> Option<Segments> {
        match self.laid() {
            Laid::Packed(bytes) => packed::cut(bytes, start, len),
            Laid::Flat(bytes) => flat::cut(bytes, start, len),
            Laid::Scattered(page) => match page.one(start, len).filter(|_| len > 0) {
                Some(one) => Some(smallvec![one]),
                None => cut(&page.data, start, len),
            },
        }
    }
}

fn is_short(part: &Buf) -> bool {
    part.len() as usize <= Page::FLAT_VALUE_BYTES_MAX
}

/// Whether a short segment keeps far more memory than its own, as a part of a page does.
fn keeps_more(part: &Buf) -> bool {
    const TIMES: usize = 2;
    const SPARED_BYTES: usize = 128;
    let len = part.len();
    is_short(part) && part.held_bytes() > TIMES * len as usize + SPARED_BYTES
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Page({} spare bytes, {:?})", self.spare().len(), self.segments())
    }
}

/// In a saved state: the spare bytes and the segments.
impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.spare(), &self.segments()[..]).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (spare, segments) = <(Vec<u8>, Vec<Buf>)>::deserialize(deserializer)?;
        Ok(match segments.split_first() {
            Some((front, rest)) if front.bytes().is_some() => {
                Self::with_front(&spare, front.bytes().unwrap_or_default(), rest.iter().cloned())
            }
            _ => Self::new(&spare, segments),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array of flash has millions.
    #[test]
    fn a_page_is_a_reference_and_a_length() {
        assert_eq!(size_of::<Page>(), 16);
    }

    fn page() -> Page {
        let data = [Buf::copy_from(b"abc"), Buf::copy_from(b"defg")];
        Page::new(&[], data)
    }

    #[test]
    fn data_is_found_within_and_across_segments() {
        let bytes = |start, len| page().data_at(start, len).map(|b| b.bytes().unwrap().to_vec());
        assert_eq!(bytes(0, 3).unwrap(), b"abc");
        assert_eq!(bytes(4, 2).unwrap(), b"ef");
        assert_eq!(bytes(2, 3).unwrap(), b"cde");
        let scattered = page().segments_at(2, 3).unwrap();
        let scattered: Vec<_> = scattered.iter().map(|part| part.bytes().unwrap()).collect();
        assert_eq!(scattered, [b"c".as_slice(), b"de"]);
        assert!(page().segments_at(6, 2).is_none());
        assert_eq!(page().data_at(7, 0).unwrap().checksum(), 0, "nothing of any segment");
        assert!(bytes(5, 3).is_none(), "past the end");
    }

    #[test]
    fn a_page_knows_the_crcs_of_whole_segments_until_they_change() {
        let segments = page().segments();
        let crcs: Vec<u32> = segments.iter().map(Buf::crc32c).collect();
        let page = page().with_crcs(&crcs);
        assert_eq!([page.crc_at(0, 3), page.crc_at(3, 4)], [Some(crcs[0]), Some(crcs[1])]);
        for (start, len) in [(0, 4), (0, 2), (1, 2), (1, 3), (3, 3), (2, 5), (7, 4)] {
            assert_eq!(page.crc_at(start, len), None, "{len} from {start}");
        }
        assert_eq!(page.crc(), None, "of all segments together");
        assert_eq!([0, 1].map(|bit| page.with_flipped_bit(bit).crc_at(0, 3)), [None; 2]);
        let mut page = page;
        page.release(3, 4);
        assert_eq!(page.crc_at(0, 3), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "are the CRCs of the segments")]
    fn a_page_refuses_other_crcs() {
        let _ = page().with_crcs(&[1, 2]);
    }

    #[test]
    fn an_emptied_page_gives_another_its_memory_and_nothing_else() {
        let of = |emptied, byte, len| {
            let data = Buf::copy_from(&vec![byte; len]);
            let crc = data.crc32c();
            Page::with_crc(emptied, &vec![byte; len % 90], data, crc)
        };
        let place = |page: &Page| match &page.0 {
            Repr::Scattered(page) => Arc::as_ptr(page),
            Repr::OnePiece(_) => panic!("its data lie elsewhere"),
        };
        let first = of(None, 1, 600);
        let (memory, other) = (place(&first), first.clone());
        assert!(first.emptied().is_none(), "another has it");
        let again = of(other.emptied(), 2, 880);
        assert_eq!(place(&again), memory);
        let fresh = of(None, 2, 880);
        assert_eq!((again.spare(), again.crc()), (fresh.spare(), fresh.crc()));
        assert_eq!(again.data_bytes(), 880);
        assert_eq!(again.data_at(0, 880).unwrap().bytes(), Some(&[2; 880][..]));
        assert!(page().emptied().is_none(), "its segments are many");
    }
}
