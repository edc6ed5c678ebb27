//! What I/O commands are on the wire, and what becomes of answers.

use crate::peer::{
    C2H_DATA, CAPSULE_CMD, H2C_DATA, LAST, Peer, SUCCESS, Seen, data_fields, io, run, settings,
};
use base::{Buf, Key, Nanos};
use client::{IoQueue, Reads, Settings};
use controller::{Queue, Submission};
use net::End;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::{Command, Status, StoreOptions};

const BOTH: Digests = Digests { header: true, data: true };

fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

fn store(name: &[u8], value: &[u8]) -> Submission {
    let len = u32::try_from(value.len()).unwrap();
    let command = Command::store(1, name, len, StoreOptions::NONE);
    Submission::with_data(command, &key(name), Buf::copy_from(value))
}

fn retrieve(name: &[u8], room: u32) -> Submission {
    Submission::new(Command::retrieve(1, name, room), &key(name))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

/// Data pointer of a submission queue entry: length and identifier.
fn pointer(entry: &[u8]) -> (u32, u8) {
    assert_eq!(entry[24..32], [0; 8], "the offset is 0");
    (u32::from_le_bytes(*entry[32..].first_chunk().unwrap()), entry[39])
}

#[test]
fn a_short_value_goes_in_the_capsule_and_a_long_one_by_r2t() {
    run(async |network| {
        let value = bytes(8193);
        let expected = value.clone();
        let (_association, queue, playing) = io(&network, settings(), async move |peer| {
            for len in [0, 1, 5, 8192] {
                let pdu = peer.pdu().await;
                let sgl = if len == 0 { 0x5a } else { 0x01 };
                assert_eq!(pointer(pdu.entry()), (len, sgl));
                assert_eq!((pdu.entry()[0], pdu.entry()[1], pdu.entry()[4]), (1, 0x40, 1));
                assert_eq!(pdu.entry()[8..12], *b"key\0");
                assert_eq!(pdu.data, expected[..len as usize]);
                assert_eq!(pdu.u32(4), 72 + len, "PLEN");
                peer.respond(pdu.id(), 0, 0).await;
            }
            let pdu = peer.pdu().await;
            assert_eq!(pointer(pdu.entry()), (8193, 0x5a));
            assert!(pdu.data.is_empty());
            // In two parts, the second of which is more than MAXH2CDATA.
            let mut received = Vec::new();
            for (tag, offset, len) in [(7, 0, 3), (0xabcd, 3, 8190)] {
                peer.ask(pdu.id(), tag, offset, len).await;
                let mut missing = len;
                while missing > 0 {
                    let data = peer.pdu().await;
                    assert_eq!(data.kind(), H2C_DATA);
                    let part = missing.min(4096);
                    missing -= part;
                    let at = offset + len - missing - part;
                    assert_eq!(data.header[8..], data_fields(pdu.id(), tag, at, part));
                    assert_eq!(data.flags() & LAST != 0, missing == 0);
                    received.extend(data.data);
                }
            }
            assert_eq!(received, expected);
            peer.respond(pdu.id(), 0, 0x87).await;
        })
        .await;
        for len in [0, 1, 5, 8192] {
            queue.submit(store(b"key", &value[..len]));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
        }
        assert_eq!(queue.submit(store(b"key", &value)), 4);
        let completion = queue.next().await;
        assert_eq!((completion.id, completion.status), (4, Status::KEY_DOES_NOT_EXIST));
        assert!(completion.submitted < completion.completed);
        assert_eq!(completion.stages.total(), completion.latency());
        playing.end().await;
    });
}

/// Checks the host's handling of `total` bytes of data in pieces of these lengths.
fn data_comes(total: usize, pieces: &'static [usize], digests: Digests, is_elided: bool) {
    run(async |network| {
        let value = bytes(total);
        let sent = value.clone();
        let settings = Settings { digests, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async move |peer| {
            let pdu = peer.pdu().await;
            assert_eq!(pointer(pdu.entry()), (100_000, 0x5a));
            let mut at = 0;
            for &piece in pieces {
                let end = at + piece;
                let flags = match end == total {
                    true if is_elided => LAST | SUCCESS,
                    true => LAST,
                    false => 0,
                };
                peer.data(pdu.id(), u32::try_from(at).unwrap(), &sent[at..end], flags).await;
                at = end;
            }
            if !is_elided {
                peer.respond(pdu.id(), 70_000, 0).await;
            }
        })
        .await;
        queue.submit(retrieve(b"key", 100_000));
        let completion = queue.next().await;
        assert_eq!(completion.status, Status::SUCCESS);
        assert_eq!(completion.result, if is_elided { 0 } else { 70_000 });
        assert_eq!(completion.data.bytes().unwrap(), value);
        playing.end().await;
    });
}

#[test]
fn data_comes_in_one_piece_or_in_many() {
    for digests in [Digests::NONE, BOTH] {
        for is_elided in [false, true] {
            for (total, pieces) in [
                (1, &[1][..]),
                (5, &[2, 3]),
                (16_383, &[16_383]),
                (16_384, &[16_384]),
                (70_000, &[70_000]),
                (70_000, &[1, 60_000, 9_999]),
                (100_000, &[50_000, 50_000]),
            ] {
                data_comes(total, pieces, digests, is_elided);
            }
        }
    }
}

/// Stores, retrieves and stores 5 bytes. The first and the last PDU have to be padded as `expected`
/// says, the target's digest is padded as `target_pads` says.
fn odd_lengths_go(setting: Option<DataDigest>, target_pads: bool, expected: [bool; 2]) {
    run(async |network| {
        let settings = Settings { digests: BOTH, data_digest: setting, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async move |peer| {
            peer.pads.set(target_pads);
            peer.host_pads.set(expected[0]);
            let pdu = peer.pdu().await;
            peer.respond(pdu.id(), 0, 0).await;
            let pdu = peer.pdu().await;
            peer.data(pdu.id(), 0, b"value", LAST).await;
            peer.respond(pdu.id(), 5, 0).await;
            peer.host_pads.set(expected[1]);
            // In the capsule, and by an R2T.
            for _ in 0..2 {
                let pdu = peer.pdu().await;
                if pdu.data.is_empty() {
                    peer.ask(pdu.id(), 0, 0, 9_001).await;
                    for _ in 0..3 {
                        peer.pdu().await;
                    }
                }
                peer.respond(pdu.id(), 0, 0).await;
            }
        })
        .await;
        let long = bytes(9_001);
        for submission in [
            store(b"key", b"value"),
            retrieve(b"key", 9),
            store(b"key", b"value"),
            store(b"k", &long),
        ] {
            queue.submit(submission);
            let completion = queue.next().await;
            assert_eq!(completion.status, Status::SUCCESS);
            assert!([0, 5].contains(&completion.data.len()));
        }
        playing.end().await;
    });
}

#[test]
fn data_digests_are_of_the_kind_that_the_target_or_the_setting_says() {
    for target_pads in [false, true] {
        odd_lengths_go(None, target_pads, [false, target_pads]);
        odd_lengths_go(Some(DataDigest::Exact), target_pads, [false, false]);
        odd_lengths_go(Some(DataDigest::Padded), target_pads, [true, true]);
    }
}

#[test]
fn a_retrieve_without_data_returns_none() {
    run(async |network| {
        let (_association, queue, playing) = io(&network, settings(), async |peer| {
            for (result, status) in [(0, 0), (0, 0x87)] {
                let pdu = peer.pdu().await;
                peer.respond(pdu.id(), result, status).await;
            }
            // The host drops data of a command that then fails.
            let pdu = peer.pdu().await;
            peer.data(pdu.id(), 0, b"half", 0).await;
            peer.respond(pdu.id(), 0, 0x88).await;
        })
        .await;
        for status in [Status::SUCCESS, Status::KEY_DOES_NOT_EXIST, Status::UNRECOVERED_ERROR] {
            queue.submit(retrieve(b"key", 10));
            let completion = queue.next().await;
            assert_eq!((completion.status, completion.data.len()), (status, 0));
        }
        playing.end().await;
    });
}

#[test]
fn completions_come_in_the_order_in_which_they_arrive() {
    run(async |network| {
        let (_association, queue, playing) = io(&network, settings(), async |peer| {
            let mut ids = Vec::new();
            for _ in 0..5 {
                ids.push(peer.pdu().await.id());
            }
            for at in [3, 0, 4, 2, 1] {
                peer.respond(ids[at], 0, 0).await;
            }
        })
        .await;
        for _ in 0..5 {
            queue.submit(store(b"key", b"value"));
        }
        for expected in [3, 0, 4, 2, 1] {
            assert_eq!(queue.next().await.id, expected);
        }
        playing.end().await;
    });
}

#[test]
fn no_more_commands_are_outstanding_than_the_queue_has_room_for() {
    run(async |network| {
        let settings = Settings { queue_entries: 4, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async |peer| {
            let mut ids = Vec::new();
            for _ in 0..3 {
                ids.push(peer.pdu().await.id());
            }
            // The host sends the fourth only after one of them has ended.
            assert!(peer.is_quiet_for(Nanos::from_millis(10)).await);
            for _ in 3..10 {
                peer.respond(ids.remove(1), 0, 0).await;
                let id = peer.pdu().await.id();
                assert!(!ids.contains(&id), "an id is that of one command at a time");
                ids.push(id);
            }
            for id in ids {
                peer.respond(id, 0, 0).await;
            }
        })
        .await;
        assert_eq!(queue.depth(), 3);
        for _ in 0..10 {
            queue.submit(store(b"key", b"value"));
        }
        let mut numbers = Vec::new();
        for _ in 0..10 {
            numbers.push(queue.next().await.id);
        }
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..10));
        playing.end().await;
    });
}

