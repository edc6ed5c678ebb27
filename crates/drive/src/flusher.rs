use crate::drive::Drive;
use crate::durability::Durability;
use crate::origin::Opening;
use clock::{Rank, Stage, TaskId};
use media::{Error, ExtentId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was written and what was flushed, of all extents together.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// Flushes that have begun; the last one may be under way.
    begun: u64,
    /// The last one that has ended.
    done: u64,
    /// A task flushes, or is about to.
    is_at_work: bool,
    /// One more flush is to begin.
    is_wanted: bool,
    /// Who waits for the end of a flush, by its number.
    waiters: Vec<(u64, TaskId)>,
    /// What a flush is to make durable.
    unflushed: Unflushed,
}

/// What was written of extents, and was not flushed.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    /// Up to where each extent is written, of those that are not flushed that far.
    written: BTreeMap<ExtentId, (Opening, u32)>,
    /// Where each extent ends of which the footer is written.
    ended: BTreeMap<ExtentId, (Opening, u32)>,
}

impl Flushes {
    /// All pages of an extent below `number` are written.
    pub(crate) fn note_written(&mut self, extent: ExtentId, opening: Opening, number: u32) {
        self.unflushed.written.insert(extent, (opening, number));
    }

    /// The footer of an extent is written, which ends at `number`.
    pub(crate) fn note_ended(&mut self, extent: ExtentId, opening: Opening, number: u32) {
        self.unflushed.ended.insert(extent, (opening, number));
    }

    /// Forgets an extent, which is about to be reset.
    pub(crate) fn forget(&mut self, extent: ExtentId) {
        self.unflushed.written.remove(&extent);
        self.unflushed.ended.remove(&extent);
    }

    /// True when there is nothing that a flush would make durable.
    pub(crate) fn is_clean(&self) -> bool {
        let Unflushed { written, ended } = &self.unflushed;
        written.is_empty() && ended.is_empty() && !self.is_at_work
    }
}

impl Drive {
    /// Has the next flush make durable what `note` notes. In [`Durability::Group`] it begins as
    /// soon as it can.
    pub(crate) fn flush_next(self: &Arc<Self>, note: impl FnOnce(&mut Flushes)) {
        let flushes = &mut self.state().flushes;
        // A flush that fails ends writing under this lock, and no flush begins after it.
        if self.writable().is_ok() {
            note(flushes);
            if self.durability == Durability::Group {
                self.want_flush(flushes);
            }
        }
    }

    /// Has a flush begin as soon as the one under way, if any, has ended.
    pub(crate) fn want_flush(self: &Arc<Self>, flushes: &mut Flushes) {
        flushes.is_wanted = true;
        if !flushes.is_at_work {
            flushes.is_at_work = true;
            clock::spawn(self.clone().flush_while_wanted());
        }
    }

    /// See [`media::Media::flush`].
    pub(crate) async fn flush(self: &Arc<Self>) -> Result<(), Error> {
        let is_needless = {
            // A flush that fails ends writing under this lock.
            let state = self.state();
            self.writable()?;
            self.durability != Durability::EverySecond || state.flushes.is_clean()
        };
        if is_needless { Ok(()) } else { self.flushed().await }
    }

    /// Waits until a flush has ended that begins after this, where the disk needs one.
    pub(crate) async fn flushed(self: &Arc<Self>) -> Result<(), Error> {
        if self.durability == Durability::Capacitor {
            return self.writable();
        }
        let number = {
            let mut state = self.state();
            self.writable()?;
            let number = state.flushes.begun + 1;
            state.flushes.waiters.push((number, clock::current()));
            self.want_flush(&mut state.flushes);
            number
        };
        clock::park(Rank::Array, Stage::Array).await;
        if self.state().flushes.done >= number { Ok(()) } else { self.writable() }
    }

    async fn flush_while_wanted(self: Arc<Self>) {
        clock::name_task("flush");
        while let Some(flushed) = self.begin_flush() {
            let result = self.blocks.flush().await;
            self.end_flush(&flushed, result);
        }
    }

    /// What the flush that begins makes durable; nothing when none is wanted.
    fn begin_flush(&self) -> Option<Unflushed> {
        let flushes = &mut self.state().flushes;
        flushes.is_at_work = std::mem::take(&mut flushes.is_wanted);
        if !flushes.is_at_work {
            return None;
        }
        flushes.begun += 1;
        Some(std::mem::take(&mut flushes.unflushed))
    }

    fn end_flush(self: &Arc<Self>, flushed: &Unflushed, result: Result<(), Error>) {
        let told = match result {
            Ok(()) => self.note_flushed(flushed),
            Err(error) => self.fail_all(error),
        };
        let has_ended = self.writable().is_err();
        {
            let flushes = &mut self.state().flushes;
            flushes.done = if result.is_ok() { flushes.begun } else { flushes.done };
            let done = flushes.done;
            flushes.waiters.retain(|(number, task)| {
                let goes_on = *number <= done || has_ended;
                if goes_on {
                    clock::wake(*task);
                }
                !goes_on
            });
        }
        for (id, opening) in told {
            self.tell_ends(self.extent(id), id, opening);
        }
    }

    /// Ends writing after a flush that has failed: what was written may be lost though a later one
    /// succeeds, since kernels tell only once. Returns the extents that were appended to.
    fn fail_all(&self, error: Error) -> Vec<(ExtentId, Opening)> {
        {
            let flushes = &mut self.state().flushes;
            self.end_writing(error);
            flushes.is_wanted = false;
            flushes.unflushed = Unflushed::default();
        }
        self.each_extent(|id, extent| {
            let tail = extent.used.as_mut()?.tail.as_mut()?;
            tail.fail(tail.landed(self.durability), error);
            Some((id, extent.opening))
        })
    }

    /// Notes a flush that has ended. Returns the extents of which it made pages durable.
    fn note_flushed(self: &Arc<Self>, flushed: &Unflushed) -> Vec<(ExtentId, Opening)> {
        let mut landed = Vec::with_capacity(flushed.written.len());
        for (id, (opening, number)) in &flushed.written {
            let mut extent = self.extent(*id);
            if let Some(tail) = extent.tail(*opening) {
                tail.note_flushed(*number);
                landed.push((*id, *opening));
                self.enter_landed(*id, &extent, *opening, *number);
            }
        }
        for (id, (opening, number)) in &flushed.ended {
            let extent = self.extent(*id);
            if extent.is_over(*opening) {
                self.enter_landed(*id, &extent, *opening, *number);
            }
        }
        landed
    }
}
