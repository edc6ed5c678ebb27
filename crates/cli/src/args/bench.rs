use super::figure::figure_path;
use crate::number::{parse_count, parse_seconds, parse_time};
use crate::rig::FillLevel;
use base::{parse_length, parse_size};
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

const BENCH_HELP: &str = "\
Before the measurement, bench writes the keys or blocks that the workload
expects to exist. It compares each value or block that it reads. A wrong or
missing one counts as an error.

read, write and randread use a namespace of blocks or zones. randwrite uses one
of blocks, and mixed one of blocks or pairs. All other workloads use pairs.

Targets:
  sim:PROFILE  An emulated device in virtual time. Runs with equal seeds have
               equal results. PROFILE is a name from kvasir device list, or a
               path
  emu:PROFILE  The same device in real time
  nvme-tcp://HOST:PORT/NQN
               A namespace over NVMe/TCP; kvasir kv --help lists the options
  resp://HOST:PORT/DATABASE
               A database of a Redis server. Option, after a ?:
               connections=N  TCP connections, 1 to 1024 [default: 1]
               Give a password as USER:PASSWORD@HOST, or in the environment
               variable REDISCLI_AUTH. For TLS, see kvasir kv --help
  file:PATH    A drive that kvasir format created. bench opens it directly.
               Options, after a ? and joined by &:
               durability=MODE  group, everysec or capacitor [default: group]
               reactors=N       Threads, 1 to 64 [default: 1]
               cache=SIZE       Memory for values [default: off]
  mem:SIZE     A drive in memory, made for the measurement. Option, after a ?:
               reactors=N       Threads, 1 to 64 [default: 1]
  bench reads a sample of 64 keys or 128 blocks of an nvme-tcp, resp or file
  target. It refuses the target if it did not write one of them, unless
  --overwrite is given. It can overwrite other data outside the sample.

Options of sim: and emu:, after a ? and joined by &:
  payload=full|checksum|none  What the emulation keeps of a value: all bytes, a
                              checksum, or a number that generates the bytes
                              [default: none]
  seed=N                      Random seed of the device [default: as --seed]
  shuffle=0|1                 1: timers due at one instant run in an order that
                              depends on the seed [default: 0]
  index=NAME                  hash, cached-hash or btree [default: from PROFILE]
  dram=SIZE                   Memory of cached-hash
                              [default: 1/1024 of the key-value namespaces]
  keys=N                      Maximum number of keys of cached-hash
                              [default: one per 4KiB of these namespaces]
  ns=N                        Namespace id [default: first suitable namespace]

SIZES of values, where SIZE is for example 100, 4KiB or 1MiB:
  SIZE                        Each value has this size
  uniform:SIZE-SIZE           Each size in this range is equally likely
  zipfian:SIZE-SIZE           Small sizes are frequent, large ones rare
  mix:SIZE=WEIGHT,...         Each size in proportion to its weight

Examples:
  kvasir bench retrieve --queue-depth 1
  kvasir bench mixed --target 'sim:moke?payload=full' --read-percent 95
  kvasir bench ycsb-b --target emu:moke --seconds 5 --plot ycsb-b.svg
  kvasir bench randread --target sim:970pro --block-size 16KiB
  kvasir bench randread --target nvme-tcp://127.0.0.1:4420/NQN --seconds 10
  kvasir bench ycsb-b --target resp://127.0.0.1/9?connections=8
  kvasir bench ycsb-c --target mem:1GiB?reactors=2 --value-size 64
  kvasir bench randwrite --target sim:mine.toml --precondition 90%
  kvasir bench mixed --faults examples/faults/worn.toml --cut-at 20ms
  kvasir bench ycsb-a --state a.state --pause-after 50000
  kvasir bench replay trace.csv";

const USAGE: &str = "\
kvasir bench [OPTIONS] <WORKLOAD>
       kvasir bench replay [OPTIONS] <TRACE>";

const REPLAY_HELP: &str = "\
A trace is CSV with time in seconds, operation (store, retrieve, delete, exist),
key and bytes of the value, or a Twitter cache trace. Before the measurement,
bench stores the keys that the trace reads before it stores them.
kvasir bench --help lists targets and their options.

Examples:
  kvasir bench replay examples/traces/sample.csv --pace 10x
  kvasir bench replay trace.csv --pace full --queue-depth 32";

