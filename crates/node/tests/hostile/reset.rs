//! Hosts that are gone without a word. What they leave behind is the server's.

use crate::abuse::storing;
use crate::peer::{Peer, Place, R2T, capsule, connecting, h2c_data};
use rustix::net::sockopt::set_socket_linger;
use spec::ConnectData;
use std::time::Duration;

/// Has the kernel end the connection by a reset, now.
fn reset(peer: Peer) {
    set_socket_linger(&peer.stream, Some(Duration::ZERO)).unwrap();
    drop(peer);
}

/// As soon as it is connected; it may be before the server knows.
pub(crate) fn at_once(place: &Place) -> Vec<Peer> {
    reset(Peer::connect("reset at once", place));
    Vec::new()
}

/// In the middle of a PDU.
pub(crate) fn halfway(place: &Place) -> Vec<Peer> {
    let mut peer = Peer::connect("reset in a capsule", place);
    peer.initialize(0);
    let (connect, data) = connecting(&place.nqn, 0, 32, ConnectData::ANY_CONTROLLER);
    peer.say(&capsule(&connect, &data)[..37]);
    reset(peer);
    Vec::new()
}

/// In the middle of the data that it was asked for; its admin queue says goodbye.
pub(crate) fn in_data(place: &Place) -> Vec<Peer> {
    const PART: usize = 100_000;
    let [_admin, mut peer] = Peer::associate("reset in its data", place, 128);
    peer.say(&storing(0));
    let asked = peer.pdu();
    assert_eq!(asked[0], R2T, "{}", peer.name());
    peer.say(&h2c_data(&asked, 0, &vec![7; PART])[..24 + PART / 2]);
    reset(peer);
    Vec::new()
}
