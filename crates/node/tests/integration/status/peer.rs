use nvme_tcp::pdu::{CapsuleCmd, Digests, IcReq};
use spec::{
    Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property, StoreOptions,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use zerocopy::IntoBytes;

const HOST_ID: [u8; 16] = *b"a host that owes";

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

/// A host that announces values, and keeps them to itself.
pub(crate) struct Debtor {
    _admin: TcpStream,
    io: TcpStream,
}

impl Debtor {
    pub(crate) fn come(address: SocketAddr, subsystem: &str, host: &str) -> Self {
        let mut admin = dial(address);
        let connect = |queue, controller| {
            let connect = Command::connect(queue, 31, ConnectAttributes::NONE, 0);
            (connect, ConnectData::new(HOST_ID, host, subsystem, controller))
        };
        let (command, data) = connect(0, ConnectData::ANY_CONTROLLER);
        let controller = ConnectReply(call(&mut admin, &command, data.as_bytes())).controller_id();
        call(&mut admin, &Command::property_set(Property::CC, ENABLED), &[]);
        let mut io = dial(address);
        let (command, data) = connect(1, controller);
        call(&mut io, &command, data.as_bytes());
        Self { _admin: admin, io }
    }

    /// Announces a value of `len` bytes, and has been asked for it when this returns.
    pub(crate) fn announce(&mut self, id: u16, len: u32) {
        let command = Command::store(1, b"owed", len, StoreOptions::NONE)
            .with_command_id(id)
            .with_data_pointer(DataPointer::Transport { len });
        self.io.write_all(CapsuleCmd::new(command).as_bytes()).unwrap();
        assert_eq!(hear::<24>(&mut self.io)[0], 0x09, "an R2T");
    }
}

fn dial(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(IcReq::new(4, Digests::NONE, 1).as_bytes()).unwrap();
    hear::<128>(&mut stream);
    stream
}

/// Carries a command out whose data is in its capsule; gives dword 0 of its result.
fn call(stream: &mut TcpStream, command: &Command, data: &[u8]) -> u32 {
    let len = u32::try_from(data.len()).unwrap();
    let pointer = match len {
        0 => DataPointer::Transport { len: 0 },
        _ => DataPointer::InCapsule { offset: 0, len },
    };
    let capsule = CapsuleCmd::new(command.with_data_pointer(pointer));
    let mut bytes = [capsule.as_bytes(), data].concat();
    if len > 0 {
        // PDO and PLEN: the data follows.
        bytes[3] = 72;
        bytes[4..8].copy_from_slice(&(72 + len).to_le_bytes());
    }
    stream.write_all(&bytes).unwrap();
    let reply = hear::<24>(stream);
    assert_eq!((reply[0], reply[22] >> 1, reply[23]), (0x05, 0, 0), "it succeeds");
    u32::from_le_bytes(*reply[8..].first_chunk().unwrap())
}

fn hear<const LEN: usize>(stream: &mut TcpStream) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}
