//! What KEYS reads where no headers are in memory.

use crate::differential::answer::Answer;
use crate::differential::generate::{Words, encoded};
use crate::differential::ours::{Client, SHAPE, failing_door};
use reactor::Reactor;

const KEYS: u64 = 4_000;
/// Pairs of an MSET, which share a page.
const SHARED: u64 = 10;
/// A header of a key of 16 bytes, and an entry of a page in its extent's summary.
const HEADER_BYTES: u64 = 48;
const ENTRY_BYTES: u64 = 16;

fn mset(first: u64) -> Vec<u8> {
    let pairs = (first..first + SHARED)
        .flat_map(|number| [format!("key:{number:012}").into_bytes(), vec![b'v'; 30]]);
    let words: Words = [b"mset".to_vec()].into_iter().chain(pairs).collect();
    encoded(&words)
}

async fn keys(client: &mut Client, pattern: &str) -> usize {
    let words: Words = vec![b"keys".to_vec(), pattern.into()];
    match client.ask(&encoded(&words), 1).await.remove(0) {
        Answer::Array(found) => found.len(),
        other => panic!("no list of keys: {other:?}"),
    }
}

/// Key by key it would be a page for each key.
#[test]
fn keys_reads_no_more_than_the_summaries() {
    Reactor::new(None).run(async {
        let (door, medium) = failing_door(1).await;
        let mut client = Client::connect(&door, 1);
        for first in (0..KEYS).step_by(usize::try_from(SHARED).expect("it is 10")) {
            client.ask(&mset(first), 1).await;
        }
        let pages = KEYS / SHARED;
        let extents = pages.div_ceil(SHAPE.pages_per_extent.into());
        assert!(extents > 1, "a full extent has its summary on the medium");
        let before = medium.read_pages();
        assert_eq!(keys(&mut client, "nosuch*").await, 0);
        let read = medium.read_pages() - before;
        let summaries = KEYS * HEADER_BYTES + pages * ENTRY_BYTES;
        let most = summaries.div_ceil(SHAPE.page_bytes.into()) + extents;
        assert!((1..=most).contains(&read), "{read} pages, {most} at most");
        assert_eq!(keys(&mut client, "key:*").await as u64, KEYS);
    });
}