#[test]
fn commands_of_one_turn_go_out_together() {
    run(async |network| {
        let (association, queue, playing) = io(&network, settings(), async |peer| {
            for _ in 0..20 {
                let pdu = peer.pdu().await;
                peer.respond(pdu.id(), 0, 0).await;
            }
        })
        .await;
        let before = association.counters().writes();
        for _ in 0..20 {
            queue.submit(store(b"key", b"value"));
        }
        for _ in 0..20 {
            queue.next().await;
        }
        assert_eq!(association.counters().writes() - before, 1);
        playing.end().await;
    });
}

#[test]
fn a_long_key_never_gets_to_the_target() {
    run(async |network| {
        let (_association, queue, playing) = io(&network, settings(), async |peer| {
            let pdu = peer.pdu().await;
            assert_eq!(pdu.entry()[0], 0x14);
            peer.respond(pdu.id(), 0, 0).await;
        })
        .await;
        queue.submit(store(&[7; 17], b"value"));
        assert_eq!(queue.next().await.status, Status::INVALID_FIELD);
        queue.submit(Submission::new(Command::exist(1, b"k"), &key(b"k")));
        let completion = queue.next().await;
        assert_eq!((completion.id, completion.status), (1, Status::SUCCESS));
        playing.end().await;
    });
}

