use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Span};
use crate::medium::{Media, Select};
use crate::page::Page;
use crate::sync::{Mutex, MutexGuard};
use clock::{Class, LocalFuture};
use std::future::ready;
use std::sync::{OnceLock, PoisonError};

/// A medium in memory that takes no time.
#[derive(Debug)]
pub struct Memory {
    shape: Shape,
    /// By extent: its pages, from the first time that it is opened on.
    pages: Vec<OnceLock<Pages>>,
    extents: Mutex<Extents>,
}

/// The pages of an extent by their numbers. A reader locks its page alone.
type Pages = Box<[Mutex<Option<Page>>]>;

#[derive(Debug)]
struct Extents {
    all: Vec<Option<Extent>>,
    free: u32,
}

#[derive(Debug)]
struct Extent {
    label: Label,
    /// The number of the next page.
    end: u32,
}

impl Memory {
    /// An empty medium of this shape.
    pub fn new(shape: Shape) -> Self {
        let all = (0..shape.extents).map(|_| None).collect();
        let pages = (0..shape.extents).map(|_| OnceLock::new()).collect();
        Self { shape, pages, extents: Mutex::new(Extents { all, free: shape.extents }) }
    }

    /// Returns the page as memory would best keep it, with the same content. Called before a reader
    /// has it.
    pub fn gathered(&self, page: Page) -> Page {
        page.gathered()
    }

    /// Returns what `read` makes of the page at `at`. This takes no time on any clock. `read` must
    /// not use this medium.
    #[inline]
    pub fn with_page<T>(&self, at: PageId, read: impl FnOnce(&Page) -> T) -> T {
        read(self.page(at).as_ref().expect("the log reads pages that it wrote"))
    }

    /// Frees `len` bytes from `start` on of the data on the page at `at`, which no reader needs, if
    /// they are a segment of their own.
    pub fn release(&self, at: PageId, start: u32, len: u32) {
        let mut page = self.page(at);
        page.as_mut().expect("the log writes a page before it releases it").release(start, len);
    }

    #[inline]
    fn page(&self, at: PageId) -> MutexGuard<'_, Option<Page>> {
        lock(&self.pages_of(at.extent)[at.page as usize])
    }

    #[inline]
    fn pages_of(&self, extent: ExtentId) -> &[Mutex<Option<Page>>] {
        self.pages[extent.0 as usize].get().expect("the log uses only extents that it opened")
    }

    fn extents(&self) -> MutexGuard<'_, Extents> {
        lock(&self.extents)
    }
}

/// No call that panics leaves a page or an extent half changed.
#[inline]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extents {
    #[inline]
    fn get(&mut self, id: ExtentId) -> &mut Extent {
        self.all[id.0 as usize].as_mut().expect("the log uses only extents that it opened")
    }
}

impl Media for Memory {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn as_memory(&self) -> Option<&Memory> {
        Some(self)
    }

    fn free_extents(&self) -> u32 {
        self.extents().free
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        let mut extents = self.extents();
        let free = extents.all.iter().position(Option::is_none).ok_or(Error::NoFreeExtent)?;
        extents.all[free] = Some(Extent { label, end: 0 });
        extents.free -= 1;
        let numbers = 0..self.shape.pages_per_extent;
        self.pages[free].get_or_init(|| numbers.map(|_| Mutex::default()).collect());
        Ok(ExtentId(u32::try_from(free).expect("extents are counted in 32 bits")))
    }

    fn append(&self, at: PageId, page: Page, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        assert!(page.data_bytes() <= self.shape.page_bytes, "the data of {at} fits its page");
        assert!(page.spare().len() <= self.shape.spare_bytes as usize, "{at} fits its spare area");
        let spare_bytes = u32::try_from(page.spare().len()).expect("it fits the spare area");
        let numbers = self.shape.numbers(spare_bytes, page.data_bytes());
        let mut extents = self.extents();
        let extent = extents.get(at.extent);
        let aligned = self.shape.frames.map_or(extent.end, |frames| frames.aligned(extent.end));
        assert!([extent.end, aligned].contains(&at.page), "pages are appended in order");
        extent.end = at.page + numbers;
        assert!(extent.end <= self.shape.pages_per_extent, "{at} lies within its extent");
        drop(extents);
        *self.page(at) = Some(page);
        Box::pin(ready(Ok(())))
    }

    fn read<'a>(
        &'a self,
        span: Span,
        _: Select<'a>,
        _: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        Box::pin(ready(Ok(self.with_page(span.at, Page::clone))))
    }

    fn reset(&self, extent: ExtentId, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.pages_of(extent).iter().for_each(|page| drop(lock(page).take()));
        let mut extents = self.extents();
        let before = extents.all[extent.0 as usize].take();
        assert!(before.is_some(), "only an extent in use is reset");
        extents.free += 1;
        Box::pin(ready(Ok(())))
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents();
        let used = extents.all.iter().zip(0..).filter_map(|(extent, id)| {
            let extent = extent.as_ref()?;
            let (label, pages) = (extent.label, extent.end);
            let id = ExtentId(id);
            Some(ExtentInfo { id, label, pages, holes: Vec::new(), summary: None })
        });
        used.collect()
    }

    fn pages(&self, extent: ExtentId) -> LocalFuture<'_, Result<Vec<u32>, Error>> {
        let pages = self.pages_of(extent).iter().zip(0..);
        let written = pages.filter_map(|(page, number)| lock(page).is_some().then_some(number));
        Box::pin(ready(Ok(written.collect())))
    }

    fn vouches(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::Stream;
    use base::Buf;

    const SHAPE: Shape = Shape {
        page_bytes: 4096,
        spare_bytes: 0,
        pages_per_extent: 2,
        extents: 2,
        parallelism: 1,
        frames: None,
    };

    fn page(tag: u64) -> Page {
        Page::new(&[], [Buf::phantom(4096, tag)])
    }

    #[test]
    fn extents_run_out_and_come_back_by_reset() {
        let memory = Memory::new(SHAPE);
        let label = Label { stream: Stream::Host, epoch: 7 };
        let first = memory.open(label).unwrap();
        memory.open(label).unwrap();
        assert_eq!(memory.open(label), Err(Error::NoFreeExtent));
        drop(memory.append(PageId { extent: first, page: 0 }, page(1), Class::HostWrite));
        let found = Media::extents(&memory);
        assert_eq!((found[0].label, found[0].pages, found[1].pages), (label, 1, 0));
        drop(memory.reset(first, Class::Gc));
        assert_eq!(memory.free_extents(), 1);
        assert_eq!(memory.open(label), Ok(first));
    }

    #[test]
    #[should_panic(expected = "pages are appended in order")]
    fn appending_out_of_order_panics() {
        let memory = Memory::new(SHAPE);
        let extent = memory.open(Label { stream: Stream::Host, epoch: 0 }).unwrap();
        drop(memory.append(PageId { extent, page: 1 }, page(1), Class::HostWrite));
    }
}
