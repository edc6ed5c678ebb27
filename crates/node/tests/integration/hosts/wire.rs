//! Every PDU of the sessions, decoded by tshark and by the codec: both find the same.

use crate::hosts::codec::{Codec, Fields};
use crate::hosts::fields::FIELDS;
use crate::hosts::line::{Ids, Line};
use crate::hosts::linux::{self, V6_1, V6_12, V7_2};
use crate::hosts::pcap::Capture;
use crate::hosts::pdu::{Digests, H2C_DATA, LAST, encode};
use crate::hosts::tape::{Recorded, Tape};
use crate::hosts::tshark::{Frame, decode};
use crate::hosts::world::record;
use crate::hosts::{mooncake, own, spdk, xnvme};
use nvme_tcp::pdu::PduType;
use std::collections::{BTreeMap, BTreeSet};

/// Types of PDUs that every session of a host has.
const OF_A_SESSION: [PduType; 7] = [
    PduType::IC_REQ,
    PduType::IC_RESP,
    PduType::CAPSULE_CMD,
    PduType::CAPSULE_RESP,
    PduType::H2C_DATA,
    PduType::C2H_DATA,
    PduType::R2T,
];

/// A frame, and what tshark and the codec do not agree on in it.
type Difference = (usize, String);

/// Compares what tshark finds in `written` with what the codec finds in `read`, if there is a
/// tshark.
fn differences(written: &[Recorded], read: &[Recorded]) -> Option<Vec<Difference>> {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let path = folder.path().join("session.pcap");
    let Capture { file, ends } = Capture::of(written);
    std::fs::write(&path, file).expect("there is room for a file");
    let frames = decode(path.as_os_str(), &FIELDS)?;
    let mut differences = Vec::new();
    let shown = frames.iter().filter(|frame| frame.fields.contains_key("nvme-tcp.type"));
    let count = shown.count();
    if count != written.len() {
        differences.push((0, format!("tshark finds {count} PDUs in place of {}", written.len())));
    }
    let mut codec = Codec::default();
    let mut expected: BTreeMap<_, _> =
        ends.into_iter().zip(read.iter().map(|pdu| codec.read(pdu))).collect();
    for (number, frame) in (1..).zip(&frames) {
        let expected = expected.remove(&number).unwrap_or_default();
        let in_frame = compare_frame(frame, &expected);
        differences.extend(in_frame.into_iter().map(|difference| (number, difference)));
    }
    Some(differences)
}

fn compare_frame(frame: &Frame, expected: &Fields) -> Vec<String> {
    let mut differences = Vec::new();
    // tshark 4.0 fails in the middle of the response to Get Features of Arbitration.
    let is_tsharks_own = |complaint: &String| complaint.contains("Unregistered hf");
    let is_cut = frame.complaint.as_ref().is_some_and(is_tsharks_own);
    differences.extend(frame.complaint.clone().filter(|_| !is_cut));
    for (field, value) in expected {
        assert!(FIELDS.contains(field), "{field} is asked for");
        let found = frame.fields.get(*field);
        if found != Some(value) && !(is_cut && found.is_none()) {
            differences.push(format!("{field} is {value:#x} for the codec, {found:x?} for tshark"));
        }
    }
    differences
}

/// Compares a session, which has PDUs of all `kinds`.
#[track_caller]
fn compare(tape: &Tape, kinds: &[PduType]) {
    let pdus = tape.pdus();
    let found: BTreeSet<u8> = pdus.iter().map(|pdu| pdu.bytes[0]).collect();
    assert_eq!(found, kinds.iter().map(|kind| kind.0).collect(), "types of PDUs");
    if let Some(differences) = differences(&pdus, &pdus) {
        let few = &differences[..differences.len().min(20)];
        assert!(differences.is_empty(), "{} differences: {few:#?}", differences.len());
    }
}

#[test]
fn tshark_finds_in_sessions_of_linux_what_the_codec_does() {
    for linux in [V6_1, V6_12.with_digests(), V7_2.with_digests().without_flow_control()] {
        compare(&record(&async |world| linux::session(world, linux).await), &OF_A_SESSION);
    }
}

#[test]
fn tshark_finds_in_sessions_of_spdk_what_the_codec_does() {
    for digests in [Digests::NONE, Digests::HEADER, Digests::BOTH] {
        compare(&record(&async |world| spdk::session(world, digests).await), &OF_A_SESSION);
    }
}

