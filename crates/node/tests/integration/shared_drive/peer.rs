use crate::shared_drive::scene::NQN;
use nvme_tcp::pdu::{CapsuleCmd, Digests, IcReq};
use spec::{
    Command, Completion, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property,
    Status, StoreOptions, Transfer,
};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const HOST_ID: [u8; 16] = *b"a host on socket";
const HOST: &str = "nqn.2026-11.com.example:host";

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
pub(crate) const ENABLED: u64 = 0x0046_0061;

/// Many times what any answer takes on a busy machine: what hangs is to fail.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What a command that takes data takes.
const ROOM: u32 = 4_096;

const C2H_DATA: u8 = 0x07;
const CAPSULE_RESP: u8 = 0x05;

/// A host's end of a connection.
pub(crate) struct Peer {
    stream: TcpStream,
    next_id: Cell<u16>,
}

/// What a command was answered.
pub(crate) struct Answer {
    pub(crate) entry: Completion,
    pub(crate) data: Vec<u8>,
}

impl Peer {
    fn dial(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(IcReq::new(4, Digests::NONE, 1).as_bytes()).unwrap();
        stream.read_exact(&mut [0; 128]).unwrap();
        Self { stream, next_id: Cell::new(1) }
    }

    /// The admin queue of a host that has enabled its controller, and the controller's id.
    pub(crate) fn admin(address: SocketAddr, keep_alive_ms: u32) -> (Self, u16) {
        Self::admin_of(HOST, address, keep_alive_ms)
    }

    /// The same of the host with this name.
    pub(crate) fn admin_of(host: &str, address: SocketAddr, keep_alive_ms: u32) -> (Self, u16) {
        let admin = Self::dial(address);
        let command = Command::connect(0, 31, ConnectAttributes::NONE, keep_alive_ms);
        let data = ConnectData::new(HOST_ID, host, NQN, ConnectData::ANY_CONTROLLER);
        let reply = admin.answer(command, data.as_bytes());
        assert_eq!(reply.entry.status(), Status::SUCCESS);
        let reply = ConnectReply(u32::try_from(reply.entry.result()).unwrap());
        admin.set_configuration(ENABLED);
        (admin, reply.controller_id())
    }

    /// An I/O queue of 128 entries.
    pub(crate) fn io(address: SocketAddr, controller: u16, id: u16) -> Self {
        Self::io_of(HOST, address, controller, (id, 128))
    }

    /// An I/O queue of this id and so many entries, of the host with this name.
    pub(crate) fn io_of(
        host: &str,
        address: SocketAddr,
        controller: u16,
        (id, entries): (u16, u16),
    ) -> Self {
        let io = Self::dial(address);
        let command = Command::connect(id, entries - 1, ConnectAttributes::NONE, 0);
        let data = ConnectData::new(HOST_ID, host, NQN, controller);
        assert_eq!(io.answer(command, data.as_bytes()).entry.status(), Status::SUCCESS);
        io
    }

    pub(crate) fn set_configuration(&self, configuration: u64) {
        assert_eq!(
            self.status(Command::property_set(Property::CC, configuration)),
            Status::SUCCESS
        );
    }

    /// Sends a command, with its data in its capsule, and returns its id. A connection that is gone
    /// takes nothing.
    pub(crate) fn send(&self, command: Command, data: &[u8]) -> u16 {
        let id = self.next_id.replace(self.next_id.get() % 60_000 + 1);
        let len = u32::try_from(data.len()).unwrap();
        let pointer = match (len, command.transfer()) {
            (0, Transfer::ToHost) => DataPointer::Transport { len: ROOM },
            (0, _) => DataPointer::Transport { len: 0 },
            _ => DataPointer::InCapsule { offset: 0, len },
        };
        let capsule = CapsuleCmd::new(command.with_command_id(id).with_data_pointer(pointer));
        let mut bytes = [capsule.as_bytes(), data].concat();
        if len > 0 {
            // PDO and PLEN: the data follows.
            bytes[3] = 72;
            bytes[4..8].copy_from_slice(&(72 + len).to_le_bytes());
        }
        let _ = (&self.stream).write_all(&bytes);
        id
    }

    /// The next answer; `None` when the connection has ended.
    pub(crate) fn next(&self) -> Option<Answer> {
        let mut data = Vec::new();
        loop {
            let pdu = self.pdu()?;
            match pdu[0] {
                C2H_DATA => data.extend(&pdu[24..]),
                CAPSULE_RESP => {
                    let entry = Completion::read_from_bytes(&pdu[8..24]).unwrap();
                    return Some(Answer { entry, data });
                }
                other => panic!("a PDU of type {other}"),
            }
        }
    }

    fn pdu(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 8];
        (&self.stream).read_exact(&mut bytes).ok()?;
        let len = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
        bytes.resize(len, 0);
        (&self.stream).read_exact(&mut bytes[8..]).ok()?;
        Some(bytes)
    }

    pub(crate) fn answer(&self, command: Command, data: &[u8]) -> Answer {
        let id = self.send(command, data);
        let answer = self.next().expect("the connection is there");
        assert_eq!(answer.entry.command_id(), id);
        answer
    }

    pub(crate) fn status(&self, command: Command) -> Status {
        self.answer(command, &[]).entry.status()
    }

    pub(crate) fn send_store(&self, key: &[u8], value: &[u8]) -> u16 {
        let len = u32::try_from(value.len()).unwrap();
        self.send(Command::store(1, key, len, StoreOptions::NONE), value)
    }

    pub(crate) fn store(&self, key: &[u8], value: &[u8]) -> Option<Status> {
        self.send_store(key, value);
        Some(self.next()?.entry.status())
    }

    pub(crate) fn exists(&self, key: &[u8]) -> bool {
        match self.status(Command::exist(1, key)) {
            Status::SUCCESS => true,
            Status::KEY_DOES_NOT_EXIST => false,
            status => panic!("{status}"),
        }
    }
}
