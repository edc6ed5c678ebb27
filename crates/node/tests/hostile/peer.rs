use crate::scene::NQN;
use node::server::Server;
use spec::{Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, LogPage, Property};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use zerocopy::IntoBytes;

/// Many times what any answer takes on a busy machine: what hangs is to fail.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Types of PDUs (TCP 1.1, PDU Types).
pub(crate) const IC_REQ: u8 = 0x00;
pub(crate) const IC_RESP: u8 = 0x01;
pub(crate) const C2H_TERM_REQ: u8 = 0x03;
pub(crate) const CAPSULE_CMD: u8 = 0x04;
pub(crate) const CAPSULE_RESP: u8 = 0x05;
pub(crate) const H2C_DATA: u8 = 0x06;
pub(crate) const C2H_DATA: u8 = 0x07;
pub(crate) const R2T: u8 = 0x09;

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

const HOST_ID: [u8; 16] = *b"a bad host's id.";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-00000000bad0";

/// Where the server is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) nqn: String,
    /// Connections that peers made.
    pub(crate) connected: AtomicU64,
}

impl Place {
    /// Where `server` is.
    pub(crate) fn of(server: &Server) -> Self {
        Self { address: server.addresses()[0], nqn: NQN.to_owned(), connected: AtomicU64::new(0) }
    }
}

/// A bad host's end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// In messages.
    name: &'static str,
    /// It leaves what it is sent in the socket.
    pub(crate) is_deaf: bool,
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is open, and all that came was read.
    Quiet,
    /// It is open, and something came.
    Talking,
    Closed,
}

