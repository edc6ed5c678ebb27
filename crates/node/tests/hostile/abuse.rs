//! Hosts that keep to the protocol, and have the server hold as much for them as it will.

use crate::peer::{CAPSULE_RESP, Peer, Place, R2T, capsule_for, h2c_data};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use spec::{Command, StoreOptions};

/// A value as long as any may be, which is there.
pub(crate) const LONGEST: u32 = 2 << 20;
pub(crate) const LONGEST_KEY: &[u8] = b"longest";

/// A value that is longer than goes with a capsule, and no long one for the server.
pub(crate) const SHORT: u32 = 16_000;
pub(crate) const SHORT_KEY: &[u8] = b"short";

/// Commands that a connection has at a time: what the server promises to keep to.
pub(crate) const COMMANDS_MAX: u64 = 1_024 + 16;

/// Bytes of long values that a connection has in flight: what the server promises to keep to.
pub(crate) const IN_FLIGHT_MAX: u64 = 16 << 20;

/// Commands that a queue of 128 entries has room for, beside one that asks whether it lives.
const COMMANDS: u16 = 126;
const ENTRIES: u16 = COMMANDS + 2;

/// Bytes of data in a PDU: MAXH2CDATA of the target.
const PART: u32 = 256 << 10;

/// Room of the socket of who never reads. The kernel makes it twice of that.
pub(crate) const DEAF_BYTES: usize = 64 << 10;

/// The announcement of a store of the longest value.
pub(crate) fn storing(id: u16) -> Vec<u8> {
    let key = format!("announced {id}");
    let command = Command::store(1, key.as_bytes(), LONGEST, StoreOptions::NONE);
    capsule_for(&command, id, LONGEST)
}

/// Asks for a long value as often as its queue has room for, and reads none.
pub(crate) fn never_reads(place: &Place) -> Vec<Peer> {
    let [admin, mut io] = Peer::associate("never reads", place, ENTRIES);
    set_socket_recv_buffer_size(&io.stream, DEAF_BYTES).unwrap();
    let retrieve = Command::retrieve(1, LONGEST_KEY, LONGEST);
    for id in 0..COMMANDS {
        io.say(&capsule_for(&retrieve, id, LONGEST));
    }
    io.wait_for_word();
    io.is_deaf = true;
    vec![admin, io]
}

/// Asks for a short value three times as often as it may, and reads none.
pub(crate) fn floods(place: &Place) -> Vec<Peer> {
    let [admin, mut io] = Peer::associate("floods", place, 1_024);
    set_socket_recv_buffer_size(&io.stream, DEAF_BYTES).unwrap();
    let retrieve = Command::retrieve(1, SHORT_KEY, SHORT);
    let one = |id| capsule_for(&retrieve, id, SHORT);
    // What the server does not read stays in the sockets, which have room for that much.
    io.say(&(0..3 * 1_024).flat_map(one).collect::<Vec<_>>());
    io.wait_for_word();
    io.is_deaf = true;
    vec![admin, io]
}

/// Announces as many long values as its queue has room for, and sends none.
pub(crate) fn never_sends(place: &Place) -> Vec<Peer> {
    let (peers, _) = announce("never sends", place);
    peers.into()
}

/// Sends all but the end of each value that it is asked for: the server has the most to keep.
pub(crate) fn never_ends(place: &Place) -> Vec<Peer> {
    let ([admin, mut io], requests) = announce("never ends", place);
    let part = vec![0x77; PART as usize];
    for request in requests {
        for offset in (0..LONGEST - PART).step_by(PART as usize) {
            io.say(&h2c_data(&request, offset, &part));
        }
    }
    // The answer to the next command shows that the target took all of the data.
    io.say(&capsule_for(&Command::exist(1, LONGEST_KEY), COMMANDS, 0));
    assert_eq!(io.pdu()[0], CAPSULE_RESP, "{}", io.name());
    vec![admin, io]
}

/// Announces values; an Exist behind them is answered, and shows what was asked for before: no more
/// than may be in flight. Gives the requests.
fn announce(name: &'static str, place: &Place) -> ([Peer; 2], Vec<Vec<u8>>) {
    let [admin, mut io] = Peer::associate(name, place, ENTRIES);
    for id in 0..COMMANDS {
        io.say(&storing(id));
    }
    io.say(&capsule_for(&Command::exist(1, LONGEST_KEY), COMMANDS, 0));
    let (mut asked, mut requests) = (0, Vec::new());
    loop {
        let pdu = io.pdu();
        match pdu[0] {
            R2T => {
                asked += u64::from(u32::from_le_bytes(*pdu[16..].first_chunk().unwrap()));
                requests.push(pdu);
            }
            CAPSULE_RESP => break,
            kind => panic!("{name}: a PDU of type {kind:02x}h"),
        }
    }
    // 126 x 2 MiB are announced, and 8 x 2 MiB fit.
    assert_eq!(asked, IN_FLIGHT_MAX, "{name}: bytes that the server asked for");
    ([admin, io], requests)
}
