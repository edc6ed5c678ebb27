//! The work on a drive between two losses of power: streams that open extents, append, seal and
//! move the pages of older ones; and a flushing task where appends do not wait for a flush.

use crate::drive::ledger::{Ledger, Opening, Step};
use base::{Buf, Nanos, Rng};
use clock::{Class, Stage, sleep};
use drive::{Durability, Medium};
use media::{Error, ExtentId, Label, Media, OnDisk, Page, PageId, Shape, Span, Stream};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Extents that streams leave to the movers.
const RESERVE: u32 = 2;

/// A page of any length that tells what it is.
pub(crate) fn page_of(content: u64, shape: &Shape) -> Page {
    let mut rng = Rng::new(content);
    let longest = match rng.below(3) {
        0 => 1,
        1 => 2_000,
        _ => u64::from(shape.page_bytes),
    };
    let mut data = vec![0; usize::try_from(rng.below(longest)).expect("it is small")];
    let mut spare = vec![0; usize::try_from(8 + rng.below(900)).expect("it is small")];
    rng.fill(&mut data);
    rng.fill(&mut spare);
    spare[..8].copy_from_slice(&content.to_le_bytes());
    Page::new(&spare, [Buf::copy_from(&data)])
}

/// All of a page.
pub(crate) fn whole_span(drive: &Medium, at: PageId, page: &Page) -> Span {
    Span { at, units: units(page, &drive.shape()) }
}

fn units(page: &Page, shape: &Shape) -> u32 {
    shape.numbers(u32::try_from(page.spare().len()).expect("it is small"), page.data_bytes())
}

/// A drive in use, and what is known of it.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) drive: Arc<Medium>,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
    pub(crate) durability: Durability,
}

impl Life {
    /// Begins to do things, without end.
    pub(crate) fn live(&self, seed: u64) {
        for stream in 0..3 {
            let (life, rng) = (self.clone(), Rng::fork(seed, stream));
            clock::spawn(async move { life.fill_extents(rng).await });
        }
        let (life, rng) = (self.clone(), Rng::fork(seed, 10));
        clock::spawn(async move { life.clean(rng).await });
        if self.durability == Durability::EverySecond {
            let life = self.clone();
            clock::spawn(async move { life.flush_now_and_then().await });
        }
    }

    fn open(&self, stream: Stream) -> Result<(u64, ExtentId), Error> {
        let epoch = self.ledger.borrow_mut().number();
        let extent = Media::open(&*self.drive, Label { stream, epoch })?;
        self.ledger.borrow_mut().open(epoch, extent);
        Ok((epoch, extent))
    }

    async fn fill_extents(&self, mut rng: Rng) {
        loop {
            sleep(Nanos(rng.below(1_000_000)), Stage::Queue).await;
            if self.drive.free_extents() <= RESERVE {
                continue;
            }
            let Ok((epoch, extent)) = self.open(Stream::Host) else { return };
            let (mut appends, mut next) = (Vec::new(), 0);
            let units_max = rng.below(u64::from(self.drive.shape().pages_per_extent) + 20);
            let units_max = u32::try_from(units_max).expect("a small number");
            while let Some(append) = self.append(epoch, extent, &mut next, units_max, None) {
                appends.push(append);
                sleep(Nanos(rng.below(3) * rng.below(150_000)), Stage::Queue).await;
            }
            for append in appends {
                append.await;
            }
            if rng.below(5) > 0 {
                self.seal(epoch, extent).await;
            }
            self.is_over(epoch);
        }
    }

    /// Starts to append a page if the extent has room below `units_max`: what is returned waits
    /// until it has landed.
    fn append(
        &self,
        epoch: u64,
        extent: ExtentId,
        next: &mut u32,
        units_max: u32,
        content: Option<u64>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let shape = self.drive.shape();
        let is_copy = content.is_some();
        let number = content.unwrap_or_else(|| self.ledger.borrow_mut().number());
        let page = page_of(number, &shape);
        // What is copied is appended all at once, and lies as close together as it did.
        let frames = shape.frames.expect("pages are frames");
        let most = if is_copy { *next } else { frames.aligned(*next) };
        if most + units(&page, &shape) > shape.pages_per_extent.min(units_max) {
            return None;
        }
        let holds = is_copy || number.is_multiple_of(2);
        let at = PageId { extent, page: self.drive.place(PageId { extent, page: *next }, holds) };
        *next = at.page + units(&page, &shape);
        let place = {
            let mut ledger = self.ledger.borrow_mut();
            let opening = ledger.openings.get_mut(&epoch).expect("it was opened");
            opening.pages.push((at.page, number));
            opening.pages.len()
        };
        let (life, notify) = (self.clone(), Rc::new((clock::Notify::new(), RefCell::new(false))));
        let landed = notify.clone();
        clock::spawn(async move {
            let result = life.drive.append(at, page, Class::HostWrite).await;
            if result.is_ok() {
                life.answered(epoch, place);
            }
            *landed.1.borrow_mut() = true;
            landed.0.notify();
        });
        Some(async move {
            if !*notify.1.borrow() {
                notify.0.wait().await;
            }
        })
    }

