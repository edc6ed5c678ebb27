use crate::disk_drive::{DiskError, DiskOptions, config};
use clock::Group;
use engine::{Recovery, Store};
use media::{Blocks, Damage, DriveInfo, FramesOnBlocks, PageId};
use std::sync::Arc;

/// A drive of pairs as it would be opened from the blocks of a disk or a file, of which none is
/// written.
#[derive(Debug)]
pub struct DiskLook {
    store: Arc<Store>,
    medium: Arc<FramesOnBlocks>,
    recovery: Recovery,
}

impl DiskLook {
    /// The drive on `blocks`. Runs inside a reactor that serves them.
    pub async fn open(blocks: Arc<dyn Blocks>) -> Result<Self, DiskError> {
        let medium = Arc::new(FramesOnBlocks::look(blocks).await?);
        let config = config(&medium.info(), DiskOptions::default(), Group::new());
        let (store, recovery) = Store::look(medium.clone(), config).await?;
        Ok(Self { store, medium, recovery })
    }

    /// The store of its pairs, of which nothing may be changed.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// What the superblock says.
    pub fn info(&self) -> DriveInfo {
        self.medium.info()
    }

    /// What opening it took, and would take.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Keys that hosts and Redis clients name. A hash or a sorted set is one.
    pub fn pairs(&self) -> u64 {
        let spaces = self.store.key_spaces();
        let named = spaces.into_iter().filter(|space| !resp::is_internal(*space));
        named.filter_map(|space| self.store.key_count(space).ok()).sum()
    }

    /// What is damaged beside pages and what is on them.
    pub async fn damage(&self) -> Result<Vec<Damage>, DiskError> {
        Ok(self.medium.damage().await.map_err(engine::Error::from)?)
    }

    /// The byte of the blocks at which a page begins.
    pub fn byte_of(&self, at: PageId) -> u64 {
        self.medium.byte_of(at)
    }
}
