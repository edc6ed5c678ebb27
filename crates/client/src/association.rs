//! A host and a controller: the admin queue, and what it is asked.

mod discovery;
mod enable;
mod keep_alive;

use crate::connection::{Connection, Reply};
use crate::error::Error;
use crate::io_queue::IoQueue;
use crate::namespace::Namespace;
use crate::reads::Reads;
use crate::settings::Settings;
use base::{Buf, Nanos};
use controller::IN_CAPSULE_BYTES_MAX;
use net::Stream;
use nvme_tcp::framing::Counters;
use spec::{
    Capabilities, Cns, Command, CommandSet, ConnectAttributes, ConnectData, ConnectInvalid,
    ConnectReply, Feature, IDENTIFY_BYTES, IdentifyController, KvNamespace, NamespaceDescriptors,
    NamespaceList, QualifiedName, QueueCounts, Status,
};
use std::cell::Cell;
use std::rc::Rc;
use zerocopy::{FromBytes, IntoBytes};

/// Entries of an admin queue, which every controller has (Base 2.1, Discovery Log Page Entry,
/// ASQSZ).
const ADMIN_QUEUE_ENTRIES: u16 = 32;

/// Bytes of a submission queue entry: the first part of a command capsule.
const ENTRY_BYTES: u32 = 64;

/// Unit of the sizes of capsules in bytes.
const CAPSULE_UNIT: u32 = 16;

/// A host's connection to a controller of a subsystem. The target makes the controller for it.
///
/// The association ends when it is dropped or its admin connection ends; the target then ends its
/// I/O queues.
pub struct Association<S: Stream> {
    admin: Connection<S>,
    settings: Settings,
    controller_id: u16,
    capabilities: Capabilities,
    identity: Box<IdentifyController>,
    /// The number of I/O queues made so far.
    queues: Cell<u16>,
    counters: Rc<Counters>,
}

impl<S: Stream> Association<S> {
    /// Connects over `stream` to the subsystem that `settings` name, and enables the controller.
    /// Also connects to a discovery subsystem by its well-known name.
    pub async fn connect(settings: Settings, stream: S) -> Result<Self, Error> {
        let counters = Rc::default();
        let admin = Connection::open(stream, &settings, ADMIN_QUEUE_ENTRIES - 1, &counters).await?;
        let any = ConnectData::ANY_CONTROLLER;
        let reply = connect(&admin, &settings, Bound { queue: 0, controller: any }).await?;
        if reply.requires_authentication() {
            return Err(Error::AuthenticationRequired);
        }
        let is_discovery = settings.subsystem == QualifiedName::DISCOVERY;
        let capabilities = enable::enable(&admin, is_discovery).await?;
        let found = reply.controller_id();
        let identity: Box<IdentifyController> =
            Box::new(identify(&admin, Cns::CONTROLLER, 0, None).await?);
        let said = identity.controller_id.get();
        if said != found {
            return Err(Error::OtherController { found, said });
        }
        if !settings.keep_alive_is_off() && identity.keep_alive_granularity.get() != 0 {
            keep_alive::start(&admin, settings.keep_alive);
        }
        let controller_id = found;
        let queues = Cell::new(0);
        Ok(Self { admin, settings, controller_id, capabilities, identity, queues, counters })
    }

    /// Returns the controller's Identify data.
    pub fn controller(&self) -> &IdentifyController {
        &self.identity
    }

