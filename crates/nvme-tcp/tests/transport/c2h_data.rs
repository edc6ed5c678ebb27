//! The data of a command comes in one `C2HData`, however much it is.

use crate::host::{Came, Host, QUICK, run, value};
use base::{KIB, MIB};
use net::Stream;
use nvme_tcp::pdu::{C2hData, CommonHeader, Digests};
use std::io::IoSliceMut;
use zerocopy::{FromBytes, IntoBytes};

fn lengths() -> [u32; 7] {
    [1, 4 * KIB, 256 * KIB, 256 * KIB + 1, 260 * KIB, 2 * MIB, 4 * MIB]
        .map(|len| u32::try_from(len).expect("4 MiB at most"))
}

#[test]
fn read_of_any_length_comes_in_one_pdu() {
    for (bits, len) in (0..8).flat_map(|bits| lengths().map(|len| (bits, len))) {
        run(async move {
            let digests = Digests { header: bits & 1 > 0, data: bits & 2 > 0 };
            let is_elided = bits & 4 > 0;
            let mut host = Host::open(1, QUICK, digests, 4).await;
            host.shelf.may_elide.set(is_elided);
            let sent = value(len, 7);
            host.shelf.values.borrow_mut().push_back(sent.clone());
            host.retrieve(5, len);
            host.flush().await;
            let Came::Data { id, offset, is_last, is_success, data } = host.next().await else {
                panic!("no C2HData");
            };
            assert_eq!((id, offset, data.len()), (5, 0, len));
            assert_eq!((is_last, is_success), (true, is_elided));
            assert!(data.bytes() == sent.bytes());
            if !is_elided {
                assert!(matches!(host.next().await, Came::Response(_)));
            }
            // It went out of its own buffer, in as many writes as the stream wanted.
            assert_eq!(host.counters.copied(), u64::from(len == 1));
            assert!(host.counters.writes() >= u64::from(len) / (64 * KIB));
        });
    }
}

#[test]
fn host_takes_266240_bytes_into_two_buffers() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let sent = value(266_240, 3);
        host.shelf.values.borrow_mut().push_back(sent.clone());
        host.retrieve(5, sent.len());
        host.flush().await;
        // The header, then the data into its buffer, without a read of the next PDU.
        let mut header = [0; size_of::<C2hData>()];
        let (mut first, mut second) = (vec![0; 262_144], vec![0; 4_096]);
        fill(&*host.stream, &mut header, &mut []).await;
        let expected = C2hData::new(5, 0, 266_240, CommonHeader::LAST);
        assert_eq!(header[8..], expected.as_bytes()[8..]);
        let common = CommonHeader::read_from_bytes(&header[..8]).unwrap();
        assert_eq!((common.flags(), common.len()), (CommonHeader::LAST, 24 + 266_240));
        fill(&*host.stream, &mut first, &mut second).await;
        assert!(*sent.bytes().unwrap() == [first, second].concat());
        assert!(matches!(host.next().await, Came::Response(_)));
    });
}

/// Fills one buffer after the other.
async fn fill(stream: &impl Stream, first: &mut [u8], second: &mut [u8]) {
    let (mut at, middle) = (0, first.len());
    while at < middle + second.len() {
        let rest = &mut first[at.min(middle)..];
        let behind = at.saturating_sub(middle);
        let mut parts = [IoSliceMut::new(rest), IoSliceMut::new(&mut second[behind..])];
        let parts = if parts[0].is_empty() { &mut parts[1..] } else { &mut parts[..] };
        match stream.try_read(parts).expect("the stream is whole") {
            Some(0) => panic!("the target has left"),
            Some(read) => at += read,
            None => stream.readable().await,
        }
    }
}
