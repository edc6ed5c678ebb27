use super::{ACTIONS_MAX, pause};
use crate::device::KV;
use crate::input::Input;
use crate::peer::{Owed, Peer};
use crate::world::{NQN, World, pass, run};
use crate::{entry, fit};
use base::Nanos;
use net::Conditions;
use nvme_tcp::pdu::{CapsuleCmd, Digests, FatalError, H2cData, IcReq, PduType, Side, TermReq};
use spec::{Command, ConnectData, DataPointer, QualifiedName, StoreOptions};

/// The most connections open at a time.
const PEERS_MAX: usize = 4;

/// Sends PDUs of every kind to a target, valid and corrupted, in pieces of any length. Hosts may
/// not read, and disconnect at any time.
pub fn stream(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        world.network.set_conditions(conditions(&mut input));
        let mut peers = begin(world, &mut input).await;
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            act(world, &mut peers, &mut input).await;
        }
        peers
    });
}

/// Opens connections in any state: silent, after the handshake or after Connect, with an I/O queue
/// or not.
async fn begin(world: &World, input: &mut Input<'_>) -> Vec<Peer> {
    let how_far = input.below(4);
    let mut peers = vec![Peer::connect(world).await];
    if how_far > 0 {
        peers[0].initialize(4, Digests::NONE).await;
    }
    if how_far > 1
        && let Some(id) = peers[0].bind(NQN, 0, ConnectData::ANY_CONTROLLER).await
        && how_far > 2
    {
        let mut io = Peer::connect(world).await;
        let digests = Digests { header: input.one_in(2), data: input.one_in(2) };
        io.initialize(4, digests).await;
        io.bind(NQN, 1, id).await;
        peers.push(io);
    }
    peers
}

fn conditions(input: &mut Input<'_>) -> Conditions {
    Conditions {
        delay: (Nanos::ZERO, Nanos(u64::from(input.byte()))),
        piece_max: input.pick(&[1 << 20, 3_000, 100, 9, 1]),
        capacity: input.pick(&[1 << 18, 10_000, 500]),
        life: input.one_in(8).then_some((Nanos(1_000), Nanos::from_millis(1))),
    }
}

async fn act(world: &World, peers: &mut Vec<Peer>, input: &mut Input<'_>) {
    let at = input.below(u32::try_from(peers.len()).expect("they are few")) as usize;
    let peer = &mut peers[at];
    match input.below(20) {
        0 => peer.initialize(4, Digests::NONE).await,
        1 => {
            let digests = Digests { header: input.one_in(2), data: input.one_in(2) };
            peer.initialize(input.pick(&[4, 8, 128]), digests).await;
        }
        2 | 3 => bind(peer, input).await,
        4..8 => push_command(peer, input),
        8 | 9 => peer.give(input.pick(&[1 << 18, 4_096, 1_000, 100])),
        10 => {
            if peer.owed.is_empty() {
                // The target requests this data, also on a queue without a controller.
                let store = Command::store(KV, b"key", 100, StoreOptions::NONE);
                peer.push_capsule(
                    store.with_data_pointer(DataPointer::Transport { len: 100 }),
                    &[],
                );
            }
            peer.exchange().await;
            push_data(peer, input);
        }
        11 => push_header(peer, input),
        12 => peer.push_bytes(&input.bytes(200)),
        13 => peer.spoil(input.below(200) as usize, input.byte()),
        14 => peer.cut_short(input.below(200) as usize),
        15 => peer.reads = !peer.reads,
        16 => pass(pause(input)).await,
        17 => {
            let error = FatalError((input.byte() & 7).into());
            peer.push(&TermReq::new(Side::Host, error, input.number()));
        }
        18 if peers.len() < PEERS_MAX => peers.push(Peer::connect(world).await),
        _ => {
            peers[at] = Peer::connect(world).await;
        }
    }
    let at = at.min(peers.len() - 1);
    if !input.one_in(3) {
        peers[at].exchange().await;
    }
}

async fn bind(peer: &mut Peer, input: &mut Input<'_>) {
    match input.below(4) {
        0 | 1 => peer.bind(NQN, 0, ConnectData::ANY_CONTROLLER).await,
        2 => peer.bind(QualifiedName::DISCOVERY, 0, ConnectData::ANY_CONTROLLER).await,
        _ => peer.bind(NQN, input.pick(&[1, 2]), input.pick(&[2, 3, 4])).await,
    };
}

/// Queues a command with data in the capsule or to be requested.
fn push_command(peer: &mut Peer, input: &mut Input<'_>) {
    let (command, data) = match input.below(6) {
        0 => (entry::property(input), Vec::new()),
        1 | 2 => fit::admin(entry::admin(input), input),
        _ => fit::io(entry::io(input), input),
    };
    push_with(peer, command, &data, input);
    if let Some(second) = entry::second_of(&command, input) {
        let (second, data) = fit::io(second, input);
        push_with(peer, second, &data, input);
    }
}

fn push_with(peer: &mut Peer, command: Command, data: &[u8], input: &mut Input<'_>) {
    match command.data_pointer() {
        DataPointer::InCapsule { .. } => peer.push_capsule(command, data),
        _ if input.one_in(12) => peer.push_capsule(command, &input.bytes(64)),
        _ => peer.push_capsule(command, &[]),
    }
}

/// Queues data that may not have been requested.
fn push_data(peer: &mut Peer, input: &mut Input<'_>) {
    let owed = peer.owed.front().copied().unwrap_or(Owed { id: 0, tag: 0, len: 100 });
    let id = if input.one_in(8) { input.half() } else { owed.id };
    let tag = if input.one_in(8) { input.half() } else { owed.tag };
    let offset = if input.one_in(3) { input.number() } else { 0 };
    let data = input.filling(owed.len.min(2_000));
    let len = u32::try_from(data.len()).expect("it is short");
    let claimed = if input.one_in(8) { input.number() } else { len };
    let is_last = input.one_in(2) || len == owed.len;
    let header = H2cData::new(id, tag, offset, claimed, is_last);
    peer.push_with_data(&header, &data);
}

/// Queues a header with any content.
fn push_header(peer: &mut Peer, input: &mut Input<'_>) {
    let kind = input.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let right = PduType(kind).header_len_and_sender().map_or(8, |(len, _)| len);
    let header_len = if input.one_in(4) { input.byte() } else { right };
    let data_offset = if input.one_in(3) { input.byte() } else { 0 };
    let len = if input.one_in(2) { input.number() } else { header_len.into() };
    let mut bytes = vec![kind, input.pick(&[0, 4, 1, 2, 8, 0xff]), header_len, data_offset];
    bytes.extend(len.to_le_bytes());
    bytes.extend(input.bytes(right.into()));
    bytes.resize(usize::from(right), 0);
    if input.one_in(4) {
        let request = IcReq::new(4, Digests::NONE, input.number().max(1));
        return peer.push(&request);
    }
    if input.one_in(6) {
        let capsule = CapsuleCmd::new(entry::io(input));
        return peer.push(&capsule);
    }
    peer.push_bytes(&bytes);
}
