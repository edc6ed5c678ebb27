//! Data digests of hosts that pad data to a multiple of 4 bytes, and of those that do not.

use crate::crc::crc32c;
use crate::host::{Came, Host, rough, run, value};
use base::Buf;
use net::Stream;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::Status;
use std::collections::BTreeMap;
use std::io::IoSliceMut;

const DATA: Digests = Digests { header: false, data: true };

/// Bytes of a `C2HData` header: data follows at once, for the host asks for no other alignment.
const HEADER: usize = 24;

async fn read(stream: &impl Stream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match stream.try_read(&mut [IoSliceMut::new(&mut bytes[filled..])]).expect("it is whole") {
            Some(0) => panic!("the target has left"),
            Some(read) => filled += read,
            None => stream.readable().await,
        }
    }
    bytes
}

/// Has `data` returned, and gives its digest as it comes.
async fn digest_of(host: &mut Host, data: &Buf) -> u32 {
    host.shelf.values.borrow_mut().clear();
    host.shelf.values.borrow_mut().push_back(data.clone());
    host.retrieve(9, data.len());
    host.flush().await;
    let len = data.len() as usize;
    let pdu = read(&*host.stream, HEADER + len + 4).await;
    assert_eq!(pdu[HEADER..HEADER + len], *bytes(data));
    assert!(matches!(host.next().await, Came::Response(entry) if entry.status().is_success()));
    u32::from_le_bytes(*pdu[HEADER + len..].first_chunk().expect("4 bytes are left"))
}

fn bytes(data: &Buf) -> &[u8] {
    data.bytes().expect("it was generated")
}

fn exact(data: &Buf) -> u32 {
    crc32c(bytes(data))
}

fn padded(data: &Buf) -> u32 {
    let mut padded = bytes(data).to_vec();
    padded.resize(padded.len().next_multiple_of(4), 0);
    crc32c(&padded)
}

/// Stores `data` with a digest of the kind `way`, which has to succeed.
async fn store(host: &mut Host, data: &Buf, way: DataDigest) {
    host.outbox.set_data_digest(way);
    host.store(1, data);
    host.flush().await;
    let done = host.collect(1, &BTreeMap::from([(1, data.clone())])).await.done;
    let entry = done[&1].expect("a Store has a response");
    assert_eq!(entry.status(), Status::SUCCESS, "{} bytes, {way:?}", data.len());
}

#[test]
fn c2h_digest_is_of_the_kind_that_the_host_has_shown() {
    let ways = [DataDigest::Exact, DataDigest::Padded];
    // In the capsule, and by an R2T in one PDU and in two.
    for (way, len) in
        ways.into_iter().flat_map(|way| [5, 8_191, 20_003, 200_002].map(|len| (way, len)))
    {
        run(async move {
            let mut host = Host::open(3, rough(9_000), DATA, 4).await;
            let read = value(1_001, 8);
            assert_eq!(digest_of(&mut host, &read).await, exact(&read), "it has shown nothing");
            store(&mut host, &value(8, 1), way).await;
            assert_eq!(digest_of(&mut host, &read).await, exact(&read), "nor with whole dwords");
            store(&mut host, &value(len, 2), way).await;
            let expected = if way == DataDigest::Padded { padded(&read) } else { exact(&read) };
            assert_eq!(digest_of(&mut host, &read).await, expected);
            let other = ways[usize::from(way == ways[0])];
            store(&mut host, &value(len, 3), other).await;
            assert_eq!(digest_of(&mut host, &read).await, expected, "the first PDU counts");
            let whole = value(1_000, 9);
            assert_eq!(digest_of(&mut host, &whole).await, exact(&whole));
        });
    }
}
