use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Span};
use crate::medium::{Media, Select};
use crate::page::Page;
use clock::{Class, LocalFuture};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A medium in memory that takes no time.
#[derive(Debug)]
pub struct Memory {
    shape: Shape,
    extents: Mutex<Extents>,
}

#[derive(Debug)]
struct Extents {
    all: Vec<Option<Extent>>,
    free: u32,
}

#[derive(Debug)]
struct Extent {
    label: Label,
    /// In the order of their numbers.
    pages: Vec<(u32, Page)>,
    /// The number of the next page.
    end: u32,
}

impl Extent {
    fn page(&self, number: u32) -> &Page {
        &self.pages[self.place(number)].1
    }

    fn place(&self, number: u32) -> usize {
        // Unless pages have several numbers, each is at the place of its number.
        match self.pages.get(number as usize) {
            Some((there, _)) if *there == number => number as usize,
            _ => {
                let at = self.pages.binary_search_by_key(&number, |(number, _)| *number);
                at.expect("the log reads pages that it wrote")
            }
        }
    }
}

impl Memory {
    /// An empty medium of this shape.
    pub fn new(shape: Shape) -> Self {
        let all = (0..shape.extents).map(|_| None).collect();
        Self { shape, extents: Mutex::new(Extents { all, free: shape.extents }) }
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
        read(self.extents().get(at.extent).page(at.page))
    }

    /// Frees `len` bytes from `start` on of the data on the page at `at`, which no reader needs, if
    /// they are a segment of their own.
    pub fn release(&self, at: PageId, start: u32, len: u32) {
        let mut extents = self.extents();
        let extent = extents.get(at.extent);
        let place = extent.place(at.page);
        extent.pages[place].1.release(start, len);
    }

    fn extents(&self) -> MutexGuard<'_, Extents> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        extents.all[free] = Some(Extent { label, pages: Vec::new(), end: 0 });
        extents.free -= 1;
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
        extent.pages.push((at.page, page));
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
        let pages = self.extents().get(extent).pages.iter().map(|(number, _)| *number).collect();
        Box::pin(ready(Ok(pages)))
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
