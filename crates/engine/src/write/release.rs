//! Releases dead values where they lie in host memory, before their extents are reset. The next
//! values reuse that memory while it is in the processor's cache.

use crate::format::page_view::PageView;
use crate::log::{Log, Part};
use crate::read::look_up::Found;

/// Shorter values are not worth reading their pages.
const VALUE_BYTES_MIN: u32 = 1 << 10;

impl Log {
    /// Releases the value of a record that was replaced for good. A value stays until its extent is
    /// reset if a reader may still need it, its page is being programmed, or it lies on several
    /// pages.
    pub(crate) fn release(&self, part: &mut Part<'_, '_>, found: &Found) {
        let value_len = found.header.value_len;
        let is_worth = value_len >= VALUE_BYTES_MIN
            && self.media.as_memory().is_some()
            && self.layout.fits_page(found.header.len, value_len);
        if !is_worth || self.pins.has(found.extent) || self.pins.is_victim(found.extent) {
            return;
        }
        let at = self.page_id(found.address);
        let offset = self.layout.offset(found.address);
        if self.has_landed(found.address) {
            self.release_landed(found, offset);
            return;
        }
        let mut open = part.writer.frontiers.iter_mut();
        if let Some(open) = open.find(|open| (open.extent, open.page()) == (at.extent, at.page)) {
            open.builder.release(offset);
        }
    }

    fn release_landed(&self, found: &Found, offset: usize) -> Option<()> {
        let (memory, at) = (self.media.as_memory()?, self.page_id(found.address));
        let start = memory.with_page(at, |page| {
            let view = PageView::new(self.layout, page)?;
            Some(view.value_start(&view.header(offset)?))
        })?;
        memory.release(at, start, found.header.value_len);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ack::Ack;
    use crate::config::Config;
    use crate::store::Store;
    use crate::test_store::{SPACE, config, key, shape};
    use base::{BufPool, Nanos};
    use clock::Stage;
    use media::{ExtentId, Memory, Shape};
    use reactor::Reactor;
    use std::sync::Arc;

    const BYTES: usize = 4_096;

    /// An extent has three values, the summary and an open page.
    fn small_extents() -> Shape {
        Shape { page_bytes: 4_096, spare_bytes: 256, pages_per_extent: 5, ..shape() }
    }

    /// Stores a value under a key, and returns where its bytes are.
    async fn store_value(store: &Arc<Store>, pool: &BufPool, number: u64) -> *const u8 {
        let mut value = pool.take(BYTES);
        let place = value.as_mut().as_ptr();
        let (key, value) = (key(number), value.freeze());
        let put = store.put(SPACE, &key, &value, crate::Write::default(), store.announce());
        put.await.expect("there is room");
        // The page is programmed while this task waits.
        clock::sleep(Nanos(1), Stage::Queue).await;
        place
    }

    /// The cleaner may read them.
    #[test]
    fn a_replaced_value_of_a_victim_stays_and_one_of_another_extent_is_released() {
        Reactor::new(None).run(async {
            let ack = Ack::Buffer { bytes: 1 << 20 };
            let medium = Arc::new(Memory::new(small_extents()));
            let store = Store::format(medium, Config { ack, ..config() });
            store.create_key_space(SPACE).await.expect("there is room");
            let pool = BufPool::new(1 << 20);
            let mut places = Vec::new();
            for number in 0..4 {
                places.push(store_value(&store, &pool, number).await);
            }
            store.log.whole().begin_cleaning(ExtentId(0));
            store_value(&store, &pool, 0).await;
            store_value(&store, &pool, 3).await;
            let mut free = [pool.take(BYTES), pool.take(BYTES)];
            assert_eq!(free[0].as_mut().as_ptr(), places[3], "it was in the next extent");
            assert!(!places.contains(&free[1].as_mut().as_ptr()), "the other one stays");
            store.log.whole().give_back(ExtentId(0));
            store_value(&store, &pool, 1).await;
            assert_eq!(pool.take(BYTES).as_mut().as_ptr(), places[1]);
        });
    }
}
