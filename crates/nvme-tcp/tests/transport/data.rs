use crate::framing::all_terms;
use crate::host::{Came, Host, QUICK, exist, raw, rough, run, value};
use crate::port::Door;
use base::{Buf, BufPool, Nanos};
use nvme_tcp::pdu::{CapsuleCmd, Digests, IcReq, IcResp};
use nvme_tcp::target::{Config, H2C_DATA_MAX, LARGE, serve};
use spec::{DataPointer, Status};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

const LENGTHS: [u32; 12] =
    [0, 1, 511, 4_096, 8_191, 8_192, 8_193, 16_383, 16_384, 100_001, 300_000, 2 << 20];

#[test]
fn a_connection_opens_with_the_specifications_bytes() {
    for bits in 0..4 {
        run(async move {
            let digests = Digests { header: bits & 1 > 0, data: bits & 2 > 0 };
            let mut host = Host::connect(bits, rough(9));
            let request = IcReq::new(128, digests, 1);
            host.say(&raw(&request)).await;
            let Came::Accepted(response) = host.next().await else { panic!("no ICResp") };
            // TCP 1.1, ICResp: PFV 0, CPDA 0 (4 bytes), DGST as asked for, MAXH2CDATA.
            assert_eq!(*response, IcResp::new(4, digests, H2C_DATA_MAX));
            assert_eq!(host.shelf.queues.get(), 1);
        });
    }
}

#[test]
fn values_of_any_length_come_and_go_under_all_terms_in_any_splitting() {
    let pieces = [7, 900, 70_000].into_iter().cycle();
    for ((seed, terms), piece_max) in (0..).zip(all_terms()).zip(pieces) {
        let lengths = if piece_max == 7 { &LENGTHS[..10] } else { &LENGTHS[..] };
        run(async move {
            let conditions = rough(piece_max);
            let mut host = Host::open(seed, conditions, terms.digests, terms.host_alignment).await;
            let mut values = BTreeMap::new();
            for (id, len) in (0..).zip(lengths) {
                values.insert(id, value(*len, seed + u64::from(id)));
            }
            // The shelf keeps values in the order in which their data has come: one at a time.
            for (id, value) in &values {
                host.store(*id, value);
                host.flush().await;
                let stored = host.collect(1, &values).await;
                let entry = stored.done[id].unwrap();
                assert_eq!((entry.status(), entry.queue_head()), (Status::SUCCESS, 3));
            }
            for (id, value) in &values {
                host.retrieve(id + 1_000, value.len());
            }
            host.flush().await;
            let got = host.collect(values.len(), &values).await;
            for (id, value) in &values {
                let data = got.data.get(&(id + 1_000)).map_or(&[][..], Vec::as_slice);
                assert!(value.bytes() == Some(data), "{} bytes", value.len());
                assert!(got.done[&(id + 1_000)].is_some(), "nothing may be elided");
            }
        });
    }
}

#[test]
fn many_commands_at_a_time_keep_their_data_apart() {
    for seed in 0..4 {
        run(async move {
            let digests = Digests { header: seed & 1 > 0, data: seed & 2 > 0 };
            let mut host = Host::open(seed, rough(20_000), digests, 4).await;
            host.shelf.delay.set(Nanos::from_micros(30));
            let values: BTreeMap<u16, Buf> = (0..64)
                .map(|id| (id, value(LENGTHS[1 + usize::from(id) % 10], u64::from(id))))
                .collect();
            for (id, value) in &values {
                host.store(*id, value);
            }
            host.flush().await;
            host.collect(64, &values).await;
            let stored = host.shelf.came.borrow().clone();
            for id in &stored {
                host.retrieve(1_000 + id, 1 << 20);
            }
            host.flush().await;
            let got = host.collect(64, &values).await;
            for (id, value) in &values {
                assert!(value.bytes() == Some(&got.data[&(1_000 + id)]), "of {id}");
            }
        });
    }
}

#[test]
fn a_response_is_elided_when_it_may_be_and_there_is_data() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        host.shelf.may_elide.set(true);
        let long = value(300_009, 1);
        host.shelf.values.borrow_mut().extend([value(100, 2), long]);
        host.retrieve(1, 100);
        host.retrieve(2, 400_000);
        host.outbox.push(&CapsuleCmd::new(exist(3)));
        host.outbox.push(&CapsuleCmd::new(exist(4).with_data_pointer(DataPointer::Other(0x33))));
        host.retrieve(5, 100);
        host.flush().await;
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(match host.next().await {
                Came::Data { id, offset, is_last, is_success, data } => {
                    (id, offset, data.len(), is_last, is_success)
                }
                Came::Response(entry) => (entry.command_id(), 0, 0, true, false),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(
            seen,
            [
                (1, 0, 100, true, true),
                (2, 0, 300_009, true, true),
                (3, 0, 0, true, false),
                (4, 0, 0, true, false),
                (5, 0, 0, true, false),
            ]
        );
    });
}

