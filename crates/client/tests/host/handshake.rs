//! How a host connects, and what it makes of refusals.

use crate::peer::{
    CONTROLLER, H2C_TERM_REQ, LAST, NQN, Peer, Seen, associate, fail, host, identity, play, run,
    settings,
};
use base::Nanos;
use client::{Association, Error, Reads, Settings};
use nvme_tcp::framing::Fault;
use nvme_tcp::pdu::{Digests, FatalError};
use spec::{QualifiedName, Status};

/// A submission queue entry of zeros but for `parts`, each at its offset.
fn entry(parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    for (offset, part) in parts {
        bytes[*offset..*offset + part.len()].copy_from_slice(part);
    }
    bytes
}

/// Answers a host's commands up to its Identify. Records their entries without command ids.
async fn admit(peer: &Peer, seen: &Seen<Vec<Vec<u8>>>) {
    let request = peer.take(0, 4096).await;
    seen.borrow_mut().push(request);
    for at in 0.. {
        let pdu = peer.pdu().await;
        let id = pdu.id();
        let mut bytes = pdu.entry().to_vec();
        bytes[2..4].fill(0);
        bytes.extend(&pdu.data);
        seen.borrow_mut().push(bytes);
        match at {
            0 => peer.respond(id, CONTROLLER.into(), 0).await,
            1 => {
                let mut fields = [0; 16];
                fields[..8].copy_from_slice(&(1023_u64 | 1 << 43).to_le_bytes());
                fields[12..14].copy_from_slice(&id.to_le_bytes());
                peer.send(5, 0, fields, &[]).await;
            }
            // The second answer says that the controller is not ready yet.
            2 | 3 => peer.respond(id, 0, 0).await,
            4 => peer.respond(id, 1, 0).await,
            _ => {
                peer.data(id, 0, &identity(), LAST).await;
                return peer.respond(id, 0, 0).await;
            }
        }
    }
}

#[test]
fn a_host_connects_with_the_specifications_bytes() {
    run(async |network| {
        let seen = Seen::default();
        let log = seen.clone();
        let (near, playing) = play(&network, async move |peer: Peer| admit(&peer, &log).await);
        let keep_alive = Nanos::from_secs(5);
        let settings = Settings { keep_alive, ..settings() };
        let association = Association::connect(settings, near).await.unwrap();
        playing.end().await;
        assert_eq!(association.controller().controller_id.get(), CONTROLLER);
        assert_eq!(association.in_capsule_max(), 8192);
        let seen = seen.take();
        // TCP 1.1, ICReq: HPDA 0, DGST 0, MAXR2T 0 (one at a time).
        let mut request = vec![0; 128];
        request[..8].copy_from_slice(&[0, 0, 128, 0, 128, 0, 0, 0]);
        assert_eq!(seen[0], request);
        // Base 2.1, Connect command: 32 entries, KATO 5000, 1,024 bytes in the capsule.
        let connect = entry(&[
            (0, &[0x7f, 0x40]),
            (4, &[1]),
            (32, &[0x00, 0x04, 0, 0, 0, 0, 0, 0x01]),
            (44, &[31]),
            (48, &[0x88, 0x13]),
        ]);
        assert_eq!(seen[1][..64], connect);
        let data = &seen[1][64..];
        assert_eq!(data.len(), 1024);
        assert_eq!(data[..16], *b"0123456789abcdef");
        assert_eq!(data[16..18], [0xff, 0xff]);
        assert!(data[256..].starts_with(NQN.as_bytes()), "SUBNQN");
        assert!(data[512..].starts_with(host().name.as_bytes()), "HOSTNQN");
        // Property Get CAP of 8 bytes; Set CC to 460061h; Get CSTS until it is ready.
        let nothing: (usize, &[u8]) = (39, &[0x5a]);
        let property =
            |parts: &[(usize, &[u8])]| entry(&[&[(0, &[0x7f, 0x40][..]), nothing], parts].concat());
        assert_eq!(seen[2], property(&[(4, &[4]), (40, &[1])]));
        assert_eq!(seen[3], property(&[(44, &[0x14]), (48, &[0x61, 0, 0x46])]));
        let status = property(&[(4, &[4]), (44, &[0x1c])]);
        assert_eq!((&seen[4], &seen[5]), (&status, &status));
        // Identify CNS 01h of 4,096 bytes by transport SGL.
        let sgl: (usize, &[u8]) = (32, &[0x00, 0x10, 0, 0, 0, 0, 0, 0x5a]);
        assert_eq!(seen[6], entry(&[(0, &[0x06, 0x40]), sgl, (40, &[1])]));
        assert_eq!(seen.len(), 7);
    });
}

