use crate::number::parse_count;
use base::parse_size;
use clap::{ArgGroup, ValueEnum};
use std::num::NonZero;
use std::path::PathBuf;

const SERVE_HELP: &str = "\
Prints each target's URI on a line of its own when the server is ready. SIGTERM
or Ctrl-C stops it. A drive on a disk keeps its data, and so does an emulated
device with --state. Other devices are in memory and lose it.

Devices:
  PROFILE    Name from kvasir device list
  FILE.toml  Path of a profile
  PATH       Drive on a file or block device from kvasir format, as ./drive.kv
  mem:SIZE   Keys and values in memory, without flash, as mem:1GiB;
             mem:SIZE?kind=block for blocks

Durability of a drive on a disk, when a store is answered:
  group      After a flush, which all waiting stores share
  everysec   After the write; the drive flushes each second
  capacitor  After the write, for a disk that keeps it without power

A configuration file describes several devices, listeners, hosts and limits:
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
  kvasir serve --device ./drive.kv --resp :6379
  kvasir serve --device ./drive.kv --resp 0.0.0.0:6379 --resp-users users.acl
  kvasir serve --device ./drive.kv --resp-tls 0.0.0.0:6380 \\
    --resp-tls-cert server.crt --resp-tls-key server.key \\
    --resp-tls-clients ca.crt
  kvasir serve --config server.toml --check";

const SERVE_USAGE: &str = "\
kvasir serve --device DEVICE --nvme-tcp|--resp|--resp-tls ADDR [OPTIONS]
       kvasir serve --config FILE [--check] [--json]";

/// Options that open a listener.
const FRONT_ENDS: [&str; 4] = ["nvme_tcp", "resp", "resp_tls", "config"];

/// Serve devices to NVMe/TCP hosts and Redis clients
#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_HELP, override_usage = SERVE_USAGE)]
#[command(group = ArgGroup::new("redis").args(["resp", "resp_tls"]).multiple(true))]
#[command(group = ArgGroup::new("front_ends").args(FRONT_ENDS).multiple(true).required(true))]
pub(crate) struct ServeArgs {
    /// Device, as below
    #[arg(long, value_name = "DEVICE", required_unless_present = "config")]
    pub(crate) device: Option<String>,
    /// NVMe/TCP address: HOST:PORT, or :PORT for 127.0.0.1
    #[arg(long, value_name = "ADDR")]
    pub(crate) nvme_tcp: Option<String>,
    /// Redis address: HOST:PORT, or :PORT for 127.0.0.1
    #[arg(long, value_name = "ADDR")]
    pub(crate) resp: Option<String>,
    /// Redis ACL file of users [default: any client may do anything]
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub(crate) resp_users: Option<PathBuf>,
    /// Redis address over TLS 1.2 or 1.3, as for --resp
    #[arg(long, value_name = "ADDR", requires_all = ["resp_tls_cert", "resp_tls_key"])]
    pub(crate) resp_tls: Option<String>,
    /// PEM file of the server's certificate and its chain
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's key, without a password
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_key: Option<PathBuf>,
    /// CAs of client certificates, which clients must then have
    #[arg(long, value_name = "CA-FILE", requires = "resp_tls")]
    pub(crate) resp_tls_clients: Option<PathBuf>,
    /// Maximum number of Redis clients [default: 1024]
    #[arg(long, value_name = "N", requires = "redis", value_parser = node::server::resp_clients)]
    pub(crate) resp_clients: Option<u32>,
    /// Longest Redis request; a longer one disconnects [default: 64MiB]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_query)]
    pub(crate) resp_query: Option<u64>,
    /// Disconnect a Redis client with more than SIZE unread [default: off, stop reading at 16MiB]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_output)]
    pub(crate) resp_output: Option<u64>,
    /// Disconnect a Redis client idle this long, as 300s [default: off]
    #[arg(long, value_name = "TIME", requires = "redis", value_parser = node::server::resp_timeout)]
    pub(crate) resp_timeout: Option<u32>,
    /// HTTP address for kvasir top, Prometheus [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    pub(crate) http: Option<String>,
    /// Whether an emulated device has its profile's latencies
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    pub(crate) clock: ServeClock,
    /// Threads: with N > 1 one for the device, N-1 for connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_cores)]
    pub(crate) cores: NonZero<u16>,
    /// NQN of the subsystem [default: from device and seed]
    #[arg(long, value_name = "NQN")]
    pub(crate) nqn: Option<String>,
    /// Random seed; also determines serial number and identifiers
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Keep an emulated device in this file between runs
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// When a disk drive answers: group, everysec or capacitor [default: group, after a flush]
    #[arg(long, value_name = "MODE")]
    pub(crate) durability: Option<String>,
    /// Log between checkpoints of a disk drive; 0 for none [default: 10GB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) checkpoint: Option<u64>,
    /// Read a disk drive at RATE a second to find damage, or off [default: 32MiB]
    #[arg(long, value_name = "RATE", value_parser = node::scrub_rate)]
    pub(crate) scrub: Option<u64>,
    /// Memory for recent values of a disk drive, or off [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = node::cache_size)]
    pub(crate) cache: Option<u64>,
    /// Read all of this from a TOML file
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "device", "nvme_tcp", "redis", "resp_users", "resp_tls_cert", "resp_tls_key",
            "resp_tls_clients", "resp_clients", "resp_query", "resp_output", "resp_timeout",
            "http", "clock", "cores", "nqn", "seed", "state", "durability", "checkpoint",
            "scrub", "cache"
        ]
    )]
    pub(crate) config: Option<PathBuf>,
    /// Check the file and print what it means; serve nothing
    #[arg(long, requires = "config", conflicts_with_all = ["device", "nvme_tcp"])]
    pub(crate) check: bool,
    /// Print JSON: a line when ready, and a line when stopped
    #[arg(long)]
    pub(crate) json: bool,
}

/// What becomes of a device's latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeClock {
    /// Latencies of the profile, in real time
    Real,
    /// No latencies: as fast as this machine serves
    None,
}

fn parse_cores(text: &str) -> Result<NonZero<u16>, String> {
    text.parse()
        .map_err(|_| "the number of threads must be a whole number from 1 to 65535".to_owned())
}
