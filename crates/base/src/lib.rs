//! Words that every crate shares: time, keys, buffers, seeded randomness, checksums and bounds.
//!
//! # How it works
//! 1. [`Nanos`] is the only unit of time.
//! 2. [`Buf`] is the only carrier of value bytes between crates; it may be a phantom that has a
//!    length and a checksum but no bytes.
//! 3. [`Rng`] and the functions of [`checksum`] are stable for ever, so seeds and digests are too.
//!
//! # Guarantees
//! Nothing here reads a clock, a thread, a file or a random hash seed.
//!
//! # Trusts
//! Nothing. [`Key::new`] checks its length; slices out of range panic with a sentence.
//!
//! # Not here
//! Waiting and tasks (`clock`), flash pages (`media`), NVMe layouts (`spec`).

pub mod checksum;
pub mod limits;

mod buf;
mod bytes;
mod divisor;
mod key;
mod nanos;
mod rng;
mod saved;
mod value_ref;

pub use buf::{Buf, BufMut, BufPool};
pub use bytes::{GIB, KIB, MIB, SizeError, TIB, human_bytes, parse_length, parse_size};
pub use divisor::Divisor;
pub use key::{Key, KeyLengthError};
pub use nanos::Nanos;
pub use rng::{Rng, mix};
pub use value_ref::{Slice, ValueRef};
