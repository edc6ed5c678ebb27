use crate::access::Access;
use crate::align::align;
use crate::counters::{Counters, Tally};
use crate::error::OpenError;
use crate::loss::Loss;
use crate::open::{Opened, open_disk, still_ours};
use crate::sectors::Sectors;
use base::{Buf, BufMut, BufPool};
use clock::{Class, LocalFuture};
use media::{Blocks, BlocksShape, Error, Segments, Traffic};
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use smallvec::smallvec;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Logical blocks on a file or a block device with direct I/O, for any number of reactors.
///
/// Reads and writes go to the disk in order of arrival: it has no classes. A write is durable after
/// the next flush.
#[derive(Debug)]
pub struct File {
    handle: reactor::File,
    sectors: Sectors,
    shape: BlocksShape,
    pool: BufPool,
    /// The zeros written for trims, where the disk cannot punch holes.
    zeros: OnceLock<Buf>,
    makes_holes: AtomicBool,
    /// True after a failed flush.
    is_broken: AtomicBool,
    /// Set when another program has shortened the file.
    shortened: OnceLock<Loss>,
    tally: Tally,
}

/// Outstanding operations that keep a disk busy, a chosen number. At this depth flash drives reach
/// nearly their full rate; a slower disk only has longer latency.
const PARALLELISM: u32 = 64;

/// Bytes of freed buffers of each size kept for later reads and copies.
const POOL_BYTES: usize = 8 << 20;

/// The most zeros in one write.
const ZEROS_BYTES: u32 = 1 << 20;

impl File {
    /// Opens the file or block device at `path` as blocks of `block_bytes`, 512 or 4096. Without a
    /// size, uses the best one: the internal one of the device or its file system. Ignores a
    /// partial block at the end.
    ///
    /// The lock lasts until the file is dropped and its last operation has ended.
    pub fn open(path: &Path, access: Access, block_bytes: Option<u32>) -> Result<Self, OpenError> {
        open_disk(path, access, block_bytes).map(Self::on)
    }

    /// As [`Self::open`], for a path that must be a drive already. Fails if another system has
    /// overwritten it since, because opening could damage that data.
    pub fn open_drive(path: &Path, access: Access) -> Result<Self, OpenError> {
        let file = Self::open(path, access, None)?;
        still_ours(path)?;
        Ok(file)
    }

    fn on(opened: Opened) -> Self {
        let Opened { fd, sectors, block_bytes, blocks } = opened;
        let pool = BufPool::new(POOL_BYTES);
        Self {
            handle: reactor::File::new(fd, pool.clone()),
            sectors,
            shape: BlocksShape { block_bytes, blocks, parallelism: PARALLELISM },
            pool,
            zeros: OnceLock::new(),
            makes_holes: AtomicBool::new(true),
            is_broken: AtomicBool::new(false),
            shortened: OnceLock::new(),
            tally: Tally::default(),
        }
    }

    /// Returns the counters since it was opened.
    pub fn counters(&self) -> Counters {
        self.tally.counters()
    }

    /// Returns the last failed operation and its error as text.
    pub fn failure(&self) -> Option<String> {
        self.tally.failure()
    }

    /// Returns what another program did to the file or device since it was opened, if anything.
    /// Asks the kernel.
    pub fn loss(&self) -> Option<Loss> {
        let links = fstat(self.handle.descriptor()).map(|known| known.st_nlink);
        self.shortened().or_else(|| (links == Ok(0)).then_some(Loss::Removed))
    }

    /// Returns [`Loss::Shortened`] from the first call that finds the file shorter than the drive.
    fn shortened(&self) -> Option<Loss> {
        if let Some(loss) = self.shortened.get() {
            return Some(*loss);
        }
        let from = self.shape.blocks * u64::from(self.shape.block_bytes);
        // Reads and writes name their places, so no operation depends on the file's offset.
        let to = seek(self.handle.descriptor(), SeekFrom::End(0)).ok()?;
        (to < from).then(|| *self.shortened.get_or_init(|| Loss::Shortened { from, to }))
    }

