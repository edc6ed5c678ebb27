use crate::number::parse_count;
use base::parse_size;
use clap::{ArgGroup, ValueEnum};
use std::num::NonZero;
use std::path::PathBuf;

const SERVE_HELP: &str = "\
Prints a line for each step, and the target's URI on a line of its own when it
is ready. SIGTERM and Ctrl-C stop it: what was answered is on the emulated flash
then, and the flash is gone with the program, unless there is a --state.

Devices:
  PROFILE    A name from kvasir device list
  FILE.toml  The path of a profile
  PATH       A drive on a file or a block device, made by kvasir format, as
             ./drive.kv; it keeps what it holds
  mem:SIZE   Keys and values in memory, without flash, as mem:1GiB;
             mem:SIZE?kind=block is blocks

A file has several devices, listeners, who may connect and limits, as
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

/// What says where somebody can connect.
const DOORS: [&str; 4] = ["nvme_tcp", "resp", "resp_tls", "config"];

/// Offer devices to NVMe hosts on a network, and to Redis clients
#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_HELP, override_usage = SERVE_USAGE)]
#[command(group = ArgGroup::new("redis").args(["resp", "resp_tls"]).multiple(true))]
#[command(group = ArgGroup::new("doors").args(DOORS).multiple(true).required(true))]
pub(crate) struct ServeArgs {
    /// The device
    #[arg(long, value_name = "DEVICE", required_unless_present = "config")]
    pub(crate) device: Option<String>,
    /// Where NVMe/TCP hosts connect: HOST:PORT, or :PORT for this machine only; port 0 is any that
    /// is free
    #[arg(long, value_name = "ADDR")]
    pub(crate) nvme_tcp: Option<String>,
    /// Where clients of the Redis protocol connect: :PORT, as :6379, for this machine only, or
    /// HOST:PORT; port 0 is any that is free
    #[arg(long, value_name = "ADDR")]
    pub(crate) resp: Option<String>,
    /// Who they may be, and do: a file of lines as Redis has them in its ACL file; without it
    /// everybody may do everything
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub(crate) resp_users: Option<PathBuf>,
    /// Where they connect over TLS, 1.2 or 1.3, as for --resp
    #[arg(long, value_name = "ADDR", requires_all = ["resp_tls_cert", "resp_tls_key"])]
    pub(crate) resp_tls: Option<String>,
    /// The server's certificate, in PEM, and behind it those that lead to its CA
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_cert: Option<PathBuf>,
    /// Its key, in PEM, without a password
    #[arg(long, value_name = "FILE", requires = "resp_tls")]
    pub(crate) resp_tls_key: Option<PathBuf>,
    /// Let over TLS only those in who show a certificate that a CA of this file has signed
    #[arg(long, value_name = "CA-FILE", requires = "resp_tls")]
    pub(crate) resp_tls_clients: Option<PathBuf>,
    /// Clients of the Redis protocol at a time [default: as many as there may be connections, 1024]
    #[arg(long, value_name = "N", requires = "redis", value_parser = node::server::resp_clients)]
    pub(crate) resp_clients: Option<u32>,
    /// Memory for one request of theirs: who sends a longer one is closed [default: 64MiB]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_query)]
    pub(crate) resp_query: Option<u64>,
    /// Answers that one of them may leave unread: who leaves more is closed, or off: then nothing
    /// more is read of who leaves 16MiB [default: off]
    #[arg(long, value_name = "SIZE", requires = "redis", value_parser = node::server::resp_output)]
    pub(crate) resp_output: Option<u64>,
    /// For how long one of them may do nothing before it is closed, as 300s, or off [default: off]
    #[arg(long, value_name = "TIME", requires = "redis", value_parser = node::server::resp_timeout)]
    pub(crate) resp_timeout: Option<u32>,
    /// Say by HTTP what the server is doing, for kvasir top and Prometheus: at HOST:PORT, HOST or
    /// :PORT [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    pub(crate) http: Option<String>,
    /// Whether the device keeps the latencies of its profile
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    pub(crate) clock: ServeClock,
    /// Reactors: 1 for device and connections together; more, and the device has one of its own,
    /// and the others, of a drive on a disk, execute the commands of their connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_cores)]
    pub(crate) cores: NonZero<u16>,
    /// The subsystem's name, as hosts ask for it [default: made of the device and the seed]
    #[arg(long, value_name = "NQN")]
    pub(crate) nqn: Option<String>,
    /// Names the device's random choices, and what tells it from others: serial number and ids
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Keep an emulated device in this file from one start to the next
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// When a drive on a disk answers: group (after a flush, which all wait for that came
    /// meanwhile), everysec (after the write, with a flush each second) or capacitor (after the
    /// write: the disk keeps what it took) [default: group]
    #[arg(long, value_name = "MODE")]
    pub(crate) durability: Option<String>,
    /// Log of a drive on a disk between two checkpoints, which is read again after a crash, as
    /// 4GiB; 0: none is made before the server stops [default: 10000000000]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) checkpoint: Option<u64>,
    /// What of a drive on a disk is read in the background to see whether it is whole: so much each
    /// second at most, or off [default: 32MiB]
    #[arg(long, value_name = "RATE", value_parser = node::scrub_rate)]
    pub(crate) scrub: Option<u64>,
    /// Memory for values of a drive on a disk that were lately read or written, or off [default:
    /// 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = node::cache_size)]
    pub(crate) cache: Option<u64>,
    /// A TOML file that says all of that
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
    /// Say what the file means, or what is wrong with it, and serve nothing
    #[arg(long, requires = "config", conflicts_with_all = ["device", "nvme_tcp"])]
    pub(crate) check: bool,
    /// Print JSON: an object when it is ready, and one when it has stopped
    #[arg(long)]
    pub(crate) json: bool,
}

/// What becomes of a device's latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeClock {
    /// They are kept, in real time
    Real,
    /// There are none: as fast as this machine serves
    None,
}

fn parse_cores(text: &str) -> Result<NonZero<u16>, String> {
    text.parse().map_err(|_| "a number of cores is a whole number from 1 to 65535".to_owned())
}
