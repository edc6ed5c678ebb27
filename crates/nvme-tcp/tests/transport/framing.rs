use crate::tape::Tape;
use base::limits::BUF_ALIGN;
use base::{Buf, BufMut, BufPool, Rng};
use net::{Broken, Stream};
use nvme_tcp::framing::{Arrival, Brought, Counters, Inbox, Outbox, Read, Terms, Written};
use nvme_tcp::pdu::{
    C2hData, CapsuleCmd, CapsuleResp, Digests, FatalError, H2cData, Header, IcReq, IcResp, R2t,
    Side,
};
use spec::{Command, Completion, Status};
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use zerocopy::IntoBytes;

/// All terms that differ in framing.
pub(crate) fn all_terms() -> Vec<Terms> {
    let mut all = Vec::new();
    for bits in 0..4 {
        let digests = Digests { header: bits & 1 > 0, data: bits & 2 > 0 };
        for (host_alignment, controller_alignment) in [(4, 4), (128, 4), (8, 64)] {
            let h2c_data_max = 1 << 20;
            all.push(Terms { digests, host_alignment, controller_alignment, h2c_data_max });
        }
    }
    all
}

pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
}

/// A PDU: the header's bytes as they are before framing, and the data.
type Sent = (Vec<u8>, Vec<u8>);

/// Some PDUs that `sender` may send.
fn script(sender: Side, outbox: &mut Outbox, rng: &mut Rng) -> Vec<Sent> {
    let mut script = Vec::new();
    for id in 0..60_u16 {
        let max = [1, 7, 512, 4096, 8192, 20_000][usize::from(id) % 6];
        let len = u32::try_from(1 + rng.below(max)).expect("it is short");
        let data = bytes(len.min(8_192) as usize, u64::from(id));
        let long = bytes(len as usize, u64::from(id));
        let mut push = |header: &[u8], data: Vec<u8>| script.push((header.to_vec(), data));
        match (sender, rng.below(3)) {
            (Side::Host, 0) => {
                let capsule = CapsuleCmd::new(Command::default().with_command_id(id));
                outbox.push(&capsule);
                push(capsule.as_bytes(), Vec::new());
            }
            (Side::Host, 1) => {
                let capsule = CapsuleCmd::new(Command::default().with_command_id(id));
                outbox.push_with_data(&capsule, Buf::copy_from(&data));
                push(capsule.as_bytes(), data);
            }
            (Side::Host, _) => {
                let header = H2cData::new(id, 3, 0, len, true);
                outbox.push_with_data(&header, Buf::copy_from(&long));
                push(header.as_bytes(), long);
            }
            (Side::Controller, 0) => {
                let capsule = CapsuleResp::new(Completion::new(id, Status::SUCCESS, 1));
                outbox.push(&capsule);
                push(capsule.as_bytes(), Vec::new());
            }
            (Side::Controller, 1) => {
                let ready = R2t::new(id, 1, 2, 3);
                outbox.push(&ready);
                push(ready.as_bytes(), Vec::new());
            }
            (Side::Controller, _) => {
                let header = C2hData::new(id, 0, len, 4);
                outbox.push_with_data(&header, Buf::copy_from(&long));
                push(header.as_bytes(), long);
            }
        }
    }
    script
}

/// The bytes of a header from byte 8 on: what framing does not change.
fn fields(header: Header<'_>) -> Vec<u8> {
    let bytes = match header {
        Header::IcReq(header) => header.as_bytes(),
        Header::IcResp(header) => header.as_bytes(),
        Header::TermReq(header) => header.as_bytes(),
        Header::CapsuleCmd(header) => header.as_bytes(),
        Header::CapsuleResp(header) => header.as_bytes(),
        Header::H2cData(header) => header.as_bytes(),
        Header::C2hData(header) => header.as_bytes(),
        Header::R2t(header) => header.as_bytes(),
    };
    bytes[8..].to_vec()
}

/// The data of a capsule, which is intact.
fn bytes_of(brought: &Brought) -> &[u8] {
    match brought {
        Brought::Nothing => &[],
        Brought::Data(data) => data.bytes().expect("the inbox copies bytes"),
        Brought::Damaged => panic!("its digest is right"),
    }
}