    /// Returns the error of a write or flush of a file that was shortened.
    fn refusal(&self) -> Option<io::Error> {
        self.shortened.get().map(|loss| io::Error::other(format!("it {loss}")))
    }

    /// Returns the start and the length in bytes of `count` blocks from `first`.
    fn place(&self, first: u64, count: u64) -> (u64, u64) {
        let BlocksShape { block_bytes, blocks, .. } = self.shape;
        let is_there = first.checked_add(count).is_some_and(|end| end <= blocks);
        assert!(is_there, "{count} blocks from {first} are not of {blocks}");
        (first * u64::from(block_bytes), count * u64::from(block_bytes))
    }

    async fn read_blocks(&self, first: u64, count: u32) -> Result<Segments, Error> {
        let (at, len) = self.place(first, count.into());
        let bytes = u32::try_from(len).expect("a read is below 4 GiB");
        match self.handle.read(at, bytes).await {
            Ok(data) => {
                self.tally.read(len);
                Ok(smallvec![data])
            }
            Err(error) => {
                self.tally.fail(&format!("{count} blocks from {first} could not be read"), &error);
                Err(Error::UnrecoveredBlock(first))
            }
        }
    }

    async fn trim_blocks(&self, first: u64, count: u64) -> Result<(), Error> {
        let (at, len) = self.place(first, count);
        if len == 0 {
            return Ok(());
        }
        if first + count == self.shape.blocks {
            // Zeros written to the last block would hide the loss, as in `write`.
            self.shortened();
        }
        if let Some(error) = self.refusal() {
            return Err(self.unwritten(first, &error));
        }
        if self.makes_holes.load(Relaxed) {
            match self.handle.punch(at, len).await {
                Ok(()) => {
                    self.tally.trim();
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.makes_holes.store(false, Relaxed);
                }
                Err(error) => return Err(self.unwritten(first, &error)),
            }
        }
        let result = self.zero(at, len).await;
        self.tally.trim();
        result.map_err(|error| self.unwritten(first, &error))
    }

    /// Writes zeros: trimmed blocks must read as zeros, and not every disk can punch holes.
    async fn zero(&self, at: u64, len: u64) -> io::Result<()> {
        let zeros = self.zeros.get_or_init(|| BufMut::unpooled(ZEROS_BYTES as usize).freeze());
        let mut done = 0;
        while done < len {
            let part = u32::try_from(len - done).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES);
            self.handle.write(at + done, smallvec![zeros.slice(0..part)]).await?;
            done += u64::from(part);
        }
        Ok(())
    }

    fn unwritten(&self, first: u64, error: &io::Error) -> Error {
        self.tally.fail(&format!("blocks from {first} could not be written"), error);
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => Error::NoSpace,
            _ => Error::UnwrittenBlock(first),
        }
    }
}

impl Blocks for File {
    fn shape(&self) -> BlocksShape {
        self.shape
    }

