use base::{Buf, BufMut};
use clock::TaskId;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};
use libc::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, iovec};
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// A file operation for the kernel, and all that it needs until it ends: the file, kept
/// open, and the memory that it reads or writes, which lies on the heap and stays where it is
/// wherever this moves.
pub(crate) struct Operation {
    file: Arc<OwnedFd>,
    work: Work,
}

/// What is to be done.
pub(crate) enum Work {
    /// Bytes from `at` on into a buffer, of which so many have come.
    Read { at: u64, into: BufMut, done: u32 },
    /// Buffers, one after the other, to `at` on, of which so many bytes have gone.
    Write { at: u64, data: SmallVec<[Buf; 4]>, done: usize, parts: Vec<iovec> },
    /// All that was written before outlives a loss of power.
    Sync,
    /// Zeros in place of so many bytes from `at` on, and their space given back.
    Punch { at: u64, len: u64 },
}

/// Parts of memory that the kernel takes at once (`UIO_MAXIOV`).
const PARTS_MAX: usize = 1_024;

impl Operation {
    pub(crate) fn new(file: Arc<OwnedFd>, work: Work) -> Self {
        Self { file, work }
    }

    pub(crate) fn into_work(self) -> Work {
        self.work
    }

    /// The rest of the work, as the ring takes it.
    fn entry(&mut self) -> squeue::Entry {
        let fd = Fd(self.file.as_raw_fd());
        match &mut self.work {
            Work::Read { at, into, done } => {
                let rest = &mut into.as_mut()[*done as usize..];
                let len = u32::try_from(rest.len()).expect("a buffer is below 4 GiB");
                let read = opcode::Read::new(fd, rest.as_mut_ptr(), len);
                read.offset(*at + u64::from(*done)).build()
            }
            Work::Write { at, data, done, parts } => {
                gather(data, *done, parts);
                let at = *at + *done as u64;
                match &parts[..] {
                    [part] if let Ok(len) = u32::try_from(part.iov_len) => {
                        opcode::Write::new(fd, part.iov_base.cast(), len).offset(at).build()
                    }
                    parts => {
                        let count = u32::try_from(parts.len()).expect("they are bounded");
                        opcode::Writev::new(fd, parts.as_ptr(), count).offset(at).build()
                    }
                }
            }
            Work::Sync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            Work::Punch { at, len } => {
                let mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(fd, *len).offset(*at).mode(mode).build()
            }
        }
    }
}

impl Work {
    /// Takes into account that the kernel has moved so many bytes, and says whether all is done. An
    /// error when nothing was moved though something was left.
    pub(crate) fn advance(&mut self, moved: u32) -> io::Result<bool> {
        let left = match self {
            Self::Read { into, done, .. } => {
                *done += moved;
                into.as_mut().len() - *done as usize
            }
            Self::Write { data, done, .. } => {
                *done += moved as usize;
                data.iter().map(|part| part.len() as usize).sum::<usize>() - *done
            }
            Self::Sync | Self::Punch { .. } => return Ok(true),
        };
        match (left, moved, &self) {
            (0, ..) => Ok(true),
            (_, 0, Self::Read { .. }) => Err(io::ErrorKind::UnexpectedEof.into()),
            (_, 0, _) => Err(io::ErrorKind::WriteZero.into()),
            _ => Ok(false),
        }
    }
}

/// Lists where the bytes of `data` lie in memory, but for the first `done`; as many as the kernel
/// takes. Neighbours are one part.
fn gather(data: &[Buf], done: usize, parts: &mut Vec<iovec>) {
    parts.clear();
    let mut skipped = done;
    for segment in data {
        let bytes = segment.bytes().expect("a file takes bytes, and a phantom has none");
        let bytes = &bytes[skipped.min(bytes.len())..];
        skipped -= segment.len() as usize - bytes.len();
        if bytes.is_empty() {
            continue;
        }
        let start = bytes.as_ptr();
        let is_full = parts.len() == PARTS_MAX;
        match parts.last_mut() {
            Some(last) if end(last) == start => last.iov_len += bytes.len(),
            Some(_) if is_full => return,
            _ => parts.push(iovec { iov_base: start.cast_mut().cast(), iov_len: bytes.len() }),
        }
    }
}

/// Where a part ends in memory.
fn end(part: &iovec) -> *const u8 {
    part.iov_base.cast_const().cast::<u8>().wrapping_add(part.iov_len)
}

/// The operations of a ring, each in a place of its own from its start until it is taken back.
#[derive(Default)]
pub(crate) struct Operations {
    places: Vec<Option<Started>>,
    free: Vec<usize>,
    /// Those with which the kernel is not done.
    under_way: usize,
}

struct Started {
    operation: Operation,
    /// The task that waits for it.
    task: TaskId,
    /// What the kernel said when it was done.
    result: Option<i32>,
}

impl Operations {
    /// Keeps `operation` for `task`, and returns its place with what the ring is to be given.
    pub(crate) fn start(&mut self, operation: Operation, task: TaskId) -> (usize, squeue::Entry) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.under_way += 1;
        let started = self.places[place].insert(Started { operation, task, result: None });
        (place, started.operation.entry())
    }

    /// Records the result of the operation in `place`. Returns the task that waits for it.
    pub(crate) fn end(&mut self, place: usize, result: i32) -> TaskId {
        let started = self.places[place].as_mut().expect("what has ended was started");
        assert!(started.result.is_none(), "an operation ends once");
        started.result = Some(result);
        self.under_way -= 1;
        started.task
    }

    /// Gives back the one in `place`, with which the kernel is done, and what it said.
    pub(crate) fn take(&mut self, place: usize) -> (Operation, i32) {
        let started = self.places[place].take().expect("an operation is taken once");
        let Some(result) = started.result else {
            // The kernel may still write to this memory: keep it until the operation ends.
            self.places[place] = Some(started);
            panic!("an operation is taken after its end");
        };
        self.free.push(place);
        (started.operation, result)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }
}
