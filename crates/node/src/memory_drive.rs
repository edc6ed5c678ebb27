use crate::indexes::INDEXES;
use base::MIB;
use base::limits::BLOCK_BYTES;
use clock::Group;
use controller::Controller;
use engine::{Ack, IndexConfig, KeySpaceId, SPARE_EXTENTS_MIN, Store, WorkPool};
use media::{BlocksShape, Memory, MemoryBlocks, Shape, Victims};
use std::sync::Arc;

/// Minimum size in bytes of a [`MemoryDrive`] for hosts: a few extents.
pub const MEMORY_DRIVE_BYTES_MIN: u64 = 8 * MIB;

/// The maximum of an offset in a page, so that long values have few parts.
const PAGE_BYTES: u32 = 64 << 10;
/// An extent takes several of the longest values, beside its summary.
const EXTENT_PAGES: u32 = 256;

/// Memory of the stores of each reactor besides the log: some pages of each open stream.
const BUFFER_BYTES: u64 = MIB;

/// The kind of namespace of a [`MemoryDrive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// Keys and values, with the same log and index as on flash. Uses 1/8 more memory than its size
    /// for hosts, for cleaning.
    #[default]
    Kv,
    /// Logical blocks of 4 KiB.
    Block,
}

impl MemoryKind {
    /// Returns the kind with this name, as in a profile's namespaces.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "kv" => Some(Self::Kv),
            "block" => Some(Self::Block),
            _ => None,
        }
    }
}

/// A drive in memory, without flash and delays, to measure the program alone. It starts with one
/// namespace.
#[derive(Debug)]
pub struct MemoryDrive {
    controller: Arc<Controller>,
}

impl MemoryDrive {
    /// Creates an empty drive of `size_bytes` for hosts, at least [`MEMORY_DRIVE_BYTES_MIN`], that
    /// so many `reactors` use. Runs inside the first of them.
    pub async fn format(
        kind: MemoryKind,
        size_bytes: u64,
        reactors: u32,
        seed: u64,
    ) -> Result<Self, engine::Error> {
        Self::format_among(Arc::default(), kind, size_bytes, reactors, seed).await
    }

    /// As [`Self::format`], for a drive whose work all reactors of `pool` do.
    pub async fn format_among(
        pool: Arc<WorkPool>,
        kind: MemoryKind,
        size_bytes: u64,
        reactors: u32,
        seed: u64,
    ) -> Result<Self, engine::Error> {
        assert!(size_bytes >= MEMORY_DRIVE_BYTES_MIN, "a memory drive has some extents");
        let group = Group::new();
        let namespace = match kind {
            MemoryKind::Kv => {
                controller::Namespace::Kv(store(pool, size_bytes, reactors, group, seed).await?)
            }
            MemoryKind::Block => {
                let blocks = size_bytes / u64::from(BLOCK_BYTES);
                let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks, parallelism: 1 };
                controller::Namespace::Block(Arc::new(MemoryBlocks::new(shape)))
            }
        };
        let config = controller::Config { emulation: None, has_volatile_cache: false };
        Ok(Self { controller: Controller::new(vec![namespace], config) })
    }

    /// Returns the controller, which creates queue pairs.
    pub fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// Returns the store of its namespaces of keys and values, if it has one.
    pub fn kv(&self) -> Option<&Arc<Store>> {
        self.controller.kv()
    }
}

/// Creates a store of `size_bytes` for hosts, with the key space of namespace 1.
async fn store(
    pool: Arc<WorkPool>,
    size_bytes: u64,
    reactors: u32,
    group: Group,
    seed: u64,
) -> Result<Arc<Store>, engine::Error> {
    let config = engine::Config {
        capacity_bytes: size_bytes,
        ack: Ack::Buffer { bytes: BUFFER_BYTES * u64::from(reactors) },
        victims: Victims::Greedy,
        index: INDEXES[0].1,
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors,
        group,
        seed,
    };
    let medium = Arc::new(Memory::new(shape(size_bytes, reactors)));
    let store = Store::format_among(pool, medium, config);
    store.create_key_space(KeySpaceId(1)).await?;
    Ok(store)
}

