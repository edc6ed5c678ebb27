use crate::number::parse_count;
use base::parse_size;
use clap::{ArgGroup, ValueEnum};
use node::server::Cores;
use std::path::PathBuf;

const SERVE_HELP: &str = "\
When the server is ready, it prints the URIs for NVMe/TCP hosts and Redis
clients, and the QEMU options for virtual machines, each in a line of its own.
SIGTERM or Ctrl-C stops the server. A drive keeps its data when the server
stops. An emulated device keeps its data if --state names a file. All other
devices lose their data.

Devices:
  PROFILE    Emulated device: a name that kvasir device list prints
  FILE.toml  Emulated device: the path of a TOML file that describes it
  PATH       Drive: a file or block device that kvasir format prepared, for
             example ./drive.kv
  mem:SIZE   Key-value device in memory, without emulated flash
  mem:SIZE?kind=block
             Block device in memory

Addresses: ADDR is HOST:PORT. :PORT means 127.0.0.1:PORT.

Threads: with --cores 1, one thread does everything. With a larger N, N threads
use a drive or mem:SIZE: each serves NVMe/TCP hosts and Redis clients and
executes their commands, and all open and clean the drive together. An emulated
device has one thread that executes all commands and serves Redis clients. The
other N-1 threads serve NVMe/TCP hosts. The system chooses the processors of
the threads. With a list such as 0-3,8, one thread runs on each of these
processors, in the order of the list; 2-2 is processor 2 alone.

Balance: with --balance auto, a thread that has more to do than the others sends
plain Stores and Retrieves of its NVMe/TCP hosts to them. New connections go to
threads that have less to do, and open ones move there. rr, ps and conn do a
part of that. See the guide. The section [balance] of a --config file has the
bounds.

Redis replies: the server stops reading requests from a client that has 16 MiB
of unread replies. With --resp-output SIZE, it instead disconnects a client that
has more than SIZE of unread replies.

Durability: a drive acknowledges a store at one of these times:
  group      After a flush of the disk. All waiting stores share one flush
  everysec   After the write to the disk. The drive flushes once a second
  capacitor  After the write to the disk. Use this mode only if the disk keeps
             all written data through a power loss

