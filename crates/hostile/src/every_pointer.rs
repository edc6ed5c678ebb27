//! Sends each kind of SGL descriptor with each command, with and without data in the capsule. Each
//! command gets a status, and the connection stays open.

use crate::device::{BLOCK, KV, ZONED};
use crate::entry::{data_len, with_nsid, with_opcode, with_pointer};
use crate::peer::Peer;
use crate::world::{NQN, World, run};
use nvme_tcp::pdu::Digests;
use spec::{
    AdminOpcode, Cns, Command, CommandSet, Configuration, ConnectAttributes, ConnectData, LogPage,
    NamespaceAttachment, Property, ReportedZones, Status, StoreOptions, Transfer, ZoneSendAction,
};

/// Identifiers of the descriptors for fabrics: type in bits 7:4, sub type in bits 3:0 (Base 2.1,
/// SGL descriptors).
const IN_CAPSULE: u8 = 0x01;
const TRANSPORT: u8 = 0x5a;

/// One of each known type, one of an unknown type and one of an unknown sub type.
const KINDS: [u8; 9] = [0x00, IN_CAPSULE, 0x10, 0x20, 0x30, 0x40, TRANSPORT, 0x5f, 0xe3];

/// PSDT: an SGL.
const SGL: u8 = 0x40;

/// Returns admin commands that move data, with its length.
fn admin_movers() -> Vec<(Command, u32)> {
    let attach = Command::attach_namespace(KV, NamespaceAttachment::Detach);
    vec![
        (Command::identify(Cns::CONTROLLER, 0), 4_096),
        (Command::identify(Cns::NAMESPACE, BLOCK), 4_096),
        (Command::get_log_page(LogPage::SMART, u32::MAX, 512), 512),
        (Command::get_log_page(LogPage::ERRORS, u32::MAX, 64), 64),
        (Command::create_namespace(CommandSet::NVM), 4_096),
        (attach, 4_096),
    ]
}

fn connect() -> Command {
    Command::connect(0, 31, ConnectAttributes::NONE, 0)
}

/// Returns other admin and fabrics commands that complete at once and keep the connection. A
/// request for an event does not complete at once.
fn admin_others() -> Vec<Command> {
    let enable = Configuration::ENABLE_ALL_COMMAND_SETS;
    vec![
        Command::property_get(Property::CSTS),
        Command::property_set(Property::CC, enable.0.into()),
        Command::disconnect(),
        connect(),
    ]
}

/// Returns I/O commands that move data and can all succeed.
fn io_movers() -> Vec<Command> {
    vec![
        Command::store(KV, b"key", 100, StoreOptions::NONE),
        Command::retrieve(KV, b"key", 100),
        Command::list(KV, b"", 512),
        Command::write(BLOCK, 3, 1),
        Command::read(BLOCK, 3, 1),
        Command::compare(BLOCK, 3, 1),
        Command::copy(BLOCK, 3, 1),
        Command::deallocate(BLOCK, 1),
        Command::zone_append(ZONED, 0, 1),
        Command::read(ZONED, 0, 1),
        Command::write(ZONED, 0, 1),
        Command::report_zones(ZONED, 0, ReportedZones::All, 4_096),
    ]
}

fn io_others() -> Vec<Command> {
    vec![
        Command::exist(KV, b"key"),
        Command::delete(KV, b"key"),
        Command::flush(KV),
        Command::flush(BLOCK),
        Command::verify(BLOCK, 3, 1),
        Command::write_zeroes(BLOCK, 3, 1),
        Command::zone_management_send(ZONED, 0, ZoneSendAction::Close),
    ]
}

/// Returns the status of `command` from a host that sends all requested data.
async fn status_of(peer: &mut Peer, command: Command, data: &[u8]) -> Status {
    peer.push_capsule(command, data);
    for _ in 0..10_000 {
        peer.exchange().await;
        while !peer.owed.is_empty() {
            peer.give(u32::MAX);
        }
        assert!(!peer.is_over(), "{command:?} with {} bytes ended the connection", data.len());
        if let Some(answer) = peer.take_answer() {
            return answer.err().unwrap_or(Status::SUCCESS);
        }
    }
    panic!("{command:?} is not answered");
}

