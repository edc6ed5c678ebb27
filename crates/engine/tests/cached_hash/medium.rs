//! A medium whose operations take time, and of which pages can be made unreadable.

use base::{Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use media::{
    Error, ExtentId, ExtentInfo, Label, Media, Memory, Page, PageId, Select, Shape, Stream,
};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// See the module's documentation. Each operation takes a random time around what flash takes, so
/// that they end in any order.
pub(crate) struct Slow {
    memory: Memory,
    state: Mutex<(Rng, BTreeSet<PageId>)>,
}

impl Slow {
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        Self { memory: Memory::new(shape), state: Mutex::new((Rng::new(seed), BTreeSet::new())) }
    }

    /// From here on every other of the pages that tables have now cannot be read, until its extent
    /// is reset.
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
        at: PageId,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        Box::pin(async move {
            self.takes(50).await;
            if self.state.lock().unwrap().1.contains(&at) {
                return Err(Error::Unrecovered(at));
            }
            self.memory.read(at, select, class).await
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
