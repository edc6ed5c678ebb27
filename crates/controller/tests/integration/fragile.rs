//! Media in memory that fail when they are told to.

use clock::{Class, LocalFuture};
use media::{
    Blocks, BlocksShape, Error, ExtentId, ExtentInfo, Label, Media, Memory, MemoryBlocks, Page,
    PageId, Segments, Select, Shape, Span,
};
use std::future::ready;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Fragile<M> {
    inner: M,
    /// How many more things are asked of the medium until one fails, and how.
    next: Mutex<Option<(u32, Error)>>,
    flushes: AtomicU32,
}

impl<M> Fragile<M> {
    pub(crate) fn new(inner: M) -> Self {
        Self { inner, next: Mutex::default(), flushes: AtomicU32::default() }
    }

    /// Makes the next thing that is asked of the medium fail.
    pub(crate) fn fail_next(&self, error: Error) {
        self.fail_nth(1, error);
    }

    /// Makes the `nth` thing that is asked of the medium fail, from 1 on.
    pub(crate) fn fail_nth(&self, nth: u32, error: Error) {
        *self.next.lock().expect("one thread") = Some((nth, error));
    }

    pub(crate) fn flushes(&self) -> u32 {
        self.flushes.load(Ordering::Relaxed)
    }

    fn or_fail<'a, T: 'a>(
        &'a self,
        ask: impl FnOnce(&'a M) -> LocalFuture<'a, Result<T, Error>>,
    ) -> LocalFuture<'a, Result<T, Error>> {
        let mut next = self.next.lock().expect("one thread");
        match next.take() {
            Some((1, error)) => Box::pin(ready(Err(error))),
            later => {
                *next = later.map(|(nth, error)| (nth - 1, error));
                ask(&self.inner)
            }
        }
    }
}

impl Blocks for Fragile<MemoryBlocks> {
    fn shape(&self) -> BlocksShape {
        self.inner.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.or_fail(|inner| inner.read(first, count, class))
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    /// While something is to fail, reads from odd blocks on have to be waited for.
    fn read_at_once(&self, reads: &[(u64, u32)], contents: &mut Vec<Option<Segments>>) {
        let may_fail = self.next.lock().expect("one thread").is_some();
        for read in reads {
            if may_fail && read.0 % 2 == 1 {
                contents.push(None);
            } else {
                self.inner.read_at_once(&[*read], contents);
            }
        }
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        self.or_fail(|inner| inner.write(first, data, class))
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.or_fail(|inner| inner.trim(first, count, class))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.or_fail(MemoryBlocks::flush)
    }
}

impl Media for Fragile<Memory> {
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
        self.or_fail(|inner| inner.append(at, page, class))
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        self.or_fail(|inner| inner.read(span, select, class))
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.or_fail(|inner| inner.reset(extent, class))
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.inner.extents()
    }
}
