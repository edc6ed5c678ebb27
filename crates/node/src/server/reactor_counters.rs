//! The counters of a reactor at an instant, and how a thread outside of reactors requests them.

use super::connections::{ConnectionCensus, Connections};
use super::device_census::DeviceCensus;
use super::device_set::DeviceSet;
use super::movable_connections::MovableConnections;
use super::report::Moved;
use super::resp::RespClients;
use base::Nanos;
use clock::LockWaits;
use controller::{AssociationCensus, Work};
use reactor::{NoticeEnd, NoticeWriter};
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
    /// Connections that it has given to other reactors.
    pub(super) connections_moved: u64,
    /// Open connections of Redis clients.
    pub(super) redis_clients: u64,
    /// Its waits for locks that other reactors held.
    pub(super) lock_waits: LockWaits,
    /// Work on its devices for hosts, by the numbers of the reactors that did it.
    pub(super) work: BTreeMap<u32, Work>,
}

/// A request to a reactor: a function that takes the census.
pub(super) type Question = Box<dyn FnOnce(ReactorCounters) + Send>;

/// The request slots of all reactors. A new request replaces one that the reactor has not read.
pub(super) type Questions = Vec<NoticeWriter<Question>>;

/// Answers `questions` about the calling reactor for as long as it runs.
pub(super) fn answer(
    questions: NoticeEnd<Question>,
    device_set: Option<Rc<DeviceSet>>,
    connections: &Connections,
    redis: &Rc<RespClients>,
    movable: &MovableConnections,
) {
    let (questions, movable) = (questions.open(), movable.clone());
    let (connections, redis) = (connections.clone(), redis.clone());
    clock::spawn(async move {
        loop {
            let question = questions.read().await;
            let mut census =
                ReactorCounters { now: clock::host_now(), ..ReactorCounters::default() };
            if let Some(device_set) = &device_set {
                census.devices = device_set.census();
                census.associations = device_set.subsystems.census();
                census.work = device_set.subsystems.work_by_reactor();
                census.connections = device_set.virtual_machines();
            }
            census.connections.extend(connections.census());
            census.moved = connections.moved();
            census.connections_moved = movable.migrations().left;
            census.redis_clients = redis.count();
            census.lock_waits = clock::lock_waits();
            question(census);
        }
    });
}
