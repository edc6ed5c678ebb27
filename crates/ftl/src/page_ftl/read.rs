//! From logical blocks to their content.

use crate::page_ftl::layout::NONE;
use crate::page_ftl::lookahead::READS_MAX;
use crate::page_ftl::spare::verified;
use crate::page_ftl::state::State;
use crate::page_ftl::{GcBlocking, PageFtl};
use base::limits::BLOCK_BYTES;
use clock::{Class, join_all};
use media::{Blocks, Error, Page, Segments};
use nand::{InstantReads, Ppa};
use smallvec::SmallVec;

/// Neighbouring logical blocks that one read covers.
#[derive(Clone, Copy)]
struct Run {
    count: u32,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// Never written: they read as zeros.
    Nowhere,
    /// In memory: their first slot, which has not landed.
    Memory(u32),
    /// On flash: their first slot.
    Flash(u32),
}

impl PageFtl {
    /// Returns the content of `count` blocks from `first`.
    pub(crate) async fn read_blocks(
        &self,
        first: u32,
        count: u32,
        class: Class,
    ) -> Result<Segments, Error> {
        if count > 1 {
            let starts = self.parts(first, count);
            if starts.len() > 1 {
                return self.read_side_by_side(&starts, first + count, class).await;
            }
        }
        self.read_in_turn(first, count, class).await
    }

    /// Performs `reads`, each of a number of blocks from a first one on, as
    /// [`Blocks::read_at_once`] says.
    pub(crate) fn read_blocks_at_once(
        &self,
        reads: &[(u32, u32)],
        contents: &mut Vec<Option<Segments>>,
    ) {
        if !self.reads_at_once() {
            return contents.extend(reads.iter().map(|_| None));
        }
        let state = self.state();
        if reads.len() > 1 {
            for (first, _) in reads {
                state.map.prefetch(*first);
            }
            self.prefetch_reads(&state, reads.iter().map(|(first, _)| *first));
        }
        let Some(mut flash) = self.nand.instant_reads() else {
            return contents.extend(reads.iter().map(|_| None));
        };
        let content =
            |&(first, count): &(u32, u32)| self.content_at_once(&state, &mut flash, first, count);
        contents.extend(reads.iter().map(content));
    }

    /// Returns the content of `count` blocks from `first`, if all of it is as it was written.
    #[inline]
    fn content_at_once(
        &self,
        state: &State,
        flash: &mut InstantReads<'_>,
        first: u32,
        count: u32,
    ) -> Option<Segments> {
        let mut data = Segments::new();
        let (mut at, end) = (first, first + count);
        while at < end {
            let Run { count, place } = self.run(state, at, end - at);
            let found = match place {
                Place::Nowhere => self.zeros(count),
                Place::Memory(slot) => self.in_memory(state, slot, count).ok()?,
                Place::Flash(slot) => {
                    let (page, within) = self.layout.split_slot(slot);
                    let content = |page: &Page| verified(page, within, count, self.layout.slots);
                    flash.read(self.layout.ppa(page), count * BLOCK_BYTES, content)?.ok()?
                }
            };
            add(&mut data, found);
            at += count;
        }
        Some(data)
    }

    fn zeros(&self, count: u32) -> Segments {
        (0..count).map(|_| self.zeros.clone()).collect()
    }

    /// Splits the blocks into parts that each lie on one flash page. Returns the first block of
    /// each part.
    fn parts(&self, first: u32, count: u32) -> SmallVec<[u32; 16]> {
        let state = self.state();
        let (mut starts, mut at, end) = (SmallVec::new(), first, first + count);
        starts.push(first);
        let mut has_page = false;
        while at < end {
            let run = self.run(&state, at, end - at);
            if let Place::Flash(_) = run.place {
                if has_page {
                    starts.push(at);
                }
                has_page = true;
            }
            at += run.count;
        }
        starts
    }

    async fn read_side_by_side(
        &self,
        starts: &[u32],
        end: u32,
        class: Class,
    ) -> Result<Segments, Error> {
        let ends = starts[1..].iter().chain([&end]);
        let reads = starts.iter().zip(ends).map(|(start, end)| {
            let (ftl, start, count) = (self.me(), *start, end - start);
            async move { ftl.read_in_turn(start, count, class).await }
        });
        let parts = join_all(reads.collect()).await;
        let mut data = Segments::new();
        for part in parts {
            data.extend(part?);
        }
        Ok(data)
    }

    /// Reads one run after the other.
    async fn read_in_turn(&self, first: u32, count: u32, class: Class) -> Result<Segments, Error> {
        let mut data = Segments::new();
        let (mut at, end) = (first, first + count);
        while at < end {
            if self.config.blocking == GcBlocking::Channel {
                self.pass_channel(at).await;
            }
            let (run, slot) = {
                let mut state = self.state();
                self.prefetch_announced(&mut state);
                let run = self.run(&state, at, end - at);
                match run.place {
                    Place::Nowhere => {
                        add(&mut data, self.zeros(run.count));
                        (run, NONE)
                    }
                    Place::Memory(slot) => {
                        let found = self.in_memory(&state, slot, run.count);
                        data.extend(found.map_err(|lost| unrecovered(at + lost))?);
                        (run, NONE)
                    }
                    Place::Flash(slot) => {
                        let block = self.layout.block_of_slot(slot);
                        state.blocks[block as usize].pins += 1;
                        (run, slot)
                    }
                }
            };
            if slot != NONE {
                let read = self.read_flash(slot, run.count, class, &mut data).await;
                read.map_err(|lost| unrecovered(at + lost))?;
            }
            at += run.count;
        }
        Ok(data)
    }