/// Receives as many PDUs as `script` has, and compares. Data goes to a buffer of its own or to one
/// that is given, as `rng` says.
fn receive(inbox: &mut Inbox, tape: &Tape, script: &[Sent], rng: &mut Rng) {
    let mut left = script.iter();
    let mut data: Option<&[u8]> = None;
    loop {
        loop {
            let capsule = if rng.below(2) == 0 { inbox.next_capsule() } else { None };
            let arrival = match capsule {
                Some(brought) => Some(Arrival::Capsule(brought)),
                None => inbox.next().expect("every PDU is right"),
            };
            let Some(arrival) = arrival else { break };
            match arrival {
                Arrival::Capsule(brought) => {
                    let (sent, with) = left.next().expect("no more comes than was sent");
                    assert_eq!(inbox.command().as_bytes(), &sent[8..]);
                    assert_eq!(bytes_of(&brought), with);
                }
                Arrival::Header(header, len) => {
                    assert!(data.is_none());
                    let (sent, with) = left.next().expect("no more comes than was sent");
                    assert_eq!(fields(header), sent[8..]);
                    assert_eq!(len as usize, with.len());
                    if len > 0 && rng.below(2) == 0 {
                        inbox.keep();
                    } else if len > 0 {
                        inbox.fill(BufMut::unpooled(100 + with.len()), 100);
                    }
                    data = (len > 0).then_some(with);
                }
                Arrival::Kept(kept, is_intact) => {
                    assert!(is_intact && kept.bytes() == data.take());
                }
                Arrival::Filled(mut buf, is_intact) => {
                    assert!(is_intact && Some(&buf.as_mut()[100..]) == data.take());
                    assert_eq!(buf.as_mut()[..100], [0; 100]);
                }
            }
        }
        if left.len() == 0 && data.is_none() {
            assert!(inbox.is_between_pdus() && tape.is_read());
            return;
        }
        assert!(inbox.read(tape).is_ok());
    }
}

#[test]
fn every_pdu_arrives_as_it_was_sent_in_any_splitting() {
    for (seed, terms) in (0..).zip(all_terms()) {
        for (sender, share_max) in [
            (Side::Host, 3),
            (Side::Controller, 40),
            (Side::Host, 9_000),
            (Side::Controller, 1 << 20),
        ] {
            let mut rng = Rng::new(seed);
            let mut outbox = Outbox::new(sender, Rc::default());
            outbox.agree(terms);
            let script = script(sender, &mut outbox, &mut rng);
            let out = Tape::new(seed, 10_000);
            while outbox.write(&out) != Ok(Written::All) {}
            for reads_ahead in [true, false] {
                let tape = Tape::of(&out.written(), seed, share_max);
                let mut inbox = Inbox::new(sender.peer(), Rc::default());
                inbox.agree(terms);
                inbox.read_ahead(reads_ahead);
                receive(&mut inbox, &tape, &script, &mut rng);
            }
        }
    }
}

/// Data of whole pages may be written to a disk as it is.
#[test]
fn whole_pages_of_a_capsule_are_in_aligned_memory_of_the_pool() {
    for (terms, share_max) in all_terms().into_iter().flat_map(|it| [(it, 1_000), (it, usize::MAX)])
    {
        let mut outbox = Outbox::new(Side::Host, Rc::default());
        outbox.agree(terms);
        for len in [4_096, 8_192] {
            let data = Buf::copy_from(&bytes(len, 3));
            outbox.push_with_data(&CapsuleCmd::new(Command::default()), data);
        }
        let out = Tape::new(1, usize::MAX);
        while outbox.write(&out) != Ok(Written::All) {}
        let tape = Tape::of(&out.written(), 1, share_max);
        let pool = BufPool::new(1 << 20);
        let places = [4_096, 8_192].map(|len| pool.take(len).as_mut().as_ptr());
        let mut inbox = Inbox::new(Side::Controller, Rc::default()).with_pool(pool);
        inbox.agree(terms);
        for place in places {
            let brought = loop {
                match inbox.next_capsule().map(Arrival::Capsule) {
                    Some(Arrival::Capsule(brought)) => break brought,
                    _ => match inbox.next().unwrap() {
                        Some(Arrival::Capsule(brought)) => break brought,
                        _ => assert!(inbox.read(&tape).is_ok()),
                    },
                }
            };
            assert_eq!(bytes_of(&brought).as_ptr(), place);
        }
    }
}

#[test]
fn connections_open_in_any_splitting() {
    let digests = Digests { header: true, data: false };
    for share_max in [1, 30, 200] {
        let request = IcReq::new(8, digests, 4);
        let tape = Tape::of(request.as_bytes(), 1, share_max);
        let mut inbox = Inbox::new(Side::Controller, Rc::default());
        receive(&mut inbox, &tape, &[(request.as_bytes().to_vec(), Vec::new())], &mut Rng::new(1));
        let response = IcResp::new(4, digests, 4096);
        let tape = Tape::of(response.as_bytes(), 1, share_max);
        let mut inbox = Inbox::new(Side::Host, Rc::default());
        receive(&mut inbox, &tape, &[(response.as_bytes().to_vec(), Vec::new())], &mut Rng::new(1));
    }
}

