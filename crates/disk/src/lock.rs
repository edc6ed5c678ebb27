use crate::access::Access;
use rustix::fs::{FlockOperation, flock, fstat, major, minor};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::{fmt, io};

/// Another process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub process: u32,
    /// Its program, if it still runs.
    pub program: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            Some(program) => write!(f, "process {} ({program})", self.process),
            None => write!(f, "process {}", self.process),
        }
    }
}

/// Locks an open file until the last copy of `fd` is closed: exclusively to write, shared to read.
/// Returns false if another process holds the lock.
pub(crate) fn lock(fd: BorrowedFd<'_>, access: Access) -> io::Result<bool> {
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(fd, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the process that holds the lock of an open file, if the kernel names it
/// (`proc_locks(5)`).
pub(crate) fn holder(fd: BorrowedFd<'_>) -> Option<Holder> {
    let stat = fstat(fd).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let process = process_of(&locks, (major(stat.st_dev), minor(stat.st_dev)), stat.st_ino)?;
    let program = std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
    Some(Holder { process, program: program.map(|name| name.trim_end().to_owned()) })
}

/// Returns the process that holds a lock of the file with this device and inode. The kernel lists a
/// process of another container as 0.
fn process_of(locks: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, at, ..] = fields[..] else { return None };
        process.parse().ok().filter(|process| at == place && *process > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In Linux's format: kernel `fs/locks.c`, `lock_get_status`.
    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ  1 fe:00:77 0 EOF
2: FLOCK  ADVISORY  WRITE 0 fe:00:77 0 EOF
3: FLOCK  ADVISORY  WRITE 1234 fe:00:77 0 EOF
3: -> FLOCK  ADVISORY  WRITE 99 fe:00:78 0 EOF
4: FLOCK  ADVISORY  READ  55 103:0a:7 0 EOF
";

    #[test]
    fn the_process_that_has_a_lock_is_found() {
        assert_eq!(process_of(LOCKS, (0xfe, 0), 77), Some(1_234));
        assert_eq!(process_of(LOCKS, (0x103, 10), 7), Some(55));
        assert_eq!(process_of(LOCKS, (0xfe, 0), 78), None, "it waits for the lock");
        assert_eq!(process_of(LOCKS, (0xfe, 1), 77), None);
        assert_eq!(process_of("", (0, 0), 0), None);
    }
}