    /// Returns the controller's capabilities.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns the counters of its connections, those of I/O queues included.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns why the association ended, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.admin.failure()
    }

    /// Returns what kind of namespace `nsid` is.
    pub async fn namespace(&self, nsid: u32) -> Result<Namespace, Error> {
        // The list begins after the id in the command.
        let active: NamespaceList =
            identify(&self.admin, Cns::ACTIVE_NAMESPACES, nsid - 1, None).await?;
        if active.iter().next() != Some(nsid) {
            return Err(Error::NoNamespace(nsid));
        }
        let descriptors: NamespaceDescriptors =
            identify(&self.admin, Cns::NAMESPACE_DESCRIPTORS, nsid, None).await?;
        Ok(match descriptors.command_set().unwrap_or(CommandSet::NVM) {
            set @ CommandSet::KEY_VALUE => Namespace::Pairs(Box::new(
                identify(&self.admin, Cns::NAMESPACE_OF_SET, nsid, Some(set)).await?,
            )),
            CommandSet::NVM => Namespace::Blocks(Box::new(
                identify(&self.admin, Cns::NAMESPACE, nsid, None).await?,
            )),
            set => Namespace::Other(set),
        })
    }

    /// Returns the namespace `nsid`, which must be of the Key Value command set.
    pub async fn kv_namespace(&self, nsid: u32) -> Result<KvNamespace, Error> {
        match self.namespace(nsid).await? {
            Namespace::Pairs(namespace) => Ok(*namespace),
            other => Err(Error::NotKeyValue { nsid, set: other.command_set() }),
        }
    }

    /// Makes an I/O queue of each of `streams` and joins them to one, whose commands read as
    /// `reads` says: see [`Namespace::reads`]. Drops excess streams if the controller takes fewer
    /// queues.
    pub async fn io_queue(&self, streams: Vec<S>, reads: Reads) -> Result<IoQueue<S>, Error> {
        assert!(!streams.is_empty(), "an I/O queue needs a stream");
        let granted = self.grant(streams.len()).await?;
        let entries = self.settings.queue_entries.max(2);
        let entries = entries.min(self.capabilities.queue_entries().saturating_add(1)).max(2);
        let mut depth = entries - 1;
        if self.identity.commands_max.get() != 0 {
            depth = depth.min(self.identity.commands_max.get());
        }
        let mut connections = Vec::new();
        for stream in streams.into_iter().take(granted) {
            let connection =
                Connection::open(stream, &self.settings, depth, &self.counters).await?;
            let queue = self.queues.get() + 1;
            let bound = Bound { queue, controller: self.controller_id };
            connect_io(&connection, &self.settings, bound, entries).await?;
            connection.limit(self.in_capsule_max(), depth);
            self.queues.set(queue);
            connections.push(connection);
        }
        Ok(IoQueue::new(connections, reads))
    }

    /// Returns the most bytes of data that a command may move, if there is a limit.
    pub fn transfer_max(&self) -> Option<u64> {
        let unit = self.capabilities.page_bytes_min();
        // An exponent of 51 or more exceeds what any command can move.
        let log2 = self.identity.transfer_max_log2;
        (1..51).contains(&log2).then(|| unit << log2)
    }

    /// Returns the most bytes of data that an I/O command may bring in its capsule.
    pub fn in_capsule_max(&self) -> u32 {
        // A host need not use capsules if the data would not follow the entry at once.
        if self.identity.capsule_data_offset.get() != 0 {
            return 0;
        }
        let capsule = self.identity.command_capsule_size.get().saturating_mul(CAPSULE_UNIT);
        capsule.saturating_sub(ENTRY_BYTES).min(IN_CAPSULE_BYTES_MAX)
    }

    /// Shuts the controller down in order and ends the association. Its I/O queues must be idle.
    pub async fn shut_down(self) -> Result<(), Error> {
        enable::shut_down(&self.admin, self.capabilities, self.shutdown_limit()).await?;
        self.admin.close();
        Ok(())
    }

    /// Returns RTD3E, but at least 5 s.
    fn shutdown_limit(&self) -> Nanos {
        let latency = Nanos::from_micros(self.identity.shutdown_latency.get().into());
        latency.max(Nanos::from_secs(5))
    }

    /// Returns how many of the `wanted` I/O queues the controller still grants: at least one.
    async fn grant(&self, wanted: usize) -> Result<usize, Error> {
        let wanted = u16::try_from(wanted).unwrap_or(u16::MAX).saturating_add(self.queues.get());
        let counts = QueueCounts { submission: wanted - 1, completion: wanted - 1 };
        let command = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, counts.into());
        let result = ask(&self.admin, command, Buf::phantom(0, 0), 0).await?.result;
        let counts = QueueCounts::from(u32::from_le_bytes(low_half(result)));
        let granted = counts.submission.min(counts.completion).saturating_add(1);
        Ok(usize::from(granted.saturating_sub(self.queues.get()).max(1)))
    }
}

impl Settings {
    fn keep_alive_is_off(&self) -> bool {
        self.keep_alive == Nanos::ZERO || self.subsystem == QualifiedName::DISCOVERY
    }

