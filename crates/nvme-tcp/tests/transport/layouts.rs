use crate::crc::crc32c;
use crate::tape::Tape;
use nvme_tcp::framing::{Arrival, Brought, Fault, Inbox, Terms};
use nvme_tcp::pdu::{Digests, FatalError, Side};
use std::rc::Rc;

const PLAIN: Terms = Terms {
    digests: Digests::NONE,
    host_alignment: 4,
    controller_alignment: 4,
    h2c_data_max: 8192,
};
const HEADER: Terms = Terms { digests: Digests { header: true, data: false }, ..PLAIN };
const DATA: Terms = Terms { digests: Digests { header: false, data: true }, ..PLAIN };
const WIDE: Terms = Terms { host_alignment: 64, controller_alignment: 32, ..PLAIN };

/// What an inbox of `side` makes of a PDU with this type, flags, HLEN, PDO and PLEN, followed by
/// zeros: bytes of data, or a fault.
fn judge(side: Side, terms: Terms, common: (u8, u8, u8, u8, u32)) -> Result<u32, Fault> {
    let (kind, flags, header_len, data_offset, len) = common;
    let mut bytes = vec![kind, flags, header_len, data_offset];
    bytes.extend(len.to_le_bytes());
    bytes.resize(10_000, 0);
    if let (6 | 7, false) = (kind, terms.digests.header) {
        let trailing = if terms.digests.data { 4 } else { 0 };
        let data_len = len.wrapping_sub(u32::from(data_offset) + trailing);
        bytes[16..20].copy_from_slice(&data_len.to_le_bytes());
    }
    if let (4, true, Some(end)) = (kind, terms.digests.data, (len as usize).checked_sub(4)) {
        let digest = crc32c(bytes.get(data_offset.into()..end).unwrap_or_default());
        bytes[end..][..4].copy_from_slice(&digest.to_le_bytes());
    }
    let judged = receive(&bytes, side, terms, Inbox::next);
    // A caller that asks for capsules first gets the same.
    let mut is_short = false;
    let quick = receive(&bytes, side, terms, |inbox| match inbox.next_capsule() {
        Some(brought) => {
            is_short = true;
            Ok(Some(Arrival::Capsule(brought)))
        }
        None => inbox.next(),
    });
    assert_eq!(quick, judged);
    assert!(!is_short || (kind == 4 && terms.digests == Digests::NONE));
    judged
}

/// Bytes of data of the first PDU in `bytes`, which `next` takes from an inbox.
fn receive(
    bytes: &[u8],
    side: Side,
    terms: Terms,
    mut next: impl for<'a> FnMut(&'a mut Inbox) -> Result<Option<Arrival<'a>>, Fault>,
) -> Result<u32, Fault> {
    let tape = Tape::of(bytes, 1, 300);
    let mut inbox = Inbox::new(side, Rc::default());
    inbox.agree(terms);
    loop {
        match next(&mut inbox)? {
            Some(Arrival::Header(_, data_len)) => return Ok(data_len),
            Some(Arrival::Capsule(Brought::Nothing)) => return Ok(0),
            Some(Arrival::Capsule(Brought::Data(data))) => return Ok(data.len()),
            Some(arrival) => panic!("{arrival:?}"),
            None => assert!(inbox.read(&tape).is_ok()),
        }
    }
}

fn field(at: u32) -> Result<u32, Fault> {
    Err(Fault::field(at))
}

