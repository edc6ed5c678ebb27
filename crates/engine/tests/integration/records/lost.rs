use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, check_counts, churn, content, fill_and_clear, format, found, key, reopen, shape,
    store_one, value,
};
use clock::{UnixMillis, set_unix_now, unix_now};
use engine::{Ack, Error, Store, Write};
use media::{ExtentId, PageId};
use reactor::Reactor;
use std::sync::Arc;

/// Returns a value of a page, of a part of one, or of several.
fn stored(number: u64) -> base::Buf {
    value([700, 200, 2_500][usize::try_from(number % 3).expect("below 3")], number)
}

const KEYS: u64 = 60;

/// Returns the keys whose values are lost.
async fn lost(store: &Arc<Store>) -> Vec<u64> {
    let mut lost = Vec::new();
    for number in 0..KEYS {
        match store.get(SPACES[0], &key(number)).await {
            Ok(found) => assert_eq!(found.checksum(), stored(number).checksum(), "{number}"),
            Err(Error::Unrecovered) => lost.push(number),
            Err(error) => panic!("{error} for key {number}"),
        }
    }
    lost
}

/// An unreadable value does not keep its extent from being reset. Reads of its key fail until the
/// key is overwritten or deleted, also after the device was opened again.
#[test]
fn a_key_whose_value_is_lost_fails_until_it_is_written_again() {
    for pages in [&[8][..], &[9, 10, 11], &[13, 24]] {
        let medium = Arc::new(Wary::new(shape(1_024, 64)));
        let were_lost = Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            for number in 0..KEYS {
                store_one(&store, SPACES[0], number, &stored(number)).await;
            }
            let extent = ExtentId(0);
            for page in pages {
                medium.spoil(PageId { extent, page: *page });
            }
            let were_lost = lost(&store).await;
            assert!(!were_lost.is_empty(), "pages {pages:?} hold something");
            churn(&store, &medium, 60).await;
            assert_eq!(lost(&store).await, were_lost, "the same when the extent was cleaned");
            let is_used = |(id, _): &(ExtentId, _)| *id == extent;
            let used = store.live_by_extent().into_iter().find(is_used);
            assert!(used.is_none_or(|(_, live)| live.records < KEYS), "it was reset");
            for number in &were_lost {
                assert_eq!(store.exist(SPACES[0], &key(*number)).await, Ok(true));
            }
            check_counts(&store, KEYS);
            were_lost
        });
        let (first, others) = were_lost.split_first().unwrap();
        let remains = Reactor::new(None).run(async {
            let (store, medium) = reopen(&medium).await;
            assert_eq!(lost(&store).await, were_lost, "the same after opening");
            check_counts(&store, KEYS);
            store_one(&store, SPACES[0], *first, &stored(*first)).await;
            for number in others {
                store.delete(SPACES[0], &key(*number), store.announce()).await.unwrap();
                assert_eq!(found(&store, SPACES[0], *number).await, None);
            }
            assert_eq!(found(&store, SPACES[0], *first).await, content(&stored(*first)));
            check_counts(&store, KEYS - others.len() as u64);
            churn(&store, &medium, 40).await;
            medium
        });
        Reactor::new(None).run(async {
            let (store, _) = reopen(&remains).await;
            assert_eq!(found(&store, SPACES[0], *first).await, content(&stored(*first)));
            for number in others {
                assert_eq!(found(&store, SPACES[0], *number).await, None);
            }
            check_counts(&store, KEYS - others.len() as u64);
        });
    }
}

#[test]
fn a_lost_value_expires_at_its_date() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    let date = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let date = UnixMillis(unix_now().0 + 1_000);
        for number in 0..KEYS {
            let write = Write { expires: Some(date), ..Write::default() };
            let (key, value) = (key(number), stored(number));
            store.put(SPACES[0], &key, &value, write, store.announce()).await.unwrap();
        }
        medium.spoil(PageId { extent: ExtentId(0), page: 12 });
        let were_lost = lost(&store).await;
        churn(&store, &medium, 60).await;
        assert_eq!(lost(&store).await, were_lost);
        date
    });
    Reactor::new(None).run(async {
        set_unix_now(date);
        let (store, _) = reopen(&medium).await;
        for number in 0..KEYS {
            assert_eq!(found(&store, SPACES[0], number).await, None);
        }
        fill_and_clear(&store).await;
        check_counts(&store, 0);
    });
}

/// A page of the spare bytes begins with its prologue, of 24 bytes, and then the first header. One
/// flipped bit is found by the checksum, more of a header by the summary of the extent: the value
/// itself is whole, before it is cleaned as after.
#[test]
fn a_damaged_header_does_not_cost_its_value() {
    let (prologue, header) = (8 * 13, 8 * (24 + 9));
    let every_page: Vec<u32> = (0..32).collect();
    for (pages, bits) in [
        (&every_page[..], &[prologue][..]),
        (&every_page[..1], &[header]),
        (&every_page[..1], &[header, header + 40]),
    ] {
        let medium = Arc::new(Wary::new(shape(1_024, 512)));
        Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            for number in 0..KEYS {
                store_one(&store, SPACES[0], number, &stored(number)).await;
            }
            for page in pages {
                medium.flip(*page, bits);
            }
            assert_eq!(lost(&store).await, [0; 0], "{bits:?}");
            churn(&store, &medium, 60).await;
            assert_eq!(lost(&store).await, [0; 0], "{bits:?}, cleaned");
        });
    }
}
