use crate::zones::buffer::Ticket;
use clock::{Class, TaskId};
use media::{ExtentId, Page, Segments};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a zone holds from when it was empty until it is again.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) zone: u32,
    pages: Mutex<Pages>,
}

/// The pages of a content. Those that are neither open nor in `unlanded` lie in the extent.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Taken when the first page is closed.
    pub(crate) extent: Option<ExtentId>,
    /// The number of the open page.
    open: u32,
    open_data: Segments,
    open_bytes: u32,
    pub(crate) unlanded: BTreeMap<u32, Unlanded>,
    /// Appends to the extent that are under way.
    appends: u32,
    /// Of these appends, which are all of one class: it keeps their order.
    class: Option<Class>,
    readers: u32,
    /// Who waits for appends and readers to end.
    leaver: Option<TaskId>,
}

/// A closed page that has not landed.
#[derive(Clone, Debug)]
pub(crate) struct Unlanded {
    pub(crate) page: Arc<Page>,
    pub(crate) ticket: Ticket,
    /// Of the write that filled it.
    pub(crate) class: Class,
}

/// A part of what a read wants, within one page.
#[derive(Debug)]
pub(crate) enum Part {
    /// It had not landed when the read came.
    InMemory(Segments),
    /// Bytes `start..start + len` of a page of the extent.
    Landed { extent: ExtentId, page: u32, start: u32, len: u32 },
}

/// Keeps a content's extent from being reset.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Content>);

impl Content {
    pub(crate) fn new(zone: u32) -> Self {
        Self { zone, pages: Mutex::default() }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the bytes from `start` to `end` are.
    pub(crate) fn read(
        self: &Arc<Self>,
        start: u64,
        end: u64,
        page_bytes: u32,
    ) -> (Reading, Vec<Part>) {
        let mut pages = self.pages();
        pages.readers += 1;
        let page_bytes = u64::from(page_bytes);
        let numbers = start / page_bytes..end.div_ceil(page_bytes);
        let parts = numbers.map(|number| {
            let base = number * page_bytes;
            let from = start.max(base) - base;
            let to = end.min(base + page_bytes) - base;
            let small = |n: u64| u32::try_from(n).expect("pages, and offsets in them, are few");
            pages.part(small(number), small(from), small(to - from))
        });
        (Reading(self.clone()), parts.collect())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut pages = self.0.pages();
        pages.readers -= 1;
        pages.wake_leaver();
    }
}

impl Pages {
    /// Adds `data`, and returns the pages that it fills.
    pub(crate) fn join(&mut self, data: Segments, page_bytes: u32) -> Vec<(u32, Arc<Page>)> {
        let mut closed = Vec::new();
        for segment in data {
            let mut rest = segment;
            while rest.len() > 0 {
                let len = rest.len().min(page_bytes - self.open_bytes);
                self.open_data.push(rest.slice(0..len));
                self.open_bytes += len;
                rest = rest.slice(len..rest.len());
                if self.open_bytes == page_bytes {
                    closed.extend(self.close());
                }
            }
        }
        closed
    }

    /// Ends the open page, if it holds anything.
    pub(crate) fn close(&mut self) -> Option<(u32, Arc<Page>)> {
        if self.open_bytes == 0 {
            return None;
        }
        let page = Page::new(&[], std::mem::take(&mut self.open_data));
        self.open_bytes = 0;
        self.open += 1;
        Some((self.open - 1, Arc::new(page)))
    }

    /// Drops the open page, and returns how many bytes it held.
    pub(crate) fn drop_open(&mut self) -> u64 {
        self.open_data = Segments::new();
        u64::from(std::mem::take(&mut self.open_bytes))
    }

    fn part(&self, page: u32, start: u32, len: u32) -> Part {
        let found = if page == self.open {
            Page::new(&[], self.open_data.iter().cloned()).segments_at(start, len)
        } else if let Some(unlanded) = self.unlanded.get(&page) {
            unlanded.page.segments_at(start, len)
        } else {
            let extent = self.extent.expect("a page that has landed lies in an extent");
            return Part::Landed { extent, page, start, len };
        };
        Part::InMemory(found.expect("what is before the write pointer has been written"))
    }

    /// An append begins; returns its class, which is `class` if no other is under way.
    pub(crate) fn begin_append(&mut self, class: Class) -> Class {
        if self.appends == 0 {
            self.class = Some(class);
        }
        self.appends += 1;
        self.class.expect("it was set with the first of these appends")
    }

    /// The append of page `number` has ended. One that the medium did not take stays in memory.
    pub(crate) fn end_append(&mut self, number: u32, has_landed: bool) {
        self.appends -= 1;
        if has_landed {
            self.unlanded.remove(&number);
        }
        self.wake_leaver();
    }

    /// True when nobody uses the extent. Else the current task is woken then, and parks.
    pub(crate) fn is_left(&mut self) -> bool {
        let is_left = self.appends == 0 && self.readers == 0;
        if !is_left {
            self.leaver = Some(clock::current());
        }
        is_left
    }

    fn wake_leaver(&mut self) {
        if self.appends == 0
            && self.readers == 0
            && let Some(leaver) = self.leaver.take()
        {
            clock::wake(leaver);
        }
    }
}
