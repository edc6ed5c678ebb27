//! What is read for many pages of an extent, and when.

use crate::landing::{block, small_page};
use crate::rig::{EXTENTS, formatted, label, on};
use crate::slow::{Counts, READ, Slow};
use clock::{Class, now};
use drive::Durability;
use media::{Media, PageId, Span};

/// Pages have two units of 512 bytes each: up to 4 KiB between two are eight.
#[test]
fn pages_that_lie_close_together_are_one_read_and_all_reads_go_on_side_by_side() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Capacitor, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        for page in (0..40).map(|number| 2 * number) {
            let at = PageId { extent, page };
            drive.append(at, small_page(), Class::HostWrite).await.unwrap();
        }
        *slow.counts() = Counts::default();
        slow.slow_reads_down();
        let (began, numbers) = (now(), [0, 10, 22, 24, 60]);
        let spans = numbers.map(|page| Span { at: PageId { extent, page }, units: 2 });
        let pages = drive.read_all(spans.to_vec(), Class::Gc).await;
        assert_eq!(slow.counts().reads, [(block(0), 12), (block(22), 4), (block(60), 2)]);
        assert_eq!(now() - began, READ);
        assert_eq!(pages.len(), numbers.len());
        assert!(pages.into_iter().all(|page| page.unwrap().spare() == b"spare"));
    });
}
