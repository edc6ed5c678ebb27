//! Connects to a target as a host does: an admin queue, an enabled controller, an I/O queue. Uses
//! blocking calls and plain bytes, because nothing of this is measured.

use crate::loopback::exchange::{CAPSULE, CAPSULE_BYTES, HEADER_BYTES, RESPONSE, header};
use spec::{Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use zerocopy::IntoBytes;

const HOST_ID: [u8; 16] = *b"an experiment's.";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000001";

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

/// Entries of an I/O queue.
const ENTRIES: u16 = 256;

/// A host's connections to a target.
pub struct Connected {
    /// Keeps the controller alive while it is open.
    pub admin: TcpStream,
    /// Ready for commands.
    pub io: TcpStream,
    /// The most bytes of a PDU with data that the target takes.
    pub data_max: usize,
}

/// Connects to the subsystem `nqn` at `address`.
pub fn connect(address: SocketAddr, nqn: &str) -> Connected {
    let (mut admin, _) = initialize(address);
    let data = |controller| ConnectData::new(HOST_ID, HOST, nqn, controller);
    let attributes = ConnectAttributes::NONE;
    let command = Command::connect(0, 31, attributes, 0);
    let result = call(&mut admin, &command, data(ConnectData::ANY_CONTROLLER).as_bytes());
    let controller = ConnectReply(dword(result)).controller_id();
    call(&mut admin, &Command::property_set(Property::CC, ENABLED), &[]);
    let (mut io, data_max) = initialize(address);
    let attributes = ConnectAttributes::NO_FLOW_CONTROL;
    let command = Command::connect(1, ENTRIES - 1, attributes, 0);
    call(&mut io, &command, data(controller).as_bytes());
    Connected { admin, io, data_max }
}

/// Opens a connection and performs the handshake; no digests.
fn initialize(address: SocketAddr) -> (TcpStream, usize) {
    let mut stream = TcpStream::connect(address).expect("the target listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let mut request = [0; 128];
    request[..8].copy_from_slice(&header(0x00, 0, 128, 0));
    stream.write_all(&request).expect("the target is there");
    let mut reply = [0; 128];
    stream.read_exact(&mut reply).expect("the target answers");
    assert_eq!(reply[0], 0x01, "the first PDU of a target");
    let data_max = u32::from_le_bytes([reply[12], reply[13], reply[14], reply[15]]);
    (stream, data_max as usize)
}

/// Executes one command with `data` in its capsule, and returns its result.
fn call(stream: &mut TcpStream, command: &Command, data: &[u8]) -> u64 {
    let len = u32::try_from(data.len()).expect("at most 8,192 bytes");
    let command = match len {
        0 => command.with_data_pointer(DataPointer::Transport { len: 0 }),
        _ => command.with_data_pointer(DataPointer::InCapsule { offset: 0, len }),
    };
    let head = header(CAPSULE, 0, CAPSULE_BYTES, data.len());
    let request = [&head[..], command.as_bytes(), data].concat();
    stream.write_all(&request).expect("the target is there");
    let mut reply = [0; HEADER_BYTES];
    stream.read_exact(&mut reply).expect("the target answers");
    assert_eq!(reply[0], RESPONSE, "a response without data");
    let status = u16::from_le_bytes([reply[22], reply[23]]) >> 1;
    assert_eq!(status, 0, "{command:?} failed");
    let mut result = [0; 8];
    result.copy_from_slice(&reply[8..16]);
    u64::from_le_bytes(result)
}

fn dword(result: u64) -> u32 {
    u32::try_from(result & 0xffff_ffff).expect("32 bits")
}