#[test]
fn tshark_finds_in_sessions_of_xnvme_and_mooncake_what_the_codec_does() {
    let without_long_values: Vec<_> = OF_A_SESSION
        .into_iter()
        .filter(|kind| ![PduType::H2C_DATA, PduType::R2T].contains(kind))
        .collect();
    compare(&record(&async |world| xnvme::session(world).await), &without_long_values);
    compare(&record(&async |world| mooncake::session(world).await), &OF_A_SESSION);
}

/// Both sides of these are encoded by the codec.
#[test]
fn tshark_finds_in_sessions_of_our_own_host_what_the_codec_does() {
    for digests in [Digests::NONE, Digests::DATA, Digests::BOTH] {
        compare(&record(&async |world| own::session(world, digests).await), &OF_A_SESSION);
    }
}

#[test]
fn tshark_finds_in_a_termination_what_the_codec_does() {
    let tape = record(&async |world| {
        let mut line = Line::open(world, "a host that errs", Ids::Slots, Digests::NONE).await;
        // Four bytes of data for a transfer that was never asked for.
        let rest = [7, 0, 9, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        line.say(&encode(H2C_DATA, LAST, &rest, b"data", Digests::NONE)).await;
        let termination = line.pdu().await.expect("it is told why");
        assert_eq!(termination[0], PduType::C2H_TERM_REQ.0);
        assert_eq!(termination[8..10], [1, 0], "FES: Invalid PDU Header Field");
    });
    let kinds = [PduType::IC_REQ, PduType::IC_RESP, PduType::H2C_DATA, PduType::C2H_TERM_REQ];
    compare(&tape, &kinds);
}

/// A bit that is not as it was written is found wherever a digest covers it.
#[test]
fn tshark_finds_damage() {
    let tape = record(&async |world| own::session(world, Digests::BOTH).await);
    let pdus = tape.pdus();
    let mut damaged = pdus.clone();
    let places = [
        (PduType::CAPSULE_CMD, 72),
        (PduType::C2H_DATA, 128),
        (PduType::H2C_DATA, 28),
        (PduType::R2T, 23),
        (PduType::CAPSULE_RESP, 9),
    ];
    let numbers = places.map(|(kind, at)| flip(&mut damaged, kind, at));
    let Some(differences) = differences(&damaged, &damaged) else { return };
    let ends = Capture::of(&pdus).ends;
    for (number, place) in numbers.iter().zip(places) {
        let is_found = differences.iter().any(|(frame, _)| *frame == ends[*number]);
        assert!(is_found, "{place:?}: {differences:#?}");
    }
}

/// What the codec would read wrong is found, without any digest.
#[test]
fn tshark_finds_what_the_codec_reads_wrong() {
    let tape = record(&async |world| own::session(world, Digests::NONE).await);
    let pdus = tape.pdus();
    let ends = Capture::of(&pdus).ends;
    for (kind, places) in [
        (PduType::IC_REQ, &[3, 10, 11, 12][..]),
        (PduType::IC_RESP, &[10, 11, 13]),
        // A Connect: PLEN, length of the SGL, queue and its size, keep alive, controller.
        (PduType::CAPSULE_CMD, &[4, 40, 50, 52, 56, 72 + 16]),
        (PduType::CAPSULE_RESP, &[4, 8, 16, 22, 23]),
        (PduType::H2C_DATA, &[8, 10, 12, 16]),
        (PduType::C2H_DATA, &[3, 8, 12, 16]),
        (PduType::R2T, &[8, 10, 12, 16]),
    ] {
        let mut damaged = pdus.clone();
        let mut numbers = BTreeSet::new();
        for place in places {
            numbers.insert(flip(&mut damaged, kind, *place));
        }
        let Some(differences) = differences(&pdus, &damaged) else { return };
        let number = *numbers.first().expect("there are places");
        let found = differences.iter().filter(|(frame, _)| *frame == ends[number]).count();
        assert_eq!(found, places.len(), "{kind:?}: {differences:#?}");
    }
}

/// Flips a bit of byte `at` of the first PDU of type `kind`, and says which PDU that is.
fn flip(pdus: &mut [Recorded], kind: PduType, at: usize) -> usize {
    let number = pdus.iter().position(|pdu| pdu.bytes[0] == kind.0).expect("there is one");
    pdus[number].bytes[at] ^= 1 << 1;
    number
}
