//! What the blocks tell of an extent.
//!
//! An extent is in use when something of a later opening is there than its marks end. Openings that
//! never landed a page leave traces too: a page of which nothing says that it had landed may have
//! been cut off by a loss of power, and the extent ends before the first such page that is not
//! whole. What is not whole below a page that is known to have landed is damage, and stays there.
//!
//! Where the ledger knows of something later than what is there, an old copy of the extent is. It
//! is in use as it was then, with pages that cannot be read.

use crate::drive::Drive;
use crate::extents::{Extent, Used};
use crate::frame::{Head, State};
use crate::layout::NOTE_BYTES;
use crate::ledger::{Entry, Fill};
use crate::note::{Footer, Mark};
use crate::origin::{Opening, Origin};
use crate::walk::{CLASS, Place, Walk, Walked};
use base::Buf;
use media::{ExtentId, Label, PageId, Stream};
use std::collections::BTreeMap;

/// An extent as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) extent: Extent,
    pub(crate) lacks: Lacks,
    /// It is free, and an old copy of it is there.
    pub(crate) is_outdated: bool,
    /// Nothing of it can be read.
    pub(crate) is_lost: bool,
    /// And there are frames of another extent, which somebody may want back.
    is_stray: bool,
}

/// What is to be written before an extent is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    /// Where it ends: nothing is appended to it any more.
    Footer,
    /// That it is free. What was cut off may be whole again when a later page is written over it
    /// that has some bytes in common, and is cut off too.
    Marks,
}

/// The notes around an extent's frames, and the head of its first one.
struct Ends {
    /// The last opening that a mark ends; `None` when neither can be read.
    ended: Option<Opening>,
    footer: Option<Footer>,
    first: Option<Head>,
    is_blank: bool,
}

/// The heads of an extent that has no first one.
#[derive(Default)]
struct Survey {
    /// How far each opening had landed.
    landed: BTreeMap<Opening, u32>,
    /// The label of a frame of this drive that belongs elsewhere.
    stray: Option<Label>,
}

/// The label of an extent of which nothing can be read: so it is looked at, and told of.
const UNKNOWN: Label = Label { stream: Stream::Host, epoch: 0 };

impl Drive {
    /// Looks what an extent holds.
    pub(crate) async fn find(&self, extent: ExtentId) -> Found {
        let ends = self.ends(extent).await;
        let ended = ends.ended.unwrap_or_default();
        let known = self.state().ledger.entry(extent).filter(|known| known.opening > ended);
        let found = self.find_by(extent, &ends, known).await;
        match known {
            Some(known) => found.unless_outdated(known),
            None => found,
        }
    }

    async fn find_by(&self, extent: ExtentId, ends: &Ends, known: Option<Entry>) -> Found {
        let ended = ends.ended.unwrap_or_default();
        if let Some(footer) = ends.footer.filter(|footer| footer.origin.opening > ended) {
            let Footer { label, pages: end, summary, .. } = footer;
            let used = Used { label, end, pages: None, summary, tail: None, is_outdated: false };
            return Found::used(footer.origin.opening, used, Lacks::Nothing);
        }
        let later = ends.first.filter(|head| head.origin.opening > ended);
        if let Some(head) = later {
            return self.found(extent, head.origin.opening, known).await;
        }
        if ends.ended.is_some() && (ends.is_blank || ends.first.is_some()) {
            return Found::free(ended, Lacks::Nothing);
        }
        let survey = self.survey(extent, ended).await;
        let opening = survey.landed.iter().rfind(|(_, landed)| **landed > 0);
        if let Some((opening, _)) = opening {
            return self.found(extent, *opening, known).await;
        }
        let last = survey.landed.last_key_value().map_or(ended, |(opening, _)| *opening);
        if ends.ended.is_some() && survey.stray.is_none() {
            return Found::free(last, Lacks::Marks);
        }
        // A page that cannot be read, so that whoever reads all is told.
        let (label, is_stray) = (survey.stray.unwrap_or(UNKNOWN), survey.stray.is_some());
        Found { is_lost: true, is_stray, ..Found::unreadable(last, label, 1, false) }
    }

