use crate::levels::Levels;
use base::Nanos;

/// How the array computes the time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each step waits for its resource and then takes its time.
    Staged,
    /// One next-free time for each die and channel, advanced when an operation arrives. Planes,
    /// suspends, the order of classes and `cache_busy` have no effect.
    Scalar,
}

/// Page registers of a die with [`Planes::Alone`], otherwise of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// The array is idle while the register's page is on the channel.
    Single,
    /// One page can be on the channel while the array works on another.
    Double,
}

/// How the planes of a die work at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planes {
    /// One operation: the die has one array, with registers as of one plane.
    Alone,
    /// One kind of operation. When the array begins one, waiting or simultaneous ones of the same
    /// kind for other planes join it. Programs wait for those of other planes whose data is in
    /// transfer.
    Together,
    /// Independently: each plane has an array.
    Independent,
}

/// In which order waiting operations are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By class: reads overtake waiting work, and suspend work that can be suspended.
    Class,
    /// First come, first served. Nothing is suspended.
    Arrival,
}

/// The mean number of retries of a read, linear in the erases of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Retries of a million reads of a block that was never erased.
    pub fresh_ppm: u32,
    /// The same after `endurance` erases. The line continues beyond that.
    pub worn_ppm: u32,
    /// Erases that wear a block out; 0: blocks do not wear.
    pub endurance: u32,
}

/// How long the steps of an operation take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How waits are computed.
    pub model: Model,
    /// Page registers of each die or plane.
    pub registers: Registers,
    /// Times between the cells and a register.
    pub levels: Levels,
    /// Erasing a block: `t_BERS`.
    pub erase: Nanos,
    /// Rate of each channel; 0 for no limit.
    pub channel_bytes_per_second: u64,
    /// Reads move whole multiples of this over the channel, as codewords; at least 1.
    pub transfer_bytes: u32,
    /// With two registers, the additional time in the array of each read and program, for the copy
    /// between the registers: `t_RCBSY`, `t_CBSY`.
    pub cache_busy: Nanos,
    /// How the planes of a die work at a time.
    pub planes: Planes,
    /// How long a program takes to be suspended for a host's read; `None` if it cannot be.
    pub program_suspend: Option<Nanos>,
    /// The same for an erase.
    pub erase_suspend: Option<Nanos>,
    /// How long either takes to resume.
    pub resume: Nanos,
    /// In which order waiting operations are served.
    pub order: Order,
    /// The most deviation of a page's read and program times, in millionths, below a million: half
    /// of it is the die's, half the page's.
    pub variability_ppm: u32,
    /// Retry senses of reads.
    pub retries: Retries,
    /// The seed of the deviations and retries.
    pub seed: u64,
}

impl Timing {
    /// Returns equal times for all pages, without optional abilities of a device.
    pub const fn uniform(
        model: Model,
        registers: Registers,
        read: Nanos,
        program: Nanos,
        erase: Nanos,
        channel_bytes_per_second: u64,
    ) -> Self {
        Self {
            model,
            registers,
            levels: Levels::uniform(read, program),
            erase,
            channel_bytes_per_second,
            transfer_bytes: 1,
            cache_busy: Nanos::ZERO,
            planes: Planes::Alone,
            program_suspend: None,
            erase_suspend: None,
            resume: Nanos::ZERO,
            order: Order::Class,
            variability_ppm: 0,
            retries: Retries { fresh_ppm: 0, worn_ppm: 0, endurance: 0 },
            seed: 0,
        }
    }
}