#[test]
fn an_io_queue_connects_without_flow_control_unless_it_is_asked_for() {
    for flow_control in [false, true] {
        run(async |network| {
            let settings = Settings { flow_control, queue_entries: 16, ..settings() };
            let association = associate(&network, settings).await;
            let (near, playing) = play(&network, async move |peer| {
                peer.take(0, 4096).await;
                let connect = peer.pdu().await;
                // Queue 1, 16 entries, CATTR bit 2, no KATO; the controller of the association.
                let attributes = if flow_control { 0 } else { 4 };
                assert_eq!(connect.entry()[42..52], [1, 0, 15, 0, attributes, 0, 0, 0, 0, 0]);
                assert_eq!(connect.data[16..18], CONTROLLER.to_le_bytes());
                peer.respond(connect.id(), CONTROLLER.into(), 0).await;
                peer.left().await;
            });
            let queue = association.io_queue(vec![near], Reads::Pairs).await.unwrap();
            assert_eq!(queue.depth(), 15);
            drop(queue);
            playing.end().await;
        });
    }
}

#[test]
fn no_more_queues_are_made_than_the_controller_has() {
    run(async |network| {
        let association = associate(&network, settings()).await;
        let streams = (0..9).map(|index| {
            let (near, _) = play(&network, async move |peer| {
                if index < 4 {
                    peer.take(0, 4096).await;
                    let connect = peer.pdu().await;
                    assert_eq!(connect.entry()[42], index + 1, "QID");
                    peer.respond(connect.id(), CONTROLLER.into(), 0).await;
                }
                peer.left().await;
            });
            near
        });
        let queue = association.io_queue(streams.collect(), Reads::Pairs).await.unwrap();
        assert_eq!(format!("{queue:?}"), "IoQueue on 4 connections");
        assert_eq!(queue.depth(), 4 * 127);
    });
}

/// Answers the Connect with this result and status, and returns the host's error.
fn connect_fails(result: u32, status: u16) -> Error {
    run(async |network| {
        fail(&network, settings(), async move |peer| {
            peer.take(0, 4096).await;
            let connect = peer.pdu().await;
            peer.respond(connect.id(), result, status).await;
            peer.left().await;
        })
        .await
    })
}

#[test]
fn a_refused_connect_is_told_by_its_reason() {
    // Base 2.1, Connect response: IATTR 1 is of the data, in which SUBNQN is at 256.
    let other = |status| Error::Status { command: "Connect".to_owned(), status };
    for (result, status, expected) in [
        (0x0001_0100, 0x182, Error::UnknownSubsystem(NQN.to_owned())),
        (0x0000_002a, 0x182, other(Status::CONNECT_INVALID_PARAMETERS)),
        (0, 0x181, Error::Busy),
        (0, 0x184, Error::HostNotAllowed(host().name)),
        (0, 0x180, other(Status::CONNECT_INCOMPATIBLE_FORMAT)),
        (0x0002_0001, 0, Error::AuthenticationRequired),
    ] {
        assert_eq!(connect_fails(result, status), expected);
    }
}

