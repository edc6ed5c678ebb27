use crate::device::{GO, LENGTH, OUTCOME, SOURCE, TARGET};
use crate::server::Server;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

pub(crate) const VERSION: u16 = 1;
pub(crate) const DMA_MAP: u16 = 2;
pub(crate) const DMA_UNMAP: u16 = 3;
pub(crate) const GET_INFO: u16 = 4;
pub(crate) const GET_REGION_INFO: u16 = 5;
pub(crate) const GET_IRQ_INFO: u16 = 7;
pub(crate) const SET_IRQS: u16 = 8;
pub(crate) const REGION_READ: u16 = 9;
pub(crate) const REGION_WRITE: u16 = 10;
pub(crate) const RESET: u16 = 13;
pub(crate) const WRITE_MULTI: u16 = 15;

pub(crate) const READ: u32 = 1;
pub(crate) const READ_WRITE: u32 = 3;

/// A client that writes bytes. It checks the header of each reply.
pub(crate) struct RawClient {
    pub(crate) socket: UnixStream,
    next_id: u16,
}

/// The payload of a reply, or its error.
pub(crate) type Reply = Result<Vec<u8>, Errno>;

/// Joins fields of a message.
macro_rules! payload {
    ($($field:expr),* $(,)?) => { [$(&$field.to_ne_bytes()[..]),*].concat() };
}
pub(crate) use payload;

/// Returns the bytes of a message whose size is right.
pub(crate) fn message(id: u16, command: u16, flags: u32, payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(16 + payload.len()).unwrap();
    [&payload!(id, command, size, flags, 0_u32)[..], payload].concat()
}

/// Returns a sealed memfd with bytes that tell their places.
pub(crate) fn sealed(name: &str, size: usize) -> File {
    let file = unsealed(name, size);
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

/// As [`sealed`], but the client can truncate it.
pub(crate) fn unsealed(name: &str, size: usize) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(name, flags).unwrap());
    let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
    file.write_all(&bytes).unwrap();
    file
}

impl RawClient {
    /// Begins a session and agrees on the version.
    pub(crate) fn start() -> (Server, Self) {
        let (server, mut client) = Self::without_version();
        let reply = client.call(VERSION, &payload!(0_u16, 0_u16), &[]).unwrap();
        assert_eq!(reply[..4], [0; 4]);
        (server, client)
    }

    /// As [`Self::start`], with doorbells to map.
    pub(crate) fn start_mapped() -> (Server, Self) {
        let (server, socket) = Server::start_mapped();
        let mut client = Self { socket, next_id: 77 };
        client.call(VERSION, &payload!(0_u16, 0_u16), &[]).unwrap();
        (server, client)
    }

    pub(crate) fn without_version() -> (Server, Self) {
        let (server, socket) = Server::start();
        (server, Self { socket, next_id: 77 })
    }

    /// Sends a command and returns its reply.
    pub(crate) fn call(&mut self, command: u16, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Reply {
        self.next_id += 1;
        self.send(&message(self.next_id, command, 0, payload), fds);
        self.reply(self.next_id, command)
    }

    /// Sends bytes with file descriptors.
    pub(crate) fn send(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut rest = bytes;
        if !fds.is_empty() {
            let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(fds.len()))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
            let parts = &[IoSlice::new(bytes)];
            let sent = sendmsg(&self.socket, parts, &mut control, SendFlags::NOSIGNAL).unwrap();
            rest = &bytes[sent..];
        }
        self.socket.write_all(rest).unwrap();
    }

    /// Reads the reply of a command, and checks all of its header.
    pub(crate) fn reply(&mut self, id: u16, command: u16) -> Reply {
        let mut header = [0; 16];
        self.socket.read_exact(&mut header).unwrap();
        let field = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(header[..4], payload!(id, command));
        let (size, flags, errno) = (field(4), field(8), field(12));
        if flags == 0x21 {
            assert_eq!(size, 16, "the reply of an error is a header");
            return Err(Errno::from_raw_os_error(errno.try_into().unwrap()));
        }
        assert_eq!((flags, errno), (1, 0));
        let mut payload = vec![0; usize::try_from(size).unwrap() - 16];
        self.socket.read_exact(&mut payload).unwrap();
        Ok(payload)
    }

    /// Checks that the stream is in step: the next command has its own reply.
    #[track_caller]
    pub(crate) fn check_in_step(&mut self) {
        let reply = self.call(GET_INFO, &payload!(16_u32, 0_u32, 0_u32, 0_u32), &[]);
        assert_eq!(reply, Ok(payload!(16_u32, 3_u32, 9_u32, 5_u32)));
    }

    pub(crate) fn map(
        &mut self,
        (address, size): (u64, u64),
        file: Option<(&File, u64)>,
        flags: u32,
    ) -> Reply {
        let offset = file.map_or(0, |(_, offset)| offset);
        let payload = payload!(32_u32, flags, offset, address, size);
        let fds: Vec<_> = file.iter().map(|(file, _)| file.as_fd()).collect();
        self.call(DMA_MAP, &payload, &fds)
    }

    pub(crate) fn unmap(&mut self, flags: u32, address: u64, size: u64) -> Reply {
        self.call(DMA_UNMAP, &payload!(24_u32, flags, address, size), &[])
    }

    /// Reads a register of 4 bytes.
    pub(crate) fn register(&mut self, offset: u64) -> u32 {
        let reply = self.call(REGION_READ, &payload!(offset, 0_u32, 4_u32), &[]).unwrap();
        assert_eq!(reply[..16], payload!(offset, 0_u32, 4_u32));
        u32::from_le_bytes(reply[16..].try_into().unwrap())
    }

    /// Writes a register.
    pub(crate) fn set(&mut self, offset: u64, value: &[u8]) {
        let access = payload!(offset, 0_u32, u32::try_from(value.len()).unwrap());
        let reply = self.call(REGION_WRITE, &[&access[..], value].concat(), &[]);
        assert_eq!(reply, Ok(access));
    }

    /// Lets the device do DMA, and returns its outcome.
    pub(crate) fn dma(&mut self, kind: u32, source: u64, target: u64, len: u32) -> u32 {
        self.set(SOURCE, &source.to_le_bytes());
        self.set(TARGET, &target.to_le_bytes());
        self.set(LENGTH, &len.to_le_bytes());
        self.set(GO, &kind.to_le_bytes());
        self.register(OUTCOME)
    }
}
