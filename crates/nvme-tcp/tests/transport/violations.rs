use crate::crc::crc32c;
use crate::host::{Came, Host, exist, raw, rough, run, store, value};
use base::Nanos;
use clock::Stage;
use net::Stream;
use nvme_tcp::framing::{Fault, Read};
use nvme_tcp::pdu::{CapsuleCmd, Digests, FatalError, H2cData, IcReq, Side, TermReq};
use nvme_tcp::target::{Ended, TIMEOUT};
use spec::DataPointer;
use zerocopy::FromBytes;

/// Says `bytes` to a target that has accepted the connection or not, and expects it to be
/// terminated for `error` with `information`, repeating `header`, or as much as has come of it.
async fn expect_termination(
    mut host: Host,
    bytes: &[u8],
    header: &[u8],
    error: FatalError,
    information: u32,
) {
    host.say(bytes).await;
    let (request, repeated) = loop {
        match host.next().await {
            Came::Terminated(request, repeated) => break (request, repeated),
            Came::End => panic!("the connection ended without a word"),
            Came::Accepted(_) | Came::Ready { .. } | Came::Response(_) | Came::Data { .. } => {}
        }
    };
    let mut expected = raw(&TermReq::new(Side::Controller, error, information));
    expected[4] = u8::try_from(24 + repeated.len()).expect("152 at most");
    assert_eq!(Ok(request), TermReq::read_from_bytes(&expected));
    // What is wrong with the first 8 bytes is seen before the others come.
    let is_early = error == FatalError::LIMIT_EXCEEDED || error == FIELD && information < 8;
    let least = if is_early { 8 } else { header.len() };
    assert!(repeated.len() >= least && header.starts_with(&repeated), "{repeated:?}");
    // The target waits for the host to read that and to leave.
    assert!(host.ended.get().is_none());
    host.stream.shut_down();
    clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
    let (reason, _) = host.ended.get().expect("the connection is over");
    assert_eq!(reason, Ended::ByFault(Fault { error, information }));
    assert_eq!(host.shelf.closed.get(), host.shelf.queues.get(), "its queue is closed");
}

fn pdu(header: &[u8], kind_to_offset: [u8; 4], len: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    bytes[..4].copy_from_slice(&kind_to_offset);
    bytes[4..8].copy_from_slice(&len.to_le_bytes());
    bytes.extend(rest);
    bytes
}

const FIELD: FatalError = FatalError::INVALID_HEADER_FIELD;
const SEQUENCE: FatalError = FatalError::SEQUENCE;

#[test]
fn a_connection_without_a_valid_icreq_is_terminated() {
    let request = raw(&IcReq::new(4, Digests::NONE, 1));
    let mut newer = request.clone();
    newer[8] = 1;
    let mut misaligned = request.clone();
    misaligned[10] = 32;
    let command = raw(&CapsuleCmd::new(exist(1)));
    let data = pdu(&raw(&H2cData::new(0, 0, 0, 4, true)), [6, 4, 24, 24], 28, &[0; 4]);
    for (bytes, header_len, error, information) in [
        (command.clone(), 72, SEQUENCE, 0),
        (data, 24, FatalError::LIMIT_EXCEEDED, 0),
        ([request.clone(), request.clone()].concat(), 128, SEQUENCE, 0),
        (newer, 128, FatalError::UNSUPPORTED_PARAMETER, 8),
        (misaligned, 128, FIELD, 10),
        (pdu(&request, [0, 0, 120, 0], 128, &[]), 120, FIELD, 2),
        (pdu(&request, [0, 0, 128, 0], 129, &[]), 128, FIELD, 3),
        (vec![0x47, 0x45, 0x54, 0x20, 0x2f, 0x20, 0x48, 0x54], 8, FIELD, 0),
    ] {
        for piece_max in [3, 10_000] {
            let bytes = bytes.clone();
            run(async move {
                let host = Host::connect(5, rough(piece_max));
                let last = if bytes.len() == 256 { &bytes[128..] } else { &bytes[..] };
                let header = last[..header_len].to_vec();
                expect_termination(host, &bytes, &header, error, information).await;
            });
        }
    }
}

#[test]
fn a_termination_names_the_invalid_header_field() {
    let command = raw(&CapsuleCmd::new(exist(1)));
    let inside = |len| DataPointer::InCapsule { offset: 0, len };
    let capsule = |len| raw(&CapsuleCmd::new(store(1, len).with_data_pointer(inside(len))));
    for (bytes, information) in [
        (pdu(&command, [5, 0, 72, 0], 72, &[]), 0),
        (pdu(&command, [8, 0, 72, 0], 72, &[]), 0),
        (pdu(&command, [0xff, 0, 72, 0], 72, &[]), 0),
        (pdu(&command, [4, 1, 72, 0], 76, &[0; 4]), 1),
        (pdu(&command, [4, 0, 64, 0], 72, &[]), 2),
        (pdu(&capsule(8), [4, 0, 72, 70], 80, &[0; 8]), 3),
        (pdu(&command, [4, 0, 72, 0], 60, &[]), 4),
        (pdu(&command, [4, 0, 72, 72], u32::MAX, &[]), 4),
        // More data in a capsule than there may be.
        (pdu(&capsule(8193), [4, 0, 72, 72], 72 + 8193, &[0; 8193]), 4),
    ] {
        run(async move {
            let host = Host::open(7, rough(500), Digests::NONE, 4).await;
            let header = bytes[..bytes.len().min(usize::from(bytes[2]))].to_vec();
            expect_termination(host, &bytes, &header, FIELD, information).await;
        });
    }
}

