use super::drive::{Drive, Space};
use super::status::RedisStatus;
use controller::{Subsystems, Work};
use engine::{CacheCounts, ReactorWork, Scrubbed};
use media::Traffic;
use spec::CommandSet;
use std::collections::BTreeMap;

/// The counters of a device at an instant.
#[derive(Debug)]
pub(super) struct DeviceCensus {
    /// Index in the server's list.
    pub(super) place: usize,
    pub(super) namespaces: Vec<NamespaceCensus>,
    pub(super) work: Work,
    /// Bytes programmed, if it has flash or a disk.
    pub(super) programmed: Option<u64>,
    pub(super) read: Option<u64>,
    /// Bytes that hosts and Redis clients moved on a disk.
    pub(super) pairs: Option<Traffic>,
    pub(super) space: Option<Space>,
    pub(super) scrubbed: Option<Scrubbed>,
    pub(super) cache: Option<CacheCounts>,
    pub(super) redis: Option<RedisStatus>,
    /// Whether other reactors may use it. If not, all its work is of the reactor that has it.
    pub(super) is_shared: bool,
    /// Work of each reactor on its pairs.
    pub(super) pairs_by_reactor: Vec<ReactorWork>,
    /// Commands of Redis clients that each reactor executed, by its number.
    pub(super) redis_by_reactor: BTreeMap<u32, u64>,
}

#[derive(Debug)]
pub(super) struct NamespaceCensus {
    pub(super) id: u32,
    pub(super) kind: &'static str,
    pub(super) bytes: u64,
}

impl DeviceCensus {
    pub(super) fn of(place: usize, drive: &Drive, subsystems: &Subsystems) -> Self {
        let controller = drive.controller();
        let ids = controller.namespace_ids().into_iter();
        let namespaces = ids.filter_map(|id| {
            let namespace = controller.namespace(id)?;
            let kind = match namespace.command_set() {
                CommandSet::KEY_VALUE => "kv",
                CommandSet::ZONED => "zoned",
                _ => "block",
            };
            Some(NamespaceCensus { id, kind, bytes: namespace.capacity_bytes() })
        });
        Self {
            place,
            namespaces: namespaces.collect(),
            work: subsystems.work_of(controller),
            programmed: drive.programmed_bytes(),
            read: drive.read_bytes(),
            pairs: drive.pairs_traffic(),
            space: drive.space(),
            scrubbed: drive.scrubbed(),
            cache: drive.cache_counts(),
            redis: None,
            is_shared: drive.is_shared(),
            pairs_by_reactor: drive.pairs_by_reactor(),
            redis_by_reactor: BTreeMap::new(),
        }
    }

    /// Returns the bytes that hosts moved. `None` if Redis clients ran commands and the device does
    /// not count the bytes of pairs.
    pub(super) fn hosts(&self) -> Option<Traffic> {
        let (read_bytes, written_bytes) = (self.work.bytes_read, self.work.bytes_written);
        let is_alone = self.redis.as_ref().is_none_or(|redis| redis.commands == 0);
        let by_nvme = is_alone.then_some(Traffic { read_bytes, written_bytes });
        self.pairs.or(by_nvme)
    }
}
