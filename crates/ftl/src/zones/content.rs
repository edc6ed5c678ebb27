use crate::zones::buffer::Ticket;
use base::Buf;
use clock::{Class, TaskId};
use media::{ExtentId, Page, Segments};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The content of a zone from its first write or opening to its next reset.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) zone: u32,
    /// Its number, counted over all zones.
    pub(crate) fill: u64,
    pages: Mutex<Pages>,
}

/// The pages of a content. Those that are neither open nor in `unlanded` are in the extent.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Taken when the first page is closed.
    pub(crate) extent: Option<ExtentId>,
    /// The number of the open page.
    open: u32,
    open_data: Segments,
    open_bytes: u32,
    pub(crate) unlanded: BTreeMap<u32, Unlanded>,
    /// Pages of the extent known to be lost.
    lost: BTreeSet<u32>,
    /// Number of appends to the extent in flight.
    appends: u32,
    /// The class of the appends in flight: one class, which keeps their order.
    class: Option<Class>,
    readers: u32,
    /// The task that waits for appends and readers to end.
    leaver: Option<TaskId>,
}

/// A closed page that has not landed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Unlanded {
    pub(crate) page: Page,
    /// `None` once no extent is to be had for the page.
    pub(crate) ticket: Option<Ticket>,
    /// The class of the write that filled it.
    pub(crate) class: Class,
}

/// A content that no task reads or writes, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedContent {
    fill: u64,
    extent: Option<ExtentId>,
    open: u32,
    open_data: Vec<Buf>,
    unlanded: BTreeMap<u32, Unlanded>,
    lost: BTreeSet<u32>,
}

/// A part of a read's data, within one page.
#[derive(Debug)]
pub(crate) enum Part {
    /// Data that had not landed when the read arrived.
    InMemory(Segments),
    /// Bytes `start..start + len` of a page of the extent.
    Landed { extent: ExtentId, page: u32, start: u32, len: u32 },
    /// A page of the extent that a start found to be lost.
    Lost { extent: ExtentId, page: u32 },
}

/// Keeps a content's extent from being reset.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Content>);

impl Content {
    pub(crate) fn new(zone: u32, fill: u64) -> Self {
        Self { zone, fill, pages: Mutex::default() }
    }

    /// Returns the content that a start found: whole pages below `open` in `extent`, except for
    /// `lost`.
    pub(crate) fn found(
        zone: u32,
        fill: u64,
        extent: Option<ExtentId>,
        lost: BTreeSet<u32>,
        open: u32,
    ) -> Self {
        let pages = Mutex::new(Pages { extent, open, lost, ..Pages::default() });
        Self { zone, fill, pages }
    }

    pub(crate) fn save(&self) -> SavedContent {
        let pages = self.pages();
        SavedContent {
            fill: self.fill,
            extent: pages.extent,
            open: pages.open,
            open_data: pages.open_data.to_vec(),
            unlanded: pages.unlanded.clone(),
            lost: pages.lost.clone(),
        }
    }

    pub(crate) fn restored(zone: u32, saved: SavedContent) -> Self {
        let pages = Pages {
            extent: saved.extent,
            open: saved.open,
            open_bytes: saved.open_data.iter().map(Buf::len).sum(),
            open_data: saved.open_data.into(),
            unlanded: saved.unlanded,
            lost: saved.lost,
            ..Pages::default()
        };
        Self { zone, fill: saved.fill, pages: Mutex::new(pages) }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the bytes from `start` to `end` are.
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
        let parts = parts.collect();
        // Dropping a `Reading` locks the pages.
        drop(pages);
        (Reading(self.clone()), parts)
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
    pub(crate) fn join(&mut self, data: Segments, page_bytes: u32) -> Vec<(u32, Segments)> {
        let mut closed = Vec::new();
        for segment in data {
            let mut rest = segment;
            while rest.len() > 0 {
                let len = rest.len().min(page_bytes - self.open_bytes);
                self.open_data.push(rest.slice(0..len));
                self.open_bytes += len;
                rest = rest.slice(len..rest.len());
                if self.open_bytes == page_bytes {
                    closed.push(self.close());
                }
            }
        }
        closed
    }

    /// Closes the open page, even if it is empty, and returns its number and data.
    pub(crate) fn close(&mut self) -> (u32, Segments) {
        self.open_bytes = 0;
        self.open += 1;
        (self.open - 1, std::mem::take(&mut self.open_data))
    }

    /// Returns the number and data of the open page, unless it is empty.
    pub(crate) fn open(&self) -> Option<(u32, Segments)> {
        (self.open_bytes > 0).then(|| (self.open, self.open_data.clone()))
    }

    /// Returns the bytes in the open page.
    pub(crate) const fn open_bytes(&self) -> u32 {
        self.open_bytes
    }

    fn part(&self, page: u32, start: u32, len: u32) -> Part {
        let found = if page == self.open {
            media::cut(&self.open_data, start, len)
        } else if let Some(unlanded) = self.unlanded.get(&page) {
            unlanded.page.segments_at(start, len)
        } else {
            let extent = self.extent.expect("a page that has landed lies in an extent");
            if self.lost.contains(&page) {
                return Part::Lost { extent, page };
            }
            return Part::Landed { extent, page, start, len };
        };
        Part::InMemory(found.expect("what is before the write pointer has been written"))
    }

    /// Begins an append. Returns the class of the appends in flight, or `class` without any.
    pub(crate) fn begin_append(&mut self, class: Class) -> Class {
        if self.appends == 0 {
            self.class = Some(class);
        }
        self.appends += 1;
        self.class.expect("it was set with the first of these appends")
    }

    /// Ends the append of page `number`. A page that failed stays in memory.
    pub(crate) fn end_append(&mut self, number: u32, has_landed: bool) {
        self.appends -= 1;
        if has_landed {
            self.unlanded.remove(&number);
        }
        self.wake_leaver();
    }

    /// True when no task uses the extent. Else the current task is woken then, and parks.
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
