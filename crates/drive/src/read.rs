use crate::drive::Drive;
use crate::frame::Head;
use crate::layout::{HEAD_BYTES, NOTE_BYTES};
use crate::origin::Opening;
use crate::sabotage::Sabotage;
use base::Buf;
use clock::Class;
use media::{Error, Page, PageId, Segments, Span, cut, cut_out};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes between two frames that are read with them rather than left out. A disk that many read
/// from begins the next read meanwhile; what is between takes of the rate that stores write with.
const GAP_BYTES: u32 = 4 << 10;

/// Bytes that are read in one piece, unless a page alone is longer.
const RUN_BYTES: u32 = 1 << 20;

impl Drive {
    /// See [`media::Media::read`].
    pub(crate) async fn read(&self, span: Span, class: Class) -> Result<Page, Error> {
        let at = span.at;
        let (opening, failed) = {
            let mut extent = self.extent(at.extent);
            let failed = extent.used().tail.as_ref().and_then(|tail| tail.failed());
            (extent.opening, failed)
        };
        // Of a page whose append has failed all may be there, and was never stored.
        if failed.is_some_and(|from| at.page >= from) {
            return Err(Error::Unrecovered(at));
        }
        let room = self.shape.pages_per_extent.checked_sub(at.page).filter(|room| *room > 0);
        let room = room.unwrap_or_else(|| panic!("{at} lies within its extent"));
        let units = span.units.clamp(1, room);
        let mut found = self.units(at, 0, units, class).await.map_err(|error| of(at, error))?;
        let len = head_len(&found);
        let head_units = self.layout.frames().units_of(len.unwrap_or(HEAD_BYTES)).min(room);
        if head_units > units {
            let rest = self.units(at, units, head_units - units, class).await;
            found.extend(rest.map_err(|error| of(at, error))?);
        }
        if let Some((head, spare)) = len.and_then(|len| self.head_of(at, opening, &found, len)) {
            return self.page(&head, spare, found).ok_or(Error::Unrecovered(at));
        }
        let have = units.max(head_units);
        let most = NOTE_BYTES.div_ceil(self.layout.unit_bytes).min(room);
        if most > have {
            let rest = self.units(at, have, most - have, class).await;
            found.extend(rest.map_err(|error| of(at, error))?);
        }
        self.mended_page(at, opening, found).ok_or(Error::Unrecovered(at))
    }

    /// Returns the head of the page at `at` and its spare bytes, of `len` bytes together, if they
    /// are whole.
    fn head_of(
        &self,
        at: PageId,
        opening: Opening,
        found: &[Buf],
        len: u32,
    ) -> Option<(Head, Buf)> {
        let whole = front(found, len)?;
        let head = Head::decode(whole.bytes().unwrap_or_default());
        let head = head.filter(|head| self.is_at(head, at, opening))?;
        Some((head, whole.slice(HEAD_BYTES..len)))
    }

    /// Returns the page at `at` if one bit of its head or of its spare bytes was flipped. Without
    /// it the log would take an older page for its newest one.
    fn mended_page(&self, at: PageId, opening: Opening, found: Segments) -> Option<Page> {
        let have: u32 = found.iter().map(Buf::len).sum();
        let bytes = joined(&found, 0, have.min(NOTE_BYTES))?;
        let (head, spare) = Head::repair(bytes.bytes()?, |head| self.is_at(head, at, opening))?;
        self.page(&head, Buf::copy_from(&spare), found)
    }

    /// Returns the page of `head`, with as much of its data as was found.
    fn page(&self, head: &Head, spare: Buf, found: Segments) -> Option<Page> {
        let start = self.layout.units_bytes(self.layout.frames().head_units(head.spare_len));
        let have: u32 = found.iter().map(Buf::len).sum();
        let mut data = cut_out(found, start, head.data_len.min(have.checked_sub(start)?))?;
        join_front(&mut data);
        Some(Page::of_parts(spare, data))
    }

    /// See [`media::Media::read_all`].
    pub(crate) async fn read_all(
        self: &Arc<Self>,
        spans: Vec<Span>,
        class: Class,
    ) -> Vec<Result<Page, Error>> {
        let reads = self.runs(&spans).map(|run| self.clone().read_each(run, class));
        clock::join_all(reads.collect()).await.into_iter().flatten().collect()
    }

    /// The spans of a run, each by itself where they cannot all be read: one may be damaged, or
    /// what lies in between.
    async fn read_each(self: Arc<Self>, run: Vec<Span>, class: Class) -> Vec<Result<Page, Error>> {
        let mut found = self.read_run(&run, class).await.unwrap_or_default().into_iter();
        let mut pages = Vec::with_capacity(run.len());
        for span in run {
            pages.push(match found.next() {
                Some(Ok(page)) => Ok(page),
                _ => self.read(span, class).await,
            });
        }
        pages
    }

