use crate::Buf;
use crate::checksum::crc32c;
use std::sync::Arc;

/// A value that another has, as on a page in memory: to read its bytes takes no reference
/// to them.
#[derive(Debug)]
pub enum Lent<'a> {
    /// A part of some memory.
    Part(Part<'a>),
    /// A value that was taken from where it is.
    Whole(Buf),
}

/// A part of some memory.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    memory: &'a Arc<[u8]>,
    start: usize,
    len: u32,
}

impl<'a> Part<'a> {
    /// The `len` bytes of `memory` from `start` on; `None` if it is shorter.
    #[inline]
    pub fn new(memory: &'a Arc<[u8]>, start: usize, len: u32) -> Option<Self> {
        (start + len as usize <= memory.len()).then_some(Self { memory, start, len })
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        &self.memory[self.start..][..self.len as usize]
    }

    /// Returns the part as a value of its own. Without a copy, if it lies within the first 64 KiB
    /// of the memory.
    #[inline]
    pub fn to_buf(self) -> Buf {
        Buf::part_of(self.memory, self.start..self.start + self.len as usize)
    }
}

impl Lent<'_> {
    /// Length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty value is as good as any other")]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Part(part) => part.len,
            Self::Whole(value) => value.len(),
        }
    }

    /// CRC-32C of the bytes; of a phantom see [`Buf::crc32c`].
    pub fn crc32c(&self) -> u32 {
        match self {
            Self::Part(part) => crc32c(part.bytes()),
            Self::Whole(value) => value.crc32c(),
        }
    }

    /// Returns the value: see [`Part::to_buf`].
    #[inline]
    pub fn into_buf(self) -> Buf {
        match self {
            Self::Part(part) => part.to_buf(),
            Self::Whole(value) => value,
        }
    }
}
