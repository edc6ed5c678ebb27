use crate::driver;
use crate::operation::{Operation, Work};
use base::{Buf, BufPool};
use clock::{Rank, Stage};
use rustix::io::Errno;
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A file or a block device, read and written by the ring of the reactor that a task is in: any
/// number of reactors may use one, each inside [`crate::Reactor::serve`].
///
/// The kernel owns the memory of a read or a write, and keeps the file open, until the operation
/// ends, even if its task is dropped. Dropping a reactor waits for that; on a disk it is short.
#[derive(Debug)]
pub struct File {
    fd: Arc<OwnedFd>,
    pool: BufPool,
}

impl File {
    /// The file behind `fd`. What is read comes in buffers of `pool`, which are aligned to 4 KiB.
    pub fn new(fd: OwnedFd, pool: BufPool) -> Self {
        Self { fd: Arc::new(fd), pool }
    }

    /// Returns the open descriptor, for calls that ask what the file is.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The `len` bytes from `at` on. That the file ends before is an error.
    pub async fn read(&self, at: u64, len: u32) -> io::Result<Buf> {
        let into = self.pool.take(len as usize);
        if len == 0 {
            return Ok(into.freeze());
        }
        match self.complete(Work::Read { at, into, done: 0 }).await? {
            Work::Read { into, .. } => Ok(into.freeze()),
            _ => unreachable!("a read stays one"),
        }
    }

    /// Writes `data`, one buffer after the other, to `at` on. All of it has been written when this
    /// returns, or anything of it after an error; it outlives a loss of power after the next
    /// [`Self::sync`].
    ///
    /// The buffers go to the kernel where they are: with direct I/O the caller sees to it that
    /// their addresses and lengths are aligned.
    pub async fn write(&self, at: u64, data: SmallVec<[Buf; 4]>) -> io::Result<()> {
        if data.iter().all(|part| part.len() == 0) {
            return Ok(());
        }
        self.complete(Work::Write { at, data, done: 0, parts: Vec::new() }).await.map(drop)
    }

    /// Returns when all that had been written when this was called outlives a loss of power
    /// (fdatasync(2)).
    pub async fn sync(&self) -> io::Result<()> {
        self.complete(Work::Sync).await.map(drop)
    }

    /// Lets `len` bytes from `at` on read as zeros and gives their space back. Not every file
    /// system or device can: then the error is [`io::ErrorKind::Unsupported`].
    pub async fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.complete(Work::Punch { at, len }).await.map(drop)
    }

    /// Has the kernel do `work` to its end: what it does in part is continued.
    async fn complete(&self, mut work: Work) -> io::Result<Work> {
        loop {
            let operation = Operation::new(self.fd.clone(), work);
            let task = clock::current();
            let place = driver::with(|driver| driver.start(operation, task));
            clock::park(Rank::Array, Stage::Array).await;
            let (operation, result) = driver::with(|driver| driver.take(place));
            work = operation.into_work();
            match u32::try_from(result) {
                Ok(moved) => {
                    if work.advance(moved)? {
                        return Ok(work);
                    }
                }
                Err(_) if -result == Errno::INTR.raw_os_error() => {}
                Err(_) => return Err(io::Error::from_raw_os_error(-result)),
            }
        }
    }
}
