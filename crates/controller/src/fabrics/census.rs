//! What there is at an instant, for whoever serves it: no host is told of another.

use crate::controller::Controller;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::port::Subsystems;
use crate::fabrics::work::Work;
use base::Nanos;
use spec::QualifiedName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A host that has connected to a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationCensus {
    /// The name of the subsystem; that of discovery is one as well.
    pub subsystem: String,
    /// The id of the host's controller, which is unique in its subsystem.
    pub controller: u16,
    /// The host's NQN, as it says itself.
    pub host: String,
    /// When it connected, by the clock of its reactor.
    pub since: Nanos,
    /// What its I/O commands have done.
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
    /// Commands that are under way. Requests for events are, until there is one.
    pub in_flight: usize,
    /// The number of its connection: see [`crate::Entrance::of_connection`].
    pub connection: Option<u64>,
}

impl Subsystems {
    /// All hosts that are connected in this reactor.
    pub fn census(&self) -> Vec<AssociationCensus> {
        let mut associations = self.discovery().all();
        associations.extend(self.all().iter().flat_map(|it| it.associations.all()));
        associations.iter().map(|association| association.census()).collect()
    }

    /// What hosts have had a device do, by all of its subsystems.
    pub fn work_of(&self, device: &Arc<Controller>) -> Work {
        let subsystems = self.of_device(device);
        subsystems.iter().fold(Work::default(), |sum, subsystem| sum + subsystem.tally.work())
    }

    /// What hosts had the devices of this reactor do that was done in it, and what tenants did, by
    /// their numbers.
    pub fn work_by_reactor(&self) -> (Work, BTreeMap<u32, Work>) {
        let (mut here, mut elsewhere) = (Work::default(), BTreeMap::<u32, Work>::new());
        for (number, tally) in self.all().iter().flat_map(|subsystem| subsystem.tally.all()) {
            let sum = number.map_or(&mut here, |number| elsewhere.entry(number).or_default());
            *sum = *sum + tally.work();
        }
        (here, elsewhere)
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
            entries: queue.bound().map_or(0, |bound| bound.terms.entries),
            in_flight: queue.in_flight(),
            connection: queue.entrance.connection(),
        });
        AssociationCensus {
            subsystem: subsystem.to_owned(),
            controller: self.id,
            host: self.host.as_str().unwrap_or_default().to_owned(),
            since: self.since,
            work: self.work.all().iter().fold(Work::default(), |sum, (_, work)| sum + work.get()),
            queues: queues.collect(),
        }
    }
}