#[test]
fn damaged_data_fails_its_command_alone() {
    run(async |network| {
        let settings = Settings { digests: BOTH, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async |peer| {
            let [first, second] = [peer.pdu().await.id(), peer.pdu().await.id()];
            let mut bytes = peer.bytes(C2H_DATA, LAST, data_fields(first, 0, 0, 5), b"value");
            *bytes.last_mut().unwrap() ^= 1;
            peer.write(&bytes).await;
            peer.data(second, 0, b"value", LAST).await;
            peer.respond(first, 5, 0).await;
            peer.respond(second, 5, 0).await;
            peer.left().await;
        })
        .await;
        queue.submit(retrieve(b"key", 10));
        queue.submit(retrieve(b"key", 10));
        assert_eq!(queue.next().await.status, Status::TRANSIENT_TRANSPORT_ERROR);
        assert_eq!(queue.next().await.data.bytes(), Some(&b"value"[..]));
        assert_eq!(queue.failure(), None);
        drop(queue);
        playing.end().await;
    });
}

#[test]
fn a_connection_that_ends_completes_its_commands() {
    run(async |network| {
        let settings = Settings { queue_entries: 3, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async |peer| {
            let [first, _] = [peer.pdu().await.id(), peer.pdu().await.id()];
            peer.respond(first, 0, 0).await;
            assert_eq!(peer.pdu().await.kind(), CAPSULE_CMD);
            peer.shut_down();
        })
        .await;
        for _ in 0..5 {
            queue.submit(store(b"key", b"value"));
        }
        assert_eq!(queue.next().await.status, Status::SUCCESS);
        for _ in 1..5 {
            assert_eq!(queue.next().await.status, Status::HOST_PATHING_ERROR);
        }
        assert_eq!(queue.failure().unwrap().to_string(), "the target ended the connection");
        queue.submit(store(b"key", b"value"));
        assert_eq!(
            queue.next().await.status,
            Status::HOST_PATHING_ERROR,
            "and those that come later"
        );
        playing.end().await;
    });
}

