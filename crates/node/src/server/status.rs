//! The status document of a server.

use super::tenant_status::TenantStatus;
use clock::{BusyStage, BusyTimes};
use controller::Work;
use engine::{CacheCounts, Scrubbed};
use reactor::LongPolls;
use resp::ClientCensus;
use serde::{Deserialize, Serialize};

/// The status of a server. Counters only grow: divide the difference of two by the difference of
/// their `uptime_ns` to get a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The server.
    pub server: ServerStatus,
    /// The subsystems for hosts.
    pub subsystems: Vec<SubsystemStatus>,
    /// The devices, in the order of the server's list.
    pub devices: Vec<DeviceStatus>,
    /// The connected hosts.
    pub associations: Vec<AssociationStatus>,
    /// The reactors, those with devices first.
    pub reactors: Vec<ReactorStatus>,
    /// The tenants, in the order of the server's list; none if it has none.
    #[serde(default)]
    pub tenants: Vec<TenantStatus>,
    /// Jain's fairness index of the tenants since an earlier status, a second ago or more: see
    /// [`fairness`](crate::server::fairness). Absent if no tenant had requests.
    #[serde(default)]
    pub fairness: Option<f64>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Version of the program.
    pub version: String,
    /// Time since its start, by its own clock.
    pub uptime_ns: u64,
    /// Open connections.
    pub connections: u64,
    /// Connections closed at once because no slot was free.
    pub connections_refused: u64,
}

/// A subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubsystemStatus {
    /// Its name.
    pub nqn: String,
    /// The name of its device.
    pub device: String,
}

/// Counters of I/O commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStatus {
    /// All executed commands.
    pub commands: u64,
    /// Commands that read data.
    pub reads: u64,
    /// Commands that wrote data.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Its name in the server.
    pub name: String,
    /// Its namespaces, by id.
    pub namespaces: Vec<NamespaceStatus>,
    /// Work for all hosts, over all of its subsystems.
    #[serde(flatten)]
    pub work: WorkStatus,
    /// Data bytes programmed into its flash or written to its disk; absent without either.
    pub flash_bytes_programmed: Option<u64>,
    /// Those bytes for each byte that hosts wrote. Absent before the first write, and if Redis
    /// clients wrote bytes that are not counted, as on emulated flash.
    pub write_amplification: Option<f64>,
    /// Data bytes read from its flash or disk, for any reason; absent without either.
    #[serde(default)]
    pub flash_bytes_read: Option<u64>,
    /// Those bytes for each byte that hosts read; absent before the first read.
    #[serde(default)]
    pub read_amplification: Option<f64>,
    /// Bytes of extents in use for each byte of live pairs, headers and padding included. Only for
    /// a disk with more than an extent of pairs.
    #[serde(default)]
    pub space_amplification: Option<f64>,
    /// Progress of scrubbing; for a disk only.
    #[serde(default)]
    pub scrub: Option<ScrubStatus>,
    /// Counters of its value cache; for a disk with a cache only.
    #[serde(default)]
    pub cache: Option<CacheStatus>,
    /// Its Redis clients; absent without a Redis service.
    #[serde(default)]
    pub redis: Option<RedisStatus>,
}

/// A cache of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Reads answered from the cache.
    pub hits: u64,
    /// Reads of values that were not in the cache.
    pub misses: u64,
    /// Memory of cached values.
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
    /// Connected clients.
    pub clients: u64,
    /// Clients connected since the start, these included.
    pub connections: u64,
    /// Commands that were executed.
    pub commands: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// Bytes that went.
    pub bytes_sent: u64,
    /// Connections refused because no slot was free.
    #[serde(default)]
    pub refused: u64,
    /// Connections closed because a request exceeded the memory limit.
    #[serde(default)]
    pub query_overruns: u64,
    /// Connections closed because unread replies exceeded the limit.
    #[serde(default)]
    pub output_overruns: u64,
    /// At most 100 connected clients, the busiest of the last seconds first.
    #[serde(default)]
    pub busiest: Vec<ClientStatus>,
}

/// A client of the Redis protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its number, unique in the server's life.
    pub id: u64,
    /// Its address.
    pub address: String,
    /// The name that it has set.
    pub name: String,
    /// Its user; empty before authentication.
    pub user: String,
    /// Its selected database.
    pub database: u16,
    /// Time since it connected.
    pub connected_ns: u64,
    /// Commands that were executed since.
    pub commands: u64,
    /// Bytes of a partial request and of unread replies.
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

/// Progress of scrubbing a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// Complete passes over the disk, also before the server started.
    pub passes: u64,
    /// Bytes read since the server started.
    pub bytes: u64,
    /// Damaged pages found since the server started.
    pub damaged: u64,
    /// The extent being read.
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
    /// Its capacity in bytes. Namespaces of pairs share theirs.
    pub bytes: u64,
}

