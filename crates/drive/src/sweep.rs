//! Reads all pages of an extent in long reads, to check a whole drive.

use crate::drive::Drive;
use crate::frame::{DataCrc, Head};
use crate::layout::HEAD_BYTES;
use crate::origin::Opening;
use crate::read::{join_front, joined};
use crate::walk::Walk;
use base::Buf;
use clock::Class;
use media::{Error, ExtentId, Page, PageId, Segments, Swept, SweptPage, cut};

/// Bytes that are read at a time: a disk is at its sequential rate.
const WINDOW_BYTES: u32 = 1 << 20;

/// Why no frame could be taken of what was read.
enum Stop {
    /// It goes on behind that: it has so many units.
    Cut(u32),
    Unreadable,
    End,
}

/// What was read of an extent, and of which opening pages are looked for in it.
struct Window {
    found: Segments,
    len: u32,
    extent: ExtentId,
    first: u32,
    opening: Opening,
}

impl Drive {
    /// See [`media::Media::sweep`].
    pub(crate) async fn sweep(
        &self,
        extent: ExtentId,
        from: u32,
        class: Class,
    ) -> Result<Swept, Error> {
        let (opening, end) = {
            let extent = self.extent(extent);
            (extent.opening, extent.end().expect("an extent in use"))
        };
        let mut swept = Swept { pages: Vec::new(), next: None };
        let (mut at, mut units) = (from, (WINDOW_BYTES / self.layout.unit_bytes).min(end - from));
        while at < end && swept.pages.is_empty() {
            let window = self.window(extent, opening, at, units.min(end - at), class).await?;
            match self.take_frames(&window, &mut at, end, &mut swept.pages) {
                // One page that is longer than what was read is read alone.
                Stop::Cut(longer) if at == window.first && longer > units => units = longer,
                Stop::Cut(_) | Stop::Unreadable if at == window.first => {
                    let mut walk = Walk::new(self, extent);
                    let flipped = walk.flipped_frame_from(opening, at, end).await;
                    let is_mended = flipped.is_some();
                    let behind = flipped.as_ref().map_or(at, |head| head.page);
                    let (next, is_padding) = walk.next_frame(opening, behind, end).await;
                    if is_mended || !is_padding {
                        let number = match flipped {
                            Some(head) => head.page,
                            None => walk.begin_of(at, next).await,
                        };
                        let (page, from, is_whole) = (None, at, false);
                        swept.pages.push(SweptPage { number, from, page, is_whole, is_mended });
                    }
                    at = next;
                }
                _ => {}
            }
        }
        swept.next = (at < end).then_some(at);
        Ok(swept)
    }

    /// Takes the frames from `at` on, as far as they are in the window.
    fn take_frames(
        &self,
        window: &Window,
        at: &mut u32,
        end: u32,
        pages: &mut Vec<SweptPage>,
    ) -> Stop {
        while *at < end {
            match self.frame(window, PageId { extent: window.extent, page: *at }, end) {
                Ok((units, page)) => {
                    pages.push(page);
                    *at += units;
                }
                Err(Stop::Unreadable) => match self.behind_padding(window, *at, end) {
                    Some(next) => *at = next,
                    None => return Stop::Unreadable,
                },
                Err(stop) => return stop,
            }
        }
        Stop::End
    }

    /// Where the frame begins that says that all from `at` on to it is padding.
    fn behind_padding(&self, window: &Window, at: u32, end: u32) -> Option<u32> {
        let most = self.layout.frames().aligned(at + 1).min(end - 1);
        let is_behind = |next: &u32| {
            let head = self.head(window, PageId { extent: window.extent, page: *next });
            head.is_ok_and(|(head, _)| head.end_before() == at)
        };
        (at + 1..=most).find(is_behind)
    }

    /// `units` of an extent from `first` on, or as many as can be read.
    async fn window(
        &self,
        extent: ExtentId,
        opening: Opening,
        first: u32,
        units: u32,
        class: Class,
    ) -> Result<Window, Error> {
        let start = self.layout.frame_start(PageId { extent, page: first });
        let mut found = self.read_bytes(start, self.layout.units_bytes(units), class).await;
        if is_damage(&found) {
            // One block that cannot be read takes no others with it.
            found = self.read_bytes(start, self.layout.units_bytes(1), class).await;
        }
        let found = if is_damage(&found) { Segments::new() } else { found? };
        let len = found.iter().map(Buf::len).sum();
        Ok(Window { found, len, extent, first, opening })
    }

    /// The head of the frame that begins at `at`, and its bytes with the spare ones.
    fn head(&self, window: &Window, at: PageId) -> Result<(Head, Buf), Stop> {
        let offset = self.layout.units_bytes(at.page - window.first);
        let rest = window.len.checked_sub(offset).ok_or(Stop::Cut(1))?;
        if rest < HEAD_BYTES {
            return Err(Stop::Cut(1));
        }
        let first = joined(&window.found, offset, HEAD_BYTES);
        let len = first.as_ref().and_then(Buf::bytes).and_then(Head::len_of);
        let len = len.ok_or(Stop::Unreadable)?;
        if len > rest {
            return Err(Stop::Cut(len.div_ceil(self.layout.unit_bytes)));
        }
        let whole = joined(&window.found, offset, len).ok_or(Stop::Unreadable)?;
        let head = whole.bytes().and_then(Head::decode);
        let head = head.filter(|head| self.is_at(head, at, window.opening));
        Ok((head.ok_or(Stop::Unreadable)?, whole))
    }

    /// The frame that begins at `at`, and its units.
    fn frame(&self, window: &Window, at: PageId, end: u32) -> Result<(u32, SweptPage), Stop> {
        let (head, whole) = self.head(window, at)?;
        let units = head.units(&self.layout);
        if units > end - at.page {
            return Err(Stop::Unreadable);
        }
        let offset = self.layout.units_bytes(at.page - window.first);
        if self.layout.units_bytes(units) > window.len - offset {
            return Err(Stop::Cut(units));
        }
        let start = self.layout.units_bytes(self.layout.frames().head_units(head.spare_len));
        let data = cut(&window.found, offset + start, head.data_len);
        let mut data = data.expect("the window has all units");
        let mut crc = DataCrc::default();
        data.iter().for_each(|piece| crc.add(piece));
        let is_whole = crc.value() == head.data_crc;
        let spare = &whole.bytes().unwrap_or_default()[HEAD_BYTES as usize..];
        join_front(&mut data);
        let page = Page::new(spare, data);
        let (number, is_mended) = (at.page, false);
        Ok((units, SweptPage { number, from: number, page: Some(page), is_whole, is_mended }))
    }
}

fn is_damage(found: &Result<Segments, Error>) -> bool {
    matches!(found, Err(Error::UnrecoveredBlock(_)))
}
