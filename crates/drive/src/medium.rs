use crate::drive::Drive;
use crate::durability::Durability;
use crate::find::{Found, Lacks};
use crate::format::{self, DriveInfo, Format};
use crate::ledger::Entry;
use crate::open_error::OpenError;
use crate::origin::Opening;
use crate::superblock::Superblock;
use crate::walk::Walk;
use crate::workers;
use clock::{Class, LocalFuture};
use media::{
    Blocks, Ends, Error, ExtentId, ExtentInfo, Label, Landings, Media, OnDisk, Page, PageId,
    Select, Shape, Span, Swept, Traffic,
};
use std::fmt;
use std::sync::{Arc, Weak};

/// A drive on logical blocks that keep what was written only after a flush: a file, or a disk. See
/// `docs/internals/drive-format.md` for what lies where.
///
/// Pages are frames. They are gathered into long writes and share flushes; each extent lands them
/// in order, so that a loss of power leaves its first ones. Tasks of several reactors may use one.
pub struct Medium {
    pub(crate) drive: Arc<Drive>,
    info: DriveInfo,
}

impl Medium {
    /// Makes an empty drive of all blocks, whatever they held. A loss of power meanwhile leaves no
    /// drive.
    pub async fn format(blocks: Arc<dyn Blocks>, format: Format) -> Result<(), OpenError> {
        format::format(blocks, format).await
    }

    /// Whether a drive of all blocks would have so many `extents`. Nothing is written.
    pub fn check_room(blocks: &dyn Blocks, format: &Format, extents: u32) -> Result<(), OpenError> {
        format::extents_of(blocks, format, extents).map(|_| ())
    }

    /// What the superblock on `blocks` says. Reads that alone.
    pub async fn probe(blocks: &dyn Blocks) -> Result<DriveInfo, OpenError> {
        Ok(format::probe(blocks).await?.info())
    }

    /// The drive on `blocks`. Takes two small reads for each extent; those that were being appended
    /// to when it was last used are read through.
    pub async fn open(blocks: Arc<dyn Blocks>, durability: Durability) -> Result<Self, OpenError> {
        let mut superblock = format::probe(&*blocks).await?;
        // A process that ended may have left what no flush covers; from here on it is built upon.
        blocks.flush().await?;
        superblock.mount = superblock.next_mount()?;
        let mut drive = Arc::new(superblock.drive(blocks.clone(), durability)?);
        let mut todo = drive.find_all().await;
        let last = drive.last_mount();
        if last >= superblock.mount {
            // Both superblocks are from an earlier start. What is written in a mount that was there
            // before would not be told from what is old.
            superblock.mount = Superblock { mount: last, ..superblock }.next_mount()?;
            drive = Arc::new(superblock.drive(blocks, durability)?);
            todo = drive.find_all().await;
        }
        for (extent, lacks, _) in &todo {
            drive.complete(*extent, *lacks).await?;
        }
        drive.write_superblocks(&superblock).await?;
        for (extent, _, entry) in todo {
            if let Some(entry) = entry {
                drive.enter(&mut drive.state(), extent, entry);
            }
        }
        drive.ledger_written().await;
        Ok(Self { drive, info: superblock.info() })
    }

    /// The same to look at: nothing is written to the blocks, and what would fails with
    /// [`Error::ReadOnly`].
    pub async fn look(blocks: Arc<dyn Blocks>) -> Result<Self, OpenError> {
        let superblock = format::probe(&*blocks).await?;
        let drive = Arc::new(superblock.drive(blocks, Durability::Group)?);
        drive.find_all().await;
        drive.end_writing(Error::ReadOnly);
        Ok(Self { drive, info: superblock.info() })
    }

    /// Ends all extents that are appended to, once what was appended has landed, so that the next
    /// start reads none of them through. Nothing more is written after that. Whoever appends has
    /// stopped before.
    pub async fn close(&self) -> Result<(), Error> {
        let open = self.drive.each_extent(|id, extent| extent.is_open().then_some(id));
        for extent in open {
            self.drive.end(extent, None).await?;
        }
        // The ledger tells of footers that are flushed.
        let is_clean = self.drive.state().flushes.is_clean();
        if !is_clean {
            self.drive.flushed().await?;
        }
        self.drive.ledger_written().await;
        self.drive.blocks.flush().await?;
        self.drive.end_writing(Error::ReadOnly);
        Ok(())
    }

    /// The byte of the blocks at which a page begins.
    pub fn byte_of(&self, at: PageId) -> u64 {
        self.drive.layout.frame_start(at)
    }

    /// What the superblock says.
    pub const fn info(&self) -> DriveInfo {
        self.info
    }
}

