//! Memory that another process changes at the same time, and the only unsafe code.
//!
//! Bytes are copied by volatile accesses through raw pointers, and words are atomic. No reference
//! to the bytes exists, so the compiler assumes nothing about their values.
#![expect(unsafe_code, reason = "mapped memory is reached through raw pointers only")]
#![expect(clippy::cast_ptr_alignment, reason = "`align_offset` and an assertion see to it")]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Mapped pages of a file. Dropping it unmaps them.
///
/// The caller maps only files that have these pages for ever.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    is_readable: bool,
    is_writable: bool,
}

/// Bytes of an access of [`Mapping::read`] and [`Mapping::write`] where they are aligned.
const WORD: usize = size_of::<u64>();

impl Mapping {
    /// Maps `len` bytes from `offset` of a file on, both multiples of the page size.
    pub(crate) fn new(
        file: &OwnedFd,
        offset: u64,
        len: usize,
        is_readable: bool,
        is_writable: bool,
    ) -> Result<Self, Errno> {
        let mut protection = ProtFlags::empty();
        protection.set(ProtFlags::READ, is_readable);
        protection.set(ProtFlags::WRITE, is_writable);
        // SAFETY: The kernel chooses an address that is free, so no memory of this process changes.
        let base =
            unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len, is_readable, is_writable })
    }

    /// Returns the address of `offset`. Panics unless `len` bytes from there on are inside.
    #[inline]
    fn place(&self, offset: u64, len: usize) -> *mut u8 {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(is_inside, "an access is inside of the mapping, which its region checks");
        // SAFETY: `offset` is at most `self.len`, the bytes that are mapped at `base`.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// As [`Self::place`], for an aligned word.
    #[inline]
    fn word(&self, offset: u64) -> *mut u32 {
        let place = self.place(offset, size_of::<u32>()).cast::<u32>();
        assert!(place.is_aligned(), "words are aligned, which guest memory checks");
        place
    }

    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        assert!(self.is_readable, "a region is readable, which it checks");
        let from = self.place(offset, into.len());
        let (head, rest) = into.split_at_mut(from.align_offset(WORD).min(into.len()));
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        let tail_at = head.len() + WORD * words.len();
        for (index, byte) in head.iter_mut().enumerate() {
            // SAFETY: `index` is below the number of bytes that `place` has checked.
            *byte = unsafe { from.add(index).read_volatile() };
        }
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: The word ends at most where the checked bytes end. It is aligned because
            // `head` ends at a multiple of a word.
            let value =
                unsafe { from.add(head.len() + WORD * index).cast::<u64>().read_volatile() };
            *word = value.to_ne_bytes();
        }
        for (index, byte) in tail.iter_mut().enumerate() {
            // SAFETY: As for the head.
            *byte = unsafe { from.add(tail_at + index).read_volatile() };
        }
    }

    #[inline]
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(self.is_writable, "a region is writable, which it checks");
        let to = self.place(offset, bytes.len());
        let (head, rest) = bytes.split_at(to.align_offset(WORD).min(bytes.len()));
        let (words, tail) = rest.as_chunks::<WORD>();
        let tail_at = head.len() + WORD * words.len();
        for (index, byte) in head.iter().enumerate() {
            // SAFETY: `index` is below the number of bytes that `place` has checked.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        for (index, word) in words.iter().enumerate() {
            let value = u64::from_ne_bytes(*word);
            // SAFETY: The word ends at most where the checked bytes end. It is aligned because
            // `head` ends at a multiple of a word.
            unsafe { to.add(head.len() + WORD * index).cast::<u64>().write_volatile(value) };
        }
        for (index, byte) in tail.iter().enumerate() {
            // SAFETY: As for the head.
            unsafe { to.add(tail_at + index).write_volatile(*byte) };
        }
    }

    /// Loads a word before later accesses.
    #[inline]
    pub(crate) fn load(&self, offset: u64) -> u32 {
        assert!(self.is_readable, "a region is readable, which it checks");
        // SAFETY: The pointer is aligned and inside of pages that stay mapped while `self` is
        // borrowed. An atomic may be changed by others at any time.
        unsafe { AtomicU32::from_ptr(self.word(offset)) }.load(Ordering::Acquire)
    }

    /// Stores a word after earlier accesses.
    #[inline]
    pub(crate) fn store(&self, offset: u64, value: u32) {
        assert!(self.is_writable, "a region is writable, which it checks");
        // SAFETY: As for `load`.
        unsafe { AtomicU32::from_ptr(self.word(offset)) }.store(value, Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: These pages were mapped by `new`, and every access borrows `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        // It fails only for addresses that are not aligned, or if the kernel has no memory to split
        // mappings. Then the pages stay mapped, which harms less than a panic in a destructor.
        debug_assert!(unmapped.is_ok(), "a mapping is unmapped whole");
    }
}
