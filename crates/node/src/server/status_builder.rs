//! Builds the status document from a server's facts and its reactors' counters.

use super::connections::ConnectionCensus;
use super::device_census::DeviceCensus;
use super::facts::Facts;
use super::reactor_counters::ReactorCounters;
use super::status::{
    AssociationStatus, CacheStatus, DeviceStatus, LongPollStatus, NamespaceStatus, QueueStatus,
    ReactorStatus, ScrubStatus, ServerStatus, Status, WorkStatus,
};
use super::tenant_status::TenantStatus;
use base::Nanos;
use controller::{AssociationCensus, Work};
use reactor::Remote;
use std::collections::BTreeMap;

/// Builds the status from a server's facts and its reactors' censuses.
pub(super) fn status_of(facts: &Facts, uptime: Nanos, censuses: &[ReactorCounters]) -> Status {
    let connections = censuses.iter().flat_map(|census| &census.connections);
    let connections: BTreeMap<u64, _> = connections.map(|it| (it.number, it)).collect();
    let mut devices: Vec<_> = censuses.iter().flat_map(|census| &census.devices).collect();
    devices.sort_by_key(|device| device.place);
    let associations = censuses.iter().flat_map(|census| {
        let each = census.associations.iter();
        each.map(|it| association_status(it, censuses[it.reactor as usize].now, &connections))
    });
    let in_flight = in_flight(censuses);
    let reactors = censuses.iter().zip(&facts.remotes).zip(done(censuses));
    let diverted = |remote| facts.balance.as_ref().map_or(0, |balance| balance.diverted(remote));
    let reactors = reactors.map(|((census, remote), done)| ReactorStatus {
        commands_diverted: diverted(remote),
        in_flight: census.connections.iter().filter_map(|it| in_flight.get(&it.number)).sum(),
        ..reactor_status(census, remote, done)
    });
    let tenants = facts.tenants.as_ref().map(|tenants| tenants.usage()).unwrap_or_default();
    Status {
        server: ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_ns: uptime.0,
            connections: connections.len() as u64,
            connections_refused: facts.places.refused(),
        },
        subsystems: facts.subsystems.clone(),
        devices: devices
            .into_iter()
            .map(|device| device_status(&facts.devices[device.place], device))
            .collect(),
        associations: associations.collect(),
        reactors: reactors.collect(),
        tenants: tenants.into_iter().map(TenantStatus::from).collect(),
        fairness: None,
    }
}

/// Returns the I/O commands in flight on each connection, by its number.
fn in_flight(censuses: &[ReactorCounters]) -> BTreeMap<u64, u64> {
    let associations = censuses.iter().flat_map(|census| &census.associations);
    let queues = associations.flat_map(|association| &association.queues);
    // Event requests wait on the admin queue until an event happens.
    let queues = queues.filter(|queue| queue.id > 0);
    let mut sums = BTreeMap::new();
    for queue in queues {
        // All queues of a virtual machine are of one connection.
        if let Some(connection) = queue.connection {
            *sums.entry(connection).or_default() += queue.in_flight as u64;
        }
    }
    sums
}

/// What a reactor did for its own and other reactors' devices.
#[derive(Clone, Copy, Default)]
struct Done {
    work: Work,
    redis_commands: u64,
    bytes_stored: u64,
    extents_cleaned: u64,
    records_moved: u64,
    records_entered: u64,
    table_pages_written: u64,
    bytes_scrubbed: u64,
}

/// Returns what each reactor did.
fn done(censuses: &[ReactorCounters]) -> Vec<Done> {
    let mut all = vec![Done::default(); censuses.len()];
    for (&number, &work) in censuses.iter().flat_map(|census| &census.work) {
        let done = &mut all[number as usize];
        done.work = done.work + work;
    }
    let devices = censuses.iter().enumerate();
    let devices = devices.flat_map(|(at, census)| census.devices.iter().map(move |it| (at, it)));
    for (at, device) in devices {
        // Reactors that share no device do not have numbers of their own.
        let place = |number: u32| if device.is_shared { number as usize } else { at };
        for work in &device.pairs_by_reactor {
            let done = &mut all[place(work.reactor_id)];
            done.bytes_stored += work.host_bytes;
            done.extents_cleaned += work.victims;
            done.records_moved += work.records_moved;
            done.records_entered += work.records_entered;
            done.table_pages_written += work.table_pages;
            done.bytes_scrubbed += work.scrubbed_bytes;
        }
        for (&number, &commands) in &device.redis_by_reactor {
            all[place(number)].redis_commands += commands;
        }
    }
    all
}

fn device_status(name: &str, device: &DeviceCensus) -> DeviceStatus {
    let namespaces = device.namespaces.iter().map(|namespace| NamespaceStatus {
        nsid: namespace.id,
        kind: namespace.kind.to_owned(),
        bytes: namespace.bytes,
    });
    let work = WorkStatus::from(device.work);
    let hosts = device.hosts();
    DeviceStatus {
        name: name.to_owned(),
        namespaces: namespaces.collect(),
        work,
        flash_bytes_programmed: device.programmed,
        write_amplification: device.programmed.and_then(|all| ratio(all, hosts?.written_bytes)),
        flash_bytes_read: device.read,
        read_amplification: device.read.and_then(|all| ratio(all, hosts?.read_bytes)),
        space_amplification: device.space.and_then(|it| ratio(it.taken_bytes, it.live_bytes)),
        scrub: device.scrubbed.map(ScrubStatus::from),
        cache: device.cache.map(CacheStatus::from),
        redis: device.redis.clone(),
    }
}

/// Returns `all` divided by `of`, or `None` if `of` is 0.
#[expect(clippy::cast_precision_loss, reason = "for people, for whom 53 bits are plenty")]
fn ratio(all: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| all as f64 / of as f64)
}