impl Drive {
    /// Finds what the extents hold, and returns what each lacks, and what the ledger is to say once
    /// it lacks nothing.
    async fn find_all(self: &Arc<Self>) -> Vec<(ExtentId, Lacks, Option<Entry>)> {
        let ledger = self.read_ledger().await;
        self.state().ledger = ledger;
        let drive = self.clone();
        let find = move |extent| {
            let drive = drive.clone();
            async move { drive.find(extent).await }
        };
        let found: Vec<Found> = workers::each(self.layout.extents, find).await;
        let numbered = || (0..).map(ExtentId).zip(&found);
        let todo = numbered().map(|(extent, of)| (extent, of.lacks, of.entry(self.mount)));
        let todo = todo.collect();
        let outdated = numbered().filter(|(_, found)| found.is_outdated);
        let outdated = outdated.map(|(extent, _)| extent).collect();
        let mut found = found.into_iter().map(|found| found.extent);
        let free = self.each_extent(|id, extent| {
            *extent = found.next().expect("each extent was looked at");
            extent.used.is_none().then_some((extent.opening.count, id))
        });
        let state = &mut *self.state();
        state.outdated = outdated;
        for (opened, id) in free {
            state.free.add(opened, id);
        }
        todo
    }

    /// The mount of the latest opening that anything on the blocks tells of.
    pub(crate) fn last_mount(&self) -> u32 {
        let mounts = self.each_extent(|_, extent| Some(extent.opening.mount));
        mounts.into_iter().max().unwrap_or_default().max(self.state().ledger.last_mount())
    }

    async fn complete(&self, extent: ExtentId, lacks: Lacks) -> Result<(), Error> {
        match lacks {
            Lacks::Nothing => Ok(()),
            // So it is not read through again, and later damage is told from what was cut off.
            Lacks::Footer => {
                let end = self.extent(extent).used().end;
                self.write_footer(extent, end, None).await
            }
            Lacks::Marks => {
                let count = self.extent(extent).opening.count;
                let opening = Opening { mount: self.mount, count };
                self.write_marks(extent, opening, Class::HostWrite).await
            }
        }
    }

    async fn pages(&self, id: ExtentId) -> Vec<u32> {
        let (opening, end) = {
            let mut extent = self.extent(id);
            let (opening, failed) = (extent.opening, extent.end());
            let used = extent.used();
            if let Some(pages) = &used.pages {
                return pages.iter().copied().filter(|page| Some(*page) < failed).collect();
            }
            (opening, used.end)
        };
        let walked = Walk::new(self, id).frames(opening, end, false).await;
        walked.places.into_iter().map(|place| place.page).collect()
    }
}

impl Media for Medium {
    fn shape(&self) -> Shape {
        self.drive.layout.shape(self.drive.blocks.shape().parallelism)
    }

    fn as_disk(&self) -> Option<&dyn OnDisk> {
        Some(self)
    }

    fn free_extents(&self) -> u32 {
        let free = self.drive.state().free.count();
        u32::try_from(free).expect("extents are counted in 32 bits")
    }

    fn writable(&self) -> Result<(), Error> {
        self.drive.writable()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        self.drive.writable()?;
        let (opened, id) = self.drive.state().free.take()?;
        let opening = Opening { mount: self.drive.mount, count: opened.wrapping_add(1) };
        self.drive.extent(id).open(opening, label);
        Ok(id)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.drive.append(at, page, class))
    }

    fn read<'a>(
        &'a self,
        span: Span,
        _: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        Box::pin(self.drive.read(span, class))
    }

    fn read_all(
        &self,
        spans: Vec<Span>,
        class: Class,
    ) -> LocalFuture<'_, Vec<Result<Page, Error>>> {
        Box::pin(self.drive.read_all(spans, class))
    }

    fn pages(&self, extent: ExtentId) -> LocalFuture<'_, Result<Vec<u32>, Error>> {
        Box::pin(async move { Ok(self.drive.pages(extent).await) })
    }

    fn sweep(
        &self,
        extent: ExtentId,
        from: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Swept, Error>> {
        Box::pin(self.drive.sweep(extent, from, class))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.drive.flush())
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.drive.reset(extent, class))
    }

    fn vouches_for_headers(&self) -> bool {
        true
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.drive.each_extent(|id, extent| extent.info(id))
    }
}

impl OnDisk for Medium {
    fn place(&self, from: PageId, holds: bool) -> u32 {
        self.drive.place(from, holds)
    }

    fn seal(&self, extent: ExtentId, summary: u32) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.drive.end(extent, Some(summary)))
    }

    fn traffic(&self) -> Option<Traffic> {
        self.drive.blocks.traffic()
    }

    fn outdated(&self) -> Vec<ExtentId> {
        self.drive.each_extent(|id, extent| extent.is_outdated().then_some(id))
    }

    fn queue(&self, at: PageId, page: Page, class: Class) -> Result<(), Error> {
        self.drive.queue(at, page, class).map(drop)
    }

    fn ends(&self, extent: ExtentId) -> Ends {
        self.drive.extent(extent).ends(self.drive.durability)
    }

    fn report_to(&self, log: Weak<dyn Landings>) {
        self.drive.state().log = Some(log);
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Medium of {:?}", self.drive.layout)
    }
}
