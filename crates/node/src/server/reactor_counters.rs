//! The counters of a reactor at an instant, and how a thread outside of reactors requests them.

use super::connections::{ConnectionCensus, Connections};
use super::device_set::DeviceSet;
use super::drive::{Drive, Space};
use super::report::Moved;
use super::status::RedisStatus;
use base::Nanos;
use controller::{AssociationCensus, Subsystems, Work};
use engine::{CacheCounts, Scrubbed};
use media::Traffic;
use reactor::{NoticeEnd, NoticeWriter};
use spec::CommandSet;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The counters of a reactor. It updates its own counters without synchronization, and collects
/// them only on request.
#[derive(Debug, Default)]
pub(super) struct ReactorCounters {
    /// The time of the census, by the reactor's clock.
    pub(super) now: Nanos,
    pub(super) devices: Vec<DeviceCensus>,
    pub(super) associations: Vec<AssociationCensus>,
    pub(super) connections: Vec<ConnectionCensus>,
    pub(super) moved: Moved,
    /// Work of this device for hosts: in this reactor, and in others by their numbers.
    pub(super) work: (Work, BTreeMap<u32, Work>),
}

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
        }
    }
}

/// A request to a reactor: a function that takes the census.
pub(super) type Question = Box<dyn FnOnce(ReactorCounters) + Send>;

/// The request slots of all reactors. A new request replaces one that the reactor has not read.
pub(super) type Questions = Vec<NoticeWriter<Question>>;

/// Answers `questions` about the calling reactor for as long as it runs.
pub(super) fn answer(
    questions: NoticeEnd<Question>,
    device_set: Option<Rc<DeviceSet>>,
    connections: Option<Connections>,
) {
    let questions = questions.open();
    clock::spawn(async move {
        loop {
            let question = questions.read().await;
            let mut census =
                ReactorCounters { now: clock::host_now(), ..ReactorCounters::default() };
            if let Some(device_set) = &device_set {
                census.devices = device_set.census();
                census.associations = device_set.subsystems.census();
                census.work = device_set.subsystems.work_by_reactor();
            }
            if let Some(connections) = &connections {
                census.connections = connections.census();
                census.moved = connections.moved();
            }
            question(census);
        }
    });
}
