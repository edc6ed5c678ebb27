use super::durability::Durability;
use super::extents::Extents;
use super::flusher::Flushes;
use super::layout::{Layout, NOTE_BYTES};
use super::ledger::Ledger;
use super::origin::{Opening, Origin};
use crate::blocks::{Blocks, Segments, cut};
use crate::error::Error;
use crate::extent::ExtentId;
use base::Buf;
use clock::Class;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the tasks of a medium share.
pub(super) struct Drive {
    pub(super) blocks: Arc<dyn Blocks>,
    pub(super) layout: Layout,
    pub(super) secret: [u8; 16],
    /// The number of this mount.
    pub(super) mount: u32,
    pub(super) durability: Durability,
    /// A block of them, for what pages are padded with.
    pub(super) zeros: Buf,
    state: Mutex<State>,
}

/// What changes while a medium is open.
#[derive(Debug)]
pub(super) struct State {
    pub(super) extents: Extents,
    pub(super) flushes: Flushes,
    pub(super) ledger: Ledger,
    /// Free extents in whose places old copies were found.
    pub(super) outdated: Vec<ExtentId>,
    /// Why nothing more is written.
    pub(super) ended: Option<Error>,
}

impl Drive {
    pub(super) fn new(
        blocks: Arc<dyn Blocks>,
        layout: Layout,
        secret: [u8; 16],
        mount: u32,
        durability: Durability,
    ) -> Self {
        let state = State {
            extents: Extents::default(),
            flushes: Flushes::default(),
            ledger: Ledger::default(),
            outdated: Vec::new(),
            ended: None,
        };
        let zeros = Buf::copy_from(&vec![0; NOTE_BYTES as usize]);
        Self { blocks, layout, secret, mount, durability, zeros, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn origin(&self, extent: ExtentId, opening: Opening) -> Origin {
        Origin { secret: self.secret, extent, opening }
    }

    /// `len` bytes from byte `start`, of which all blocks are read that they lie in.
    pub(super) async fn read_bytes(
        &self,
        start: u64,
        len: u32,
        class: Class,
    ) -> Result<Segments, Error> {
        let block_bytes = u64::from(self.layout.block_bytes);
        let (first, end) = (start / block_bytes, (start + u64::from(len)).div_ceil(block_bytes));
        let count = u32::try_from(end - first).expect("what is read at a time is far less");
        let found = self.blocks.read(first, count, class).await?;
        let before = u32::try_from(start - first * block_bytes).expect("less than a block");
        Ok(cut(&found, before, len).expect("all of the blocks was read"))
    }

    /// Writes whole blocks from byte `start` on.
    pub(super) async fn write_bytes(
        &self,
        start: u64,
        data: Segments,
        class: Class,
    ) -> Result<(), Error> {
        let block_bytes = u64::from(self.layout.block_bytes);
        assert!(start.is_multiple_of(block_bytes), "byte {start} is the first of a block");
        self.blocks.write(start / block_bytes, data, class).await
    }
}

impl State {
    /// The error with which everything ends that would write, if there is one.
    pub(super) fn writable(&self) -> Result<(), Error> {
        self.ended.map_or(Ok(()), Err)
    }
}