fn association_status(
    association: &AssociationCensus,
    now: Nanos,
    connections: &BTreeMap<u64, &ConnectionCensus>,
) -> AssociationStatus {
    let connection = |number: Option<u64>| connections.get(&number?);
    let of_queues = association.queues.iter();
    let of_queues = of_queues.filter_map(|queue| connection(queue.connection));
    let admin = association.queues.iter().find(|queue| queue.id == 0);
    let address = admin.and_then(|admin| connection(admin.connection));
    let queues = association.queues.iter().map(|queue| QueueStatus {
        id: queue.id,
        depth: queue.entries,
        in_flight: queue.in_flight as u64,
    });
    AssociationStatus {
        subsystem: association.subsystem.clone(),
        controller: association.controller,
        host: association.host.clone(),
        address: address.map(|admin| admin.host.clone()),
        connected_ns: now.0.saturating_sub(association.since.0),
        work: association.work.into(),
        memory_bytes: of_queues.map(|connection| connection.memory_bytes).sum(),
        queues: queues.collect(),
    }
}

fn reactor_status(census: &ReactorCounters, remote: &Remote, done: Done) -> ReactorStatus {
    let load = remote.load();
    ReactorStatus {
        busy_ns: load.busy.0,
        stages: load.busy_times.into(),
        idle_ns: load.idle.0,
        connections: census.connections.len() as u64,
        in_flight: 0,
        bytes_received: census.moved.received,
        bytes_sent: census.moved.sent,
        commands: WorkStatus::from(done.work).commands,
        redis_commands: done.redis_commands,
        bytes_stored: done.bytes_stored,
        extents_cleaned: done.extents_cleaned,
        records_moved: done.records_moved,
        records_entered: done.records_entered,
        table_pages_written: done.table_pages_written,
        bytes_scrubbed: done.bytes_scrubbed,
        commands_diverted: 0,
        connections_moved: census.connections_moved,
        lock_waits: census.lock_waits.count,
        lock_wait_ns: census.lock_waits.time.0,
        redis_clients: census.redis_clients,
        long_polls: remote.long_polls().into_iter().map(LongPollStatus::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use controller::QueueCensus;
    use engine::ReactorWork;

    /// A reactor with a device that has this work for each reactor, as the device numbers them.
    fn census(is_shared: bool, work: &[(u32, u64)]) -> ReactorCounters {
        let of = |&(reactor_id, bytes): &(u32, u64)| ReactorWork {
            reactor_id,
            host_bytes: bytes,
            victims: bytes + 1,
            records_moved: bytes + 2,
            records_entered: bytes + 4,
            table_pages: bytes + 5,
            scrubbed_bytes: bytes + 6,
            ..ReactorWork::default()
        };
        let device = DeviceCensus {
            place: 0,
            namespaces: Vec::new(),
            work: Work::default(),
            programmed: None,
            read: None,
            pairs: None,
            space: None,
            scrubbed: None,
            cache: None,
            redis: None,
            is_shared,
            pairs_by_reactor: work.iter().map(of).collect(),
            redis_by_reactor: work.iter().map(|(number, bytes)| (*number, bytes + 3)).collect(),
        };
        ReactorCounters { devices: vec![device], ..ReactorCounters::default() }
    }

    fn figures(done: &Done) -> [u64; 7] {
        let Done { bytes_stored, extents_cleaned, records_moved, redis_commands, .. } = *done;
        let Done { records_entered, table_pages_written, bytes_scrubbed, .. } = *done;
        let stored = [bytes_stored, extents_cleaned, records_moved];
        let others = [redis_commands, records_entered, table_pages_written, bytes_scrubbed];
        [&stored[..], &others[..]].concat().try_into().expect("seven figures")
    }

    #[test]
    fn work_on_all_devices_is_added_by_reactor() {
        let first = census(true, &[(0, 10), (2, 30)]);
        let second = census(true, &[(1, 200), (2, 300)]);
        let all = done(&[first, second, ReactorCounters::default()]);
        let all: Vec<_> = all.iter().map(figures).collect();
        let expected = [
            [10, 11, 12, 13, 14, 15, 16],
            [200, 201, 202, 203, 204, 205, 206],
            [330, 332, 334, 336, 338, 340, 342],
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn commands_in_flight_are_counted_by_connection_without_the_admin_queue() {
        let queue =
            |id, in_flight, connection| QueueCensus { id, entries: 8, in_flight, connection };
        let association = |queues| AssociationCensus {
            subsystem: String::new(),
            controller: 1,
            host: String::new(),
            reactor: 0,
            since: Nanos::ZERO,
            work: Work::default(),
            queues,
        };
        let first = association(vec![queue(0, 4, Some(10)), queue(1, 3, Some(11))]);
        let second = association(vec![queue(1, 5, Some(12)), queue(2, 1, None)]);
        let of_virtual_machine =
            [queue(0, 1, Some(13)), queue(1, 2, Some(13)), queue(2, 4, Some(13))];
        let third = association(of_virtual_machine.to_vec());
        let of = |association| ReactorCounters {
            associations: vec![association],
            ..ReactorCounters::default()
        };
        let expected = BTreeMap::from([(11, 3), (12, 5), (13, 6)]);
        assert_eq!(in_flight(&[of(first), of(second), of(third)]), expected);
    }

    #[test]
    fn work_on_a_device_that_is_not_shared_is_that_of_its_reactor() {
        let all = done(&[census(false, &[(0, 10)]), census(false, &[(0, 20)])]);
        let all: Vec<_> = all.iter().map(figures).collect();
        assert_eq!(all, [[10, 11, 12, 13, 14, 15, 16], [20, 21, 22, 23, 24, 25, 26]]);
    }
}
