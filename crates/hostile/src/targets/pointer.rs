use super::ACTIONS_MAX;
use crate::input::Input;
use crate::peer::Peer;
use crate::world::{NQN, run};
use crate::{entry, fit};
use nvme_tcp::pdu::Digests;
use spec::{Command, ConnectAttributes, ConnectData, DataPointer};

/// Sends every command over NVMe/TCP with any data pointer: each kind of SGL descriptor and none,
/// of any length and offset, with and without data in the capsule.
pub fn pointer(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        let mut admin = Peer::connect(world).await;
        let mut id = None;
        let mut io = Peer::connect(world).await;
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            // An invalid layout ends the connection, so the host opens another.
            if id.is_none() || admin.is_over() {
                (admin, io) = (Peer::connect(world).await, Peer::connect(world).await);
                admin.initialize(4, Digests::NONE).await;
                id = admin.bind(NQN, 0, ConnectData::ANY_CONTROLLER).await;
                io.initialize(4, Digests::NONE).await;
            }
            if io.is_over() {
                io = Peer::connect(world).await;
                io.initialize(4, Digests::NONE).await;
            }
            let controller = id.expect("who keeps the protocol may connect");
            if !io.is_bound() {
                io.bind(NQN, 1, controller).await;
            }
            let is_io = input.below(3) > 0;
            let peer = if is_io { &mut io } else { &mut admin };
            send(peer, is_io, &mut input).await;
        }
        [admin, io]
    });
}

async fn send(peer: &mut Peer, is_io: bool, input: &mut Input<'_>) {
    let command = match (is_io, input.below(8)) {
        (_, 0) => Command::connect(1, 31, ConnectAttributes::NONE, 0),
        (_, 1) => entry::property(input),
        (true, _) => entry::io(input),
        (false, _) => entry::admin(input),
    };
    let command = match (input.below(3), is_io) {
        (0, true) => fit::io(command, input).0,
        (0, false) => fit::admin(command, input).0,
        _ => fit::pointing(&command, input),
    };
    let data = match (command.data_pointer(), input.below(4)) {
        (DataPointer::InCapsule { offset, len }, 0..3) => {
            input.filling(offset.saturating_add(len).min(9_000))
        }
        (_, 3) if input.one_in(2) => input.bytes(100),
        _ => Vec::new(),
    };
    peer.push_capsule(command, &data);
    peer.exchange().await;
    while !peer.owed.is_empty() {
        peer.give(input.pick(&[1 << 18, 4_000, 700]));
        peer.exchange().await;
    }
}
