//! A medium in memory whose operations take time, so that a loss of power interrupts them.

use base::{Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use media::{
    Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Select, Shape, Span, Starts, Stream,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that outlives a loss of power.
#[derive(Debug)]
pub(crate) struct Cells {
    shape: Shape,
    extents: Mutex<Vec<Option<Extent>>>,
    rng: Mutex<Rng>,
    /// Pages that cannot be read.
    damaged: Mutex<BTreeSet<PageId>>,
}

#[derive(Clone, Debug)]
struct Extent {
    label: Label,
    pages: Vec<Option<Page>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cells under power.
#[derive(Debug)]
pub(crate) struct Slow {
    cells: Arc<Cells>,
    starts: Starts,
    reads: Mutex<u64>,
}

impl Cells {
    pub(crate) fn new(shape: Shape, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            shape,
            extents: Mutex::new((0..shape.extents).map(|_| None).collect()),
            rng: Mutex::new(Rng::new(seed)),
            damaged: Mutex::default(),
        })
    }

    /// Returns the medium under power. Extents whose first page was not written are free.
    pub(crate) fn power(self: &Arc<Self>) -> Arc<Slow> {
        for extent in self.extents().iter_mut() {
            let begun =
                extent.as_ref().is_some_and(|e| e.pages.first().is_some_and(Option::is_some));
            if !begun {
                *extent = None;
            }
        }
        let extents = self.extents();
        for extent in extents.iter().flatten() {
            assert!(extent.pages.last().is_some_and(Option::is_some), "a last page is written");
        }
        drop(extents);
        Arc::new(Slow { cells: self.clone(), starts: Starts::default(), reads: Mutex::default() })
    }

    /// Returns a copy with the same content.
    pub(crate) fn copy(&self, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            shape: self.shape,
            extents: Mutex::new(self.extents().clone()),
            rng: Mutex::new(Rng::new(seed)),
            damaged: Mutex::new(lock(&self.damaged).clone()),
        })
    }

    /// Makes a page unreadable until its extent is reset.
    pub(crate) fn damage(&self, at: PageId) {
        lock(&self.damaged).insert(at);
    }

    /// Returns the pages written in extents of `stream`, in the order of writing.
    pub(crate) fn pages_of(&self, stream: Stream) -> Vec<PageId> {
        let extents = self.extents();
        let mut of_stream: Vec<(u64, u32, u32)> = (0..)
            .zip(extents.iter())
            .filter_map(|(id, extent)| extent.as_ref().map(|extent| (id, extent)))
            .filter(|(_, extent)| extent.label.stream == stream)
            .flat_map(|(id, extent)| {
                let written = (0..).zip(&extent.pages).filter(|(_, page)| page.is_some());
                written.map(move |(page, _)| (extent.label.epoch, id, page))
            })
            .collect();
        of_stream.sort_unstable();
        let page = |(_, id, page)| PageId { extent: ExtentId(id), page };
        of_stream.into_iter().map(page).collect()
    }

    fn extents(&self) -> MutexGuard<'_, Vec<Option<Extent>>> {
        lock(&self.extents)
    }

    async fn pass_time(&self, most: u64) {
        let time = lock(&self.rng).below(most);
        clock::sleep(Nanos(1 + time), Stage::Array).await;
    }
}

impl Slow {
    pub(crate) fn reads(&self) -> u64 {
        *lock(&self.reads)
    }
}

impl Media for Slow {
    fn shape(&self) -> Shape {
        self.cells.shape
    }

    fn free_extents(&self) -> u32 {
        let free = self.cells.extents().iter().filter(|extent| extent.is_none()).count();
        u32::try_from(free).expect("few extents")
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        let mut extents = self.cells.extents();
        let free = extents.iter().position(Option::is_none).ok_or(Error::NoFreeExtent)?;
        extents[free] = Some(Extent { label, pages: Vec::new() });
        let id = ExtentId(u32::try_from(free).expect("few extents"));
        self.starts.open(id);
        Ok(id)
    }

    fn append(&self, at: PageId, page: Page, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.starts.pass(at).await;
            // Some take much longer than others.
            let slow = lock(&self.cells.rng).below(8) == 0;
            self.cells.pass_time(if slow { 4_000_000 } else { 300_000 }).await;
            {
                let mut extents = self.cells.extents();
                let extent = extents[at.extent.0 as usize].as_mut().expect("it was opened");
                let number = at.page as usize;
                if extent.pages.len() <= number {
                    extent.pages.resize(number + 1, None);
                }
                assert!(extent.pages[number].is_none(), "a page is written once");
                extent.pages[number] = Some(page);
            }
            if at.page == 0 {
                self.starts.landed(at.extent);
            }
            Ok(())
        })
    }

    fn read<'a>(
        &'a self,
        span: Span,
        _: Select<'a>,
        _: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        Box::pin(async move {
            *lock(&self.reads) += 1;
            self.cells.pass_time(60_000).await;
            if lock(&self.cells.damaged).contains(&at) {
                return Err(Error::Unrecovered(at));
            }
            let extents = self.cells.extents();
            let extent = extents[at.extent.0 as usize].as_ref().expect("only what is there");
            Ok(extent.pages[at.page as usize].clone().expect("only what was written"))
        })
    }

    fn reset(&self, extent: ExtentId, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.cells.pass_time(3_000_000).await;
            lock(&self.cells.damaged).retain(|page| page.extent != extent);
            if let Some(extent) = self.cells.extents()[extent.0 as usize].as_mut() {
                extent.pages.clear();
            }
            self.cells.pass_time(3_000_000).await;
            self.cells.extents()[extent.0 as usize] = None;
            Ok(())
        })
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.cells.extents();
        let used = extents.iter().zip(0..).filter_map(|(extent, id)| {
            let extent = extent.as_ref()?;
            let pages = u32::try_from(extent.pages.len()).expect("few pages");
            let holes = extent.pages.iter().zip(0..).filter(|(page, _)| page.is_none());
            let holes = holes.map(|(_, number)| number).collect();
            Some(ExtentInfo { id: ExtentId(id), label: extent.label, pages, holes, summary: None })
        });
        used.collect()
    }
}
