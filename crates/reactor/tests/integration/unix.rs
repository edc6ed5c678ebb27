//! Unix sockets: bytes, file descriptors and socket files.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use net::Broken;
use reactor::{AcceptError, PassedFds, Reactor, Remote, UnixListener, UnixStream};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as Blocking;
use std::path::Path;
use std::rc::Rc;

fn serve<T>(root: impl Future<Output = T>) -> T {
    Reactor::new(None).serve(&Remote::new().unwrap(), root).unwrap().0
}

fn pair() -> (UnixStream, OwnedFd) {
    let (near, far) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    (UnixStream::new(near).unwrap(), far)
}

/// Sends one byte with `count` descriptors of `file`.
fn send_fds(socket: &OwnedFd, byte: u8, file: &File, count: usize) {
    let fds: Vec<BorrowedFd<'_>> = vec![file.as_fd(); count];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(count))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(socket, &[IoSlice::new(&[byte])], &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn descriptors_come_with_the_bytes_of_their_call() {
    let (near, far) = pair();
    let zero = File::open("/dev/zero").unwrap();
    serve(async {
        rustix::io::write(&far, b"before").unwrap();
        send_fds(&far, b'1', &zero, 2);
        send_fds(&far, b'2', &zero, 1);
        let (mut bytes, mut fds) = ([0; 100], PassedFds::default());
        assert_eq!(near.receive(&mut bytes[..6], &mut fds).await, Ok(6));
        assert!(fds.is_empty());
        assert_eq!(near.receive(&mut bytes, &mut fds).await, Ok(1));
        assert_eq!((bytes[0], fds.len(), fds.are_too_many()), (b'1', 2, false));
        for fd in fds.take() {
            assert!(fcntl_getfd(&fd).unwrap().contains(FdFlags::CLOEXEC));
            let mut zeros = [1; 4];
            File::from(fd).read_exact(&mut zeros).unwrap();
            assert_eq!(zeros, [0; 4]);
        }
        assert_eq!(near.receive(&mut bytes, &mut fds).await, Ok(1));
        assert_eq!((bytes[0], fds.len()), (b'2', 1));
    });
}

#[test]
fn a_descriptor_is_sent_once_with_the_first_byte() {
    let (near, far) = pair();
    let far = UnixStream::new(far).unwrap();
    let zero = File::open("/dev/zero").unwrap();
    // More than a socket holds, so that it takes several calls.
    let bytes = vec![7; 4 << 20];
    let len = bytes.len();
    serve(async {
        clock::spawn(async move { near.send(&bytes, Some(zero.as_fd())).await.unwrap() });
        let (mut into, mut fds, mut received) = (vec![0; len], PassedFds::default(), 0);
        while received < len {
            received += far.receive(&mut into[received..], &mut fds).await.unwrap();
            assert_eq!(fds.len(), 1);
        }
        assert!(into.iter().all(|byte| *byte == 7));
        let mut zeros = [1; 4];
        File::from(fds.take().next().unwrap()).read_exact(&mut zeros).unwrap();
        assert_eq!(zeros, [0; 4]);
    });
}

#[test]
fn descriptors_beyond_the_limit_are_closed() {
    let (near, far) = pair();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("passed");
    let file = File::create(&path).unwrap();
    serve(async {
        for (count, are_too_many) in [(16, false), (17, true), (40, true), (250, true)] {
            send_fds(&far, b'x', &file, count);
            let mut fds = PassedFds::default();
            assert_eq!(near.receive(&mut [0; 9], &mut fds).await, Ok(1));
            assert_eq!((fds.len(), fds.are_too_many()), (16, are_too_many), "{count}");
            assert_eq!(open_fds(&path), 1 + 16, "{count}");
            drop(fds);
            assert_eq!(open_fds(&path), 1, "{count}");
        }
    });
}

/// Counts the open descriptors of a file.
fn open_fds(path: &Path) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link == path).count()
}

#[test]
fn a_long_send_waits_for_its_reader() {
    const LEN: usize = 3 << 20;
    let (near, far) = pair();
    let reader = std::thread::spawn(move || {
        let mut read = Vec::new();
        File::from(far).read_to_end(&mut read).unwrap();
        read
    });
    serve(async {
        let bytes: Vec<u8> = (0..LEN).map(|at| u8::try_from(at % 251).unwrap()).collect();
        assert_eq!(near.send(&bytes, None).await, Ok(()));
        near.shut_down();
        assert_eq!(near.send(&[1], None).await, Err(Broken));
        assert_eq!(near.receive(&mut [0], &mut PassedFds::default()).await, Ok(0));
        assert!(near.is_shut_down());
        assert!(reader.join().unwrap() == bytes);
    });
}

#[test]
fn shutting_down_wakes_the_receiver() {
    let (near, _far) = pair();
    serve(async {
        let near = Rc::new(near);
        let other = near.clone();
        clock::spawn(async move { other.shut_down() });
        assert_eq!(near.receive(&mut [0], &mut PassedFds::default()).await, Ok(0));
    });
}

#[test]
fn a_listener_accepts_and_removes_its_file_when_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    serve(async {
        let listener = Rc::new(UnixListener::bind(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut client = Blocking::connect(&path).unwrap();
        let stream = listener.accept().await.unwrap();
        client.write_all(b"hello").unwrap();
        let mut bytes = [0; 9];
        assert_eq!(stream.receive(&mut bytes, &mut PassedFds::default()).await, Ok(5));
        let other = listener.clone();
        clock::spawn(async move { other.close() });
        assert!(matches!(listener.accept().await, Err(AcceptError::Closed)));
        assert!(!path.exists());
    });
}

#[test]
fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "std leaves the file");
    let first = UnixListener::bind(&path).unwrap();
    assert_eq!(UnixListener::bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert!(Blocking::connect(&path).is_ok(), "the first still listens");
    drop(first);
    assert!(!path.exists());
}

#[test]
fn other_files_at_the_path_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "text").unwrap();
    assert_eq!(UnixListener::bind(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"text");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("gone"), &link).unwrap();
    assert_eq!(UnixListener::bind(&link).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(link.is_symlink());
}

#[test]
fn a_closed_listener_leaves_a_file_that_took_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let first = UnixListener::bind(&path).unwrap();
    fs::rename(&path, folder.path().join("moved")).unwrap();
    let second = UnixListener::bind(&path).unwrap();
    drop(first);
    assert!(Blocking::connect(&path).is_ok());
    drop(second);
    assert!(!path.exists());
}
