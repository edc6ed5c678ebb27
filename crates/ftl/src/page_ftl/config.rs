use clock::{Gate, Group};
use media::Victims;
use std::sync::Arc;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAck {
    /// When all its pages have landed. A page is programmed, padded if need be, as soon as no write
    /// that is ready at this instant joins it.
    Program,
    /// After the write is in a buffer, whose pages are programmed as they fill.
    Buffer {
        /// Room for data that has not landed; at least one logical block.
        bytes: u64,
    },
}

/// What is blocked for hosts while a block is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcBlocking {
    /// Nothing: the collector queues like a host, page by page.
    Nothing,
    /// The controller: it holds all commands and cleans one block at a time.
    Controller,
    /// The channel of the block: reads wait, writes go to other channels.
    Channel,
    /// The plane of the block, within which copyback moves pages. Writes go to other planes. If
    /// every page of a block has live data, copyback wins nothing, and its data moves through the
    /// channel.
    Plane,
}

/// Where the collector writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontier {
    /// To blocks of its own.
    Own,
    /// To those of the host, in order of arrival.
    Shared,
}

/// The parameters of a [`PageFtl`](crate::PageFtl).
#[derive(Clone, Debug)]
pub struct PageFtlConfig {
    /// Logical blocks; at most [`PageFtl::blocks_max`](crate::PageFtl::blocks_max).
    pub blocks: u64,
    /// When writes are answered.
    pub ack: WriteAck,
    /// Which block is cleaned first.
    pub victims: Victims,
    /// What is blocked for hosts while a block is cleaned.
    pub blocking: GcBlocking,
    /// Where the collector writes.
    pub frontier: Frontier,
    /// Free blocks of a plane at which cleaning starts, above which it ends; at least 1.
    pub gc_free_blocks: u32,
    /// The difference in erases between blocks of a plane above which wear levelling moves data; 0
    /// for never.
    pub wear_gap: u32,
    /// The group whose resources the array waits in.
    pub group: Group,
    /// Closed while a block is cleaned, with [`GcBlocking::Controller`].
    pub gate: Arc<Gate>,
    /// Draws victims.
    pub seed: u64,
}