#[test]
fn a_target_with_other_digests_is_refused() {
    run(async |network| {
        let settings = Settings { digests: Digests { header: true, data: true }, ..settings() };
        for digests in 0..3 {
            let error = fail(&network, settings.clone(), async move |peer| {
                assert_eq!(peer.take(digests, 4096).await[11], 3, "DGST of the ICReq");
                peer.left().await;
            });
            assert_eq!(error.await, Error::Digests);
        }
    });
}

#[test]
fn an_icresp_that_is_wrong_is_answered_by_a_termination() {
    // TCP 1.1, ICResp: PFV at 8, CPDA at 10, MAXH2CDATA at 12, which is 4,096 or more.
    for (at, bytes, error, information) in [
        (8, &[1, 0][..], FatalError::UNSUPPORTED_PARAMETER, 8),
        (10, &[32], FatalError::INVALID_HEADER_FIELD, 10),
        (12, &[0xfc, 0x0f, 0, 0], FatalError::INVALID_HEADER_FIELD, 12),
        (12, &[0x02, 0x10, 0, 0], FatalError::INVALID_HEADER_FIELD, 12),
        (0, &[2], FatalError::INVALID_HEADER_FIELD, 0),
        (0, &[5, 0, 24, 0, 24], FatalError::SEQUENCE, 0),
    ] {
        run(async |network| {
            let found = fail(&network, settings(), async move |peer| {
                peer.read(128).await;
                let mut response = [0; 128];
                response[..8].copy_from_slice(&[1, 0, 128, 0, 128, 0, 0, 0]);
                response[13] = 0x10;
                response[at..at + bytes.len()].copy_from_slice(bytes);
                peer.write(&response).await;
                let termination = peer.pdu().await;
                assert_eq!(termination.kind(), H2C_TERM_REQ);
                assert_eq!((termination.u16(8), termination.u32(10)), (error.0, information));
                let sent = &response[..termination.data.len()];
                assert_eq!(termination.data, sent, "it repeats the header");
                peer.left().await;
            });
            assert_eq!(found.await, Error::Fault(Fault { error, information }));
        });
    }
}

#[test]
fn a_target_that_says_why_it_ends_the_connection_is_heard() {
    run(async |network| {
        let error = fail(&network, settings(), async |peer| {
            peer.read(128).await;
            // TCP 1.1, C2HTermReq: FES 2, FEI 7.
            let mut bytes = [0; 24];
            bytes[..11].copy_from_slice(&[3, 0, 24, 0, 24, 0, 0, 0, 2, 0, 7]);
            peer.write(&bytes).await;
            peer.left().await;
        });
        let (error_code, information) = (FatalError::SEQUENCE, 7);
        assert_eq!(error.await, Error::Terminated { error: error_code, information });
    });
}

#[test]
fn a_connection_to_a_closed_or_silent_target_ends() {
    run(async |network| {
        let error = fail(&network, settings(), async |peer| {
            peer.read(128).await;
            peer.shut_down();
        });
        assert_eq!(error.await, Error::Ended);
        let timeout = Nanos::from_secs(3);
        let settings = Settings { timeout, ..settings() };
        let started = clock::now();
        let error = fail(&network, settings.clone(), async |peer| {
            peer.read(128).await;
            peer.left().await;
        });
        assert_eq!(error.await, Error::Silent(timeout));
        assert!(clock::now() - started < Nanos::from_secs(7));
        let error = fail(&network, settings, async |peer| {
            peer.take(0, 4096).await;
            peer.pdu().await;
            peer.left().await;
        });
        assert_eq!(error.await, Error::Silent(timeout), "a Connect that is not answered");
    });
}

/// Answers each command of an admin queue with the next of `results`, and returns the host's error.
fn properties_fail(results: &'static [u64]) -> Error {
    run(async |network| {
        fail(&network, settings(), async move |peer| {
            peer.take(0, 4096).await;
            for result in results {
                let id = peer.pdu().await.id();
                let mut fields = [0; 16];
                fields[..8].copy_from_slice(&result.to_le_bytes());
                fields[12..14].copy_from_slice(&id.to_le_bytes());
                peer.send(5, 0, fields, &[]).await;
            }
            peer.left().await;
        })
        .await
    })
}

