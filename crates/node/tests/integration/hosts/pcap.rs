//! A capture file of what went over the wire, as if it had been Ethernet (the classic format of
//! libpcap; RFC 791, RFC 9293).

use crate::hosts::tape::{ConnectionInfo, Recorded};
use crate::hosts::world::PORT;
use std::collections::BTreeMap;

/// Bytes of a segment at most, as on an Ethernet of 1,500 bytes.
const SEGMENT_MAX: usize = 1_460;

const HOST: [u8; 4] = [192, 0, 2, 1];
const TARGET: [u8; 4] = [192, 0, 2, 7];

/// Flags of TCP.
const FIN: u8 = 1;
const SYN: u8 = 1 << 1;
const PSH: u8 = 1 << 3;
const ACK: u8 = 1 << 4;

/// A file, and the number of the frame that each PDU ends with, counted from 1.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) file: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

/// Writes frames, and keeps the sequence number of each direction.
struct Writer {
    file: Vec<u8>,
    frames: usize,
    next: BTreeMap<ConnectionInfo, u32>,
}

impl Capture {
    /// Of `pdus`, each of which begins with a segment of its own.
    pub(crate) fn of(pdus: &[Recorded]) -> Self {
        let mut writer = Writer { file: header(), frames: 0, next: BTreeMap::new() };
        let mut ends = Vec::new();
        for Recorded { way, at, bytes } in pdus {
            if !writer.next.contains_key(way) {
                writer.shake_hands(*way, at.0);
            }
            let count = bytes.len().div_ceil(SEGMENT_MAX);
            for (number, segment) in (1..).zip(bytes.chunks(SEGMENT_MAX)) {
                let push = if number == count { PSH } else { 0 };
                writer.frame(*way, at.0, ACK | push, segment);
            }
            ends.push(writer.frames);
        }
        let end = pdus.last().map_or(0, |pdu| pdu.at.0);
        for way in writer.next.keys().copied().collect::<Vec<_>>() {
            writer.frame(way, end, FIN | ACK, &[]);
        }
        Self { file: writer.file, ends }
    }
}

fn header() -> Vec<u8> {
    // Nanoseconds, version 2.4, no zone, no accuracy, whole packets, Ethernet.
    let words: [u32; 6] = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 262_144, 1];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Writer {
    fn shake_hands(&mut self, way: ConnectionInfo, at: u64) {
        let host = ConnectionInfo { is_from_host: true, ..way };
        let target = ConnectionInfo { is_from_host: false, ..way };
        self.next.insert(host, 1_000);
        self.frame(host, at, SYN, &[]);
        self.next.insert(target, 2_000_000);
        self.frame(target, at, SYN | ACK, &[]);
        self.frame(host, at, ACK, &[]);
    }

    /// A frame with a segment.
    fn frame(&mut self, way: ConnectionInfo, at: u64, flags: u8, data: &[u8]) {
        let segment = self.segment(way, flags, data);
        let (source, destination) = addresses(way);
        let len = |len: usize| u16::try_from(len).expect("a packet is short").to_be_bytes();
        self.frames += 1;
        // No options, identification by the number of the frame, do not fragment, 64 hops, TCP.
        let number = u16::try_from(self.frames % 65_536).expect("below 2^16");
        let mut packet = [&[0x45, 0][..], &len(20 + segment.len())].concat();
        packet.extend_from_slice(&number.to_be_bytes());
        packet.extend_from_slice(&[0x40, 0, 64, 6, 0, 0]);
        packet.extend_from_slice(&[source, destination].concat());
        let sum = checksum(&[&packet]).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        let ethernet = [&mac(destination)[..], &mac(source), &[8, 0]].concat();
        let all = [ethernet, packet, segment].concat();
        let all_len = u32::try_from(all.len()).expect("a packet is short");
        let word = |number: u64| u32::try_from(number).expect("a session is short");
        for word in [word(at / 1_000_000_000), word(at % 1_000_000_000), all_len, all_len] {
            self.file.extend_from_slice(&word.to_le_bytes());
        }
        self.file.extend_from_slice(&all);
    }

    fn segment(&mut self, way: ConnectionInfo, flags: u8, data: &[u8]) -> Vec<u8> {
        let host_port = 40_000 + u16::try_from(way.connection).expect("a few connections");
        let (source, destination) =
            if way.is_from_host { (host_port, PORT) } else { (PORT, host_port) };
        let back = ConnectionInfo { is_from_host: !way.is_from_host, ..way };
        let acknowledged = self.next.get(&back).copied().unwrap_or(0);
        let next = self.next.get_mut(&way).expect("hands were shaken");
        let (source_ip, destination_ip) = addresses(way);
        let mut segment = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        segment.extend_from_slice(&next.to_be_bytes());
        segment.extend_from_slice(&acknowledged.to_be_bytes());
        segment.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend_from_slice(data);
        let len = u16::try_from(segment.len()).expect("a segment is short");
        let pseudo = [&source_ip[..], &destination_ip, &[0, 6], &len.to_be_bytes()].concat();
        let sum = checksum(&[&pseudo, &segment]).to_be_bytes();
        segment[16..18].copy_from_slice(&sum);
        let counted = data.len() + usize::from(flags & (SYN | FIN) != 0);
        *next = next.wrapping_add(u32::try_from(counted).expect("a segment is short"));
        segment
    }
}

fn addresses(way: ConnectionInfo) -> ([u8; 4], [u8; 4]) {
    if way.is_from_host { (HOST, TARGET) } else { (TARGET, HOST) }
}

/// A locally administered address.
fn mac(address: [u8; 4]) -> [u8; 6] {
    let [a, b, c, d] = address;
    [2, 0, a, b, c, d]
}

/// The checksum of the Internet (RFC 1071). All parts but the last have even lengths.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |bytes: &[u8]| u32::from(bytes[0]) << 8 | u32::from(*bytes.get(1).unwrap_or(&0));
    let mut sum: u32 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("it was folded")
}

#[test]
fn the_checksum_is_that_of_the_standard() {
    // RFC 1071, section 3: the sum of these is ddf2.
    assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
}