/// Sends `command` with a descriptor of each of `kinds` and of `len` bytes, with and without data
/// in the capsule.
async fn try_all(
    peer: &mut Peer,
    command: Command,
    len: u32,
    kinds: impl Iterator<Item = u8>,
    moves_data: bool,
) {
    let data = vec![0; len as usize];
    for kind in kinds {
        let mut pointer = [0; 16];
        pointer[8..12].copy_from_slice(&len.to_le_bytes());
        pointer[15] = kind;
        let command = with_pointer(&command, SGL, pointer);
        let is_of_use =
            kind == TRANSPORT || kind == IN_CAPSULE && command.transfer() == Transfer::ToController;
        for data in [&[][..], &data] {
            let status = status_of(peer, command, data).await;
            let is_refused = [Status::SGL_TYPE_INVALID, Status::INVALID_FIELD].contains(&status);
            assert!(is_refused || is_of_use || !moves_data, "{command:?}: {status}");
            let needs_data = kind == IN_CAPSULE && data.is_empty() && is_of_use;
            assert!(!(needs_data && moves_data && status.is_success()), "{command:?}: no data");
        }
    }
}

#[test]
fn every_descriptor_on_a_connect_gets_a_status() {
    run(1, async |world| {
        let mut peer = Peer::connect(world).await;
        peer.initialize(4, Digests::NONE).await;
        let len = u32::try_from(size_of::<ConnectData>()).unwrap();
        try_all(&mut peer, connect(), len, 0..=u8::MAX, true).await;
        assert!(peer.bind(NQN, 0, ConnectData::ANY_CONTROLLER).await.is_some());
        [peer]
    });
}

async fn connected(world: &World) -> (Peer, Peer) {
    let mut admin = Peer::connect(world).await;
    admin.initialize(4, Digests::NONE).await;
    let id = admin.bind(NQN, 0, ConnectData::ANY_CONTROLLER).await.unwrap();
    let mut io = Peer::connect(world).await;
    io.initialize(4, Digests::NONE).await;
    io.bind(NQN, 1, id).await.unwrap();
    (admin, io)
}

#[test]
fn every_descriptor_on_every_command_gets_a_status() {
    run(1, async |world| {
        let (mut admin, mut io) = connected(world).await;
        for (command, len) in admin_movers() {
            try_all(&mut admin, command, len, 0..=u8::MAX, true).await;
        }
        for command in io_movers() {
            try_all(&mut io, command, data_len(&command), 0..=u8::MAX, true).await;
        }
        for command in admin_others() {
            try_all(&mut admin, command, 64, 0..=u8::MAX, false).await;
        }
        for command in io_others() {
            try_all(&mut io, command, 64, 0..=u8::MAX, false).await;
        }
        let flush = Command::flush(KV);
        let is_event = |opcode| AdminOpcode(opcode) == AdminOpcode::ASYNC_EVENT_REQUEST;
        for opcode in (0..=u8::MAX).filter(|opcode| !is_event(*opcode)) {
            let command = with_opcode(flush, opcode);
            try_all(&mut admin, command, 64, KINDS.into_iter(), false).await;
        }
        for (nsid, opcode) in
            [KV, BLOCK, ZONED].into_iter().flat_map(|nsid| (0..=u8::MAX).map(move |op| (nsid, op)))
        {
            let command = with_nsid(&with_opcode(flush, opcode), nsid);
            try_all(&mut io, command, 64, KINDS.into_iter(), false).await;
        }
        // Both queues still work.
        assert_eq!(status_of(&mut admin, Command::keep_alive(), &[]).await, Status::SUCCESS);
        assert_eq!(status_of(&mut io, Command::flush(BLOCK), &[]).await, Status::SUCCESS);
        [admin, io]
    });
}
