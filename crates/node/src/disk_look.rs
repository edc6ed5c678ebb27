use crate::disk_drive::{DiskError, DiskOptions, config};
use clock::Group;
use drive::{Damage, DriveInfo, Medium};
use engine::{Recovery, Store};
use media::{Blocks, PageId};
use std::sync::Arc;

/// A drive of pairs, opened for reading only from the blocks of a disk or a file.
#[derive(Debug)]
pub struct DiskLook {
    store: Arc<Store>,
    medium: Arc<Medium>,
    recovery: Recovery,
}

impl DiskLook {
    /// Opens the drive on `blocks`. Runs inside a reactor that serves them.
    pub async fn open(blocks: Arc<dyn Blocks>) -> Result<Self, DiskError> {
        let medium = Arc::new(Medium::look(blocks).await?);
        let config = config(&medium.info(), DiskOptions::default(), Group::new());
        let (store, recovery) = Store::look(medium.clone(), config).await?;
        Ok(Self { store, medium, recovery })
    }

    /// Returns the store of the drive's pairs, for reading only.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the content of the superblock.
    pub fn info(&self) -> DriveInfo {
        self.medium.info()
    }

    /// Returns the cost of opening it.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Returns the number of keys of hosts and Redis clients. A hash or a sorted set is one key.
    pub fn pairs(&self) -> u64 {
        let spaces = self.store.key_spaces();
        let named = spaces.into_iter().filter(|space| !resp::is_internal(*space));
        named.filter_map(|space| self.store.key_count(space).ok()).sum()
    }

    /// Returns the damage outside of pages and their records.
    pub async fn damage(&self) -> Result<Vec<Damage>, DiskError> {
        Ok(self.medium.damage().await.map_err(engine::Error::from)?)
    }

    /// Returns the byte offset of a page on the blocks.
    pub fn byte_of(&self, at: PageId) -> u64 {
        self.medium.byte_of(at)
    }
}