/// Returns the shape of a log's medium for `size_bytes` of records, 1/8 more for cleaning, and the
/// open extents of all reactors.
fn shape(size_bytes: u64, reactors: u32) -> Shape {
    let extent_bytes = u64::from(PAGE_BYTES) * u64::from(EXTENT_PAGES);
    let extents = (size_bytes + size_bytes / 8).div_ceil(extent_bytes);
    let extents = u32::try_from(extents).expect("memory is far smaller than 2^52 bytes");
    Shape {
        page_bytes: PAGE_BYTES,
        // As on flash: headers and keys are in the spare area, outside of the values.
        spare_bytes: PAGE_BYTES / 16,
        pages_per_extent: EXTENT_PAGES,
        extents: extents + SPARE_EXTENTS_MIN + (reactors - 1),
        parallelism: 8,
        frames: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Buf, BufPool, Key};
    use controller::Submission;
    use engine::Condition;
    use reactor::Reactor;
    use spec::{Command, Fuse, Status, StoreOptions};
    use std::collections::BTreeSet;

    /// Commands of a host in the process that need no task of their own are answered alike.
    #[test]
    fn a_queue_pair_stores_and_retrieves_and_refuses_a_lone_fused_store() {
        Reactor::new(None).run(async {
            let drive = MemoryDrive::format(MemoryKind::Kv, 64 * MIB, 1, 1).await.unwrap();
            let queue = drive.controller().queue_pair();
            let key = Key::new(b"key").unwrap();
            let store = Command::store(1, key.as_bytes(), 5, StoreOptions::NONE);
            let retrieve = Command::retrieve(1, key.as_bytes(), 100);
            let value = Buf::copy_from(b"value");
            for (command, data, status) in [
                (store.with_fuse(Fuse::Second), value.clone(), Status::INVALID_FIELD),
                (retrieve, Buf::phantom(0, 0), Status::KEY_DOES_NOT_EXIST),
                (store, value.clone(), Status::SUCCESS),
                (store, Buf::copy_from(b"long value"), Status::INVALID_FIELD),
                (retrieve.with_fuse(Fuse::Second), Buf::phantom(0, 0), Status::INVALID_FIELD),
                (retrieve, Buf::phantom(0, 0), Status::SUCCESS),
            ] {
                let id = queue.submit(Submission::with_data(command, &key, data));
                let completion = queue.next().await;
                assert_eq!((completion.id, completion.status), (id, status));
                if completion.data.len() > 0 {
                    assert_eq!(completion.data.bytes(), value.bytes());
                }
            }
            assert_eq!(queue.outstanding(), 0);
        });
    }

    /// The memory in use stays bounded by the live values, although the log appends for ever.
    #[test]
    fn overwritten_values_free_their_memory_at_once() {
        for reactors in [1, 2] {
            Reactor::new(None).run(overwrite(reactors));
        }
    }

    async fn overwrite(reactors: u32) {
        const KEYS: u64 = 100;
        let drive = MemoryDrive::format(MemoryKind::Kv, 512 * MIB, reactors, 1).await.unwrap();
        let store = drive.kv().unwrap();
        let pool = BufPool::new(1 << 30);
        let mut places = BTreeSet::new();
        for write in 0..100 * KEYS {
            let mut value = pool.take(8_192);
            value.as_mut().fill(write.to_le_bytes()[0]);
            places.insert(value.as_mut().as_ptr());
            let key = Key::new(&(base::mix(write) % KEYS).to_le_bytes()).unwrap();
            let write = Condition::Always.into();
            let value = value.freeze();
            store.put(KeySpaceId(1), &key, &value, write, store.announce()).await.unwrap();
            let found = store.get(KeySpaceId(1), &key).await.unwrap();
            assert_eq!(found.bytes(), value.bytes());
            // Pages are programmed while this task waits.
            clock::sleep(base::Nanos(1), clock::Stage::Queue).await;
        }
        let places = places.len() as u64;
        assert!(places < 2 * KEYS, "{places} values are in memory, of {reactors} reactors");
    }

    /// Writes ten times the drive's size; at most 1/100 of the drive is live at a time.
    #[test]
    fn extents_without_live_records_are_freed() {
        for reactors in [1, 2] {
            Reactor::new(None).run(fill_with_dead(reactors));
        }
    }

    async fn fill_with_dead(reactors: u32) {
        const SIZE: u64 = 512 * MIB;
        const VALUE: usize = 64 << 10;
        let drive = MemoryDrive::format(MemoryKind::Kv, SIZE, reactors, 1).await.unwrap();
        let store = drive.kv().unwrap();
        let all = store.usage().extents_free;
        let extent_bytes = PAGE_BYTES as usize * EXTENT_PAGES as usize;
        let alive = 80 * VALUE / extent_bytes;
        for round in 0..1_000_u16 {
            for key in 0..80_u32 {
                let key = Key::new(&key.to_le_bytes()).unwrap();
                let value = Buf::copy_from(&round.to_le_bytes().repeat(VALUE / 2));
                let announced = store.announce();
                let write = Condition::Always.into();
                store.put(KeySpaceId(1), &key, &value, write, announced).await.unwrap();
            }
            // The cleaner runs while this task waits.
            clock::sleep(base::Nanos(1), clock::Stage::Queue).await;
            // To ask for the usage adds what writers have counted, so this seldom asks.
            if round % 50 == 49 {
                let used = all - store.usage().extents_free;
                // Allows for the extents being filled and one that is about to be reset.
                assert!(used as usize <= alive + 4, "{used} extents in round {round}");
            }
        }
        let key = Key::new(&7_u32.to_le_bytes()).unwrap();
        let value = store.get(KeySpaceId(1), &key).await.unwrap();
        assert_eq!(value.bytes().unwrap(), 999_u16.to_le_bytes().repeat(VALUE / 2));
    }
}
