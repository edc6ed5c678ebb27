//! What a device must hold.

use crate::device::client::Change;
use crate::device::host::{Host, ROOM, key, retrieve};
use base::{Buf, Key, Rng, mix};
use controller::Completion;
use engine::{KeySpaceId, Live};
use node::{Device, FaultPlan, Profile};
use spec::Status;
use std::collections::BTreeMap;

/// The value of `len` bytes that stands for version `version` of `key`, as a tag or as bytes.
pub(crate) fn value(key: &Key, version: u64, len: u32, whole: bool) -> Buf {
    let tag = mix(key.hash() ^ mix(version));
    if !whole {
        return Buf::phantom(len, tag);
    }
    let mut bytes = vec![0; len as usize];
    Rng::new(tag).fill(&mut bytes);
    Buf::copy_from(&bytes)
}

/// Keys and the versions and lengths of their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) pairs: BTreeMap<Key, (u64, u32)>,
    /// Values are bytes and not only tags.
    pub(crate) whole: bool,
}

impl Model {
    pub(crate) fn value(&self, key: &Key, version: u64, len: u32) -> Buf {
        value(key, version, len, self.whole)
    }

    pub(crate) fn apply(&mut self, key: &Key, change: Change) {
        match change {
            Change::Store { version, len } => self.pairs.insert(key.clone(), (version, len)),
            Change::Delete => self.pairs.remove(key),
        };
    }

    /// True when a retrieve's completion is of the value of `key`.
    pub(crate) fn holds(&self, key: &Key, retrieved: &Completion) -> bool {
        let Some(&(version, len)) = self.pairs.get(key) else {
            return retrieved.status == Status::KEY_DOES_NOT_EXIST;
        };
        retrieved.status == Status::SUCCESS
            && retrieved.result == u64::from(len)
            && is_same(&retrieved.data, &self.value(key, version, len))
    }

    /// Retrieves every key and compares; then compares what the device counts.
    pub(crate) async fn check(&self, device: &Device, profile: &Profile) {
        let host = Host::new(device);
        let retrieved = host.each(self.pairs.keys().map(|key| retrieve(key, ROOM))).await;
        for (key, retrieved) in self.pairs.keys().zip(&retrieved) {
            assert!(self.holds(key, retrieved), "{key:?} gave {:?}", retrieved.status);
        }
        self.check_usage(device, profile).await;
    }

    /// The device counts the sizes of exactly these pairs, in all and by extent.
    pub(crate) async fn check_usage(&self, device: &Device, profile: &Profile) {
        let store = device.store();
        let mut expected = own_record(profile).await;
        let mut sizes = BTreeMap::new();
        for (key, (_, len)) in &self.pairs {
            let size = (key.as_bytes().len(), *len);
            *sizes.entry(size).or_insert(0) += 1;
        }
        for ((key_len, len), records) in sizes {
            expected.records += records;
            expected.bytes += records * footprint(profile, key_len, len).await;
            expected.long_keys += if key_len > 16 { records } else { 0 };
        }
        assert_eq!(store.key_spaces(), [KeySpaceId(1)]);
        assert_eq!(store.usage().values, expected, "live values");
        let by_extent = store.live_by_extent().into_iter().map(|(_, live)| live);
        let sum = by_extent.sum::<Live>();
        assert_eq!(sum, expected, "live values by extent");
    }
}

/// Equal lengths, and equal bytes or tags.
pub(crate) fn is_same(one: &Buf, other: &Buf) -> bool {
    let same_content =
        || one.bytes().is_some() == other.bytes().is_some() && one.checksum() == other.checksum();
    one.len() == other.len() && (one.len() == 0 || same_content())
}

async fn blank(profile: &Profile) -> Device {
    let cells = Device::manufacture(profile, 1);
    Device::format(profile, cells, 1, FaultPlan::default())
        .await
        .expect("the device is large enough")
}

/// What is live on an empty device: the namespace keeps records of its own.
async fn own_record(profile: &Profile) -> Live {
    blank(profile).await.store().usage().values
}

/// Bytes that a record of this size stands for, wherever it is: those that it adds to a blank
/// device.
pub(crate) async fn footprint(profile: &Profile, key_len: usize, value_len: u32) -> u64 {
    let device = blank(profile).await;
    let key = key(0, key_len);
    let stored = Host::new(&device).store(&key, &value(&key, 0, value_len, false)).await;
    assert_eq!(stored.status, Status::SUCCESS);
    device.store().usage().values.bytes - own_record(profile).await.bytes
}
