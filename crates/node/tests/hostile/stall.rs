//! Hosts that are silent or slow. None of them does anything wrong.

use crate::peer::{CAPSULE_RESP, IC_RESP, Peer, Place, capsule, connecting, ic_req};
use spec::ConnectData;

/// Connects, and says nothing.
pub(crate) fn silent(place: &Place) -> Vec<Peer> {
    vec![Peer::connect("silent", place)]
}

/// Sends one byte at a time and expects the usual answers.
pub(crate) fn slow(place: &Place) -> Vec<Peer> {
    let mut peer = Peer::connect("a byte at a time", place);
    let (connect, data) = connecting(&place.nqn, 0, 32, ConnectData::ANY_CONTROLLER);
    for (bytes, answer) in [(ic_req(0), IC_RESP), (capsule(&connect, &data), CAPSULE_RESP)] {
        for byte in bytes {
            peer.say(&[byte]);
        }
        assert_eq!(peer.pdu()[0], answer, "{}", peer.name());
    }
    vec![peer]
}

/// Stops in the middle of the header of its `ICReq`, and of a command's.
pub(crate) fn halfway(place: &Place) -> Vec<Peer> {
    let mut unborn = Peer::connect("half an ICReq", place);
    unborn.say(&ic_req(0)[..60]);
    let mut peer = Peer::connect("half a capsule", place);
    peer.initialize(0);
    let (connect, data) = connecting(&place.nqn, 0, 32, ConnectData::ANY_CONTROLLER);
    peer.say(&capsule(&connect, &data)[..37]);
    vec![unborn, peer]
}