#[test]
fn a_controller_that_cannot_be_used_is_told_by_its_reason() {
    // Connect, CAP with bit 37 or 43, CC, CSTS.
    assert_eq!(properties_fail(&[1, 1 << 37]), Error::NoCommandSets);
    assert_eq!(properties_fail(&[1, 1 << 43, 0, 0b10]), Error::Failed);
}

#[test]
fn a_controller_that_is_another_one_is_refused() {
    run(async |network| {
        let mut identity = identity();
        identity[78] ^= 7;
        let error = fail(&network, settings(), |peer| peer.administer(0, identity)).await;
        let said = CONTROLLER ^ 7;
        assert_eq!(error, Error::OtherController { found: CONTROLLER, said });
    });
}

#[test]
fn a_controller_that_is_never_ready_is_given_up() {
    run(async |network| {
        let started = clock::now();
        let (near, _) = play(&network, async |peer: Peer| {
            peer.take(0, 4096).await;
            for at in 0.. {
                let id = peer.pdu().await.id();
                let mut fields = [0; 16];
                // CAP.TO: 4 times 500 ms.
                let capabilities: u64 = 1023 | 1 << 43 | 4 << 24;
                fields[..8].copy_from_slice(&[0, capabilities, 0, 0][at.min(3)].to_le_bytes());
                fields[12..14].copy_from_slice(&id.to_le_bytes());
                peer.send(5, 0, fields, &[]).await;
            }
        });
        let error = Association::connect(settings(), near).await.unwrap_err();
        assert_eq!(error, Error::NotReady(Nanos::from_secs(2)));
        let took = clock::now() - started;
        assert!(took > Nanos::from_secs(2) && took < Nanos::from_millis(2_100), "{took}");
    });
}

#[test]
fn a_discovery_subsystem_needs_no_command_sets_and_no_keep_alive() {
    run(async |network| {
        let settings = Settings {
            subsystem: QualifiedName::DISCOVERY.to_owned(),
            keep_alive: Nanos::from_secs(5),
            ..settings()
        };
        let (near, playing) = play(&network, async |peer: Peer| {
            peer.take(0, 4096).await;
            let connect = peer.pdu().await;
            assert_eq!(connect.entry()[48..52], [0; 4], "KATO");
            peer.respond(connect.id(), CONTROLLER.into(), 0).await;
            let get = peer.pdu().await;
            peer.respond(get.id(), 1023, 0).await;
            let set = peer.pdu().await;
            assert_eq!(set.entry()[48..52], [0x01, 0, 0x46, 0], "CC with CSS 000b");
            peer.respond(set.id(), 0, 0).await;
            let get = peer.pdu().await;
            peer.respond(get.id(), 1, 0).await;
            let identify = peer.pdu().await;
            peer.data(identify.id(), 0, &identity(), LAST).await;
            peer.respond(identify.id(), 0, 0).await;
            peer.left().await;
        });
        let association = Association::connect(settings, near).await.unwrap();
        drop(association);
        playing.end().await;
    });
}

#[test]
fn a_host_shuts_the_controller_down_before_it_disconnects() {
    run(async |network| {
        let seen: Seen<Vec<Vec<u8>>> = Seen::default();
        let log = seen.clone();
        let (near, playing) = play(&network, async move |peer: Peer| {
            admit(&peer, &log).await;
            let set = peer.pdu().await;
            // SHN 01b: 464061h.
            assert_eq!(set.entry()[48..52], [0x61, 0x40, 0x46, 0]);
            peer.respond(set.id(), 0, 0).await;
            for status in [0b0101, 0b1001] {
                let get = peer.pdu().await;
                peer.respond(get.id(), status, 0).await;
            }
            peer.left().await;
        });
        let association = Association::connect(settings(), near).await.unwrap();
        association.shut_down().await.unwrap();
        playing.end().await;
    });
}
