use crate::number::{parse_count, parse_seconds, parse_time};
use crate::rig::FillLevel;
use base::{parse_length, parse_size};
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

const BENCH_HELP: &str = "\
All that reads has its keys or blocks written first, which is not measured. Data
is checked as it comes back: what is wrong or missing is an error. read, write,
randread and randwrite are for namespaces of blocks, mixed for blocks and pairs,
all others for pairs; zones take read, randread and write.

Targets:
  sim:PROFILE  The device in virtual time: equal runs, as fast as they go
  emu:PROFILE  The same device in real time, in this process
  nvme-tcp://HOST:PORT/NQN
               Pairs or blocks of a namespace over NVMe/TCP, which are overwritten;
               options as in kvasir kv --help

  resp://HOST:PORT/DATABASE
               Pairs of a server of the Redis protocol, which are overwritten;
               ?connections= is 1 to 1024 [default: 1], USER:PASSWORD@ may stand
               before HOST, and the environment's REDISCLI_AUTH is a password too;
               over TLS rediss://HOST:PORT/DATABASE?ca=FILE, as in kvasir kv --help
  file:PATH    The drive that kvasir format made there, used in this process, which
               overwrites pairs; ?durability= is group, everysec or capacitor,
               &reactors= threads that execute, 1 to 64 [default: 1], &cache= memory
               for values [default: off]

Options of a device here, after a ? and joined by &:
  payload=full|checksum|none  What is kept of values [default: none]
  seed=N                      The device's own seed [default: as --seed]
  shuffle=0|1                 Whether the seed orders timers due at one
                              instant [default: 0]
  index=NAME                  Where records lie [default: as in the profile]
  dram=SIZE                   Memory of an index with a budget, as cached-hash
                              [default: 1/1024 of the namespaces]
  keys=N                      Keys that it has to hold [default: one for 4KiB]
  ns=N                        The namespace [default: the first that the
                              workload is for]

Sizes of values, SIZE being 100, 4KiB or 1MiB:
  SIZE                        All the same
  uniform:SIZE-SIZE           Each size as often
  zipfian:SIZE-SIZE           Small ones often, large ones seldom
  mix:SIZE=WEIGHT,...         These sizes, as often as their weights say

Examples:
  kvasir bench retrieve --queue-depth 1
  kvasir bench mixed --target 'sim:moke?payload=full' --read-percent 95
  kvasir bench ycsb-b --target emu:moke --seconds 5 --plot ycsb-b.svg
  kvasir bench randread --target sim:970pro --block-size 16KiB
  kvasir bench randread --target nvme-tcp://127.0.0.1:4420/NQN --queue-depth 32 --seconds 10
  kvasir bench ycsb-b --target resp://127.0.0.1:6379/9?connections=8 --value-size 1KiB
  kvasir bench randwrite --target sim:mine.toml --precondition 90%
  kvasir bench mixed --faults examples/faults/worn.toml --cut-at 20ms
  kvasir bench ycsb-a --state a.state --pause-after 50000
  kvasir bench replay trace.csv";

const USAGE: &str = "\
kvasir bench [OPTIONS] <WORKLOAD>
       kvasir bench replay [OPTIONS] <TRACE>";

const REPLAY_HELP: &str = "\
A trace is CSV: time in seconds, operation (store, retrieve, delete, exist),
key, bytes of the value; or Twitter's cache trace, which is recognised. Keys
that the trace reads before it stores them are stored first, unmeasured. Targets
and their options are those of kvasir bench --help.

Examples:
  kvasir bench replay examples/traces/sample.csv --pace 10x
  kvasir bench replay trace.csv --pace full --queue-depth 32";