The file of --config describes devices, listeners, hosts and limits. Example:
  [server]
  nvme_tcp = [\"127.0.0.1:4420\"]
  [[device]]
  name = \"fast\"
  device = \"mem:1GiB\"
  [[subsystem]]
  device = \"fast\"

Examples:
  kvasir serve --device moke --nvme-tcp 127.0.0.1:4420
  kvasir serve --device mem:1GiB --nvme-tcp :0 --clock none
  kvasir serve --device moke --nvme-tcp :4420 --state moke.state
  kvasir serve --device mem:1GiB --nvme-tcp :4420 --http
  kvasir serve --device ./drive.kv --nvme-tcp :4420 --durability everysec
  kvasir serve --device moke --vfio-user /run/kvasir/vm1.sock
  kvasir serve --device ./drive.kv --resp :6379
  kvasir serve --device ./drive.kv --resp 0.0.0.0:6379 --resp-users users.acl
  kvasir serve --device ./drive.kv --resp-tls 0.0.0.0:6380 \\
    --resp-tls-cert server.crt --resp-tls-key server.key \\
    --resp-tls-clients ca.crt
  kvasir serve --config server.toml --check";

const SERVE_USAGE: &str = "\
kvasir serve --device DEVICE --nvme-tcp|--resp|--resp-tls ADDR [OPTIONS]
       kvasir serve --device DEVICE --vfio-user SOCK [OPTIONS]
       kvasir serve --config FILE [--check] [--json]";

/// Options that open a listener.
const FRONT_ENDS: [&str; 5] = ["nvme_tcp", "vfio_user", "resp", "resp_tls", "config"];

/// Serve devices to NVMe hosts, QEMU VMs and Redis clients
#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_HELP, override_usage = SERVE_USAGE)]
#[command(group = ArgGroup::new("redis").args(["resp", "resp_tls"]).multiple(true))]
#[command(group = ArgGroup::new("front_ends").args(FRONT_ENDS).multiple(true).required(true))]
pub(crate) struct ServeArgs {
    /// Device to serve: see Devices below
    #[arg(long, value_name = "DEVICE", required_unless_present = "config")]
    pub(crate) device: Option<String>,
    /// Listen for NVMe/TCP hosts on this address
    #[arg(long, value_name = "ADDR")]
    pub(crate) nvme_tcp: Option<String>,
    /// Unix socket to attach the device to a QEMU VM; repeatable
    #[arg(long, value_name = "SOCK")]
    pub(crate) vfio_user: Vec<PathBuf>,
    /// How a VM writes doorbells; mapped: a thread polls them
    #[arg(long, value_name = "HOW", requires = "vfio_user", default_value = "trapped")]
    pub(crate) doorbells: ServeDoorbells,
    /// Listen for Redis clients on this address
    #[arg(long, value_name = "ADDR")]
    pub(crate) resp: Option<String>,
    /// Redis ACL file: users and their rights [default: no access control]
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub(crate) resp_users: Option<PathBuf>,
    /// Listen for Redis clients with TLS 1.2 or 1.3 on this address
    #[arg(long, value_name = "ADDR", requires_all = ["resp_tls_cert", "resp_tls_key"])]
    pub(crate) resp_tls: Option<String>,
    /// PEM file with the server's certificate chain
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_cert: Option<PathBuf>,
    /// PEM file with the server's private key, unencrypted
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_key: Option<PathBuf>,
    /// Require client certificates from a CA in this PEM file
    #[arg(long, value_name = "CA-FILE", requires = "resp_tls")]
    pub(crate) resp_tls_clients: Option<PathBuf>,
    /// Maximum number of Redis clients at a time [default: 1024]
    #[arg(long, value_name = "N", requires = "redis", value_parser = node::server::resp_clients)]
    pub(crate) resp_clients: Option<u32>,
    /// Disconnect a Redis client whose request is over SIZE [default: 64MiB]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_query)]
    pub(crate) resp_query: Option<u64>,
    /// Disconnect a Redis client with over SIZE of unread replies [default: off]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_output)]
    pub(crate) resp_output: Option<u64>,
    /// Disconnect a Redis client that is idle for TIME, e.g. 300s [default: off]
    #[arg(long, value_name = "TIME", requires = "redis", value_parser = node::server::resp_timeout)]
    pub(crate) resp_timeout: Option<u32>,
    /// Serve status over HTTP, for kvasir top [default: off; without ADDR: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    pub(crate) http: Option<String>,
    /// real: latencies of the device's profile; none: no latencies
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    pub(crate) clock: ServeClock,
    /// Number of threads: see Threads below
    #[arg(long, value_name = "N|LIST", default_value = "1")]
    pub(crate) cores: Cores,
    /// Balance the load of the threads: see Balance below
    #[arg(long, value_name = "POLICY", default_value = "none")]
    pub(crate) balance: ServeBalance,
    /// NQN of the subsystem [default: derived from device and seed]
    #[arg(long, value_name = "NQN")]
    pub(crate) nqn: Option<String>,
    /// Random seed; also determines serial number and identifiers
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Load an emulated device from FILE at start; save it at stop
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// When a drive acknowledges a store: see Durability below [default: group]
    #[arg(long, value_name = "MODE")]
    pub(crate) durability: Option<String>,
    /// Drive: maximum size of log between checkpoints; 0: no limit [default: 10GB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) checkpoint: Option<u64>,
    /// Drive: verify data in the background at RATE/s, or off [default: 32MiB]
    #[arg(long, value_name = "RATE", value_parser = node::scrub_rate)]
    pub(crate) scrub: Option<u64>,
    /// Drive: memory that caches recently used values, or off [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = node::cache_size)]
    pub(crate) cache: Option<u64>,
    /// Read devices, listeners and limits from a TOML file
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "device", "nvme_tcp", "vfio_user", "doorbells", "redis", "resp_users", "resp_tls_cert",
            "resp_tls_key", "resp_tls_clients", "resp_clients", "resp_query", "resp_output",
            "resp_timeout", "http", "clock", "cores", "balance", "nqn", "seed", "state",
            "durability", "checkpoint", "scrub", "cache"
        ]
    )]
    pub(crate) config: Option<PathBuf>,
    /// Check the --config file, print its settings, and exit
    #[arg(long, requires = "config", conflicts_with_all = ["device", "nvme_tcp", "vfio_user"])]
    pub(crate) check: bool,
    /// Print JSON: one line when ready, one line when stopped
    #[arg(long)]
    pub(crate) json: bool,
}

/// How virtual machines write doorbells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeDoorbells {
    /// By messages, or to their own memory while it is polled
    Trapped,
    /// To a page that the thread polls: no messages, and no sleep
    Mapped,
}

/// What becomes of a device's latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeClock {
    /// Latencies of the profile, in real time
    Real,
    /// No latencies: as fast as this machine serves
    None,
}

/// Which core gets a new connection, and which one executes its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeBalance {
    /// Connections in turn; each core executes their commands
    None,
    /// Busy cores give work to the others in equal parts
    Rr,
    /// Busy cores give more work to those that have less
    Ps,
    /// Connections go to less busy cores, also open ones
    Conn,
    /// The same, and commands go where the least work is queued
    Auto,
}