#[test]
fn a_controller_takes_what_the_specification_allows_hosts() {
    let limit = Err(Fault::of(FatalError::LIMIT_EXCEEDED));
    for (terms, common, expected) in [
        // ICReq
        (PLAIN, (0, 0, 128, 0, 128), Ok(0)),
        (HEADER, (0, 0, 128, 0, 128), Ok(0)),
        (PLAIN, (0, 0, 127, 0, 128), field(2)),
        (PLAIN, (0, 0, 128, 0, 127), field(4)),
        (PLAIN, (0, 0, 128, 128, 132), field(4)),
        // H2CTermReq
        (HEADER, (2, 0, 24, 0, 24), Ok(0)),
        (DATA, (2, 0, 24, 0, 152), Ok(128)),
        (PLAIN, (2, 0, 24, 0, 153), field(4)),
        (PLAIN, (2, 0, 24, 0, 23), field(4)),
        (PLAIN, (2, 0, 25, 0, 25), field(2)),
        // CapsuleCmd
        (PLAIN, (4, 0, 72, 0, 72), Ok(0)),
        (PLAIN, (4, 0, 72, 99, 72), Ok(0)),
        (PLAIN, (4, 0, 71, 0, 72), field(2)),
        (PLAIN, (4, 0, 0, 0, 72), field(2)),
        (PLAIN, (4, 0, 255, 0, 72), field(2)),
        (PLAIN, (4, 0, 72, 0, 71), field(4)),
        (PLAIN, (4, 0, 72, 0, 0), field(4)),
        (PLAIN, (4, 1, 72, 0, 76), field(1)),
        (PLAIN, (4, 0, 72, 72, 73), Ok(1)),
        (PLAIN, (4, 0, 72, 72, 72 + 8192), Ok(8192)),
        (PLAIN, (4, 0, 72, 72, 72 + 8193), field(4)),
        (PLAIN, (4, 0, 72, 72, u32::MAX), field(4)),
        (PLAIN, (4, 0, 72, 76, 80), Ok(4)),
        (PLAIN, (4, 0, 72, 68, 80), field(3)),
        (PLAIN, (4, 0, 72, 74, 80), field(3)),
        (PLAIN, (4, 0, 72, 0, 80), field(3)),
        (PLAIN, (4, 0, 72, 80, 80), field(4)),
        (PLAIN, (4, 0, 72, 84, 80), field(4)),
        (PLAIN, (4, 2, 72, 72, 80), field(1)),
        (HEADER, (4, 0, 72, 0, 72), field(1)),
        (DATA, (4, 2, 72, 72, 72 + 9 + 4), Ok(9)),
        (DATA, (4, 0, 72, 72, 72 + 9 + 4), field(1)),
        (DATA, (4, 2, 72, 72, 72 + 4), field(4)),
        (WIDE, (4, 0, 72, 96, 100), Ok(4)),
        (WIDE, (4, 0, 72, 72, 100), field(3)),
        // H2CData
        (PLAIN, (6, 4, 24, 24, 25), Ok(1)),
        (PLAIN, (6, 0, 24, 24, 24 + 8192), Ok(8192)),
        (PLAIN, (6, 0, 24, 24, 24 + 8193), limit),
        (PLAIN, (6, 0, 24, 24, u32::MAX), limit),
        (PLAIN, (6, 0, 24, 24, 24), field(4)),
        (PLAIN, (6, 0, 24, 0, 24), field(3)),
        (PLAIN, (6, 0, 72, 24, 30), field(2)),
        (WIDE, (6, 0, 24, 32, 33), Ok(1)),
        // PDU types that only a controller sends, and unknown ones.
        (PLAIN, (1, 0, 128, 0, 128), field(0)),
        (PLAIN, (3, 0, 24, 0, 24), field(0)),
        (PLAIN, (5, 0, 24, 0, 24), field(0)),
        (PLAIN, (7, 4, 24, 24, 25), field(0)),
        (PLAIN, (8, 0, 24, 0, 24), field(0)),
        (PLAIN, (9, 0, 24, 0, 24), field(0)),
        (PLAIN, (255, 255, 255, 255, u32::MAX), field(0)),
    ] {
        assert_eq!(judge(Side::Controller, terms, common), expected, "{common:?} {terms:?}");
    }
}

#[test]
fn a_host_takes_what_the_specification_allows_controllers() {
    for (terms, common, expected) in [
        (PLAIN, (1, 0, 128, 0, 128), Ok(0)),
        (PLAIN, (3, 0, 24, 0, 152), Ok(128)),
        (PLAIN, (5, 0, 24, 0, 24), Ok(0)),
        (PLAIN, (5, 0, 24, 24, 25), field(4)),
        (PLAIN, (9, 0, 24, 0, 24), Ok(0)),
        (PLAIN, (9, 0, 24, 24, 28), field(4)),
        (PLAIN, (7, 4, 24, 24, 24 + (2 << 20)), Ok(2 << 20)),
        (PLAIN, (7, 0, 24, 24, 24), field(4)),
        (WIDE, (7, 0, 24, 24, 25), field(3)),
        (WIDE, (7, 0, 24, 64, 65), Ok(1)),
        (PLAIN, (0, 0, 128, 0, 128), field(0)),
        (PLAIN, (2, 0, 24, 0, 24), field(0)),
        (PLAIN, (4, 0, 72, 0, 72), field(0)),
        (PLAIN, (6, 0, 24, 24, 25), field(0)),
    ] {
        assert_eq!(judge(Side::Host, terms, common), expected, "{common:?} {terms:?}");
    }
}

#[test]
fn data_that_contradicts_its_length_field_is_refused() {
    let mut bytes = vec![6, 0, 24, 24, 34, 0, 0, 0];
    bytes.resize(34, 0);
    for (len, expected) in [(9, field(16)), (10, Ok(10)), (11, field(16)), (0, field(16))] {
        bytes[16] = len;
        let tape = Tape::of(&bytes, 1, usize::MAX);
        let mut inbox = Inbox::new(Side::Controller, Rc::default());
        inbox.agree(PLAIN);
        let judged = loop {
            match inbox.next() {
                Ok(Some(Arrival::Header(_, len))) => break Ok(len),
                Ok(_) => assert!(inbox.read(&tape).is_ok()),
                Err(fault) => break Err(fault),
            }
        };
        assert_eq!(judged, expected);
    }
}
