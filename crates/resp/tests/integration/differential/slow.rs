use base::{Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Memory, Page, PageId, Select, Shape, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Memory that takes its time to write, so that commands meet on their way, and may fail to. It
/// counts the pages that are read.
#[derive(Debug)]
pub(crate) struct Slow {
    inner: Memory,
    rng: Mutex<Rng>,
    fails: AtomicBool,
    read_pages: AtomicU64,
}

impl Slow {
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let rng = Mutex::new(Rng::new(seed));
        let inner = Memory::new(shape);
        Self { inner, rng, fails: AtomicBool::new(false), read_pages: AtomicU64::new(0) }
    }

    /// Sets whether later writes fail, after their usual time.
    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Relaxed);
    }

    /// Pages that were read so far.
    pub(crate) fn read_pages(&self) -> u64 {
        self.read_pages.load(Relaxed)
    }
}

impl Media for Slow {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn free_extents(&self) -> u32 {
        self.inner.free_extents()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        self.inner.open(label)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        let time = self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(20_000);
        Box::pin(async move {
            let appended = self.inner.append(at, page, class).await;
            clock::sleep(Nanos(time), Stage::Array).await;
            if self.fails.load(Relaxed) { Err(Error::UnwrittenBlock(0)) } else { appended }
        })
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        self.read_pages.fetch_add(span.units.into(), Relaxed);
        self.inner.read(span, select, class)
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.inner.reset(extent, class)
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.inner.extents()
    }
}