/// The association of a host with a subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssociationStatus {
    /// The name of the subsystem.
    pub subsystem: String,
    /// The id of the host's controller in it.
    pub controller: u16,
    /// The NQN that the host sent.
    pub host: String,
    /// The host's address on its admin queue, or the path of a virtual machine's socket; absent if
    /// that connection has just closed.
    pub address: Option<String>,
    /// Time since it connected.
    pub connected_ns: u64,
    /// Work of its I/O commands since then.
    #[serde(flatten)]
    pub work: WorkStatus,
    /// Bytes in flight of its commands of 16 KiB and more, over all connections. The memory limit
    /// applies to each connection.
    pub memory_bytes: u64,
    /// Its queues, by id.
    pub queues: Vec<QueueStatus>,
}

/// A queue, which is a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// 0 for the admin queue.
    pub id: u16,
    /// Number of entries.
    pub depth: u16,
    /// Commands in flight, Asynchronous Event Requests included.
    pub in_flight: u64,
}

/// A reactor: a thread of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactorStatus {
    /// Time with work to do.
    pub busy_ns: u64,
    /// The same time by stage: the stages add up to `busy_ns`.
    #[serde(default)]
    pub stages: StagesStatus,
    /// Time without work.
    pub idle_ns: u64,
    /// Open connections.
    pub connections: u64,
    /// I/O commands in flight on these connections.
    #[serde(default)]
    pub in_flight: u64,
    /// Bytes received on all connections, closed ones included.
    pub bytes_received: u64,
    /// Bytes that went.
    pub bytes_sent: u64,
    /// I/O commands that devices executed in it.
    #[serde(default)]
    pub commands: u64,
    /// Commands of Redis clients that it executed.
    #[serde(default)]
    pub redis_commands: u64,
    /// Bytes of keys and values that it stored on key-value devices, for hosts and Redis clients.
    #[serde(default)]
    pub bytes_stored: u64,
    /// Extents of these devices that it cleaned.
    #[serde(default)]
    pub extents_cleaned: u64,
    /// Records that it moved to clean extents.
    #[serde(default)]
    pub records_moved: u64,
    /// Records of a drive that it compared with the index, when the drive was opened.
    #[serde(default)]
    pub records_entered: u64,
    /// Pages that it wrote of the index and of checkpoints of these devices.
    #[serde(default)]
    pub table_pages_written: u64,
    /// Bytes of drives that it read and checked to scrub them.
    #[serde(default)]
    pub bytes_scrubbed: u64,
    /// Commands of its connections that the balancer had other reactors execute.
    #[serde(default)]
    pub commands_diverted: u64,
    /// Open connections that it has given to other reactors.
    #[serde(default)]
    pub connections_moved: u64,
    /// Locks that it found taken by another reactor.
    #[serde(default)]
    pub lock_waits: u64,
    /// Time that it waited for these locks: a part of `busy_ns`.
    #[serde(default)]
    pub lock_wait_ns: u64,
    /// Open connections of Redis clients whose commands it executes.
    #[serde(default)]
    pub redis_clients: u64,
    /// Polls that took more than 100 us of the thread's CPU time, by the names of their tasks.
    #[serde(default)]
    pub long_polls: Vec<LongPollStatus>,
}

/// The busy time of a reactor by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagesStatus {
    /// Reading, parsing and admitting requests of NVMe hosts and Redis clients.
    pub receive_ns: u64,
    /// Executing commands, those of other reactors included.
    pub kv_ns: u64,
    /// Giving I/O to the kernel.
    pub submit_ns: u64,
    /// Taking completions and messages, and sending replies.
    pub complete_ns: u64,
    /// All other work.
    pub background_ns: u64,
}

impl StagesStatus {
    /// Returns each stage's name, and its time in nanoseconds.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("receive", self.receive_ns),
            ("kv", self.kv_ns),
            ("submit", self.submit_ns),
            ("complete", self.complete_ns),
            ("background", self.background_ns),
        ]
    }
}

impl From<BusyTimes> for StagesStatus {
    fn from(times: BusyTimes) -> Self {
        let of = |stage| times.of(stage).0;
        Self {
            receive_ns: of(BusyStage::Receive),
            kv_ns: of(BusyStage::Kv),
            submit_ns: of(BusyStage::Submit),
            complete_ns: of(BusyStage::Complete),
            background_ns: of(BusyStage::Background),
        }
    }
}

/// The long polls of tasks of one name. Other tasks of the reactor wait for the end of a poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPollStatus {
    /// The name: the kind of the tasks, `reactor` for work between polls, or `other`.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// CPU time of the longest.
    pub longest_ns: u64,
    /// CPU time of all of them.
    pub total_ns: u64,
}

impl From<LongPolls> for LongPollStatus {
    fn from(LongPolls { name, count, longest, total }: LongPolls) -> Self {
        Self { name: name.to_owned(), count, longest_ns: longest.0, total_ns: total.0 }
    }
}

impl From<Work> for WorkStatus {
    fn from(work: Work) -> Self {
        let Work { reads, writes, others, bytes_read, bytes_written } = work;
        Self { commands: reads + writes + others, reads, writes, bytes_read, bytes_written }
    }
}