    async fn ends(&self, extent: ExtentId) -> Ends {
        let front = self.notes(self.layout.extent_start(extent)).await;
        let back = self.notes(self.layout.second_mark(extent)).await;
        let [first_mark, first] = [0, 1].map(|n| front.as_ref().map(|bytes| note(bytes, n)));
        let [second_mark, footer] = [0, 1].map(|n| back.as_ref().map(|bytes| note(bytes, n)));
        let ended = |note: Option<&[u8]>| {
            note.and_then(Mark::decode).and_then(|mark| mark.ends(self.secret, extent))
        };
        let is_ours = |origin: &Origin| *origin == self.origin(extent, origin.opening);
        let footer = footer.and_then(Footer::decode).filter(|footer| is_ours(&footer.origin));
        let is_first = |head: &Head| head.page == 0 && is_ours(&head.origin);
        // What landed shall be told of, though a bit was turned over since.
        let repaired = || first.and_then(|bytes| Some(Head::repair(bytes, is_first)?.0));
        let head = first.and_then(Head::decode).filter(is_first);
        Ends {
            ended: ended(first_mark).max(ended(second_mark)),
            footer: footer.filter(|footer| footer.pages <= self.layout.pages()),
            first: head.or_else(repaired),
            is_blank: first.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)),
        }
    }

    /// The two times 4 KiB at byte `start`; of the first frame they hold all before its data.
    async fn notes(&self, start: u64) -> Option<Buf> {
        let both = self.read_bytes(start, 2 * NOTE_BYTES, CLASS).await.ok();
        match both.and_then(|both| Buf::join(&both)) {
            Some(both) if both.bytes().is_some() => Some(both),
            _ => None,
        }
    }

    /// An extent that was being appended to in `opening`, as far as that had landed.
    async fn found(&self, extent: ExtentId, opening: Opening, known: Option<Entry>) -> Found {
        let walk = Walk::new(self, extent);
        let Walked { places, landed, label } =
            walk.frames(opening, self.layout.pages(), true).await;
        let known = known.filter(|known| known.opening == opening);
        let at_least = known.map_or(0, |known| known.units());
        // What is behind a frame is behind what has landed with it, padding or not.
        let is_cut = |place: &Place| place.state == State::Torn && place.start >= landed;
        let is_known = |place: &Place| place.start < at_least;
        let cut = places.iter().position(|place| is_cut(place) && !is_known(place));
        let kept = cut.unwrap_or(places.len());
        let mut end = cut.map_or(self.layout.pages(), |cut| places[cut].start);
        let Some(label) = label.filter(|_| kept > 0) else {
            return Found::free(opening, Lacks::Marks);
        };
        let is_outdated = places[..kept].iter().any(is_cut);
        let mut pages: Vec<u32> = places[..kept].iter().map(|place| place.page).collect();
        if places[..kept].last().is_some_and(is_cut) {
            // Nothing is there but what is known.
            end = at_least;
            pages.retain(|page| *page < end);
            pages.extend((pages.last() < Some(&(end - 1))).then_some(end - 1));
        }
        let lacks = if is_outdated { Lacks::Nothing } else { Lacks::Footer };
        let used = Used { label, end, pages: Some(pages), summary: None, tail: None, is_outdated };
        Found::used(opening, used, lacks)
    }

    /// Looks at each unit of an extent for a head of an opening after `ended`.
    async fn survey(&self, extent: ExtentId, ended: Opening) -> Survey {
        let (mut walk, mut survey) = (Walk::new(self, extent), Survey::default());
        for page in 0..self.layout.pages() {
            let Some(head) = walk.head(page).await else { continue };
            let opening = head.origin.opening;
            if self.is_at(&head, PageId { extent, page }, opening) {
                if opening > ended {
                    let landed = survey.landed.entry(opening).or_default();
                    *landed = head.landed.max(*landed);
                }
            } else if head.origin.secret == self.secret {
                survey.stray.get_or_insert(head.label);
            }
        }
        survey
    }
}

/// The first or the second of two notes.
fn note(both: &Buf, number: usize) -> &[u8] {
    &both.bytes().unwrap_or_default()[number * NOTE_BYTES as usize..][..NOTE_BYTES as usize]
}

impl Found {
    const fn used(opening: Opening, used: Used, lacks: Lacks) -> Self {
        let extent = Extent { opening, used: Some(used) };
        Self { extent, lacks, is_outdated: false, is_lost: false, is_stray: false }
    }

    const fn free(opening: Opening, lacks: Lacks) -> Self {
        let extent = Extent { opening, used: None };
        Self { extent, lacks, is_outdated: false, is_lost: false, is_stray: false }
    }

    /// An extent in use of which no page can be read, neither the first nor the last: whoever
    /// goes on behind some page is told too.
    fn unreadable(opening: Opening, label: Label, end: u32, is_outdated: bool) -> Self {
        let mut pages = vec![0, end - 1];
        pages.dedup();
        let used = Used { label, end, pages: Some(pages), summary: None, tail: None, is_outdated };
        Self::used(opening, used, Lacks::Nothing)
    }

    /// What was found, if it is not from before what is known.
    fn unless_outdated(self, known: Entry) -> Self {
        let Extent { opening, used } = &self.extent;
        match known.fill {
            Fill::Used { label, units, .. } => {
                let has_all = |used: &Used| *opening > known.opening || used.end >= units;
                let is_there = !self.is_lost
                    && *opening >= known.opening
                    && used.as_ref().is_some_and(has_all);
                if is_there {
                    return self;
                }
                Self::unreadable(known.opening, label, units.max(1), true)
            }
            Fill::Reset if self.is_stray || *opening > known.opening => self,
            // Where nothing can be read there is no old copy either.
            Fill::Reset => {
                let is_outdated = !self.is_lost;
                Self { is_outdated, ..Self::free(known.opening, Lacks::Marks) }
            }
        }
    }

    /// What there is to know of it from here on, once nothing is lacking.
    pub(crate) fn entry(&self, mount: u32) -> Option<Entry> {
        let Extent { opening, used } = &self.extent;
        match used {
            Some(used) if !self.is_lost && !used.is_outdated => {
                let fill = Fill::Used { label: used.label, units: used.end, is_over: true };
                Some(Entry { opening: *opening, fill })
            }
            None => {
                let is_marked = self.lacks == Lacks::Marks;
                let mount = if is_marked { mount } else { opening.mount };
                let opening = Opening { mount, ..*opening };
                (opening != Opening::default()).then_some(Entry { opening, fill: Fill::Reset })
            }
            Some(_) => None,
        }
    }
}
