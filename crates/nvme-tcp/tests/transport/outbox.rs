use crate::crc::crc32c;
use crate::tape::Tape;
use base::Buf;
use net::{Broken, Stream};
use nvme_tcp::framing::{Counters, Fault, Outbox, Terms, Written};
use nvme_tcp::pdu::{C2hData, CapsuleCmd, CapsuleResp, Digests, FatalError, IcResp, R2t, Side};
use spec::{Command, Completion, Status};
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use zerocopy::IntoBytes;

const BOTH: Digests = Digests { header: true, data: true };

fn terms(digests: Digests, host_alignment: u8) -> Terms {
    Terms { digests, host_alignment, controller_alignment: 4, h2c_data_max: 4096 }
}

fn outbox(side: Side, terms: Terms) -> Outbox {
    let mut outbox = Outbox::new(side, Rc::default());
    outbox.agree(terms);
    outbox
}

fn sent(mut outbox: Outbox) -> Vec<u8> {
    let tape = Tape::new(1, usize::MAX);
    while outbox.write(&tape) != Ok(Written::All) {}
    assert!(outbox.is_empty());
    assert_eq!(outbox.sent_to(), outbox.queued_to());
    tape.written()
}

#[test]
fn data_has_digests_and_padding_where_the_specification_has_them() {
    // TCP 1.1, C2HData: header 24, HDGST, padding to PDO (a multiple of 16 here), data, DDGST.
    let mut outbox = outbox(Side::Controller, terms(BOTH, 16));
    outbox.push_with_data(&C2hData::new(0x0201, 0, 9, 0x0c), Buf::copy_from(b"123456789"));
    let mut expected = vec![7, 0x0f, 24, 32, 45, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    expected.extend([0; 4]);
    expected.extend(crc32c(&expected).to_le_bytes());
    expected.extend([0; 4]);
    expected.extend(b"123456789");
    expected.extend(0xe306_9283_u32.to_le_bytes());
    assert_eq!(expected.len(), 45);
    assert_eq!(sent(outbox), expected);
}

#[test]
fn headers_alone_have_only_their_own_digest() {
    let response = CapsuleResp::new(Completion::new(7, Status::SUCCESS, 0));
    let ready = R2t::new(1, 2, 0, 512);
    let mut plain = outbox(Side::Controller, terms(Digests { header: false, data: true }, 128));
    plain.push(&response);
    plain.push(&ready);
    assert_eq!(sent(plain), [response.as_bytes(), ready.as_bytes()].concat());

    let mut digested = outbox(Side::Controller, terms(BOTH, 128));
    digested.push(&response);
    let mut expected = response.as_bytes().to_vec();
    (expected[1], expected[4]) = (1, 28);
    expected.extend(crc32c(&expected).to_le_bytes());
    assert_eq!(sent(digested), expected);
}

#[test]
fn data_is_aligned_as_the_receiver_requires() {
    let mut terms = terms(Digests::NONE, 128);
    terms.controller_alignment = 32;
    let mut host = outbox(Side::Host, terms);
    host.push_with_data(&CapsuleCmd::new(Command::default()), Buf::copy_from(b"x"));
    let bytes = sent(host);
    assert_eq!(bytes[..8], [4, 0, 72, 96, 97, 0, 0, 0]);
    assert_eq!(bytes[72..], [[0; 24].as_slice(), b"x"].concat());
    let mut controller = outbox(Side::Controller, terms);
    controller.push_with_data(&C2hData::new(0, 0, 1, 0), Buf::copy_from(b"x"));
    assert_eq!(sent(controller)[..8], [7, 0, 24, 128, 129, 0, 0, 0]);
}

#[test]
fn connections_begin_and_end_without_digests() {
    let response = IcResp::new(4, BOTH, 4096);
    let mut outbox = outbox(Side::Controller, terms(BOTH, 4));
    outbox.push(&response);
    outbox.push_termination(Fault::field(3), &[0xaa; 200]);
    let bytes = sent(outbox);
    assert_eq!(bytes[..128], *response.as_bytes());
    let mut expected = vec![3, 0, 24, 0, 152, 0, 0, 0, 1, 0, 3, 0, 0, 0];
    expected.extend([0; 10]);
    expected.extend([0xaa; 128]);
    assert_eq!(bytes[128..], expected);
    let mut host = Outbox::new(Side::Host, Rc::default());
    host.push_termination(Fault::of(FatalError::SEQUENCE), &[5; 8]);
    assert_eq!(sent(host)[..9], [2, 0, 24, 0, 32, 0, 0, 0, 2]);
}

#[test]
fn a_phantom_goes_out_as_zeros() {
    let mut outbox = outbox(Side::Controller, terms(BOTH, 4));
    outbox.push_with_data(&C2hData::new(0, 0, 32, 4), Buf::phantom(32, 99));
    let bytes = sent(outbox);
    assert_eq!(bytes[28..60], [0; 32]);
    // RFC 3720 B.4: 32 bytes of zeroes.
    assert_eq!(bytes[60..], 0x8a91_36aa_u32.to_le_bytes());
}

#[test]
fn the_same_bytes_go_out_however_writes_are_cut() {
    let data: Vec<Buf> = (1..=700_u32)
        .map(|at| Buf::copy_from(&vec![u8::try_from(at % 251).unwrap(); 1 + at as usize % 97]))
        .collect();
    let fill = |outbox: &mut Outbox| {
        for (id, data) in (0..).zip(&data) {
            outbox.push_with_data(&C2hData::new(id, 0, data.len(), 4), data.clone());
            outbox.push(&CapsuleResp::new(Completion::new(id, Status::SUCCESS, 0)));
        }
    };
    let mut whole = outbox(Side::Controller, terms(BOTH, 4));
    fill(&mut whole);
    let expected = sent(whole);
    for (seed, share_max) in [(1, 20), (2, 500), (3, 5_000), (4, 1 << 20)] {
        let counters = Rc::new(Counters::default());
        let mut outbox = Outbox::new(Side::Controller, counters.clone());
        outbox.agree(terms(BOTH, 4));
        let tape = Tape::new(seed, share_max);
        // Some is sent before all is queued.
        fill(&mut outbox);
        for _ in 0..10 {
            let _ = outbox.write(&tape);
            assert_eq!(outbox.sent_to(), tape.written().len() as u64);
        }
        fill(&mut outbox);
        while outbox.write(&tape) != Ok(Written::All) {}
        assert!(tape.written() == [expected.as_slice(), &expected].concat(), "share {share_max}");
        assert_eq!(counters.bytes_written(), 2 * expected.len() as u64);
        assert_eq!(counters.pdus_sent(), 2_800);
        // All of the data is small.
        let bytes: u32 = data.iter().map(Buf::len).sum();
        assert_eq!(counters.copied(), 2 * u64::from(bytes));
    }
}

/// A stream that takes everything.
struct Greedy;

impl Stream for Greedy {
    fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        Ok(None)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        Ok(Some(parts.iter().map(|part| part.len()).sum()))
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

#[test]
fn one_write_sends_all_that_fits() {
    let counters = Rc::new(Counters::default());
    let mut outbox = Outbox::new(Side::Controller, counters.clone());
    for id in 0..300 {
        outbox.push_with_data(&C2hData::new(id, 0, 4_096, 4), Buf::copy_from(&[1; 4_096]));
        outbox.push(&CapsuleResp::new(Completion::new(id, Status::SUCCESS, 0)));
    }
    assert_eq!(outbox.write(&Greedy), Ok(Written::All));
    assert_eq!(counters.writes(), 1);
    assert_eq!(counters.bytes_written(), 300 * (24 + 4_096 + 24));
}