    /// Spans that are read in one piece.
    fn runs(&self, spans: &[Span]) -> impl Iterator<Item = Vec<Span>> {
        let [gap, most] = [GAP_BYTES, RUN_BYTES].map(|bytes| bytes / self.layout.unit_bytes);
        let mut rest = spans;
        std::iter::from_fn(move || {
            let first = rest.first()?.at.page;
            let mut end = first;
            let joins = |span: &&Span| {
                let (start, last) = (span.at.page, span.at.page.saturating_add(span.units));
                let is_near = start == first || start <= end + gap && last - first <= most;
                end = last;
                is_near
            };
            let count = rest.iter().take_while(joins).count();
            let (run, after) = rest.split_at(count);
            rest = after;
            Some(run.to_vec())
        })
    }

    async fn read_run(
        &self,
        run: &[Span],
        class: Class,
    ) -> Result<Vec<Result<Page, Error>>, Error> {
        let (first, last) = (run[0].at, run[run.len() - 1]);
        let opening = self.extent(first.extent).opening;
        let end = last.at.page.saturating_add(last.units).min(self.layout.pages());
        let units = end.checked_sub(first.page).filter(|units| *units > 0);
        let units = units.unwrap_or_else(|| panic!("{first} lies within its extent"));
        let found = self.units(first, 0, units, class).await.map_err(|error| of(first, error))?;
        let page = |span: &Span| {
            let start = self.layout.units_bytes(span.at.page - first.page);
            let len = self.layout.units_bytes(span.units.min(end - span.at.page));
            let part = cut(&found, start, len).ok_or(Error::Unrecovered(span.at))?;
            let len = head_len(&part);
            let head = len.and_then(|len| self.head_of(span.at, opening, &part, len));
            let page = head.and_then(|(head, spare)| self.page(&head, spare, part));
            page.ok_or(Error::Unrecovered(span.at))
        };
        Ok(run.iter().map(page).collect())
    }

    /// `count` units of a page from its unit `first` on.
    fn units(
        &self,
        at: PageId,
        first: u32,
        count: u32,
        class: Class,
    ) -> impl Future<Output = Result<Segments, Error>> {
        let start = self.layout.frame_start(PageId { page: at.page + first, ..at });
        self.read_bytes(start, self.layout.units_bytes(count), class)
    }

    /// Whether a head is that of `at` in this opening of its extent.
    pub(crate) fn is_at(&self, head: &Head, at: PageId, opening: Opening) -> bool {
        let is_ours = head.origin == self.origin(at.extent, opening)
            || Sabotage::FormerFrames.is_on()
                && head.origin == self.origin(at.extent, head.origin.opening);
        is_ours
            && head.page == at.page
            && at.page.saturating_add(head.units(&self.layout)) <= self.shape.pages_per_extent
    }
}

/// The error of the page whose blocks were read.
fn of(at: PageId, error: Error) -> Error {
    match error {
        Error::UnrecoveredBlock(_) => Error::Unrecovered(at),
        other => other,
    }
}

/// Bytes of head and spare bytes of the frame that begins here.
fn head_len(found: &[Buf]) -> Option<u32> {
    match found.first().and_then(Buf::bytes) {
        Some(bytes) if bytes.len() >= HEAD_BYTES as usize => Head::len_of(bytes),
        _ => Head::len_of(joined(found, 0, HEAD_BYTES)?.bytes()?),
    }
}

/// The first `len` bytes, in one piece; a copy of them only where they are not.
fn front(found: &[Buf], len: u32) -> Option<Cow<'_, Buf>> {
    match found.first() {
        Some(first) if len <= first.len() => Some(Cow::Borrowed(first)),
        _ => joined(found, 0, len).map(Cow::Owned),
    }
}

/// `len` bytes from `start` in one piece.
pub(crate) fn joined(found: &[Buf], start: u32, len: u32) -> Option<Buf> {
    Buf::join(&cut(found, start, len)?)
}

/// Joins the first bytes of the data, up to the first phantom: a log may keep something there that
/// it reads as one. Of a disk they are in one piece.
pub(crate) fn join_front(data: &mut Segments) {
    let real = data.iter().take_while(|segment| segment.bytes().is_some()).count();
    if real > 1 {
        let front = Buf::join(&data[..real]).expect("bytes join");
        data.drain(..real);
        data.insert(0, front);
    }
}
