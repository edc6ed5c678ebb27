//! A store in memory for tests of a module.

use crate::ack::Ack;
use crate::config::Config;
use crate::index::IndexConfig;
use crate::index::hash::HashIndex;
use crate::key_space::KeySpaceId;
use base::{Buf, Key};
use media::{Shape, Victims};

pub(crate) const SPACE: KeySpaceId = KeySpaceId(1);

pub(crate) const fn shape() -> Shape {
    Shape {
        page_bytes: 1_024,
        spare_bytes: 64,
        pages_per_extent: 32,
        extents: 13,
        parallelism: 4,
        frames: None,
    }
}

pub(crate) fn config() -> Config {
    Config {
        capacity_bytes: 6 * shape().extent_bytes() * 6 / 10,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: clock::Group::new(),
        seed: 1,
    }
}

pub(crate) fn key(number: u64) -> Key {
    Key::new(&number.to_le_bytes()).expect("it has 8 bytes")
}

pub(crate) fn value(len: u32, tag: u64) -> Buf {
    Buf::phantom(len, tag)
}