    /// Returns KATO, the keep alive timeout.
    fn keep_alive_ms(&self) -> u32 {
        if self.keep_alive_is_off() {
            return 0;
        }
        u32::try_from(self.keep_alive.0.div_ceil(1_000_000)).unwrap_or(u32::MAX)
    }
}

/// The queue that a connection becomes.
#[derive(Clone, Copy, Debug)]
struct Bound {
    queue: u16,
    controller: u16,
}

async fn connect<S: Stream>(
    connection: &Connection<S>,
    settings: &Settings,
    bound: Bound,
) -> Result<ConnectReply, Error> {
    let command = Command::connect(
        0,
        ADMIN_QUEUE_ENTRIES - 1,
        ConnectAttributes::NONE,
        settings.keep_alive_ms(),
    );
    bind(connection, settings, bound, command).await
}

async fn connect_io<S: Stream>(
    connection: &Connection<S>,
    settings: &Settings,
    bound: Bound,
    entries: u16,
) -> Result<ConnectReply, Error> {
    let attributes = if settings.flow_control {
        ConnectAttributes::NONE
    } else {
        ConnectAttributes::NO_FLOW_CONTROL
    };
    let command = Command::connect(bound.queue, entries - 1, attributes, 0);
    bind(connection, settings, bound, command).await
}

/// Executes a Connect.
async fn bind<S: Stream>(
    connection: &Connection<S>,
    settings: &Settings,
    bound: Bound,
    command: Command,
) -> Result<ConnectReply, Error> {
    let Settings { host, subsystem, .. } = settings;
    let data = ConnectData::new(host.id, &host.name, subsystem, bound.controller);
    let reply = connection.execute(command, Buf::copy_from(data.as_bytes()), 0).await?;
    let result = u32::from_le_bytes(low_half(reply.result));
    Err(match reply.status {
        Status::SUCCESS => return Ok(ConnectReply(result)),
        Status::CONNECT_INVALID_PARAMETERS
            if ConnectInvalid(result) == ConnectInvalid::SUBSYSTEM =>
        {
            Error::UnknownSubsystem(subsystem.clone())
        }
        Status::CONNECT_CONTROLLER_BUSY => Error::Busy,
        Status::CONNECT_INVALID_HOST => Error::HostNotAllowed(host.name.clone()),
        status => Error::Status { command: name_of(&command), status },
    })
}

/// Executes a command that must succeed.
async fn ask<S: Stream>(
    connection: &Connection<S>,
    command: Command,
    data: Buf,
    room: u32,
) -> Result<Reply, Error> {
    let reply = connection.execute(command, data, room).await?;
    if reply.status.is_success() {
        return Ok(reply);
    }
    Err(Error::Status { command: name_of(&command), status: reply.status })
}

async fn identify<S: Stream, T: FromBytes>(
    admin: &Connection<S>,
    cns: Cns,
    nsid: u32,
    set: Option<CommandSet>,
) -> Result<T, Error> {
    let command = Command::identify(cns, nsid);
    let command = set.map_or(command, |set| command.with_csi(set));
    read(admin, command, IDENTIFY_BYTES).await
}

/// Reads a structure of `bytes` bytes with `command`.
async fn read<S: Stream, T: FromBytes>(
    admin: &Connection<S>,
    command: Command,
    bytes: u32,
) -> Result<T, Error> {
    let reply = ask(admin, command, Buf::phantom(0, 0), bytes).await?;
    let data = reply.data.bytes().unwrap_or_default();
    T::read_from_bytes(data).map_err(|_| Error::Short(name_of(&command)))
}

/// Returns the name of a command for messages.
fn name_of(command: &Command) -> String {
    use spec::AdminOpcode;
    match command.admin_opcode() {
        AdminOpcode::FABRICS => command.fabrics_type().to_string(),
        AdminOpcode::IDENTIFY => format!("Identify {}", command.cns()),
        opcode => opcode.to_string(),
    }
}

fn low_half(result: u64) -> [u8; 4] {
    *result.to_le_bytes().first_chunk().expect("8 bytes begin with 4")
}

impl<S: Stream> std::fmt::Debug for Association<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Association with controller {}", self.controller_id)
    }
}