    /// Reads `count` slots of one page of a pinned block, and unpins it. Fails with the first of
    /// them that differs from what was written.
    #[inline]
    async fn read_flash(
        &self,
        slot: u32,
        count: u32,
        class: Class,
        data: &mut Segments,
    ) -> Result<(), u32> {
        let bytes = count * BLOCK_BYTES;
        let ppa = self.layout.ppa(self.layout.page_of_slot(slot));
        let within = slot % self.layout.slots;
        let ask = |page: &Page| {
            // Most pages have a segment for each slot. Prefetch it for use after the transfer.
            page.prefetch_segments(within as usize);
            bytes
        };
        let page = self.nand.read(ppa, &ask, class).await;
        let block = self.layout.block_of_slot(slot);
        {
            let mut state = self.state();
            state.blocks[block as usize].unpin();
            if page.is_err() {
                self.doom(&mut state, block);
            }
        }
        let page = page.map_err(|_| 0_u32)?;
        let content = verified(&page, within, count, self.layout.slots);
        let content = content.map_err(|lost| lost - within)?;
        add(data, content);
        Ok(())
    }

    /// Prefetches the memory that reads which were announced will touch.
    #[inline]
    fn prefetch_announced(&self, state: &mut State) {
        if let Some(announced) = state.lookahead.take() {
            self.prefetch_reads(state, announced.into_iter());
        }
    }

    /// Prefetches the memory that reads of these blocks will touch: a miss of the cache of one
    /// overlaps with those of the others.
    fn prefetch_reads(&self, state: &State, blocks: impl Iterator<Item = u32>) {
        let slots = blocks.map(|block| state.map.get(block));
        let reads = slots.filter(|slot| *slot != NONE).map(|slot| {
            let (page, within) = self.layout.split_slot(slot);
            (self.layout.ppa(page), within)
        });
        let reads: SmallVec<[(Ppa, u32); READS_MAX]> = reads.take(READS_MAX).collect();
        self.nand.cells().prefetch_all(&reads);
    }

    /// Returns the longest run of at most `count` blocks from `first` that one read covers.
    #[inline]
    fn run(&self, state: &State, first: u32, count: u32) -> Run {
        let slot = state.map.get(first);
        if slot == NONE {
            let unwritten = (first..first + count).take_while(|at| state.map.get(*at) == NONE);
            let count = u32::try_from(unwritten.count()).expect("no more than was asked for");
            return Run { count, place: Place::Nowhere };
        }
        let most = count.min(self.layout.slots - self.layout.split_slot(slot).1);
        let neighbour = |more: &u32| state.map.get(first + more) == slot + more;
        let more = (1..most).take_while(neighbour).count();
        let count = 1 + u32::try_from(more).expect("no more than was asked for");
        let place =
            if self.has_landed(state, slot) { Place::Flash(slot) } else { Place::Memory(slot) };
        Run { count, place }
    }

    #[inline]
    fn has_landed(&self, state: &State, slot: u32) -> bool {
        let page = self.layout.page_of_slot(slot);
        let (block, within) = self.layout.split_page(page);
        let has_been = within < state.blocks[block as usize].landed;
        has_been && (state.stranded.is_empty() || !state.stranded.contains_key(&page))
    }

    /// Returns the slot of a logical block that is on flash.
    pub(crate) fn landed_slot(&self, state: &State, number: u32) -> Option<u32> {
        let slot = state.map.get(number);
        (slot != NONE && self.has_landed(state, slot)).then_some(slot)
    }

    /// Returns the content of `count` slots of a page that has not landed, or the first lost one.
    fn in_memory(&self, state: &State, slot: u32, count: u32) -> Result<Segments, u32> {
        let page = self.layout.page_of_slot(slot);
        let unit = self.layout.unit_of(self.layout.block_of_page(page));
        let within = slot % self.layout.slots;
        let closed = |content: &Page| {
            let found = verified(content, within, count, self.layout.slots);
            found.map_err(|lost| lost - within)
        };
        if let Some(content) = state.stranded.get(&page) {
            return closed(content);
        }
        let frontiers = &state.units[unit as usize].frontiers;
        let found = frontiers.iter().find_map(|frontier| {
            if let Some(open) = frontier.open.as_ref().filter(|open| open.page == page) {
                return Some(open.content(within, count));
            }
            let (_, content) = frontier.unlanded.iter().find(|(number, _)| *number == page)?;
            Some(closed(content))
        });
        found.expect("what has not landed is in memory")
    }
}

/// Adds `more` behind `data`.
#[inline]
fn add(data: &mut Segments, more: Segments) {
    if data.is_empty() {
        *data = more;
    } else {
        data.extend(more);
    }
}

fn unrecovered(block: u32) -> Error {
    Error::UnrecoveredBlock(block.into())
}
