//! Memory that another process changes at the same time, and the only unsafe code.
//!
//! Bytes are copied by assembly or volatile accesses through raw pointers, and words are atomic. No
//! reference to the bytes exists, so the compiler assumes nothing about their values.
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

/// Accesses that are written out in a row: the compiler does not unroll loops of volatile ones.
const ROW: usize = 8;

/// A copy of so many bytes is one instruction of the processor: data, but no queue entries and no
/// page of doorbells. The instruction takes longer to begin than a few words, but it writes whole
/// lines of the guest's cache without reading them first.
const STRING_BYTES_MIN: usize = 2_048;

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
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        assert!(self.is_readable, "a region is readable, which it checks");
        let from = self.place(offset, into.len());
        if cfg!(target_arch = "x86_64") && into.len() >= STRING_BYTES_MIN {
            // SAFETY: `place` has checked that the bytes are mapped. They are outside of `into`: no
            // reference to mapped bytes exists.
            return unsafe { copy_string(from, into.as_mut_ptr(), into.len()) };
        }
        let (head, rest) = into.split_at_mut(from.align_offset(WORD).min(into.len()));
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        let tail_at = head.len() + WORD * words.len();
        for (index, byte) in head.iter_mut().enumerate() {
            // SAFETY: `index` is below the number of bytes that `place` has checked.
            *byte = unsafe { from.add(index).read_volatile() };
        }
        let first = head.len();
        let load = |index: usize| {
            // SAFETY: The word ends at most where the checked bytes end. It is aligned because
            // `head` ends at a multiple of a word.
            let value = unsafe { from.add(first + WORD * index).cast::<u64>().read_volatile() };
            value.to_ne_bytes()
        };
        let (rows, rest) = words.as_chunks_mut::<ROW>();
        let rest_at = ROW * rows.len();
        for (index, row) in rows.iter_mut().enumerate() {
            *row = std::array::from_fn(|at| load(ROW * index + at));
        }
        for (index, word) in rest.iter_mut().enumerate() {
            *word = load(rest_at + index);
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
        if cfg!(target_arch = "x86_64") && bytes.len() >= STRING_BYTES_MIN {
            // SAFETY: As for `read`.
            return unsafe { copy_string(bytes.as_ptr(), to, bytes.len()) };
        }
        let (head, rest) = bytes.split_at(to.align_offset(WORD).min(bytes.len()));
        let (words, tail) = rest.as_chunks::<WORD>();
        let tail_at = head.len() + WORD * words.len();
        for (index, byte) in head.iter().enumerate() {
            // SAFETY: `index` is below the number of bytes that `place` has checked.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        let store = |index: usize, word: &[u8; WORD]| {
            let value = u64::from_ne_bytes(*word);
            // SAFETY: The word ends at most where the checked bytes end. It is aligned because
            // `head` ends at a multiple of a word.
            unsafe { to.add(head.len() + WORD * index).cast::<u64>().write_volatile(value) };
        };
        let (rows, rest) = words.as_chunks::<ROW>();
        for (index, row) in rows.iter().enumerate() {
            row.iter().enumerate().for_each(|(at, word)| store(ROW * index + at, word));
        }
        for (index, word) in rest.iter().enumerate() {
            store(ROW * rows.len() + index, word);
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

    /// Copies entries. Others see the last word of one after all before it.
    #[inline]
    pub(super) fn post(&self, offset: u64, entries: &[[u8; 16]]) {
        assert!(self.is_writable, "a region is writable, which it checks");
        let place = self.place(offset, size_of_val(entries)).cast::<u32>();
        assert!(place.is_aligned(), "entries are aligned, which guest memory checks");
        let (words, _) = entries.as_flattened().as_chunks::<4>();
        for (index, word) in words.iter().enumerate() {
            let is_last = index % 4 == 3;
            let ordering = if is_last { Ordering::Release } else { Ordering::Relaxed };
            // SAFETY: As for `load`: the words are the bytes that `place` has checked.
            unsafe { AtomicU32::from_ptr(place.add(index)) }
                .store(u32::from_ne_bytes(*word), ordering);
        }
    }

    /// Stores a word after earlier accesses.
    #[inline]
    pub(crate) fn store(&self, offset: u64, value: u32) {
        assert!(self.is_writable, "a region is writable, which it checks");
        // SAFETY: As for `load`.
        unsafe { AtomicU32::from_ptr(self.word(offset)) }.store(value, Ordering::Release);
    }
}

/// Copies `len` bytes, of which others may change those that are mapped at the same time.
///
/// # Safety
/// The bytes at `from` can be read, those at `to` be written, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_string(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: It accesses these bytes and no others. The compiler assumes nothing about what
    // assembly reads or writes in memory. The direction flag is clear, as `asm!` demands.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_string(_: *const u8, _: *mut u8, _: usize) {
    unreachable!("only x86-64 has the instruction");
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
