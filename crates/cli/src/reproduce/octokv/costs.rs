//! What a command takes of the target's cores.

use super::testbed::Operation;
use base::Nanos;
use serde::Deserialize;

/// Clock rate of the cores of the paper's target: "1.8 GHz".
const MHZ: u64 = 1_800;

/// The measurement: `experiments/stages`.
const TEXT: &str = include_str!("../../../../../experiments/stages/costs.toml");

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    processor: String,
    mhz: u64,
    get_16k: Measured,
    put_16k: Measured,
    get_4k: Measured,
    put_4k: Measured,
}

/// Nanoseconds of CPU time of a command.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names are those of the file")]
struct Measured {
    receive_ns: u64,
    kv_ns: u64,
    submit_ns: u64,
    complete_ns: u64,
    reply_ns: u64,
}

/// What the stages of a command take of a core of the paper's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Receives the command from its connection.
    pub(super) receive: Nanos,
    /// Looks the key up, or inserts it.
    pub(super) kv: Nanos,
    /// Gives the command to the drive.
    pub(super) submit: Nanos,
    /// Takes the end of the command from the drive.
    pub(super) complete: Nanos,
    /// Sends the reply.
    pub(super) reply: Nanos,
}

/// The costs on the cores of the paper's target.
#[derive(Debug)]
pub(super) struct Costs {
    /// The processor that was measured.
    pub(super) processor: String,
    file: File,
}

impl Costs {
    pub(super) fn of_paper() -> Self {
        let file: File = toml::from_str(TEXT).expect("the costs of the program are TOML");
        Self { processor: format!("{} at {} MHz", file.processor, file.mhz), file }
    }

    /// Returns the command of an operation of `OctoKV`.
    pub(super) fn with_key(&self, operation: Operation) -> Command {
        self.command(match operation {
            Operation::Get => self.file.get_16k,
            Operation::Put => self.file.put_16k,
        })
    }

    /// Returns the command of an operation of `OctoKV` on a value of so many bytes. Each stage
    /// grows with the bytes as between 4 and 16 KiB, from at least a quarter of that of 4 KiB.
    pub(super) fn with_bytes(&self, operation: Operation, bytes: u64) -> Command {
        let [small, large] = match operation {
            Operation::Get => [self.file.get_4k, self.file.get_16k],
            Operation::Put => [self.file.put_4k, self.file.put_16k],
        };
        let at = |of: fn(&Measured) -> u64| {
            // What 12 KiB more take; a third of that is in the time of 4 KiB.
            let more = of(&large).saturating_sub(of(&small));
            let none = of(&small).saturating_sub(more / 3).max(of(&small) / 4);
            none + more * bytes / (12 << 10)
        };
        self.command(Measured {
            receive_ns: at(|it| it.receive_ns),
            kv_ns: at(|it| it.kv_ns),
            submit_ns: at(|it| it.submit_ns),
            complete_ns: at(|it| it.complete_ns),
            reply_ns: at(|it| it.reply_ns),
        })
    }

    /// Returns the commands of an operation of a store on the client: those of its value and of its
    /// file system. They have no key, so what a short get takes to find one is left out.
    pub(super) fn of_blocks(&self, operation: Operation) -> [Command; 2] {
        let times = match operation {
            Operation::Get => [self.file.get_16k, self.file.get_4k],
            Operation::Put => [self.file.put_16k, self.file.put_4k],
        };
        let look_up = self.file.get_4k.kv_ns;
        let kv_ns = |times: Measured| times.kv_ns.saturating_sub(look_up);
        times.map(|times| self.command(Measured { kv_ns: kv_ns(times), ..times }))
    }

    /// Returns a measured time on the paper's cores.
    pub(super) fn scaled(&self, time: Nanos) -> Nanos {
        Nanos(time.0 * self.file.mhz / MHZ)
    }

    fn command(&self, times: Measured) -> Command {
        let of = |nanos| self.scaled(Nanos(nanos));
        Command {
            receive: of(times.receive_ns),
            kv: of(times.kv_ns),
            submit: of(times.submit_ns),
            complete: of(times.complete_ns),
            reply: of(times.reply_ns),
        }
    }
}
