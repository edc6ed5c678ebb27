use clock::TaskId;
use serde::{Deserialize, Serialize};

/// What a block of flash is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Never.
    Bad,
    /// Erased.
    Free,
    /// A frontier fills it.
    Open,
    /// Every page is taken, if not landed.
    Full,
    /// It will be erased.
    Victim,
}

/// The state of a block of flash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) phase: Phase,
    /// Slots to which the map points.
    pub(crate) live: u32,
    /// Pages that have landed, from the first.
    pub(crate) landed: u32,
    /// The number of pages that are used.
    pub(crate) end: u32,
    /// Readers that are in it.
    pub(crate) pins: u32,
    pub(crate) erases: u32,
    /// The collector, waiting for the last reader to leave.
    #[serde(skip)]
    pub(crate) last_reader: Option<TaskId>,
    /// The sequence number of its opening.
    pub(crate) born: u64,
    /// The last ticket of a page that holds a newer version of something of this block.
    pub(crate) superseded: u64,
    /// The logical block of each slot taken so far.
    pub(crate) blocks: Vec<u32>,
    /// The sequence number of each page closed so far.
    pub(crate) sequences: Vec<u64>,
    /// A program failed, or a page could not be read: once nothing lives in it, it is marked
    /// as bad.
    pub(crate) doomed: bool,
}

impl Block {
    pub(crate) const fn new(phase: Phase, erases: u32) -> Self {
        Self {
            phase,
            live: 0,
            landed: 0,
            end: 0,
            pins: 0,
            erases,
            last_reader: None,
            born: 0,
            superseded: 0,
            blocks: Vec::new(),
            sequences: Vec::new(),
            doomed: false,
        }
    }

    /// Ends a read.
    pub(crate) fn unpin(&mut self) {
        self.pins -= 1;
        if self.pins == 0
            && let Some(task) = self.last_reader.take()
        {
            clock::wake(task);
        }
    }
}