    /// The append of the page at this place among those of its opening has returned.
    fn answered(&self, epoch: u64, place: usize) {
        let mut ledger = self.ledger.borrow_mut();
        let opening = ledger.openings.get_mut(&epoch).expect("it was opened");
        assert_eq!(opening.answered + 1, place, "pages land in order");
        opening.answered = place;
        drop(ledger);
        if self.durability != Durability::EverySecond {
            self.lasts(epoch, place);
        }
    }

    /// Requires the first `count` pages of an opening to stay.
    fn lasts(&self, epoch: u64, count: usize) {
        let Ledger { openings, lasting, .. } = &mut *self.ledger.borrow_mut();
        let Some(opening) = openings.get_mut(&epoch) else { return };
        if opening.reset != Step::Not {
            return;
        }
        let before = opening.lasting.min(count);
        lasting.extend(opening.pages[before..count].iter().map(|(_, content)| *content));
        opening.lasting = opening.lasting.max(count);
    }

    fn is_over(&self, epoch: u64) {
        self.ledger.borrow_mut().openings.get_mut(&epoch).expect("it was opened").is_over = true;
    }

    /// Whether so many pages of an opening were answered.
    fn holds(&self, epoch: u64, count: usize) -> bool {
        self.ledger.borrow().openings[&epoch].answered == count
    }

    async fn seal(&self, epoch: u64, extent: ExtentId) {
        let summary = {
            let mut ledger = self.ledger.borrow_mut();
            let opening = ledger.openings.get_mut(&epoch).expect("it was opened");
            let Some((page, _)) = opening.pages.last().copied() else { return };
            opening.summary = Step::Begun(page);
            page
        };
        if self.drive.seal(extent, summary).await.is_ok() {
            let mut ledger = self.ledger.borrow_mut();
            let opening = ledger.openings.get_mut(&epoch).expect("it was opened");
            opening.summary = Step::Done(summary);
        }
    }

    /// Resets sealed extents and those of lives before, most often after what they hold was copied.
    async fn clean(&self, mut rng: Rng) {
        loop {
            sleep(Nanos(rng.below(2_000_000)), Stage::Queue).await;
            let Some((epoch, victim)) = self.victim(&mut rng) else { continue };
            let copies = rng.below(4) > 0;
            if copies {
                if !self.copy(&victim).await {
                    continue;
                }
            } else {
                let mut ledger = self.ledger.borrow_mut();
                for (_, content) in &victim.pages {
                    ledger.lasting.remove(content);
                }
            }
            let set = |step| {
                let mut ledger = self.ledger.borrow_mut();
                ledger.openings.get_mut(&epoch).expect("it was opened").reset = step;
            };
            set(Step::Begun(()));
            if self.drive.reset(victim.extent, Class::Gc).await.is_ok() {
                set(Step::Done(()));
            }
        }
    }

    fn victim(&self, rng: &mut Rng) -> Option<(u64, Opening)> {
        let ledger = self.ledger.borrow();
        let is_over = |opening: &Opening| opening.is_over && opening.reset == Step::Not;
        let all = ledger.openings.iter().filter(|(_, opening)| is_over(opening));
        let all: Vec<_> = all.collect();
        if all.is_empty() || self.drive.free_extents() > 3 {
            return None;
        }
        let chosen = usize::try_from(rng.below(all.len() as u64)).expect("a small number");
        Some((*all[chosen].0, all[chosen].1.clone()))
    }

    /// Copies what an extent holds to another; false when that cannot be done.
    async fn copy(&self, victim: &Opening) -> bool {
        let Ok((epoch, extent)) = self.open(Stream::Gc) else { return false };
        let (mut next, mut appends) = (0, Vec::new());
        for (_, content) in &victim.pages {
            let append = self.append(epoch, extent, &mut next, u32::MAX, Some(*content));
            appends.push(append.expect("one extent has room for what another had"));
        }
        for append in appends {
            append.await;
        }
        self.seal(epoch, extent).await;
        self.is_over(epoch);
        self.holds(epoch, victim.pages.len())
    }

    async fn flush_now_and_then(&self) {
        loop {
            sleep(Nanos(1_500_000), Stage::Queue).await;
            let landed = self.landed();
            if self.drive.flush().await.is_err() {
                return;
            }
            for (epoch, count) in landed {
                self.lasts(epoch, count);
            }
        }
    }

    /// How many pages of each opening have returned.
    fn landed(&self) -> Vec<(u64, usize)> {
        let ledger = self.ledger.borrow();
        let all = ledger.openings.iter();
        all.map(|(epoch, opening)| (*epoch, opening.answered)).collect()
    }
}
