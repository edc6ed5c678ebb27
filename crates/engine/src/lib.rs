//! A key-value store on an append-only medium: one log of records and an index of where they lie.
//!
//! # How it works
//! 1. [`Store::put`] takes the key's latch, checks its condition, appends a record to the log and
//!    points the index to it; it is answered when the record's page has landed on the medium.
//! 2. [`Store::get`] asks the index for addresses, reads the record there and checks its key and
//!    its checksums. A record still on its way is answered from memory, once it is durable.
//! 3. Records that were overwritten or deleted are dead. When extents run out the cleaner moves
//!    what lives out of a victim and resets it.
//! 4. [`Store::open`] rebuilds the index from the medium alone.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a store | `put`, `append`, `page_builder`, `layout`, `record`, `pending`, `undo` |
//! | a batch | `write`, `batch`, `batch/torn` |
//! | a retrieve | `get`, `index`, `hash`, `page_view` |
//! | cleaning | `cleaner`, `clean` |
//! | opening | `recover`, `recall` |
//! | listing keys | `list`, `walk`, `key_pass`, `key_window` |
//! | checking | `verify` |
//!
//! # Guarantees
//! - What was acknowledged is found again, in the durability mode of [`Ack`].
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
mod address;

mod append;

mod cached_hash;
mod checkpoint;
mod clean;
mod cleaner;
mod cleaning;
mod config;
mod count_expiring;
mod counters;

mod entered;
mod error;
mod expiring;
mod expiry;
mod extent;
mod get;
mod hash;
mod headers;
mod index;
mod inline_list;
mod inspect;
mod key_pass;
mod key_space;
mod key_window;

mod layout;
mod lifetime;
mod list;
mod listing;
mod log;
mod look_up;
mod mend;
mod page_builder;
mod page_view;
mod pending;

mod power;

mod rebuild;
mod recall;
mod record;
mod recover;
mod release;
mod repair;
mod sabotage;
mod saved;
mod scrub;
mod scrubber;
mod store;
mod summary;
mod survivors;
mod tables;
mod torn;

mod values;
mod verify;
mod walk;
mod write;

pub use address::Address;

pub use cached_hash::CachedHashIndex;
pub use checkpoint::Checkpointed;
pub use counters::{Counts, Usage};
pub use error::Error;
pub use expiring::ExpiringCounts;
pub use extent::Live;
pub use get::{KeyFacts, Retrieved};
pub use hash::HashIndex;
pub use index::{
    Answer, Candidates, EntriesFrom, HashedKey, Index, IndexConfig, IndexCounts, MakeIndex, Saved,
};
pub use inspect::{ExtentFacts, PageContent, PageFacts, RecordFacts, RecordKind};
pub use key_space::{KeySpaceId, TableId};
pub use lifetime::Lifetime;
pub use list::{Iteration, KeyFilter};
pub use log::SPARE_EXTENTS_MIN;

pub use ack::Ack;
pub use config::Config;
pub use power::buffered_pages_max;
pub use recover::{How, Recovery};
pub use sabotage::Sabotage;
pub use saved::{NotSaved, SavedStore};
pub use scrubber::{ScrubFinding, Scrubbed, ScrubbedPart};
pub use store::Store;
pub use survivors::Survivors;
pub use tables::{TableExtent, TablePageName, Tables};
pub use values::CacheCounts;
pub use verify::{Finding, Verified, Wrong};
pub use walk::Walked;
pub use write::Begun;
pub use write::announced::Announced;
pub use write::batch::{BatchOp, BatchWrite};
pub use write::condition::{Condition, Stored, Version, Write};
pub use write::landing::{Landing, Landing as Accepted};
pub use write::permit::Permit;
