//! A key-value store on an append-only medium: one log of records and an index of where they lie.
//!
//! # How it works
//! 1. Every write is a `WriteSet` of 1 to n changes that happen together or not at all: a store, a
//!    delete, a conditional store, a batch. `Attempt::advance` locks the keys' [`Lanes`] and does
//!    all that needs no wait: space, latches, the present records, conditions, the append to the
//!    log, the index. Otherwise it returns a `Need`; the caller awaits that and calls it again.
//! 2. [`Store::begin_put`] calls `advance` once, and returns what it has reached. [`Store::put`],
//!    [`Store::delete`] and [`Store::write_batch`] use `Store::write`, which awaits each need.
//! 3. A write in the log and in the index is a [`Landing`]. [`Store::landed`] waits until its pages
//!    are durable, in the mode of [`Ack`]. If one of them fails, it takes the write back.
//! 4. Commands that read a key use `Store::look_up`: the index returns addresses, and the record at
//!    each says whether it has the key. [`Store::get`] reads records that are not in memory from
//!    the medium, with their extents pinned. A record whose page has not landed is returned from
//!    memory, once it is durable. [`Store::begin_get`] answers only what needs no wait.
//! 5. Records that were overwritten or deleted are dead. When extents run out, the cleaner moves
//!    the live records out of a victim and resets it.
//! 6. [`Store::open`] rebuilds the index from a checkpoint and the log, or from the log alone.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a write | `write`, `write/set`, `write/change`, `write/attempt`, `write/landing` |
//! | what is known of a key | `lane`: `latches`, `entries`, `headers`, `values`, `locations` |
//! | what a write waits for | `write/room`, `write/entry`, `write/permit`, `write/latch` |
//! | its record | `write/append`, `log`, `format/page_builder`, `format/layout`, `format/record` |
//! | the log's state | `log`, `log/state` and its parts in `log`, `extent` |
//! | its end | `write/landing`, `write/pending`, `write/undo` |
//! | a batch | `write/batch`, `write/size`, `write/attempt`, `recover/torn` |
//! | a read | `read/get`, `read/look_up`, `log`, `format/page_view`, `format/mend` |
//! | memory that saves reads | `lane/headers`, `lane/values`, `read/recall` |
//! | the index | `index`, `index/hash`; on flash `index/cached_hash`, `index/tables` |
//! | listing keys | `read/list`, `read/walk`, `read/key_pass`, `read/key_window` |
//! | cleaning | `clean/cleaner`, `clean/cleaning`, `clean/copy`, `clean/expiring` |
//! | a checkpoint | `recover/checkpoint`, `index/tables`, `index/survivors` |
//! | work of several reactors | `work_pool` |
//! | opening | `recover/open`, `format/summary`, `recover/torn`, `recover/rebuild` |
//! | its records in the index | `recover/sort`, `recover/enter` |
//! | damage and power loss | `format/mend`, `recover/repair`, `recover/power` |
//! | checking | `check/verify`, `check/scrub`, `check/scrubber`, `check/inspect` |
//!
//! # Guarantees
//! - What was acknowledged is found again, in the mode of [`Ack`] and of the medium: a disk may
//!   take a page as landed before it is flushed.
//! - Each key's operations are linearizable; of several conditional stores one wins.
//! - Damaged records give [`Error::Unrecovered`], never data.
//! - Live bytes are counted exactly, for each extent and in all.
//!
//! # Trusts
//! The medium keeps pages as they were appended or fails; checksums notice when it does neither.
//! Values have none on a medium that vouches for what is read ([`media::Media::vouches`]: memory).
//!
//! # Not here
//! Blocks, wear and bad blocks (`ftl`), command decoding and firmware costs (`controller`).

mod ack;
mod check;
mod clean;
mod config;
mod counters;
mod error;
mod extent;
mod format;
mod hashed_key;
mod index;
mod inline_list;
mod key_space;
mod lane;
mod lifetime;
mod log;
#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
mod read;
mod recover;
mod sabotage;
mod store;
mod sync;
#[cfg(test)]
mod test_store;
mod work_pool;
mod write;

pub use ack::Ack;
pub use check::inspect::{ExtentFacts, PageContent, PageFacts, RecordFacts, RecordKind};
pub use check::scrubber::{ScrubFinding, Scrubbed, ScrubbedPart};
pub use check::verify::{Finding, Verified, Wrong};
pub use clean::expiring::ExpiringCounts;
pub use config::Config;
pub use counters::{Counts, ReactorWork, Usage};
pub use error::Error;
pub use extent::Live;
pub use format::address::{Address, Candidates};
pub use hashed_key::HashedKey;
pub use index::cached_hash::CachedHashIndex;
pub use index::hash::HashIndex;
pub use index::survivors::Survivors;
pub use index::tables::{TableExtent, TablePageName, Tables};
pub use index::{
    Answer, EntriesFrom, Index, IndexConfig, IndexCounts, IndexEntry, MakeIndex, Saved,
};
pub use key_space::{KeySpaceId, TableId};
pub use lane::values::CacheCounts;
pub use lane::{Lane, Lanes, Locked};
pub use lifetime::Lifetime;
pub use log::SPARE_EXTENTS_MIN;
pub use read::get::{KeyFacts, Retrieved};
pub use read::list::{Iteration, KeyFilter};
pub use read::walk::Walked;
pub use recover::checkpoint::Checkpointed;
pub use recover::open::{How, Recovery};
pub use recover::power::buffered_pages_max;
pub use recover::saved::{NotSaved, SavedStore};
pub use sabotage::Sabotage;
pub use store::Store;
pub use work_pool::{PoolWorker, WorkPool};
pub use write::Begun;
pub use write::announced::Announced;
pub use write::batch::{BatchOp, BatchWrite};
pub use write::condition::{Condition, Stored, Version, Write};
pub use write::landing::Landing;
pub use write::permit::Permit;