#[test]
fn large_data_is_read_straight_into_its_place() {
    let (count, len) = (8, 200_000_u32);
    for terms in all_terms() {
        let mut outbox = Outbox::new(Side::Host, Rc::default());
        outbox.agree(terms);
        for at in 0..count {
            outbox.push(&CapsuleCmd::new(Command::default()));
            let header = H2cData::new(0, 0, at * len, len, at + 1 == count);
            outbox.push_with_data(&header, Buf::copy_from(&bytes(len as usize, at.into())));
        }
        let out = Tape::new(1, usize::MAX);
        while outbox.write(&out) != Ok(Written::All) {}
        let counters = Rc::new(Counters::default());
        let mut inbox = Inbox::new(Side::Controller, counters.clone());
        inbox.agree(terms);
        inbox.read_ahead(false);
        let tape = Tape::of(&out.written(), 1, 70_000);
        let mut whole = Some(BufMut::unpooled((count * len) as usize));
        while !tape.is_read() {
            inbox.read(&tape).unwrap();
            while let Some(arrival) = inbox.next().unwrap() {
                match arrival {
                    Arrival::Header(Header::H2cData(data), _) => {
                        let offset = data.offset();
                        inbox.fill(whole.take().unwrap(), offset);
                    }
                    Arrival::Filled(buf, is_intact) => {
                        assert!(is_intact);
                        whole = Some(buf);
                    }
                    _ => {}
                }
            }
        }
        let mut whole = whole.unwrap();
        for (at, part) in (0..).zip(whole.as_mut().chunks(len as usize)) {
            assert!(part == bytes(len as usize, at));
        }
        assert_eq!(counters.copied(), 0);
        assert_eq!(counters.pdus_received(), u64::from(2 * count));
    }
}

#[test]
fn small_data_is_copied_once_at_most() {
    for terms in all_terms() {
        let mut outbox = Outbox::new(Side::Host, Rc::default());
        outbox.agree(terms);
        for _ in 0..200 {
            outbox.push_with_data(&CapsuleCmd::new(Command::default()), Buf::copy_from(&[7; 4096]));
        }
        let out = Tape::new(1, usize::MAX);
        while outbox.write(&out) != Ok(Written::All) {}
        for share_max in [100, 5_000, usize::MAX] {
            let counters = Rc::new(Counters::default());
            let mut inbox = Inbox::new(Side::Controller, counters.clone());
            inbox.agree(terms);
            let tape = Tape::of(&out.written(), 3, share_max);
            let script = vec![(vec![0; 72], vec![7; 4096]); 200];
            let mut count = 0;
            while !tape.is_read() {
                inbox.read(&tape).unwrap();
                while let Some(arrival) = inbox.next().unwrap() {
                    let Arrival::Capsule(brought) = arrival else { panic!("{arrival:?}") };
                    assert_eq!(bytes_of(&brought), script[count].1);
                    count += 1;
                }
            }
            assert_eq!(count, 200);
            assert!(counters.copied() <= 200 * 4096);
            if share_max == usize::MAX {
                assert!(counters.reads() < 40, "small PDUs share reads: {}", counters.reads());
            }
        }
    }
}

#[test]
fn short_data_of_one_read_are_parts_of_a_copy_that_later_reads_leave() {
    for (count, len, is_shared) in [(300, 64, true), (40, 600, false)] {
        for terms in all_terms() {
            let mut outbox = Outbox::new(Side::Host, Rc::default());
            outbox.agree(terms);
            for at in 0..count {
                let capsule = CapsuleCmd::new(Command::default());
                outbox.push_with_data(&capsule, Buf::copy_from(&bytes(len, at)));
            }
            let out = Tape::new(1, usize::MAX);
            while outbox.write(&out) != Ok(Written::All) {}
            let counters = Rc::new(Counters::default());
            let mut inbox = Inbox::new(Side::Controller, counters.clone());
            inbox.agree(terms);
            let tape = Tape::of(&out.written(), 5, 9_000);
            let mut all = Vec::new();
            while !tape.is_read() {
                inbox.read(&tape).unwrap();
                while let Some(arrival) = inbox.next().unwrap() {
                    let Arrival::Capsule(Brought::Data(data)) = arrival else { panic!() };
                    all.push(data);
                }
            }
            for (at, data) in (0..).zip(&all) {
                assert_eq!(data.bytes().unwrap(), bytes(len, at));
                assert!(data.held_bytes() <= 8 << 10);
            }
            // Data that came in two reads have aligned memory.
            let own = |data: &&Buf| [len, BUF_ALIGN].contains(&data.held_bytes());
            let shared = all.len() - all.iter().filter(own).count();
            assert_eq!(all.len() as u64, count);
            assert!(if is_shared { shared * 2 > all.len() } else { shared == 0 }, "{shared}");
            // A copy has the headers between its data too.
            let data_bytes = count * len as u64;
            assert_eq!(counters.copied() > data_bytes, is_shared, "{}", counters.copied());
        }
    }
}

