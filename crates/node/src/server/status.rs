//! What a server is doing, as one document.

use super::census::{Census, DeviceCensus};
use super::connections::ConnectionCensus;
use super::desk::Facts;
use base::Nanos;
use controller::{AssociationCensus, Work};
use engine::{CacheCounts, Scrubbed};
use media::Traffic;
use reactor::Load;
use resp::ClientCensus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a server is doing. Counters only grow; rates are the differences of two of these over the
/// difference of their `uptime_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The server.
    pub server: ServerStatus,
    /// What hosts can connect to.
    pub subsystems: Vec<SubsystemStatus>,
    /// The devices, in the order of the server's list.
    pub devices: Vec<DeviceStatus>,
    /// The hosts that are connected.
    pub associations: Vec<AssociationStatus>,
    /// The threads that do it all, those of devices first.
    pub reactors: Vec<ReactorStatus>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Of the program.
    pub version: String,
    /// For how long it has been serving, by its own clock.
    pub uptime_ns: u64,
    /// Connections that there are.
    pub connections: u64,
    /// Connections that were closed at once because there were as many as may be.
    pub connections_refused: u64,
}

/// A subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubsystemStatus {
    /// Its name.
    pub nqn: String,
    /// That of its device.
    pub device: String,
}

/// What I/O commands did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStatus {
    /// All that the device executed.
    pub commands: u64,
    /// Those that read data.
    pub reads: u64,
    /// Those that wrote data.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// What the server calls it.
    pub name: String,
    /// Its namespaces, by id.
    pub namespaces: Vec<NamespaceStatus>,
    /// What all hosts have had it do, by all of its subsystems.
    #[serde(flatten)]
    pub work: WorkStatus,
    /// Bytes of data programmed into its flash, or written to its disk; none where it has neither.
    pub flash_bytes_programmed: Option<u64>,
    /// The same for each byte that hosts wrote; none before they have, nor where Redis clients
    /// have a part in it that is not counted, as of emulated flash.
    pub write_amplification: Option<f64>,
    /// Bytes of data read from its flash or disk, for whatever reason; none where it has neither.
    #[serde(default)]
    pub flash_bytes_read: Option<u64>,
    /// The same for each byte that hosts read; none before they have.
    #[serde(default)]
    pub read_amplification: Option<f64>,
    /// Bytes of extents in use for each byte of live pairs, headers and padding included; none but
    /// for a disk with more of them than an extent has.
    #[serde(default)]
    pub space_amplification: Option<f64>,
    /// What reading all of it in the background has come to; none but for a disk.
    #[serde(default)]
    pub scrub: Option<ScrubStatus>,
    /// What its cache of values has done; none but for a disk with one.
    #[serde(default)]
    pub cache: Option<CacheStatus>,
    /// Its clients of the Redis protocol; none where they have no door.
    #[serde(default)]
    pub redis: Option<RedisStatus>,
}

/// A cache of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Values that were returned from memory.
    pub hits: u64,
    /// Values that were not there.
    pub misses: u64,
    /// Memory that values take.
    pub bytes: u64,
}

impl From<CacheCounts> for CacheStatus {
    fn from(CacheCounts { hits, misses, bytes }: CacheCounts) -> Self {
        Self { hits, misses, bytes }
    }
}

/// Clients of the Redis protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedisStatus {
    /// Those that there are.
    pub clients: u64,
    /// Those that have come, of these too.
    pub connections: u64,
    /// Commands that were executed.
    pub commands: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// Bytes that went.
    pub bytes_sent: u64,
    /// Connections for which there was no place.
    #[serde(default)]
    pub refused: u64,
    /// Connections that were closed because a request took too much memory.
    #[serde(default)]
    pub query_overruns: u64,
    /// Connections that were closed because too many bytes waited for the client.
    #[serde(default)]
    pub output_overruns: u64,
    /// At most 100 of those that there are, the busiest of the last seconds first.
    #[serde(default)]
    pub busiest: Vec<ClientStatus>,
}

/// A client of the Redis protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Which it is of all that there ever were.
    pub id: u64,
    /// From where it came.
    pub address: String,
    /// What it calls itself.
    pub name: String,
    /// The user that it is; nothing before that is known.
    pub user: String,
    /// The database that it has selected.
    pub database: u16,
    /// For how long it has been connected.
    pub connected_ns: u64,
    /// Commands that were executed since.
    pub commands: u64,
    /// Bytes of a request that is not whole, and of answers that it has not read.
    pub buffered_bytes: u64,
}

impl From<ClientCensus> for ClientStatus {
    fn from(client: ClientCensus) -> Self {
        let ClientCensus { id, address, name, user, database, connected, .. } = client;
        Self {
            id,
            address,
            name,
            user,
            database,
            connected_ns: connected.0,
            commands: client.commands,
            buffered_bytes: client.buffered_bytes,
        }
    }
}

/// What reading a disk in the background has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// How often all was read, also before the server started.
    pub passes: u64,
    /// Bytes read since the server started.
    pub bytes: u64,
    /// Damaged pages that were found since.
    pub damaged: u64,
    /// The extent that is being read.
    pub extent: u32,
}

