use crate::Buf;
use std::sync::Arc;

/// A value: borrowed bytes of a page in memory, or a [`Buf`].
#[derive(Debug)]
pub enum ValueRef<'a> {
    /// Bytes that lie in memory with others.
    Borrowed(Slice<'a>),
    /// A reference of its own.
    Owned(Buf),
}

/// Some bytes of a shared allocation, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    memory: &'a Arc<[u8]>,
    start: usize,
    len: u32,
}

impl<'a> Slice<'a> {
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

    /// Makes a reference of its own. Copies the bytes if they begin or end more than 64 KiB from
    /// the beginning of the allocation.
    #[inline]
    pub fn to_buf(self) -> Buf {
        Buf::part_of(self.memory, self.start..self.start + self.len as usize)
    }
}

impl ValueRef<'_> {
    /// Length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty value is as good as any other")]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Borrowed(slice) => slice.len,
            Self::Owned(value) => value.len(),
        }
    }

    /// CRC-32C of the bytes; of a phantom see [`Buf::crc32c`].
    pub fn crc32c(&self) -> u32 {
        match self {
            Self::Borrowed(slice) => crate::checksum::crc32c(slice.bytes()),
            Self::Owned(value) => value.crc32c(),
        }
    }

    /// Returns the value: see [`Slice::to_buf`].
    #[inline]
    pub fn into_buf(self) -> Buf {
        match self {
            Self::Borrowed(slice) => slice.to_buf(),
            Self::Owned(value) => value,
        }
    }
}
