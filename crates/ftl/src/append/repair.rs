//! How a block whose program failed is replaced by another one of its plane.

use crate::append::AppendFtl;
use crate::append::repairs::Place;
use clock::Class;
use media::{Error, Page, PageId};
use nand::{BlockId, CopyError, Ppa, ProgramError};

/// Why a block was not replaced.
enum Failure {
    /// No free block of the plane is left.
    NoSpare,
    PowerLost,
}

impl AppendFtl {
    /// Programs a page on flash that may fail; replaces the block of the page if it does.
    pub(super) async fn program_or_replace(
        &self,
        at: PageId,
        ppa: Ppa,
        page: Page,
        tag: Option<nand::Tag>,
        class: Class,
    ) -> Result<(), Error> {
        let place = self.place_of(at);
        if self.has_no_block(at, ppa.block) {
            return Err(Error::Unrecovered(at));
        }
        if !self.repairs.begin(place, at, &page) {
            return self.repairs.landed(at).await;
        }
        let programmed = self.nand.program(ppa, page.clone(), tag, class).await;
        self.repairs.end(place);
        match programmed {
            Ok(()) => Ok(()),
            Err(ProgramError::PowerLost) => Err(Error::PowerLost),
            Err(ProgramError::Failed) if self.repairs.open(place, at, page) => {
                self.repair(place, class).await;
                self.repairs.result(at)
            }
            Err(ProgramError::Failed) => self.repairs.landed(at).await,
        }
    }

    fn place_of(&self, at: PageId) -> Place {
        (at.extent, at.page % self.sets.width)
    }

    /// True when the extent of `at` takes no more appends, not even in a replacement block.
    fn has_no_block(&self, at: PageId, block: BlockId) -> bool {
        let mut blocks = self.blocks();
        if blocks.is_out_of_use(block) {
            self.abandon(&mut blocks, at.extent);
        }
        blocks.is_abandoned(at.extent)
    }

    /// Replaces the block of a place until every waiting page is on the flash or is given up.
    async fn repair(&self, place: Place, class: Class) {
        self.repairs.quiet(place).await;
        loop {
            match self.replace(place, class).await {
                Ok(()) => {}
                Err(Failure::PowerLost) => {
                    self.repairs.give_up(place, |_| Error::PowerLost);
                    return;
                }
                Err(Failure::NoSpare) => {
                    let mut blocks = self.blocks();
                    let block = blocks.block(place.0, place.1);
                    blocks.suspect(block);
                    self.abandon(&mut blocks, place.0);
                    drop(blocks);
                    self.repairs.give_up(place, Error::Unrecovered);
                    return;
                }
            }
            match self.program_waiting(place, class).await {
                Ok(()) => return,
                Err(ProgramError::Failed) => {}
                Err(ProgramError::PowerLost) => {
                    self.repairs.give_up(place, |_| Error::PowerLost);
                    return;
                }
            }
        }
    }

    /// Moves a block's pages, and those that failed or wait, to a free block of its plane, then
    /// retires the old block. The new pages count as durable only after the mark, because a start
    /// may still choose the old block before it.
    async fn replace(&self, place: Place, class: Class) -> Result<(), Failure> {
        let (extent, position) = place;
        let from = self.blocks().block(extent, position);
        let mut replaced = self.blocks().replaced(extent, position);
        loop {
            let unit = self.sets.unit_of(from);
            let spare = self.blocks().reserve(unit, self.nand.cells());
            let to = spare.ok_or(Failure::NoSpare)?;
            replaced += 1;
            match self.fill(place, from, to, replaced, class).await {
                Ok(()) => {
                    self.blocks().replace(extent, position, to, replaced);
                    self.mark(from, class).await?;
                    let rows = self.nand.cells().programmed(to);
                    self.repairs.land_below(place, rows * self.sets.width);
                    return Ok(());
                }
                Err(ProgramError::Failed) => self.mark(to, class).await?,
                Err(ProgramError::PowerLost) => return Err(Failure::PowerLost),
            }
        }
    }

    async fn mark(&self, block: BlockId, class: Class) -> Result<(), Failure> {
        self.nand.retire(block, class).await.map_err(|_| Failure::PowerLost)
    }

    /// Programs `to` with all pages that `from` holds or should hold.
    async fn fill(
        &self,
        place: Place,
        from: BlockId,
        to: BlockId,
        replaced: u16,
        class: Class,
    ) -> Result<(), ProgramError> {
        for row in 0..self.nand.cells().programmed(from) {
            let (source, target) = (Ppa { block: from, page: row }, Ppa { block: to, page: row });
            let at = self.page_of(place, row);
            let tag = (row == 0).then(|| self.new_tag(at, to, replaced).encode());
            match self.repairs.page(place, at.page) {
                Some(page) => self.nand.program(target, page, tag, class).await?,
                None => match self.nand.copyback(source, target, tag, class).await {
                    Ok(()) => {}
                    Err(CopyError::Failed) => return Err(ProgramError::Failed),
                    Err(CopyError::PowerLost) => return Err(ProgramError::PowerLost),
                    Err(CopyError::Uncorrectable) => {
                        self.blocks().lose_page(at);
                        self.nand.program_unreadable(target, tag, class).await?;
                    }
                },
            }
        }
        Ok(())
    }

    /// Programs the pages appended during the replacement of their block.
    async fn program_waiting(&self, place: Place, class: Class) -> Result<(), ProgramError> {
        while let Some((number, page)) = self.repairs.next(place) {
            let block = self.blocks().block(place.0, place.1);
            let ppa = Ppa { block, page: number / self.sets.width };
            self.nand.program(ppa, page, None, class).await?;
            self.repairs.land_below(place, number + 1);
        }
        Ok(())
    }

    const fn page_of(&self, (extent, position): Place, row: u32) -> PageId {
        PageId { extent, page: row * self.sets.width + position }
    }
}
