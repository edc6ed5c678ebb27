//! NVMe/TCP: a host's commands on one I/O queue.

use crate::commands::{KEYS, Kind, key};
use crate::drives;
use crate::tape::Tape;
use base::BufPool;
use controller::{
    Controller, Entrance, FlashFigures, Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use nvme_tcp::framing::Counters;
use nvme_tcp::pdu::{CapsuleCmd, Digests, IcReq, PduType};
use nvme_tcp::target::{Config, serve};
use reactor::Reactor;
use spec::{
    AddressFamily, Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property,
    StoreOptions, Text,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::IntoBytes;

pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000002";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000001";
const HOST_ID: [u8; 16] = *b"an experiment's.";

const VALUE_BYTES: u32 = 64;

/// Outstanding commands, which arrive together.
const DEPTH: u64 = 32;

/// Bytes of a `CapsuleCmd`, of a `CapsuleResp` or the header of `C2HData`, and of an `ICResp` (TCP
/// 1.1).
const COMMAND_BYTES: u8 = 72;
const RESPONSE_BYTES: usize = 24;
const ACCEPT_BYTES: usize = 128;

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

/// Executes `operations` on a drive in memory that has all pairs.
pub(crate) fn run(kind: Kind, operations: u64) {
    Reactor::new(None).run(async {
        let drive = drives::in_memory().await;
        let target = Target::new(drive.controller());
        let admin = target.connect().await;
        let data = |controller| ConnectData::new(HOST_ID, HOST, NQN, controller);
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        let reply = call(&admin, connect, data(ConnectData::ANY_CONTROLLER).as_bytes()).await;
        let controller = ConnectReply(reply).controller_id();
        call(&admin, Command::property_set(Property::CC, ENABLED), &[]).await;
        let io = target.connect().await;
        let connect = Command::connect(1, 127, ConnectAttributes::NO_FLOW_CONTROL, 0);
        call(&io, connect, data(controller).as_bytes()).await;
        exchange(&io, Kind::Store, KEYS).await;
        exchange(&io, kind, operations).await;
    });
}

/// Returns the entrance of a subsystem with a controller.
pub(crate) fn entrance(controller: &Arc<Controller>) -> Entrance {
    let config = SubsystemConfig {
        nqn: NQN.to_owned(),
        serial: "1".to_owned(),
        firmware: "1".to_owned(),
        flash: Box::new(|| FlashFigures::NEW),
    };
    let subsystems = Subsystems::new();
    subsystems.add(Subsystem::new(config, controller.clone()));
    let (family, address) = (AddressFamily::IPV4, Text::new("192.0.2.7"));
    Entrance::new(subsystems, TransportAddress { family, address, port: 4420 })
}

struct Target {
    entrance: Rc<Entrance>,
    config: Config,
}

impl Target {
    fn new(controller: &Arc<Controller>) -> Self {
        let config = Config { pool: BufPool::new(16 << 20), counters: Rc::<Counters>::default() };
        Self { entrance: Rc::new(entrance(controller)), config }
    }

    /// Opens a connection and agrees on no digests.
    async fn connect(&self) -> Rc<Tape> {
        let tape = Rc::new(Tape::default());
        let (served, entrance, config) = (tape.clone(), self.entrance.clone(), self.config.clone());
        clock::spawn(async move {
            serve(served, entrance, config, Rc::default()).await;
        });
        let request = IcReq::new(4, Digests::NONE, 1);
        let send = |bytes: &mut Vec<u8>| bytes.extend_from_slice(request.as_bytes());
        tape.exchange(send, ACCEPT_BYTES, |_| {}).await;
        tape
    }
}

/// Executes one command, and returns dword 0 of its completion.
async fn call(tape: &Tape, command: Command, data: &[u8]) -> u32 {
    let result = Cell::new(0);
    let check = |reply: &[u8]| {
        check(reply);
        result.set(u32::from_le_bytes([reply[8], reply[9], reply[10], reply[11]]));
    };
    tape.exchange(|bytes| push(bytes, command, data), RESPONSE_BYTES, check).await;
    result.get()
}

/// Executes `operations`, [`DEPTH`] at a time, on one key after the other.
async fn exchange(tape: &Tape, kind: Kind, operations: u64) {
    let reply_bytes = match kind {
        Kind::Store => RESPONSE_BYTES,
        // The response has the length of the value, so it is sent after the data.
        Kind::Retrieve => 2 * RESPONSE_BYTES + VALUE_BYTES as usize,
    };
    let value = [0xa5; VALUE_BYTES as usize];
    for first in (0..operations).step_by(usize::try_from(DEPTH).expect("it is small")) {
        let count = DEPTH.min(operations - first);
        let send = |bytes: &mut Vec<u8>| {
            for number in first..first + count {
                // 7 is odd, so every key has its turn.
                let key = key(number * 7 % KEYS);
                let id = u16::try_from(number % DEPTH).expect("it is small");
                match kind {
                    Kind::Store => {
                        let options = StoreOptions::NONE;
                        let command = Command::store(1, key.as_bytes(), VALUE_BYTES, options);
                        push(bytes, command.with_command_id(id), &value);
                    }
                    Kind::Retrieve => {
                        let command = Command::retrieve(1, key.as_bytes(), VALUE_BYTES);
                        push(bytes, command.with_command_id(id), &[]);
                    }
                }
            }
        };
        let expected = usize::try_from(count).expect("it is small") * reply_bytes;
        tape.exchange(send, expected, |replies| replies.chunks(reply_bytes).for_each(check)).await;
    }
}

/// Adds a command capsule with `data` in it, or for a read with the length of its value.
fn push(bytes: &mut Vec<u8>, command: Command, data: &[u8]) {
    let len = u32::try_from(data.len()).expect("at most 1,024 bytes");
    let command = match len {
        0 => command.with_data_pointer(DataPointer::Transport { len: VALUE_BYTES }),
        _ => command.with_data_pointer(DataPointer::InCapsule { offset: 0, len }),
    };
    let mut capsule = CapsuleCmd::new(command);
    let at = bytes.len();
    bytes.extend_from_slice(capsule.as_mut_bytes());
    // PDO and PLEN of the common header.
    if len > 0 {
        bytes[at + 3] = COMMAND_BYTES;
    }
    bytes[at + 4..at + 8].copy_from_slice(&(u32::from(COMMAND_BYTES) + len).to_le_bytes());
    bytes.extend_from_slice(data);
}

/// Checks the response of a command, which comes last.
fn check(reply: &[u8]) {
    let response = &reply[reply.len() - RESPONSE_BYTES..];
    assert_eq!(response[0], PduType::CAPSULE_RESP.0, "the last PDU is a response");
    assert_eq!(u16::from_le_bytes([response[22], response[23]]) >> 1, 0, "it succeeds");
}
