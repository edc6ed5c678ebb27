//! The associations, queues and counters at an instant, for the server's operator only.

use crate::controller::Controller;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::port::Subsystems;
use crate::fabrics::work::Work;
use base::Nanos;
use spec::QualifiedName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The association of a host with a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationCensus {
    /// The name of the subsystem, possibly the discovery subsystem.
    pub subsystem: String,
    /// The id of the host's controller, which is unique in its subsystem.
    pub controller: u16,
    /// The NQN that the host sent.
    pub host: String,
    /// The number of the reactor that has its admin queue.
    pub reactor: u32,
    /// Time of its Connect, by the clock of that reactor.
    pub since: Nanos,
    /// Work of its I/O commands.
    pub work: Work,
    /// Its queues, by id.
    pub queues: Vec<QueueCensus>,
}

/// A queue of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCensus {
    /// 0 for the admin queue.
    pub id: u16,
    /// Entries.
    pub entries: u16,
    /// Commands in flight, Asynchronous Event Requests included.
    pub in_flight: usize,
    /// The number of its connection: see [`crate::Entrance::of_connection`].
    pub connection: Option<u64>,
}

impl Subsystems {
    /// Returns all associations.
    pub fn census(&self) -> Vec<AssociationCensus> {
        let mut associations = self.discovery().all();
        associations.extend(self.all().iter().flat_map(|it| it.associations.all()));
        associations.iter().map(|association| association.census()).collect()
    }

    /// Returns the work of hosts on a device, over all of its subsystems.
    pub fn work_of(&self, device: &Arc<Controller>) -> Work {
        let subsystems = self.of_device(device);
        subsystems.iter().fold(Work::default(), |sum, subsystem| sum + subsystem.tally.work())
    }

    /// Returns the work on all devices by the numbers of the reactors that executed it.
    pub fn work_by_reactor(&self) -> BTreeMap<u32, Work> {
        let mut sums = BTreeMap::<u32, Work>::new();
        for (number, tally) in self.all().iter().flat_map(|subsystem| subsystem.tally.all()) {
            let sum = sums.entry(number).or_default();
            *sum = *sum + tally.work.get();
        }
        sums
    }
}

impl Association {
    fn census(&self) -> AssociationCensus {
        let subsystem = match &self.service {
            Service::Storage(subsystem) => subsystem.nqn(),
            Service::Discovery(_) => QualifiedName::DISCOVERY,
        };
        let queues = self.queues().into_iter().map(|(id, queue)| QueueCensus {
            id,
            entries: queue.entries(),
            in_flight: queue.in_flight(),
            connection: queue.connection,
        });
        AssociationCensus {
            subsystem: subsystem.to_owned(),
            controller: self.id,
            host: self.host.as_str().unwrap_or_default().to_owned(),
            reactor: self.reactor,
            since: self.since,
            work: self.work.all().iter().fold(Work::default(), |sum, (_, work)| sum + work.get()),
            queues: queues.collect(),
        }
    }
}