/// Measure a device under a load
#[derive(Debug, clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = BENCH_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    override_usage = USAGE,
    subcommand_help_heading = "Or"
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    /// What is measured
    #[arg(required = true)]
    pub(crate) workload: Option<Workload>,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Operations that are measured [default: 100000]
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = parse_count)]
    pub(crate) ops: Option<u64>,
    /// Measure for so long on the target's clock
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub(crate) seconds: Option<base::Nanos>,
    /// Operations outstanding at a time, 1 to 65535 [default: 64; no bound with --rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) queue_depth: Option<u32>,
    /// Operations due in a second, however late the device is; latency counts from when each was
    /// due
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) rate: Option<u64>,
    /// Bytes of each key, 1 to 255 [default: 16]
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    pub(crate) key_size: Option<u64>,
    /// Bytes of each value, up to 2MiB, or their distribution as below [default: 4KiB]
    #[arg(long, value_name = "SIZES")]
    pub(crate) value_size: Option<String>,
    /// How many keys there are [default: as many as --ops for store and delete, else 100000]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) keys: Option<u64>,
    /// Bytes of each block, a multiple of 4KiB up to 2MiB [default: 4KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    pub(crate) block_size: Option<u64>,
    /// How much of a namespace of blocks or zones is used [default: 100000 blocks, or all if it is
    /// smaller]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) span: Option<u64>,
    /// Age the device first: fill it to FILL, as 90% or 0.9, then overwrite that at random until
    /// write amplification is steady
    #[arg(long, value_name = "FILL", conflicts_with_all = ["keys", "span"])]
    pub(crate) precondition: Option<FillLevel>,
    /// Take the power away after so long on the target's clock, as 5ms, or 1.5 for seconds; open
    /// the device again, and check all that it had acknowledged
    #[arg(
        long,
        value_name = "T",
        conflicts_with_all = ["rate", "plot"],
        allow_hyphen_values = true,
        value_parser = parse_time
    )]
    pub(crate) cut_at: Option<base::Nanos>,
    /// Keep the device in a file, with what is known of its keys: it is restored from there if it
    /// is there, and saved there at the end
    #[arg(long, value_name = "FILE", conflicts_with = "cut_at")]
    pub(crate) state: Option<PathBuf>,
    /// After so many operations let all that is outstanding end, and what goes on inside the device
    /// too; with --state save it there and stop: the same command goes on
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["cut_at", "trace"],
        value_parser = parse_count
    )]
    pub(crate) pause_after: Option<u64>,
    /// How often each key or block is asked for [default: uniform; that of YCSB for ycsb-*]
    #[arg(long, value_name = "LAW")]
    pub(crate) distribution: Option<Distribution>,
    /// Of 100 operations of mixed, how many are reads [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) read_percent: Option<u8>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Replay(ReplayArgs),
}

/// Carry out the operations of a trace
#[derive(Debug, clap::Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// When operations are due: recorded, or so many times as fast, as 10x; full: as soon as
    /// others have completed
    #[arg(long, value_name = "PACE", default_value = "recorded")]
    pub(crate) pace: String,
    /// Operations outstanding at a time at full pace, 1 to 65535 [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) queue_depth: Option<u32>,
    /// What the trace is written in [default: what its first line looks like]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<TraceFormat>,
}

/// On what is measured, and what comes of it.
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    /// The device: sim:PROFILE in virtual time, emu:PROFILE in real time, nvme-tcp://..., options
    #[arg(long, value_name = "URI", default_value = "sim:moke")]
    pub(crate) target: String,
    /// Names the order of operations and the values
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Draw latencies and throughput as an SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// Write a timeline of dies, channels, handlers, link and cores, which ui.perfetto.dev opens;
    /// some 500 bytes for each operation
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Faults that the flash has: a plan as docs/guide/faults.md describes it
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Store each key once, then overwrite
    Store,
    /// Retrieve keys
    Retrieve,
    /// Retrieve or overwrite keys, or read or write blocks
    Mixed,
    /// Delete each key at most once
    Delete,
    /// Ask whether keys are there
    Exist,
    /// YCSB A: half reads, half updates
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates
    YcsbB,
    /// YCSB C: reads
    YcsbC,
    /// YCSB D: 95 % reads of what is new, 5 % inserts
    YcsbD,
    /// YCSB E: 95 % scans of up to 100 keys, 5 % inserts
    YcsbE,
    /// YCSB F: half reads, half read-modify-writes
    YcsbF,
    /// Read blocks one after the other
    Read,
    /// Write blocks one after the other
    Write,
    /// Read blocks
    #[value(name = "randread")]
    RandRead,
    /// Write blocks
    #[value(name = "randwrite")]
    RandWrite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Distribution {
    /// All as often
    Uniform,
    /// Some often, most seldom
    Zipfian,
    /// Those stored last often
    Latest,
    /// Each in turn, in the order of their bytes
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// time,operation,key,size
    Csv,
    /// Twitter's cache traces
    Twitter,
}