#[test]
fn data_that_was_not_asked_for_is_refused() {
    let out_of_range = FatalError::DATA_OUT_OF_RANGE;
    for (id, tag, offset, len, is_last, error, information) in [
        (1, 1, 0, 50_000, true, FIELD, 10),
        (1, 0xffff, 0, 50_000, true, FIELD, 10),
        (2, 0, 0, 50_000, true, FIELD, 8),
        (1, 0, 4, 49_996, true, out_of_range, 0),
        (1, 0, 0, 50_001, true, out_of_range, 0),
        (1, 0, 50_000, 4, true, out_of_range, 0),
        (1, 0, u32::MAX, 4, true, out_of_range, 0),
        (1, 0, 0, 49_999, true, FIELD, 1),
        (1, 0, 0, 50_000, false, FIELD, 1),
        (1, 0, 0, 262_145, true, FatalError::LIMIT_EXCEEDED, 0),
    ] {
        run(async move {
            let mut host = Host::open(7, rough(90_000), Digests::NONE, 4).await;
            host.outbox.push(&CapsuleCmd::new(store(1, 50_000)));
            host.flush().await;
            let Came::Ready { id: 1, tag: 0, offset: 0, len: 50_000 } = host.next().await else {
                panic!("no R2T");
            };
            let header = raw(&H2cData::new(id, tag, offset, len, is_last));
            let flags = header[1];
            let header = pdu(&header, [6, flags, 24, 24], 24 + len, &[]);
            let bytes = [header.clone(), vec![0; len as usize]].concat();
            expect_termination(host, &bytes, &header, error, information).await;
        });
    }
}

#[test]
fn data_after_the_last_byte_is_refused() {
    run(async {
        let mut host = Host::open(7, rough(90_000), Digests::NONE, 4).await;
        host.shelf.delay.set(Nanos::from_secs(1));
        host.outbox.push(&CapsuleCmd::new(store(1, 50_000)));
        host.flush().await;
        let Came::Ready { tag, .. } = host.next().await else { panic!("no R2T") };
        host.give(1, tag, &value(50_000, 1), 50_000);
        host.flush().await;
        let header = raw(&H2cData::new(1, tag, 50_000, 4, true));
        let header = pdu(&header, [6, 4, 24, 24], 28, &[]);
        let bytes = [header.clone(), vec![0; 4]].concat();
        expect_termination(host, &bytes, &header, FIELD, 10).await;
    });
}

#[test]
fn a_bad_header_digest_is_fatal() {
    run(async {
        let digests = Digests { header: true, data: false };
        let host = Host::open(7, rough(50), digests, 4).await;
        let mut bytes = pdu(&raw(&CapsuleCmd::new(exist(1))), [4, 1, 72, 0], 76, &[]);
        let wrong = crc32c(&bytes) ^ 0x100;
        bytes.extend(wrong.to_le_bytes());
        let header = bytes[..72].to_vec();
        expect_termination(host, &bytes, &header, FatalError::HEADER_DIGEST, wrong).await;
    });
}

#[test]
fn a_termination_by_the_host_ends_the_connection() {
    run(async {
        let mut host = Host::open(7, rough(50), Digests::NONE, 4).await;
        let mut request = raw(&TermReq::new(Side::Host, FatalError::SEQUENCE, 0));
        request[4] = 24 + 16;
        request.extend([1; 16]);
        host.say(&request).await;
        assert!(matches!(host.next().await, Came::End), "the target sends no termination back");
        let (reason, _) = host.ended.get().unwrap();
        assert_eq!(reason, Ended::Terminated(FatalError::SEQUENCE));
        assert_eq!(host.shelf.closed.get(), 1);
    });
}

#[test]
fn a_terminated_host_that_stays_connected_times_out() {
    run(async {
        let mut host = Host::open(7, rough(5_000), Digests::NONE, 4).await;
        let start = clock::now();
        host.say(&[0xff; 64]).await;
        assert!(matches!(host.next().await, Came::Terminated(..)));
        // The target drops what the host sends after the termination.
        host.say(&[0xff; 10_000]).await;
        assert!(matches!(host.next().await, Came::End));
        let (reason, at) = host.ended.get().unwrap();
        assert!(matches!(reason, Ended::ByFault(_)));
        assert!(at - start >= TIMEOUT && at - start < TIMEOUT + Nanos::from_millis(1));
    });
}

#[test]
fn nothing_follows_a_termination() {
    run(async {
        let mut host = Host::open(7, rough(50_000), Digests::NONE, 4).await;
        // As many bytes as may be in flight are returned, and Stores wait for them to be read.
        let len = 1 << 20;
        let data = value(len, 1);
        host.shelf.values.borrow_mut().extend((0..16).map(|_| data.clone()));
        for id in 0..16 {
            host.retrieve(id, len);
        }
        for id in 16..24 {
            host.outbox.push(&CapsuleCmd::new(store(id, len)));
        }
        host.flush().await;
        host.say(&[0xff; 8]).await;
        loop {
            match host.next().await {
                Came::Terminated(..) => break,
                Came::Data { .. } | Came::Response(_) => {}
                other => panic!("{other:?}"),
            }
        }
        clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
        assert_eq!(host.inbox.read(&*host.stream), Ok(Read::Nothing));
    });
}
