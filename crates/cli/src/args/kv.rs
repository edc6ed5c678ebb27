use clap::Subcommand;
use std::ffi::OsString;
use std::path::PathBuf;

const KV_HELP: &str = "\
Targets of export and import are databases of Kvasir or another Redis server:
  resp://HOST:PORT/DATABASE
  rediss://HOST:PORT/DATABASE?ca=FILE
                            Over TLS. ca: CA of the server's certificate.
                            &cert=FILE&key=FILE adds a client certificate
                            and its private key

Targets of the other commands:
  nvme-tcp://HOST:PORT/NQN  A subsystem over NVMe/TCP. kvasir serve prints its
                            URI
  /dev/ngXnY                A namespace that this Linux kernel has connected;
                            needs root

Options of a target over NVMe/TCP, after a ? and joined by &:
  ns=N                      Namespace id [default: 1]
  digests=header,data       Digests of headers and data [default: none].
                            For SPDK targets, write padded-data for data
  queues=N                  I/O queues, each with a connection [default: 1]
  as=NQN                    NQN of this host [default: new for each command]

Example:
  kvasir kv store name value.txt --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv";

/// Access key-value pairs; export and import Redis data
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = false, disable_help_subcommand = true, after_help = KV_HELP)]
pub(crate) struct KvArgs {
    #[command(subcommand)]
    pub(crate) command: KvCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvCommand {
    Store(StoreArgs),
    Retrieve(RetrieveArgs),
    Delete(DeleteArgs),
    Exist(ExistArgs),
    List(ListArgs),
    Info(InfoArgs),
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Where the namespace is, and how its keys are written.
#[derive(Debug, clap::Args)]
pub(crate) struct PairArgs {
    /// nvme-tcp://HOST:PORT/NQN, or /dev/ngXnY
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Parse and print keys in hexadecimal, such as 6b6579
    #[arg(long)]
    pub(crate) hex: bool,
}

/// Store a value under a key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  echo hello | kvasir kv store greeting - \\
    --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct StoreArgs {
    /// Key of 1 to 16 bytes
    pub(crate) key: OsString,
    /// File with the value, up to 2 MiB; - is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
    /// Store only if the key does not exist
    #[arg(long, conflicts_with = "if_present")]
    pub(crate) if_absent: bool,
    /// Store only if the key exists
    #[arg(long)]
    pub(crate) if_present: bool,
}

/// Print the bytes of a key's value
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  kvasir kv retrieve greeting --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct RetrieveArgs {
    /// Key of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
    /// Write the value to FILE, not to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Delete a key and its value
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Deleting a missing key is an error only if feature 20h (EDNEK) is set.

Example:
  kvasir kv delete greeting --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct DeleteArgs {
    /// Key of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// Test whether a key exists
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends with status 0 if the key exists, 1 if not, 2 on an error.

Example:
  kvasir kv exist greeting --target /dev/ng0n1 && echo yes")]
pub(crate) struct ExistArgs {
    /// Key of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// List the keys, one per line, in the device's order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Unprintable bytes are written as escapes such as \\x00, and a backslash as \\\\.
Programs should use --hex.

Example:
  kvasir kv list user --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct ListArgs {
    /// List only keys that start with PREFIX
    pub(crate) prefix: Option<OsString>,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// Show a namespace's size, use and limits
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  kvasir kv info --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv --json")]
pub(crate) struct InfoArgs {
    /// nvme-tcp://HOST:PORT/NQN, or /dev/ngXnY
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a database of a Redis server to a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exports the strings, hashes and sorted sets of one database [default: 0], and
their expiry times. Other clients may use the server during the export. Each key
is exported as it is when it is read. After an interruption, run the same
command again to continue. The printed counts and checksum do not depend on the
order of keys.

The target is resp://USER:PASSWORD@HOST:PORT/DATABASE; only HOST is required.
The password may also be in the environment variable REDISCLI_AUTH.

Example:
  kvasir kv export users.archive --target resp://127.0.0.1:6379/2")]
pub(crate) struct ExportArgs {
    /// File to create
    pub(crate) file: PathBuf,
    /// resp:// or rediss:// URI of server and database
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Skip keys of other types, and count them
    #[arg(long)]
    pub(crate) skip: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Store an exported file in a Redis database
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Replaces keys that are in the file, and keeps all other keys. After an
interruption, run the same command again to continue. FILE.progress records the
progress.

The target is resp://USER:PASSWORD@HOST:PORT/DATABASE; only HOST is required.
The password may also be in the environment variable REDISCLI_AUTH.

Example:
  kvasir kv import users.archive --target resp://127.0.0.1:6380 --verify")]
pub(crate) struct ImportArgs {
    /// File that kvasir kv export wrote
    pub(crate) file: PathBuf,
    /// resp:// or rediss:// URI of server and database
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Skip keys that the server refuses, and count them
    #[arg(long)]
    pub(crate) skip: bool,
    /// Read all keys back and compare them with the file
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