#[test]
fn large_values_are_not_copied() {
    for seed in 0..4 {
        run(async move {
            let digests = Digests { header: seed & 1 > 0, data: seed & 2 > 0 };
            let mut host = Host::open(seed, rough(50_000), digests, 64).await;
            let values: BTreeMap<u16, Buf> =
                (0..40).map(|id| (id, value(LARGE + 5_000 * u32::from(id), id.into()))).collect();
            for (id, value) in &values {
                host.store(*id, value);
                host.outbox.push(&CapsuleCmd::new(exist(100 + id)));
            }
            host.flush().await;
            host.collect(80, &values).await;
            for id in values.keys() {
                host.retrieve(1_000 + id, 1 << 20);
            }
            host.flush().await;
            host.collect(40, &values).await;
            assert_eq!(host.counters.copied(), 0);
            let moved: u64 = values.values().map(|value| u64::from(value.len())).sum();
            assert!(host.counters.bytes_read() > moved && host.counters.bytes_written() > moved);
        });
    }
}

/// A stream on which everything comes at once, and then nothing until `expected` bytes are sent.
struct AtOnce {
    bytes: RefCell<Vec<u8>>,
    expected: usize,
    written: Cell<usize>,
    writes: Cell<usize>,
    done: clock::Notify,
}

impl net::Stream for AtOnce {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, net::Broken> {
        let bytes = self.bytes.take();
        if bytes.is_empty() {
            return Ok((self.written.get() >= self.expected).then_some(0));
        }
        into[0][..bytes.len()].copy_from_slice(&bytes);
        Ok(Some(bytes.len()))
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, net::Broken> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.written.set(self.written.get() + len);
        self.writes.set(self.writes.get() + 1);
        if self.written.get() >= self.expected {
            self.done.notify();
        }
        Ok(Some(len))
    }

    async fn readable(&self) {
        if self.written.get() < self.expected {
            self.done.wait().await;
        }
    }

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

#[test]
fn commands_of_one_read_are_answered_in_one_write() {
    for is_real in [false, true] {
        let mut bytes = raw(&IcReq::new(4, Digests::NONE, 1));
        bytes.extend((0..200).flat_map(|id| raw(&CapsuleCmd::new(exist(id)))));
        let stream = Rc::new(AtOnce {
            bytes: RefCell::new(bytes),
            expected: 128 + 200 * 24,
            written: Cell::new(0),
            writes: Cell::new(0),
            done: clock::Notify::new(),
        });
        let config = Config { pool: BufPool::new(0), counters: Rc::default() };
        let connection = serve(stream.clone(), Rc::new(Door(Rc::default())), config, Rc::default());
        let mut reactor = reactor::Reactor::new(None);
        if is_real {
            reactor.run_in_real_time(connection);
        } else {
            reactor.run(connection);
        }
        assert_eq!(stream.written.get(), stream.expected);
        // The ICResp may go ahead.
        assert!(stream.writes.get() <= 2, "{} writes", stream.writes.get());
    }
}

#[test]
fn a_data_digest_that_does_not_agree_fails_its_command_only() {
    run(async {
        let digests = Digests { header: false, data: true };
        let mut host = Host::open(1, rough(1_000), digests, 4).await;
        let inside = DataPointer::InCapsule { offset: 0, len: 4 };
        let mut bad = raw(&CapsuleCmd::new(crate::host::store(1, 4).with_data_pointer(inside)));
        (bad[1], bad[3], bad[4]) = (2, 72, 80);
        bad.extend([1, 2, 3, 4, 9, 9, 9, 9]);
        host.say(&bad).await;
        host.store(2, &value(4, 1));
        host.store(3, &value(50_000, 3));
        host.flush().await;
        let mut codes = BTreeMap::new();
        while codes.len() < 3 {
            match host.next().await {
                Came::Response(entry) => {
                    codes.insert(entry.command_id(), (entry.status().0, entry.do_not_retry()));
                }
                Came::Ready { id: 3, tag, .. } => {
                    // The first of two PDUs is bad, the second is not.
                    let header = nvme_tcp::pdu::H2cData::new(3, tag, 0, 30_000, false);
                    let mut bad = raw(&header);
                    (bad[1], bad[3]) = (2, 24);
                    bad[4..8].copy_from_slice(&30_028_u32.to_le_bytes());
                    bad.resize(30_028, 0x55);
                    host.say(&bad).await;
                    let header = nvme_tcp::pdu::H2cData::new(3, tag, 30_000, 20_000, true);
                    host.outbox.push_with_data(&header, value(20_000, 4));
                    host.flush().await;
                }
                other => panic!("{other:?}"),
            }
        }
        // Transient Transport Error, which may be tried again.
        assert_eq!(
            codes,
            BTreeMap::from([(1, (0x22, false)), (2, (0, false)), (3, (0x22, false))])
        );
        assert_eq!(*host.shelf.came.borrow(), [2], "the queue never gets damaged data");
    });
}

#[test]
fn the_queue_refuses_oversized_and_keyed_data_pointers() {
    run(async {
        let mut host = Host::open(1, rough(1_000), Digests::NONE, 4).await;
        let store = crate::host::store(1, (2 << 20) + 1);
        let keyed = DataPointer::Other(0x40);
        for (id, command) in [
            (1, store),
            (2, store.with_data_pointer(keyed)),
            (3, crate::host::retrieve(3, 5).with_data_pointer(keyed)),
        ] {
            host.outbox.push(&CapsuleCmd::new(command.with_command_id(id)));
        }
        host.flush().await;
        let results = host.collect(3, &BTreeMap::new()).await;
        let codes: Vec<u16> =
            results.done.values().map(|entry| entry.unwrap().status().0).collect();
        assert_eq!(codes, [0x02, 0x11, 0x11]);
    });
}