    fn read(&self, first: u64, count: u32, _: Class) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(self.read_blocks(first, count))
    }

    fn write(&self, first: u64, data: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let block_bytes = u64::from(self.shape.block_bytes);
            let len: u64 = data.iter().map(|part| u64::from(part.len())).sum();
            assert!(len.is_multiple_of(block_bytes), "{len} bytes are not whole blocks");
            let (at, _) = self.place(first, len / block_bytes);
            if first + len / block_bytes == self.shape.blocks {
                // A write of the last block would restore a shortened file's length, and hide the
                // loss.
                self.shortened();
            }
            if let Some(error) = self.refusal() {
                return Err(self.unwritten(first, &error));
            }
            let (data, copied) = align(data, self.sectors, &self.pool);
            match self.handle.write(at, data).await {
                Ok(()) => {
                    self.tally.write(len, copied);
                    Ok(())
                }
                Err(error) => Err(self.unwritten(first, &error)),
            }
        })
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.trim_blocks(first, count))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async {
            if self.is_broken.load(Relaxed) {
                return Err(Error::NotFlushed);
            }
            let synced = self.handle.sync().await;
            // Blocks beyond the new end of a shortened file are lost, though the sync succeeds.
            self.shortened();
            match synced.and_then(|()| self.refusal().map_or(Ok(()), Err)) {
                Ok(()) if !self.is_broken.load(Relaxed) => {
                    self.tally.flush();
                    Ok(())
                }
                // Another flush got the error of writes that this flush may have had to keep.
                Ok(()) => Err(Error::NotFlushed),
                Err(error) => {
                    self.is_broken.store(true, Relaxed);
                    self.tally.fail("written data could not be flushed", &error);
                    Err(Error::NotFlushed)
                }
            }
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        let Counters { read_bytes, written_bytes, .. } = self.counters();
        Some(Traffic { read_bytes, written_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::{Reactor, Remote};
    use std::os::fd::OwnedFd;

    fn serve<T>(root: impl Future<Output = T>) -> T {
        Reactor::new(None).serve(&Remote::new().unwrap(), root).unwrap().0
    }

    fn disk(of: impl Into<OwnedFd>) -> File {
        let sectors = Sectors { bytes: 512, memory: 512 };
        File::on(Opened { fd: of.into(), sectors, block_bytes: 512, blocks: 10_000 })
    }

    /// The kernel reports lost writes once, and treats them as written afterwards.
    #[test]
    fn after_a_flush_that_failed_none_succeeds() {
        // A pipe cannot be flushed, so its flush fails.
        let mut disk = disk(std::io::pipe().unwrap().1);
        assert_eq!(serve(disk.flush()), Err(Error::NotFlushed));
        assert!(disk.failure().unwrap().starts_with("written data could not be flushed: "));
        let sound = tempfile::tempfile().unwrap();
        disk.handle = reactor::File::new(sound.into(), disk.pool.clone());
        assert_eq!(serve(disk.flush()), Err(Error::NotFlushed));
        assert_eq!(disk.counters().flushes, 0);
    }

    #[test]
    fn a_disk_without_holes_gets_zeros() {
        let plain = tempfile::tempfile().unwrap();
        let mut expected = vec![7; 5_000 * 512];
        std::io::Write::write_all(&mut &plain, &expected).unwrap();
        let mut disk = disk(plain.try_clone().unwrap());
        disk.makes_holes = AtomicBool::new(false);
        serve(async {
            // More than one write of zeros, and no multiple of it.
            disk.trim(3, 4_990, Class::HostWrite).await.unwrap();
            disk.trim(0, 0, Class::HostWrite).await.unwrap();
        });
        expected[3 * 512..4_993 * 512].fill(0);
        let mut found = vec![0; expected.len()];
        std::os::unix::fs::FileExt::read_exact_at(&plain, &mut found, 0).unwrap();
        assert!(found == expected);
        assert_eq!(disk.counters().trims, 1);
    }

    /// A thread's name is a file that takes any write and supports no holes.
    #[test]
    fn that_a_disk_makes_no_holes_is_seen_once() {
        let name = std::fs::OpenOptions::new().write(true).open("/proc/thread-self/comm").unwrap();
        let disk = disk(name);
        serve(disk.trim(0, 1, Class::HostWrite)).unwrap();
        assert!(!disk.makes_holes.load(Relaxed));
        assert_eq!(disk.counters().failures, 0);
    }

    /// Linux's full device acts as a file system without space.
    #[test]
    fn a_full_file_system_is_named() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let data = smallvec![Buf::copy_from(&[1; 512])];
        assert_eq!(serve(disk(full).write(0, data, Class::HostWrite)), Err(Error::NoSpace));
    }

    #[test]
    #[should_panic(expected = "2 blocks from 9999 are not of 10000")]
    fn a_block_beyond_the_last_panics() {
        let _ = serve(disk(tempfile::tempfile().unwrap()).read(9_999, 2, Class::HostRead));
    }
}
