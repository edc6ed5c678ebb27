use crate::align::align;
use crate::counters::{Counters, Tally};
use crate::error::OpenError;
use crate::loss::Loss;
use crate::open::{Access, Opened, open_disk, still_ours};
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

/// Logical blocks on a file or a block device, without a cache in between, for any number of
/// reactors.
///
/// Reads and writes go to the disk in the order in which they come: it has no classes. What was
/// written outlives a loss of power after the next flush.
#[derive(Debug)]
pub struct File {
    handle: reactor::File,
    sectors: Sectors,
    shape: BlocksShape,
    pool: BufPool,
    /// Written in place of what is trimmed, where the disk makes no holes.
    zeros: OnceLock<Buf>,
    makes_holes: AtomicBool,
    /// A flush has failed.
    is_broken: AtomicBool,
    /// Another program has shortened the file.
    shortened: OnceLock<Loss>,
    tally: Tally,
}

/// Operations that keep a disk busy. A choice: at this depth flash drives give nearly all that they
/// have, and one that has less to give answers each so much later.
const PARALLELISM: u32 = 64;

/// Bytes of each size of buffers that are kept for the next read or copy.
const POOL_BYTES: usize = 8 << 20;

/// Zeros that are written at once.
const ZEROS_BYTES: u32 = 1 << 20;

impl File {
    /// Opens the file or block device at `path` as blocks of `block_bytes`, 512 or 4096; or of
    /// those that it is best read and written in, that it or its file system has inside. What is
    /// left of a block at its end is not used.
    ///
    /// It is locked until this is dropped and the last of its operations has ended.
    pub fn open(path: &Path, access: Access, block_bytes: Option<u32>) -> Result<Self, OpenError> {
        open_disk(path, access, block_bytes).map(Self::on)
    }

    /// The same of what is to be a drive already: an error if others have made something else of it
    /// since, which would be damaged.
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

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.tally.counters()
    }

    /// What failed last, and why, in words.
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
        // Reads and writes name their places, so nothing depends on the file's offset.
        let to = seek(self.handle.descriptor(), SeekFrom::End(0)).ok()?;
        (to < from).then(|| *self.shortened.get_or_init(|| Loss::Shortened { from, to }))
    }

    /// Returns the error of a write or flush of a file that was shortened.
    fn refusal(&self) -> Option<io::Error> {
        self.shortened.get().map(|loss| io::Error::other(format!("it {loss}")))
    }

    /// Where `count` blocks from `first` are, in bytes: their start and their length.
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

    async fn write_blocks(&self, first: u64, data: Segments) -> Result<(), Error> {
        let block_bytes = u64::from(self.shape.block_bytes);
        let len: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        assert!(len.is_multiple_of(block_bytes), "{len} bytes are not whole blocks");
        let (at, _) = self.place(first, len / block_bytes);
        if first + len / block_bytes == self.shape.blocks {
            // A write of the last block gives a shortened file its full length again.
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
    }

    async fn trim_blocks(&self, first: u64, count: u64) -> Result<(), Error> {
        let (at, len) = self.place(first, count);
        if len == 0 {
            return Ok(());
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

    /// Writes zeros: what is trimmed has to read so, and not every disk can say that by a hole.
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

    async fn flush_all(&self) -> Result<(), Error> {
        if self.is_broken.load(Relaxed) {
            return Err(Error::NotFlushed);
        }
        let synced = self.handle.sync().await;
        // What lay beyond the new end of a shortened file is lost, though the sync succeeds.
        self.shortened();
        match synced.and_then(|()| self.refusal().map_or(Ok(()), Err)) {
            Ok(()) if !self.is_broken.load(Relaxed) => {
                self.tally.flush();
                Ok(())
            }
            // Another flush was told of writes that this one may have been asked to keep.
            Ok(()) => Err(Error::NotFlushed),
            Err(error) => {
                self.is_broken.store(true, Relaxed);
                self.tally.fail("written data could not be flushed", &error);
                Err(Error::NotFlushed)
            }
        }
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
        Box::pin(self.write_blocks(first, data))
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.trim_blocks(first, count))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.flush_all())
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

    /// The kernel tells of lost writes once, and takes them for written from then on.
    #[test]
    fn after_a_flush_that_failed_none_succeeds() {
        // A pipe has nothing to flush, and says so.
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
            // More than are written at once, and no multiple of that.
            disk.trim(3, 4_990, Class::HostWrite).await.unwrap();
            disk.trim(0, 0, Class::HostWrite).await.unwrap();
        });
        expected[3 * 512..4_993 * 512].fill(0);
        let mut found = vec![0; expected.len()];
        std::os::unix::fs::FileExt::read_exact_at(&plain, &mut found, 0).unwrap();
        assert!(found == expected);
        assert_eq!(disk.counters().trims, 1);
    }

    /// The name of a thread is a file in which no holes can be made, and which takes anything.
    #[test]
    fn that_a_disk_makes_no_holes_is_seen_once() {
        let name = std::fs::OpenOptions::new().write(true).open("/proc/thread-self/comm").unwrap();
        let disk = disk(name);
        serve(disk.trim(0, 1, Class::HostWrite)).unwrap();
        assert!(!disk.makes_holes.load(Relaxed));
        assert_eq!(disk.counters().failures, 0);
    }

    /// Linux's full device, as a file system without space.
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