#[test]
fn short_data_of_a_lone_capsule_have_memory_of_their_own() {
    for terms in all_terms() {
        let mut outbox = Outbox::new(Side::Host, Rc::default());
        outbox.agree(terms);
        let data = Buf::copy_from(&bytes(64, 1));
        outbox.push_with_data(&CapsuleCmd::new(Command::default()), data);
        let out = Tape::new(1, usize::MAX);
        while outbox.write(&out) != Ok(Written::All) {}
        let mut whole = 0;
        for seed in 0..2_000 {
            let counters = Rc::new(Counters::default());
            let mut inbox = Inbox::new(Side::Controller, counters.clone());
            inbox.agree(terms);
            let tape = Tape::of(&out.written(), seed, usize::MAX);
            while !tape.is_read() {
                inbox.read(&tape).unwrap();
                let Some(arrival) = inbox.next().unwrap() else { continue };
                let Arrival::Capsule(Brought::Data(data)) = arrival else { panic!("{arrival:?}") };
                // Data that came in two reads have aligned memory, and are not all copied.
                assert!([64, BUF_ALIGN].contains(&data.held_bytes()), "{terms:?}");
                assert!(counters.copied() <= 64, "{terms:?}");
                whole += u32::from(data.held_bytes() == 64);
            }
        }
        assert!(whole > 10, "{whole} came in one read, {terms:?}");
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let terms = Terms {
        digests: Digests { header: true, data: true },
        host_alignment: 4,
        controller_alignment: 4,
        h2c_data_max: 4096,
    };
    let mut outbox = Outbox::new(Side::Host, Rc::default());
    outbox.agree(terms);
    outbox.push_with_data(&CapsuleCmd::new(Command::default()), Buf::copy_from(&[9; 50]));
    let out = Tape::new(1, usize::MAX);
    while outbox.write(&out) != Ok(Written::All) {}
    let good = out.written();
    assert_eq!(good.len(), 72 + 4 + 50 + 4);
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let tape = Tape::of(&bad, 1, usize::MAX);
        let mut inbox = Inbox::new(Side::Controller, Rc::default());
        inbox.agree(terms);
        let fault = loop {
            match inbox.next() {
                Ok(Some(Arrival::Capsule(brought))) => {
                    assert!(matches!(brought, Brought::Damaged) && bit / 8 >= 76, "bit {bit}");
                    break None;
                }
                Ok(Some(arrival)) => panic!("{arrival:?}"),
                Ok(None) if tape.is_read() => break None,
                Ok(None) => assert!(inbox.read(&tape).is_ok()),
                Err(fault) => break Some(fault),
            }
        };
        match bit / 8 {
            // A PDU that claims to be longer waits for more.
            0..8 => assert!(fault.is_some() || bad[4] > good[4] || bad[5..8] > good[5..8]),
            8..72 => {
                let fault = fault.unwrap();
                assert_eq!(fault.error, FatalError::HEADER_DIGEST);
                assert_eq!(fault.information.to_le_bytes(), good[72..76]);
                assert_eq!(inbox.last_header(), &bad[..72]);
            }
            72..76 => assert_eq!(fault.unwrap().information.to_le_bytes(), bad[72..76]),
            _ => assert_eq!(fault, None),
        }
    }
}

/// A stream whose peer has left.
struct Left;

impl Stream for Left {
    fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        Ok(Some(0))
    }

    fn try_write(&self, _: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        Err(Broken)
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

#[test]
fn a_stream_that_ends_says_so() {
    let mut inbox = Inbox::new(Side::Host, Rc::default());
    assert_eq!(inbox.read(&Left), Ok(Read::End));
    assert_eq!(inbox.discard(&Left), Ok(Read::End));
    let mut outbox = Outbox::new(Side::Host, Rc::default());
    outbox.push(&CapsuleCmd::new(Command::default()));
    assert!(outbox.write(&Left).is_err());
}
