//! Targets that break the protocol.

use crate::peer::{
    C2H_DATA, CAPSULE_RESP, H2C_DATA, H2C_TERM_REQ, LAST, Peer, R2T, SUCCESS, data_fields, io, run,
    settings,
};
use base::{Buf, Key, Rng};
use client::{Error, Settings};
use controller::{Queue, Submission};
use nvme_tcp::framing::Fault;
use nvme_tcp::pdu::{Digests, FatalError};
use spec::{Command, Status, StoreOptions};

const STORE: usize = 0;
const RETRIEVE: usize = 1;

/// Submits a Store of 10,000 bytes, which needs an R2T, and a Retrieve with room for 10.
fn submit(queue: &impl Queue) {
    let key = Key::new(b"key").unwrap();
    let command = Command::store(1, b"key", 10_000, StoreOptions::NONE);
    let value = Buf::copy_from(&[7; 10_000]);
    queue.submit(Submission::with_data(command, &key, value));
    queue.submit(Submission::new(Command::retrieve(1, b"key", 10), &key));
}

/// Checks that the connection ends when the target sends the bytes that `bytes` makes of the ids of
/// both commands, and that the termination has the reason.
fn breaks(
    digests: Digests,
    bytes: impl FnOnce(&Peer, [u16; 2]) -> Vec<u8> + 'static,
    error: FatalError,
    information: u32,
) {
    run(async |network| {
        let settings = Settings { digests, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async move |peer| {
            let ids = [peer.pdu().await.id(), peer.pdu().await.id()];
            let bytes = bytes(&peer, ids);
            peer.write(&bytes).await;
            // Requested data may arrive first.
            let mut pdu = peer.pdu().await;
            while pdu.kind() == H2C_DATA {
                pdu = peer.pdu().await;
            }
            assert_eq!(pdu.kind(), H2C_TERM_REQ);
            assert_eq!((pdu.u16(8), pdu.u32(10)), (error.0, information));
            assert!(
                bytes.ends_with(&pdu.data)
                    || bytes.windows(pdu.data.len()).any(|part| { part == pdu.data })
            );
            peer.left().await;
        })
        .await;
        submit(&queue);
        for _ in 0..2 {
            assert_eq!(queue.next().await.status, Status::HOST_PATHING_ERROR);
        }
        assert_eq!(queue.failure(), Some(Error::Fault(Fault { error, information })));
        playing.end().await;
    });
}

fn fields(
    kind: u8,
    flags: u8,
    id: u16,
    offset: u32,
    data: &'static [u8],
) -> impl Fn(&Peer) -> Vec<u8> {
    move |peer| {
        let len = u32::try_from(data.len()).unwrap();
        peer.bytes(kind, flags, data_fields(id, 0, offset, len), data)
    }
}

/// Makes the target's bytes from the ids of the commands.
type Break = fn(&Peer, [u16; 2]) -> Vec<u8>;

