//! A medium whose operations take time, and of which pages can be made unreadable.

use base::{Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use media::{
    Error, ExtentId, ExtentInfo, Label, Media, Memory, Page, PageId, Select, Shape, Span, Stream,
};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// See the module's documentation. Each operation takes a random time around what flash takes, so
/// that they end in any order.
pub(crate) struct Slow {
    memory: Memory,
    state: Mutex<(Rng, BTreeSet<PageId>)>,
    loses: Mutex<Loses>,
}

/// The reads that lose their page, until its extent is reset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    None,
    /// The table page that is read after this number of others.
    Nth(u64),
    /// A table page, with a chance of one in this number of reads.
    OneOf(u64),
    /// A table page and a page of records, each with a chance of one in its number of reads.
    OneOfEach(u64, u64),
}

struct Loses {
    lost: Lost,
    rng: Rng,
    table_reads: u64,
    tables: u64,
    records: u64,
}

impl Slow {
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let state = Mutex::new((Rng::new(seed), BTreeSet::new()));
        let rng = Rng::new(!seed);
        let loses = Loses { lost: Lost::None, rng, table_reads: 0, tables: 0, records: 0 };
        Self { memory: Memory::new(shape), state, loses: Mutex::new(loses) }
    }

    /// Returns the medium that a loss of power at this instant would leave.
    pub(crate) async fn remains(&self, seed: u64) -> Self {
        let copy = Self::new(self.shape(), seed);
        let found = self.extents();
        for id in (0..self.shape().extents).map(ExtentId) {
            let info = found.iter().find(|info| info.id == id);
            let label = info.map_or(Label { stream: Stream::Host, epoch: 0 }, |info| info.label);
            assert_eq!(copy.memory.open(label), Ok(id));
            for page in 0..info.map_or(0, |info| info.pages) {
                let at = PageId { extent: id, page };
                let page = self.memory.read(Span::of(at), &|_| 0, Class::HostRead).await.unwrap();
                copy.memory.append(at, page, Class::HostWrite).await.unwrap();
            }
        }
        for id in (0..self.shape().extents).map(ExtentId) {
            if found.iter().all(|info| info.id != id) {
                copy.memory.reset(id, Class::Gc).await.unwrap();
            }
        }
        copy.state.lock().unwrap().1.clone_from(&self.state.lock().unwrap().1);
        copy
    }

    /// Sets how reads lose pages.
    pub(crate) fn lose(&self, lost: Lost) {
        self.loses.lock().unwrap().lost = lost;
    }

    /// Reads of table pages so far.
    pub(crate) fn table_reads(&self) -> u64 {
        self.loses.lock().unwrap().table_reads
    }

    /// Returns the numbers of pages of tables and of records that were lost by [`Self::lose`].
    pub(crate) fn pages_lost(&self) -> (u64, u64) {
        let loses = self.loses.lock().unwrap();
        (loses.tables, loses.records)
    }

    fn is_lost_now(&self, at: PageId) -> bool {
        let extents = self.memory.extents();
        let is_table =
            extents.iter().any(|info| info.id == at.extent && info.label.stream == Stream::Index);
        self.loses.lock().unwrap().draw(is_table)
    }

    /// Makes half of the current table pages, chosen at random, unreadable until their extents are
    /// reset.
    pub(crate) fn damage_tables(&self) {
        let extents = self.extents();
        let tables = extents.iter().filter(|extent| extent.label.stream == Stream::Index);
        let pages = tables
            .flat_map(|extent| (0..extent.pages).map(|page| PageId { extent: extent.id, page }));
        let mut state = self.state.lock().unwrap();
        for at in pages {
            if state.0.below(2) == 0 {
                state.1.insert(at);
            }
        }
    }

    async fn takes(&self, micros: u64) {
        let time = micros / 2 + self.state.lock().unwrap().0.below(micros);
        clock::sleep(Nanos::from_micros(time), Stage::Array).await;
    }
}

impl Loses {
    fn draw(&mut self, is_table: bool) -> bool {
        let nth = self.table_reads;
        self.table_reads += u64::from(is_table);
        let is_lost = match self.lost {
            Lost::None => false,
            Lost::Nth(wanted) => is_table && nth == wanted,
            Lost::OneOf(tables) => is_table && self.rng.below(tables) == 0,
            Lost::OneOfEach(tables, records) => {
                self.rng.below(if is_table { tables } else { records }) == 0
            }
        };
        *if is_table { &mut self.tables } else { &mut self.records } += u64::from(is_lost);
        is_lost
    }
}

impl Media for Slow {
    fn shape(&self) -> Shape {
        self.memory.shape()
    }

    fn free_extents(&self) -> u32 {
        self.memory.free_extents()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        self.memory.open(label)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        let written = self.memory.append(at, page, class);
        Box::pin(async move {
            self.takes(400).await;
            written.await
        })
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        Box::pin(async move {
            self.takes(50).await;
            if self.is_lost_now(at) {
                self.state.lock().unwrap().1.insert(at);
            }
            if self.state.lock().unwrap().1.contains(&at) {
                return Err(Error::Unrecovered(at));
            }
            self.memory.read(span, select, class).await
        })
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.takes(2_000).await;
            self.state.lock().unwrap().1.retain(|at| at.extent != extent);
            self.memory.reset(extent, class).await
        })
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.memory.extents()
    }
}