impl Peer {
    pub(crate) fn connect(name: &'static str, place: &Place) -> Self {
        let stream = TcpStream::connect(place.address).expect("the server listens");
        place.connected.fetch_add(1, Relaxed);
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, name, is_deaf: false }
    }

    /// An admin queue, and an I/O queue of so many entries.
    pub(crate) fn associate(name: &'static str, place: &Place, entries: u16) -> [Self; 2] {
        let mut admin = Self::connect(name, place);
        admin.initialize(0);
        let (connect, data) = connecting(&place.nqn, 0, 32, ConnectData::ANY_CONTROLLER);
        let controller = ConnectReply(admin.call(&connect, &data)).controller_id();
        admin.call(&Command::property_set(Property::CC, ENABLED), &[]);
        let mut io = Self::connect(name, place);
        io.initialize(0);
        let (connect, data) = connecting(&place.nqn, 1, entries, controller);
        io.call(&connect, &data);
        [admin, io]
    }

    /// Agrees on `digests`, as they are in DGST: bit 0 for headers, bit 1 for data.
    pub(crate) fn initialize(&mut self, digests: u8) {
        self.say(&ic_req(digests));
        let reply = self.pdu();
        assert_eq!((reply[0], reply[11]), (IC_RESP, digests), "{}: no ICResp", self.name);
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let said = self.stream.write_all(bytes);
        said.unwrap_or_else(|error| panic!("{}: the server does not read: {error}", self.name));
    }

    /// The next PDU, without digests.
    pub(crate) fn pdu(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        self.hear(&mut bytes);
        let len = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
        assert!((24..=3 << 20).contains(&len), "{}: a PDU of {len} bytes", self.name);
        bytes.resize(len, 0);
        self.hear(&mut bytes[8..]);
        bytes
    }

    fn hear(&mut self, bytes: &mut [u8]) {
        let heard = self.stream.read_exact(bytes);
        heard.unwrap_or_else(|error| panic!("{}: no word of the server: {error}", self.name));
    }

    /// Read commands that were carried out for all hosts together, and the bytes that they read: as
    /// an admin queue is told (Base 2.1, SMART / Health Information, Host Read Commands in bytes
    /// 79:64, Data Units Read of 512,000 bytes in bytes 47:32).
    pub(crate) fn reads(&mut self) -> (u64, u64) {
        let log = Command::get_log_page(LogPage::SMART, 0, 512);
        self.say(&capsule_for(&log, 0, 512));
        let data = self.pdu();
        assert_eq!((data[0], data.len()), (C2H_DATA, 24 + 512), "{}", self.name);
        assert_eq!(self.pdu()[0], CAPSULE_RESP, "{}", self.name);
        let field = |at: usize| u64::from_le_bytes(*data[24 + at..].first_chunk().unwrap());
        (field(64), field(32) * 512_000)
    }

    /// Carries out a command with `data` in its capsule; gives dword 0 of its result.
    pub(crate) fn call(&mut self, command: &Command, data: &[u8]) -> u32 {
        self.say(&capsule(command, data));
        let reply = self.pdu();
        assert_eq!((reply[0], reply[22] >> 1, reply[23]), (CAPSULE_RESP, 0, 0), "{}", self.name);
        u32::from_le_bytes(*reply[8..].first_chunk().unwrap())
    }

    /// Waits until something is there to be read, and leaves it.
    pub(crate) fn wait_for_word(&self) {
        let heard = self.stream.peek(&mut [0]).expect("the server sends");
        assert_eq!(heard, 1, "{}: the connection ended", self.name);
    }

    /// What the connection is at, and what it should be.
    #[track_caller]
    pub(crate) fn check_line(&self) {
        self.stream.set_nonblocking(true).unwrap();
        let line = match self.stream.peek(&mut [0]) {
            Ok(1) => Line::Talking,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Line::Quiet,
            _ => Line::Closed,
        };
        let expected = if self.is_deaf { Line::Talking } else { Line::Quiet };
        assert_eq!(line, expected, "{}", self.name);
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

/// A Connect for queue `id`, without time limit and without flow control, and its data.
pub(crate) fn connecting(nqn: &str, id: u16, entries: u16, controller: u16) -> (Command, Vec<u8>) {
    let attributes =
        if id == 0 { ConnectAttributes::NONE } else { ConnectAttributes::NO_FLOW_CONTROL };
    let data = ConnectData::new(HOST_ID, HOST, nqn, controller);
    (Command::connect(id, entries - 1, attributes, 0), data.as_bytes().to_vec())
}

pub(crate) fn ic_req(digests: u8) -> Vec<u8> {
    let mut rest = [0; 120];
    rest[3] = digests;
    pdu([IC_REQ, 0, 128, 0], 128, &rest)
}

/// A command with `data` in its capsule.
pub(crate) fn capsule(command: &Command, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).unwrap();
    let (pointer, data_at) = match len {
        0 => (DataPointer::Transport { len: 0 }, 0),
        _ => (DataPointer::InCapsule { offset: 0, len }, 72),
    };
    let command = command.with_data_pointer(pointer);
    pdu([CAPSULE_CMD, 0, 72, data_at], 72 + len, &[command.as_bytes(), data].concat())
}

/// A command that moves `len` bytes by the transport.
pub(crate) fn capsule_for(command: &Command, id: u16, len: u32) -> Vec<u8> {
    let command = command.with_command_id(id).with_data_pointer(DataPointer::Transport { len });
    pdu([CAPSULE_CMD, 0, 72, 0], 72, command.as_bytes())
}

/// Data that an R2T has asked for, and not the last of it.
pub(crate) fn h2c_data(request: &[u8], offset: u32, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).unwrap();
    // The command and the tag are in the same place.
    let ids = &request[8..12];
    let rest = [ids, &offset.to_le_bytes(), &len.to_le_bytes(), &[0; 4], data].concat();
    pdu([H2C_DATA, 0, 24, 24], 24 + len, &rest)
}

/// A PDU of its type, flags, HLEN and PDO, its PLEN, and what follows.
pub(crate) fn pdu(kind_to_offset: [u8; 4], len: u32, rest: &[u8]) -> Vec<u8> {
    [&kind_to_offset[..], &len.to_le_bytes(), rest].concat()
}