#[test]
fn a_command_that_is_not_answered_ends_the_connection() {
    run(async |network| {
        let timeout = Nanos::from_secs(3);
        let settings = Settings { timeout, ..settings() };
        let (_association, queue, playing) = io(&network, settings, async |peer| {
            let lost = peer.pdu().await.id();
            // The target still answers other commands.
            for _ in 0..3 {
                let pdu = peer.pdu().await;
                assert_ne!(pdu.id(), lost);
                peer.respond(pdu.id(), 0, 0).await;
            }
            peer.left().await;
        })
        .await;
        let started = clock::now();
        queue.submit(store(b"lost", b"value"));
        for _ in 0..3 {
            queue.submit(store(b"key", b"value"));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
        }
        let completion = queue.next().await;
        assert_eq!((completion.id, completion.status), (0, Status::HOST_PATHING_ERROR));
        assert!((timeout..Nanos(timeout.0 * 2 + 1_000_000)).contains(&(clock::now() - started)));
        assert!(queue.failure().unwrap().to_string().contains("did not answer within 3.000 s"));
        playing.end().await;
    });
}

#[test]
fn commands_are_spread_over_the_connections() {
    run(async |network| {
        let association = crate::peer::associate(&network, settings()).await;
        let seen: Seen<Vec<usize>> = Seen::default();
        let mut streams = Vec::new();
        for index in 0..3 {
            let seen = seen.clone();
            let (near, _) = crate::peer::play(&network, async move |peer: Peer| {
                peer.take(0, 4096).await;
                let connect = peer.pdu().await;
                peer.respond(connect.id(), u32::from(crate::peer::CONTROLLER), 0).await;
                for _ in 0..4 {
                    let pdu = peer.pdu().await;
                    seen.borrow_mut().push(index);
                    peer.respond(pdu.id(), 0, 0).await;
                }
            });
            streams.push(near);
        }
        let queue: IoQueue<End> = association.io_queue(streams, Reads::Pairs).await.unwrap();
        for _ in 0..12 {
            queue.submit(store(b"key", b"value"));
        }
        for _ in 0..12 {
            assert_eq!(queue.next().await.status, Status::SUCCESS);
        }
        let mut seen = seen.take();
        seen.sort_unstable();
        assert_eq!(seen, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    });
}
