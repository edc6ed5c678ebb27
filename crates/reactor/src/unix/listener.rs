use crate::accept::{AcceptError, BACKLOG, ignore_passing};
use crate::driver;
use crate::retry_busy::retry_busy;
use crate::unix::{FLAGS, UnixStream, socket};
use rustix::event::PollFlags;
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketType, accept_with, bind, connect, listen,
    shutdown, socket_with,
};
use std::cell::Cell;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A socket file at which Unix connections come in. Only the user who made it, and root, can
/// connect. Closing or dropping it removes the file.
#[derive(Debug)]
pub struct UnixListener {
    fd: OwnedFd,
    file: SocketFile,
    is_closed: Cell<bool>,
}

/// The file of a socket. Another process may have put another in its place.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl UnixListener {
    /// Makes a socket file of mode 0600 at `path` and listens there. Replaces a socket file that no
    /// process listens at. The error is [`io::ErrorKind::AddrInUse`] if a process does, and
    /// [`io::ErrorKind::AlreadyExists`] if the file is another kind of file.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // The ring of a process that was killed holds its socket for some ms.
        let is_taken = |bound: &io::Result<_>| {
            bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
        };
        retry_busy(|| Self::bind_once(path), is_taken)
    }

    fn bind_once(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let fd = socket()?;
        // The kernel gives the file the mode of the socket, so the file never has a wider one.
        fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
        match bind(&fd, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                remove_stale(path, &address)?;
                bind(&fd, &address)?;
            }
            Err(error) => return Err(error.into()),
        }
        let file = SocketFile {
            path: path.to_owned(),
            identity: identity(&std::fs::symlink_metadata(path)?),
        };
        let listener = Self { fd, file, is_closed: Cell::new(false) };
        listen(&listener.fd, BACKLOG)?;
        Ok(listener)
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> Result<UnixStream, AcceptError> {
        loop {
            if self.is_closed.get() {
                return Err(AcceptError::Closed);
            }
            match accept_with(&self.fd, FLAGS) {
                Ok(fd) => {
                    if let Ok(stream) = UnixStream::new(fd) {
                        return Ok(stream);
                    }
                }
                Err(Errno::AGAIN) => {
                    driver::wait_until_ready(self.fd.as_fd(), PollFlags::IN).await;
                }
                Err(error) => ignore_passing(error)?,
            }
        }
    }

    /// Stops listening, removes the socket file, and wakes the task in [`Self::accept`].
    pub fn close(&self) {
        if !self.is_closed.replace(true) {
            self.file.remove();
            // It fails only if the socket does not listen.
            let _ = shutdown(&self.fd, Shutdown::Both);
        }
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        self.close();
    }
}

impl SocketFile {
    /// Removes the file unless another has taken its place.
    fn remove(&self) {
        let found = std::fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| identity(&found) == self.identity) {
            // A file that cannot be removed is replaced by the next listener.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Removes the socket file at `path` if no process listens at it. An error says what is there.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let sentence = "a file that is no socket is there: choose another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, sentence));
    }
    // A socket of another type tells a listener from none and makes no connection.
    let probe = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
    match connect(probe, address) {
        Err(Errno::CONNREFUSED) => {}
        Err(Errno::NOENT) => return Ok(()),
        Ok(()) | Err(Errno::PROTOTYPE) => return Err(Errno::ADDRINUSE.into()),
        Err(error) => return Err(error.into()),
    }
    SocketFile { path: path.to_owned(), identity: identity(&found) }.remove();
    Ok(())
}
