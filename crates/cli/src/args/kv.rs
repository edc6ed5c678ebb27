use clap::Subcommand;
use std::ffi::OsString;
use std::path::PathBuf;

const KV_HELP: &str = "\
Targets of export and import are databases of Redis servers, this one's or
others: resp://HOST:PORT/DATABASE, or over TLS
rediss://HOST:PORT/DATABASE?ca=FILE, with the CA of the server's certificate; a
server that demands a certificate is shown that of &cert=FILE&key=FILE.

Targets of the others:
  nvme-tcp://HOST:PORT/NQN  A subsystem over NVMe/TCP, as kvasir serve prints it
  /dev/ngXnY                A namespace that the kernel has; needs to be root

Options of a target over NVMe/TCP, after a ? and joined by &:
  ns=N                      The namespace [default: 1]
  digests=header,data       Checksums of what is sent [default: none]
  queues=N                  I/O queues, each a connection [default: 1]
  as=NQN                    The host's name [default: another each time]

Example:
  kvasir kv store name value.txt --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv";

/// Store, retrieve and list pairs of any key-value namespace; move those of Redis servers
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
    /// Keys are in hexadecimal, as 6b6579
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
    /// The key, of 1 to 16 bytes
    pub(crate) key: OsString,
    /// The file whose bytes are the value, up to 2 MiB; - for standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
    /// Only if the key is not there
    #[arg(long, conflicts_with = "if_present")]
    pub(crate) if_absent: bool,
    /// Only if the key is there
    #[arg(long)]
    pub(crate) if_present: bool,
}

/// Print the value of a key: its bytes, and nothing else
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  kvasir kv retrieve greeting --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct RetrieveArgs {
    /// The key, of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
    /// Write it into a file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Delete a key and its value
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Whether a key that is not there is an error is up to the namespace.

Example:
  kvasir kv delete greeting --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct DeleteArgs {
    /// The key, of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// Tell whether a key is there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends with status 0 if the key is there, 1 if it is not, 2 if that is not known.

Example:
  kvasir kv exist greeting --target /dev/ng0n1 && echo yes")]
pub(crate) struct ExistArgs {
    /// The key, of 1 to 16 bytes
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// List the keys, one in a line, in the device's own order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Bytes that are not printed as themselves are written as \\x00, and a backslash
as \\\\; --hex is for programs.

Example:
  kvasir kv list user --target nvme-tcp://127.0.0.1:4420/nqn.2026-11.com.example:kv")]
pub(crate) struct ListArgs {
    /// Only keys that begin with this
    pub(crate) prefix: Option<OsString>,
    #[command(flatten)]
    pub(crate) pair: PairArgs,
}

/// Show what a namespace is, and what it takes
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

/// Write all that a database of a Redis server holds into a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Strings, hashes, sorted sets and when they expire; the database that is named,
or 0. Others may use the server meanwhile: each key is as it was when it was
read. The same command goes on with an export that was ended. The counts and the
checksum that are printed are those of what is there, in any order.

The target is resp://USER:PASSWORD@HOST:PORT/DATABASE, of which only HOST is
needed; the environment's REDISCLI_AUTH is a password too.

Example:
  kvasir kv export users.archive --target resp://127.0.0.1:6379/2")]
pub(crate) struct ExportArgs {
    /// The file, which is made
    pub(crate) file: PathBuf,
    /// The server and its database, which the text below says how to name
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Leave out keys of other types, and count them
    #[arg(long)]
    pub(crate) skip: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Store all that a file of kvasir kv export has in a database of a Redis server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What keys of the file hold there is replaced, other keys stay. The same command
goes on with an import that was ended: how far it came is in FILE.progress.

The target is resp://USER:PASSWORD@HOST:PORT/DATABASE, of which only HOST is
needed; the environment's REDISCLI_AUTH is a password too.

Example:
  kvasir kv import users.archive --target resp://127.0.0.1:6380 --verify")]
pub(crate) struct ImportArgs {
    /// The file
    pub(crate) file: PathBuf,
    /// The server and its database, which the text below says how to name
    #[arg(long, value_name = "URI")]
    pub(crate) target: String,
    /// Leave out what the server refuses, as a value that is too long, and count it
    #[arg(long)]
    pub(crate) skip: bool,
    /// Read all back and compare it with the file
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