/// Measure a device or server under a load
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
    /// Workload to run
    #[arg(required = true)]
    pub(crate) workload: Option<Workload>,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Overwrite data on the target that bench did not write
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Operations to measure [default: 100000]
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = parse_count)]
    pub(crate) ops: Option<u64>,
    /// Seconds to measure; simulated seconds for sim: targets
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub(crate) seconds: Option<base::Nanos>,
    /// Operations in flight, 1 to 65535 [default: 64; with --rate: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) queue_depth: Option<u32>,
    /// Operations due per second; latency counts from the due time
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) rate: Option<u64>,
    /// Bytes of a key, 1 to 255 [default: 16]
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    pub(crate) key_size: Option<u64>,
    /// Size of a value, up to 2MiB, or SIZES as below [default: 4KiB]
    #[arg(long, value_name = "SIZES")]
    pub(crate) value_size: Option<String>,
    /// Number of keys [default: 100000; for store and delete: --ops]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) keys: Option<u64>,
    /// Size of a block: a multiple of 4KiB, up to 2MiB [default: 4KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    pub(crate) block_size: Option<u64>,
    /// Bytes of the namespace to use, from its start [default: 100000 blocks, or all]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) span: Option<u64>,
    /// Age first: fill to FILL (90%), overwrite until steady
    #[arg(long, value_name = "FILL", conflicts_with_all = ["keys", "span"])]
    pub(crate) precondition: Option<FillLevel>,
    /// Cut power after T (5ms), reopen, verify acknowledged data
    #[arg(
        long,
        value_name = "T",
        conflicts_with_all = ["rate", "plot"],
        allow_hyphen_values = true,
        value_parser = parse_time
    )]
    pub(crate) cut_at: Option<base::Nanos>,
    /// Restore the device from FILE; save it there at the end
    #[arg(long, value_name = "FILE", conflicts_with = "cut_at")]
    pub(crate) state: Option<PathBuf>,
    /// Go idle after N operations; with --state, save and exit
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["cut_at", "trace"],
        value_parser = parse_count
    )]
    pub(crate) pause_after: Option<u64>,
    /// Distribution of keys or blocks [default: uniform; for ycsb-*: as in YCSB]
    #[arg(long, value_name = "LAW")]
    pub(crate) distribution: Option<Distribution>,
    /// Percentage of reads in mixed [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) read_percent: Option<u8>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Replay(ReplayArgs),
}

/// Replay the operations of a trace
#[derive(Debug, clap::Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    /// File with the trace
    #[arg(value_name = "TRACE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Speed: recorded, a multiple such as 10x, or full (no delays)
    #[arg(long, value_name = "PACE", default_value = "recorded")]
    pub(crate) pace: String,
    /// Operations in flight with --pace full, 1 to 65535 [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) queue_depth: Option<u32>,
    /// Format of the trace [default: by its first line]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<TraceFormat>,
}

/// Target, seed and output files of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    /// Device or server to measure, with options, as below
    #[arg(long, value_name = "URI", default_value = "sim:moke")]
    pub(crate) target: String,
    /// Random seed for operations and values
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Draw latencies and throughput as an SVG file
    #[arg(long, value_name = "FILE.svg", value_parser = figure_path())]
    pub(crate) plot: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev, 500 B per operation
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Inject the flash faults of FILE; see docs/guide/faults.md
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
    /// Ask whether keys exist
    Exist,
    /// YCSB A: half reads, half updates
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates
    YcsbB,
    /// YCSB C: reads
    YcsbC,
    /// YCSB D: 95 % reads of recent keys, 5 % inserts
    YcsbD,
    /// YCSB E: 95 % scans of up to 100 keys, 5 % inserts
    YcsbE,
    /// YCSB F: half reads, half read-modify-writes
    YcsbF,
    /// Read blocks in order
    Read,
    /// Write blocks in order
    Write,
    /// Read blocks at random
    #[value(name = "randread")]
    RandRead,
    /// Write blocks at random
    #[value(name = "randwrite")]
    RandWrite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Distribution {
    /// Each equally likely
    Uniform,
    /// A few frequent, most rare
    Zipfian,
    /// Recently stored keys frequent
    Latest,
    /// In the order of their bytes
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// time,operation,key,size
    Csv,
    /// Twitter's cache traces
    Twitter,
}
