//! Hosts that break the protocol.

use crate::peer::{C2H_TERM_REQ, CAPSULE_CMD, H2C_DATA, Peer, Place, capsule, ic_req, pdu};
use spec::{Command, DataPointer, StoreOptions};
use zerocopy::IntoBytes;

/// What a host says, and what the connection is terminated for.
struct Breach {
    name: &'static str,
    /// The DGST that it agrees on first. `None`: it says nothing before.
    digests: Option<u8>,
    says: Vec<u8>,
    /// FES (TCP 1.1, `C2HTermReq`, Fatal Error Status).
    status: u16,
    /// FEI: for status 1 where the field is in the header, for 3 the digest that came (TCP 1.1,
    /// `C2HTermReq`, Fatal Error Information).
    information: u32,
}

/// Fatal Error Status (TCP 1.1, `C2HTermReq`).
const INVALID_HEADER_FIELD: u16 = 1;
const SEQUENCE: u16 = 2;
const HEADER_DIGEST: u16 = 3;
const LIMIT_EXCEEDED: u16 = 5;
const UNSUPPORTED_PARAMETER: u16 = 6;

/// Where fields are in a header (TCP 1.1, PDU Common Header, `ICReq`, `H2CData`).
const TYPE: u32 = 0;
const HEADER_LEN: u32 = 2;
const LEN: u32 = 4;
const FORMAT: u32 = 8;
const TAG: u32 = 10;

fn breaches() -> [Breach; 12] {
    let exist = Command::exist(1, b"key");
    let exist = capsule(&exist, &[]);
    let after = |name, says, status, information| Breach {
        name,
        digests: Some(0),
        says,
        status,
        information,
    };
    let first = |name, says, status, information| Breach {
        digests: None,
        ..after(name, says, status, information)
    };
    let with_head = |head: [u8; 4], len| pdu(head, len, &exist[8..]);
    let mut newer = ic_req(0);
    newer[8] = 1;
    let digested =
        [pdu([CAPSULE_CMD, 1, 72, 0], 76, &exist[8..]), 0xdead_beef_u32.to_le_bytes().into()];
    [
        first("a capsule before the ICReq", exist.clone(), SEQUENCE, 0),
        first(
            "another protocol",
            b"GET / HTTP/1.1\r\nHost: kvasir\r\n\r\n".into(),
            INVALID_HEADER_FIELD,
            TYPE,
        ),
        first("a newer ICReq", newer, UNSUPPORTED_PARAMETER, FORMAT),
        after("a second ICReq", ic_req(0), SEQUENCE, 0),
        after("an unknown type", with_head([0x0b, 0, 72, 0], 72), INVALID_HEADER_FIELD, TYPE),
        after("a type of controllers", with_head([0x05, 0, 72, 0], 72), INVALID_HEADER_FIELD, TYPE),
        after(
            "a wrong header length",
            with_head([CAPSULE_CMD, 0, 64, 0], 72),
            INVALID_HEADER_FIELD,
            HEADER_LEN,
        ),
        after(
            "a PLEN of 4 GiB",
            with_head([CAPSULE_CMD, 0, 72, 72], u32::MAX),
            INVALID_HEADER_FIELD,
            LEN,
        ),
        after("8,193 bytes in a capsule", oversized(), INVALID_HEADER_FIELD, LEN),
        after("data without an R2T", data(7, 64), INVALID_HEADER_FIELD, TAG),
        // MAXH2CDATA of the target is 256 KiB.
        after("an H2CData of 4 MiB", data(7, 4 << 20), LIMIT_EXCEEDED, 0),
        Breach {
            digests: Some(1),
            ..after("a bad header digest", digested.concat(), HEADER_DIGEST, 0xdead_beef)
        },
    ]
}

/// A store whose value is a byte longer than what a capsule may bring.
fn oversized() -> Vec<u8> {
    const BYTES: u32 = 8_193;
    let store = Command::store(1, b"key", BYTES, StoreOptions::NONE)
        .with_data_pointer(DataPointer::InCapsule { offset: 0, len: BYTES });
    let value = vec![0; BYTES as usize];
    pdu([CAPSULE_CMD, 0, 72, 72], 72 + BYTES, &[store.as_bytes(), &value].concat())
}

/// An `H2CData`, the last of command 0, of so many bytes, 64 of which come.
fn data(tag: u16, len: u32) -> Vec<u8> {
    let mut rest = vec![0; 16 + 64];
    rest[2..4].copy_from_slice(&tag.to_le_bytes());
    rest[8..12].copy_from_slice(&len.to_le_bytes());
    pdu([H2C_DATA, 0b100, 24, 24], 24 + len, &rest)
}

/// How many hosts [`breach`] knows.
pub(crate) fn count() -> usize {
    breaches().len()
}

/// The host of this number breaks the protocol, is told so, and stays connected.
pub(crate) fn breach(number: usize, place: &Place) -> Vec<Peer> {
    let breach = breaches().into_iter().nth(number).expect("there are that many");
    let mut peer = Peer::connect(breach.name, place);
    if let Some(digests) = breach.digests {
        peer.initialize(digests);
    }
    peer.say(&breach.says);
    let answer = peer.pdu();
    let name = breach.name;
    let status = u16::from_le_bytes([answer[8], answer[9]]);
    let information = u32::from_le_bytes(*answer[10..].first_chunk().unwrap());
    assert_eq!(answer[..4], [C2H_TERM_REQ, 0, 24, 0], "{name}: no C2HTermReq");
    assert_eq!((status, information), (breach.status, breach.information), "{name}: FES and FEI");
    let repeated = &answer[24..];
    assert!((8..=128).contains(&repeated.len()), "{name}: {} bytes of data", repeated.len());
    assert!(breach.says.starts_with(repeated), "{name}: the header that was wrong is repeated");
    vec![peer]
}
