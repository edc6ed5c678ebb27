use crate::host::{Host, exist, retrieve, rough, run, store, value};
use crate::tape::Tape;
use base::BufMut;
use base::Nanos;
use clock::Stage;
use net::Stream;
use nvme_tcp::framing::{Arrival, Inbox, Outbox, Terms, Written};
use nvme_tcp::pdu::{CapsuleCmd, CommonHeader, Digests, H2cData, Header, IcReq, PduType, Side};
use proptest::prelude::*;
use std::rc::Rc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

fn terms() -> impl Strategy<Value = Terms> {
    (any::<bool>(), any::<bool>(), 1..=32_u8, 1..=32_u8, 1..100_000_u32).prop_map(
        |(header, data, host, controller, h2c_data_max)| Terms {
            digests: Digests { header, data },
            host_alignment: 4 * host,
            controller_alignment: 4 * controller,
            h2c_data_max,
        },
    )
}

/// A stream of well-formed capsules and data.
fn well_formed(terms: Terms, count: u16) -> Vec<u8> {
    let mut outbox = Outbox::new(Side::Host, Rc::default());
    outbox.push(&IcReq::new(4, Digests::NONE, 1));
    outbox.agree(terms);
    for id in 0..count {
        outbox.push(&CapsuleCmd::new(retrieve(id, 100)));
        outbox.push(&CapsuleCmd::new(exist(id)));
        outbox.push(&CapsuleCmd::new(store(id, 30_000)));
        outbox.push_with_data(&H2cData::new(id, id, 0, 30, true), value(30, 1));
    }
    let tape = Tape::new(1, usize::MAX);
    while outbox.write(&tape) != Ok(Written::All) {}
    tape.written()
}

fn take_all(inbox: &mut Inbox, tape: &Tape) {
    loop {
        match inbox.next() {
            Err(_) => {
                assert!(inbox.last_header().len() <= 255);
                return;
            }
            Ok(None) if tape.is_read() => return,
            Ok(None) => assert!(inbox.read(tape).is_ok()),
            Ok(Some(
                Arrival::Capsule(..)
                | Arrival::Header(_, 0)
                | Arrival::Kept(..)
                | Arrival::Filled(..),
            )) => {}
            Ok(Some(Arrival::Header(_, len))) if len > 4_000_000 => return,
            Ok(Some(Arrival::Header(_, len))) if len % 2 == 0 => inbox.keep(),
            Ok(Some(Arrival::Header(_, len))) => {
                inbox.fill(BufMut::unpooled(len as usize + 3), 3);
            }
        }
    }
}

/// Serves `bytes` from a host that then leaves.
fn serve(bytes: &[u8], seed: u64) {
    let bytes = bytes.to_vec();
    run(async move {
        let mut host = Host::connect(seed, rough(3_000));
        host.shelf.values.borrow_mut().extend((0..9).map(|at| value(40_000, at)));
        host.say(&bytes).await;
        clock::sleep(Nanos::from_secs(40), Stage::Queue).await;
        host.stream.shut_down();
        clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
        assert!(host.ended.get().is_some(), "every connection ends");
        assert_eq!(host.shelf.queues.get(), host.shelf.closed.get());
        assert_eq!(host.shelf.under_way.get(), 0);
    });
}

fn comes_back<T: FromBytes + IntoBytes + Immutable>(bytes: &[u8]) {
    let value = T::read_from_bytes(&bytes[..size_of::<T>()]);
    assert!(value.is_ok_and(|value| value.as_bytes() == &bytes[..size_of::<T>()]));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_bit_pattern_is_a_header(bytes in prop::collection::vec(any::<u8>(), 128)) {
        use nvme_tcp::pdu::{C2hData, CapsuleResp, IcResp, R2t, TermReq};
        comes_back::<CommonHeader>(&bytes);
        comes_back::<IcReq>(&bytes);
        comes_back::<IcResp>(&bytes);
        comes_back::<TermReq>(&bytes);
        comes_back::<CapsuleCmd>(&bytes);
        comes_back::<CapsuleResp>(&bytes);
        comes_back::<H2cData>(&bytes);
        comes_back::<C2hData>(&bytes);
        comes_back::<R2t>(&bytes);
        let kind = PduType(bytes[0]);
        let len = kind.header_len_and_sender().map_or(24, |(len, _)| usize::from(len));
        let header = Header::read(kind, &bytes[..len]);
        prop_assert_eq!(header.is_some(), kind.header_len_and_sender().is_some());
        let _ = format!("{header:?}");
    }

    #[test]
    fn no_bytes_make_an_inbox_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        kind in 0..11_u8,
        is_host in any::<bool>(),
        terms in terms(),
        seed in any::<u64>(),
    ) {
        let side = if is_host { Side::Host } else { Side::Controller };
        for is_guided in [false, true] {
            let mut bytes = bytes.clone();
            if let (true, true) = (is_guided, bytes.len() >= 8) {
                // A type and a header's length that go together come further.
                let len = PduType(kind).header_len_and_sender().map_or(0, |(len, _)| len);
                (bytes[0], bytes[2]) = (kind, len);
                bytes[6..8].fill(0);
            }
            let mut inbox = Inbox::new(side, Rc::default());
            inbox.agree(terms);
            inbox.read_ahead(seed % 2 == 0);
            take_all(&mut inbox, &Tape::of(&bytes, seed, 200));
        }
    }

    #[test]
    fn damage_makes_no_inbox_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        terms in terms(),
        seed in any::<u64>(),
    ) {
        let mut bytes = well_formed(terms, 6).split_off(128);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut inbox = Inbox::new(Side::Controller, Rc::default());
        inbox.agree(terms);
        take_all(&mut inbox, &Tape::of(&bytes, seed, 500));
    }

    #[test]
    fn no_bytes_make_a_target_panic_or_stay(
        bytes in prop::collection::vec(any::<u8>(), 0..500),
        seed in any::<u64>(),
    ) {
        serve(&bytes, seed);
        serve(&[IcReq::new(4, Digests::NONE, 1).as_bytes(), &bytes].concat(), seed);
    }

    #[test]
    fn damage_makes_no_target_panic_or_stay(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        seed in any::<u64>(),
    ) {
        let terms = Terms { h2c_data_max: 1 << 18, ..Terms::BEFORE };
        let mut bytes = well_formed(terms, 5);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        serve(&bytes, seed);
    }
}
