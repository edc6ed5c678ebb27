//! The measured paths: what runs, and how often.

use crate::commands::{self, Simulated};
use crate::pcie::{self, Usage};
use crate::{fabric, opening, redis};

/// An operation, and where it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// An overwrite of 8 KiB on a drive on a disk, 64 outstanding.
    DiskStore,
    /// A retrieve of 8 KiB from a drive on a disk, 64 outstanding.
    DiskGet,
    /// A record of 64 B that opening a drive on a disk finds after a crash. Each key has two on the
    /// average.
    DiskOpen,
    /// A store of 64 B over NVMe/TCP into a drive in memory, 32 outstanding.
    TcpStore,
    /// A retrieve of 64 B over NVMe/TCP from a drive in memory, 32 outstanding.
    TcpGet,
    /// A retrieve of 64 B by a guest with 4 I/O queues, of which it uses one, from a drive in
    /// memory, 32 outstanding.
    Pcie4Queues,
    /// The same with 64 I/O queues.
    Pcie64Queues,
    /// The same with 4 I/O queues, which it uses all.
    Pcie4InTurn,
    /// The same with 64 I/O queues, which it uses four at a time.
    Pcie64InTurn,
    /// A read of a block of 4 KiB by a guest with 4 I/O queues, of which it uses one, from emulated
    /// flash without delays, 32 outstanding.
    PcieRead,
    /// A SET of 64 B in memory, 50 clients, 16 deep.
    Set,
    /// A GET of 64 B in memory, 50 clients, 16 deep.
    Get,
    /// A SET of 64 B on a drive on a disk that is flushed every second, 50 clients, 16 deep.
    SetEverySecond,
    /// A store of 4 KiB on the emulated device `moke`, 64 outstanding, without payload.
    SimulatedStore,
    /// An overwrite of 4 KiB on the same, which reads the header of the replaced record.
    SimulatedOverwrite,
    /// A retrieve of 4 KiB on the same.
    SimulatedRetrieve,
}

impl Path {
    pub(crate) const ALL: [Self; 16] = [
        Self::DiskStore,
        Self::DiskGet,
        Self::DiskOpen,
        Self::TcpStore,
        Self::TcpGet,
        Self::Pcie4Queues,
        Self::Pcie64Queues,
        Self::Pcie4InTurn,
        Self::Pcie64InTurn,
        Self::PcieRead,
        Self::Set,
        Self::Get,
        Self::SetEverySecond,
        Self::SimulatedStore,
        Self::SimulatedOverwrite,
        Self::SimulatedRetrieve,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DiskStore => "disk-store",
            Self::DiskGet => "disk-get",
            Self::DiskOpen => "disk-open",
            Self::TcpStore => "tcp-store",
            Self::TcpGet => "tcp-get",
            Self::Pcie4Queues => "pcie-4-queues",
            Self::Pcie64Queues => "pcie-64-queues",
            Self::Pcie4InTurn => "pcie-4-in-turn",
            Self::Pcie64InTurn => "pcie-64-in-turn",
            Self::PcieRead => "pcie-read",
            Self::Set => "set",
            Self::Get => "get",
            Self::SetEverySecond => "set-everysec",
            Self::SimulatedStore => "simulated-store",
            Self::SimulatedOverwrite => "simulated-overwrite",
            Self::SimulatedRetrieve => "simulated-retrieve",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }

    /// Returns the number of operations that the difference of two runs has.
    pub(crate) const fn operations(self) -> u64 {
        match self {
            Self::DiskStore | Self::DiskGet => 8_192,
            Self::TcpStore
            | Self::TcpGet
            | Self::DiskOpen
            | Self::Pcie4Queues
            | Self::Pcie64Queues
            | Self::Pcie4InTurn
            | Self::Pcie64InTurn
            | Self::PcieRead => 16_384,
            Self::Set | Self::Get | Self::SetEverySecond => 16_000,
            Self::SimulatedStore | Self::SimulatedOverwrite | Self::SimulatedRetrieve => 20_000,
        }
    }

    /// Prepares what the path needs, and executes `operations` of it.
    pub(crate) fn run(self, operations: u64) {
        match self {
            Self::DiskStore => commands::on_a_disk(commands::Kind::Store, operations),
            Self::DiskGet => commands::on_a_disk(commands::Kind::Retrieve, operations),
            Self::DiskOpen => opening::of_a_crashed_drive(operations),
            Self::TcpStore => fabric::run(commands::Kind::Store, operations),
            Self::TcpGet => fabric::run(commands::Kind::Retrieve, operations),
            Self::Pcie4Queues => pcie::run(Usage::One, 4, operations),
            Self::Pcie64Queues => pcie::run(Usage::One, 64, operations),
            Self::Pcie4InTurn => pcie::run(Usage::InTurn, 4, operations),
            Self::Pcie64InTurn => pcie::run(Usage::InTurn, 64, operations),
            Self::PcieRead => pcie::read_blocks(operations),
            Self::Set => redis::in_memory(redis::Kind::Set, operations),
            Self::Get => redis::in_memory(redis::Kind::Get, operations),
            Self::SetEverySecond => redis::on_a_disk(operations),
            Self::SimulatedStore => commands::simulated(Simulated::Store, operations),
            Self::SimulatedOverwrite => commands::simulated(Simulated::Overwrite, operations),
            Self::SimulatedRetrieve => commands::simulated(Simulated::Retrieve, operations),
        }
    }
}