impl From<Scrubbed> for ScrubStatus {
    fn from(Scrubbed { passes, bytes, damaged, extent }: Scrubbed) -> Self {
        Self { passes, bytes, damaged, extent }
    }
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceStatus {
    /// Its id.
    pub nsid: u32,
    /// `kv`, `block` or `zoned`.
    pub kind: String,
    /// Bytes that hosts can put into it. All of pairs share what they have.
    pub bytes: u64,
}

/// A host that has connected to a subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssociationStatus {
    /// The name of the subsystem.
    pub subsystem: String,
    /// The id of the host's controller in it.
    pub controller: u16,
    /// The host's NQN, as it says itself.
    pub host: String,
    /// From where its admin queue came; none when that connection has just gone.
    pub address: Option<String>,
    /// For how long it has been connected.
    pub connected_ns: u64,
    /// What its I/O commands have done since.
    #[serde(flatten)]
    pub work: WorkStatus,
    /// Bytes that its commands of 16 KiB and more move now, on all of its connections: what the
    /// limit of the memory of each is about.
    pub memory_bytes: u64,
    /// Its queues, by id.
    pub queues: Vec<QueueStatus>,
}

/// A queue, which is a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// 0 for the admin queue.
    pub id: u16,
    /// Its entries.
    pub depth: u16,
    /// Commands that are under way, requests for events among them.
    pub in_flight: u64,
}

/// A reactor: a thread of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactorStatus {
    /// For how long it had something to do.
    pub busy_ns: u64,
    /// For how long it had not.
    pub idle_ns: u64,
    /// Connections that it has now.
    pub connections: u64,
    /// Bytes that came by those and others.
    pub bytes_received: u64,
    /// Bytes that went.
    pub bytes_sent: u64,
    /// I/O commands that devices executed in it.
    #[serde(default)]
    pub commands: u64,
}

impl Status {
    /// Of a server about which this is known, and whose reactors say this of themselves.
    pub(super) fn of(facts: &Facts, uptime: Nanos, censuses: &[Census]) -> Self {
        let connections = censuses.iter().flat_map(|census| &census.connections);
        let connections: BTreeMap<u64, _> = connections.map(|it| (it.number, *it)).collect();
        let mut devices: Vec<_> = censuses.iter().flat_map(|census| &census.devices).collect();
        devices.sort_by_key(|device| device.place);
        let associations = censuses.iter().flat_map(|census| {
            let each = census.associations.iter();
            each.map(|it| AssociationStatus::of(it, census.now, &connections))
        });
        let loads = facts.remotes.iter().map(reactor::Remote::load);
        let reactors = censuses.iter().zip(loads).zip(executed(censuses));
        let reactors = reactors.map(|((census, load), work)| ReactorStatus::of(census, load, work));
        Self {
            server: ServerStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_ns: uptime.0,
                connections: connections.len() as u64,
                connections_refused: facts.places.refused(),
            },
            subsystems: facts.subsystems.clone(),
            devices: devices
                .into_iter()
                .map(|device| DeviceStatus::of(&facts.devices[device.place], device))
                .collect(),
            associations: associations.collect(),
            reactors: reactors.collect(),
        }
    }
}

/// What each reactor executed, of its own devices and of others'.
fn executed(censuses: &[Census]) -> Vec<Work> {
    let mut all: Vec<Work> = censuses.iter().map(|census| census.work.0).collect();
    for (&number, &work) in censuses.iter().flat_map(|census| &census.work.1) {
        all[number as usize] = all[number as usize] + work;
    }
    all
}

impl From<Work> for WorkStatus {
    fn from(work: Work) -> Self {
        let Work { reads, writes, others, bytes_read, bytes_written } = work;
        Self { commands: reads + writes + others, reads, writes, bytes_read, bytes_written }
    }
}

impl DeviceStatus {
    fn of(name: &str, device: &DeviceCensus) -> Self {
        let namespaces = device.namespaces.iter().map(|namespace| NamespaceStatus {
            nsid: namespace.id,
            kind: namespace.kind.to_owned(),
            bytes: namespace.bytes,
        });
        let work = WorkStatus::from(device.work);
        let hosts = device.hosts();
        Self {
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
}

impl DeviceCensus {
    /// What hosts moved of its data; none where Redis clients have a part in it that nobody counts.
    fn hosts(&self) -> Option<Traffic> {
        let (read_bytes, written_bytes) = (self.work.bytes_read, self.work.bytes_written);
        let is_alone = self.redis.as_ref().is_none_or(|redis| redis.commands == 0);
        let by_nvme = is_alone.then_some(Traffic { read_bytes, written_bytes });
        self.pairs.or(by_nvme)
    }
}

/// How many of `all` there are for each of `of`; none where there are none of these.
#[expect(clippy::cast_precision_loss, reason = "for people, for whom 53 bits are plenty")]
fn ratio(all: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| all as f64 / of as f64)
}

impl AssociationStatus {
    fn of(
        association: &AssociationCensus,
        now: Nanos,
        connections: &BTreeMap<u64, ConnectionCensus>,
    ) -> Self {
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
        Self {
            subsystem: association.subsystem.clone(),
            controller: association.controller,
            host: association.host.clone(),
            address: address.map(|admin| admin.host.to_string()),
            connected_ns: now.0.saturating_sub(association.since.0),
            work: association.work.into(),
            memory_bytes: of_queues.map(|connection| connection.memory_bytes).sum(),
            queues: queues.collect(),
        }
    }
}

impl ReactorStatus {
    fn of(census: &Census, load: Load, work: Work) -> Self {
        Self {
            busy_ns: load.busy.0,
            idle_ns: load.idle.0,
            connections: census.connections.len() as u64,
            bytes_received: census.moved.received,
            bytes_sent: census.moved.sent,
            commands: WorkStatus::from(work).commands,
        }
    }
}
