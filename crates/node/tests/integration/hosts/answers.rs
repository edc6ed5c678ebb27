//! What Linux or SPDK takes for granted in PDUs, and does not check or says nothing of. What they
//! take for granted in answers of commands has tests in
//! `crates/controller/tests/integration/fabrics`.

use crate::hosts::attach::connect_data;
use crate::hosts::entry::{CC, Entry};
use crate::hosts::line::{Ids, Line};
use crate::hosts::passthrough::{size, value};
use crate::hosts::pdu::{C2H_DATA, Digests, LAST, R2T, SUCCESS};
use crate::hosts::tape::Recorded;
use crate::hosts::world::{NQN, World, record};

/// Lengths of values: of one PDU with data, of two, and the longest.
const SIZES: [usize; 3] = [4_096, 262_145, 2 << 20];

async fn queue(world: &World, digests: Digests) -> (Line, Line) {
    let mut admin = Line::open(world, "a host", Ids::Slots, digests).await;
    let connect = Entry::connect(0, 31, 0).moves(1_024);
    let id = admin.give("Connect", connect, &connect_data(0xffff, NQN)).await.ok().result;
    admin.ask("Property Set CC", Entry::property_set(CC, 0x0046_0061)).await.ok();
    let mut io = Line::open(world, "a host", Ids::Slots, digests).await;
    let connect = Entry::connect(1, 127, 0).moves(1_024).without_flow_control();
    let data = connect_data(u16::try_from(id).expect("no authentication"), NQN);
    io.give("Connect", connect, &data).await.ok();
    (admin, io)
}

/// Returns the PDUs that answer retrieves on a queue without flow control.
fn pdus(kind: u8, digests: Digests) -> Vec<Recorded> {
    let tape = record(&async |world| {
        let (_admin, mut io) = queue(world, digests).await;
        for (seed, len) in (1..).zip(SIZES) {
            let value = value(len, seed);
            io.give("Store", Entry::store(b"key", size(&value)), &value).await.ok();
            io.ask("Retrieve", Entry::retrieve(b"key", 2 << 20)).await.ok();
        }
    });
    let mut pdus = tape.pdus();
    pdus.retain(|pdu| pdu.bytes[0] == kind && !pdu.way.is_from_host);
    pdus
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("there are 4")) as usize
}

/// Linux never reads PDO.
#[test]
fn data_lies_right_behind_its_header() {
    for (digests, offset) in
        [(Digests::NONE, 24), (Digests::HEADER, 28), (Digests::DATA, 24), (Digests::BOTH, 28)]
    {
        let pdus = pdus(C2H_DATA, digests);
        assert_eq!(pdus.len(), SIZES.len());
        for Recorded { bytes, .. } in pdus {
            assert_eq!(usize::from(bytes[3]), offset, "PDO under {digests:?}");
            let digest = 4 * usize::from(digests.data);
            assert_eq!(bytes.len(), offset + u32_at(&bytes, 16) + digest, "PLEN and DATAL");
        }
    }
}

/// SPDK and Linux complete the command at a SUCCESS, with a result of zero.
#[test]
fn the_data_of_a_retrieve_never_stands_for_its_response() {
    for Recorded { bytes, .. } in pdus(C2H_DATA, Digests::NONE) {
        assert_eq!(bytes[1] & SUCCESS, 0, "DW0 has the length of the value");
        assert_eq!(bytes[1] & LAST, LAST, "all data of a command is in one PDU");
    }
}

/// Both allow one R2T for a command at a time (MAXR2T 0), and SPDK one that begins where the data
/// before it ended.
#[test]
fn one_r2t_asks_for_all_of_a_value() {
    let pdus = pdus(R2T, Digests::NONE);
    let part = |pdu: &Recorded| (u32_at(&pdu.bytes, 12), u32_at(&pdu.bytes, 16));
    let asked: Vec<_> = pdus.iter().map(part).collect();
    assert_eq!(asked, [(0, 262_145), (0, 2 << 20)], "4,096 bytes are in the capsule");
}