// TCP 1.1: FEI of an invalid field is where it is in the header. CCCID is at 8, the command id
// of a response at 20, FLAGS at 1, DATAL at 16, PLEN at 4.
const BREAKS: [(Break, FatalError, u32); 15] = [
    (|peer, _| peer.bytes(CAPSULE_RESP, 0, [0xff; 16], &[]), FatalError::INVALID_HEADER_FIELD, 20),
    (
        // An id that is not in use.
        |peer, _| {
            let mut entry = [0; 16];
            entry[12] = 77;
            peer.bytes(CAPSULE_RESP, 0, entry, &[])
        },
        FatalError::INVALID_HEADER_FIELD,
        20,
    ),
    (|peer, _| fields(C2H_DATA, LAST, 999, 0, b"value")(peer), FatalError::INVALID_HEADER_FIELD, 8),
    (
        |peer, ids| fields(C2H_DATA, LAST, ids[STORE], 0, b"value")(peer),
        FatalError::INVALID_HEADER_FIELD,
        8,
    ),
    (
        |peer, ids| fields(C2H_DATA, LAST, ids[RETRIEVE], 0, b"elevenbytes")(peer),
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (
        |peer, ids| fields(C2H_DATA, LAST, ids[RETRIEVE], 1, b"value")(peer),
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (
        |peer, ids| fields(C2H_DATA, LAST, ids[RETRIEVE], u32::MAX, b"value")(peer),
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (
        |peer, ids| fields(C2H_DATA, SUCCESS, ids[RETRIEVE], 0, b"value")(peer),
        FatalError::INVALID_HEADER_FIELD,
        1,
    ),
    (
        // DATAL is not the length of the data.
        |peer, ids| peer.bytes(C2H_DATA, LAST, data_fields(ids[RETRIEVE], 0, 0, 4), b"value"),
        FatalError::INVALID_HEADER_FIELD,
        16,
    ),
    (
        |peer, ids| peer.bytes(R2T, 0, data_fields(ids[RETRIEVE], 0, 0, 4), &[]),
        FatalError::INVALID_HEADER_FIELD,
        8,
    ),
    (
        |peer, _| peer.bytes(R2T, 0, data_fields(999, 0, 0, 4), &[]),
        FatalError::INVALID_HEADER_FIELD,
        8,
    ),
    (
        |peer, ids| peer.bytes(R2T, 0, data_fields(ids[STORE], 0, 0, 10_001), &[]),
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (
        |peer, ids| peer.bytes(R2T, 0, data_fields(ids[STORE], 0, u32::MAX, 2), &[]),
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (
        // The same bytes twice.
        |peer, ids| {
            let ask = peer.bytes(R2T, 0, data_fields(ids[STORE], 0, 0, 4), &[]);
            [ask.clone(), ask].concat()
        },
        FatalError::DATA_OUT_OF_RANGE,
        0,
    ),
    (|peer, _| peer.bytes(H2C_DATA, 0, [0; 16], b"value"), FatalError::INVALID_HEADER_FIELD, 0),
];

#[test]
fn a_protocol_error_ends_its_connection_with_the_reason() {
    for (bytes, error, information) in BREAKS {
        for digests in [Digests::NONE, Digests { header: true, data: true }] {
            breaks(digests, bytes, error, information);
        }
    }
}

#[test]
fn an_icresp_out_of_place_is_a_sequence_error() {
    let response = |_: &Peer, _| {
        let mut bytes = vec![0; 128];
        bytes[..8].copy_from_slice(&[1, 0, 128, 0, 128, 0, 0, 0]);
        bytes
    };
    breaks(Digests::NONE, response, FatalError::SEQUENCE, 0);
}

#[test]
fn a_damaged_header_ends_the_connection() {
    // FEI is the digest that was received.
    run(async |network| {
        let settings = Settings { digests: Digests { header: true, data: false }, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async move |peer| {
            peer.pdu().await;
            peer.pdu().await;
            let mut bytes = peer.bytes(CAPSULE_RESP, 0, [0; 16], &[]);
            bytes[24..28].copy_from_slice(&[1, 2, 3, 4]);
            peer.write(&bytes).await;
            let pdu = peer.pdu().await;
            assert_eq!((pdu.kind(), pdu.u16(8), pdu.u32(10)), (H2C_TERM_REQ, 3, 0x0403_0201));
            peer.left().await;
        })
        .await;
        submit(&queue);
        assert_eq!(queue.next().await.status, Status::HOST_PATHING_ERROR);
        playing.end().await;
    });
}

#[test]
fn no_bytes_panic() {
    for seed in 0..300 {
        run(async move |network| {
            let (_association, queue, playing) = io(&network, settings(), async move |peer| {
                let ids = [peer.pdu().await.id(), peer.pdu().await.id()];
                let mut rng = Rng::new(seed);
                for _ in 0..20 {
                    // Headers that are nearly right, and some that are not.
                    let kind = u8::try_from(rng.below(12)).unwrap();
                    let mut bytes = [0; 16];
                    rng.fill(&mut bytes);
                    if rng.below(2) == 0 {
                        let id = ids[usize::from(rng.below(2) == 0)];
                        let tag = u16::from_le_bytes([bytes[2], bytes[3]]);
                        let [offset, len] = [rng.below(12), rng.below(12)]
                            .map(|value| u32::try_from(value).unwrap());
                        bytes = data_fields(id, tag, offset, len);
                    }
                    let data = vec![7; usize::try_from(rng.below(12)).unwrap()];
                    let flags = bytes[15] & 0b1100;
                    let mut pdu = peer.bytes(kind, flags, bytes, &data);
                    if rng.below(4) == 0 {
                        let at = usize::try_from(rng.below(8)).unwrap();
                        pdu[at] ^= bytes[0];
                    }
                    if peer.try_write(&pdu).await.is_err() {
                        break;
                    }
                }
                peer.shut_down();
            })
            .await;
            submit(&queue);
            queue.next().await;
            queue.next().await;
            playing.end().await;
        });
    }
}
