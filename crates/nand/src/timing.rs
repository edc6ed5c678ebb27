use crate::levels::Levels;
use base::Nanos;

/// How the time of an operation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each step waits for what it needs and then takes its time.
    Staged,
    /// One next-free time for each die and channel, advanced when an operation arrives. Planes,
    /// suspends, the order of classes and `cache_busy` mean nothing to it.
    Scalar,
}

/// Page registers of a die whose planes are [`Planes::Alone`], else of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// The array is idle while the register's page is on the channel.
    Single,
    /// One page can be on the channel while the array works on another.
    Double,
}

/// What the planes of a die do at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planes {
    /// One operation: the die has one array and registers as if it were one plane.
    Alone,
    /// One kind of operation: when the array takes up one, those of the same kind for other planes
    /// go with it that wait or come at the same instant. Programs wait for those of other planes
    /// whose data is on the way.
    Together,
    /// Anything: each plane has an array.
    Independent,
}

/// In which order waiting operations are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The more urgent class: reads pass what waits, and suspend what can be suspended.
    Class,
    /// First come, first served. Nothing is suspended.
    Arrival,
}

/// How often reads sense again, on average: linear in the erases of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Further senses of a million reads of a block that was never erased.
    pub fresh_ppm: u32,
    /// The same, of a block that was erased `endurance` times. Beyond that the line goes on.
    pub worn_ppm: u32,
    /// Erases that wear a block out; with 0 it is always fresh.
    pub endurance: u32,
}

/// How long the steps of an operation take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How waiting is found.
    pub model: Model,
    /// Page registers of each die or plane.
    pub registers: Registers,
    /// Between the cells and a register.
    pub levels: Levels,
    /// Erasing a block: `t_BERS`.
    pub erase: Nanos,
    /// Rate of each channel; 0 for no limit.
    pub channel_bytes_per_second: u64,
    /// Reads move whole multiples of this over the channel, as codewords; at least 1.
    pub transfer_bytes: u32,
    /// With two registers, how much longer each read and program has the array, while a page is
    /// copied between them: `t_RCBSY`, `t_CBSY`.
    pub cache_busy: Nanos,
    /// What the planes of a die do at a time.
    pub planes: Planes,
    /// How long a program takes to be suspended for a host's read; `None` if it cannot be.
    pub program_suspend: Option<Nanos>,
    /// The same for an erase.
    pub erase_suspend: Option<Nanos>,
    /// How long either takes to resume.
    pub resume: Nanos,
    /// In which order waiting operations are served.
    pub order: Order,
    /// By how many millionths at most, below a million, the read and program times of a page are
    /// off: half of it is the die's, half the page's.
    pub variability_ppm: u32,
    /// Senses beyond the first.
    pub retries: Retries,
    /// Draws what differs from page to page.
    pub seed: u64,
}

impl Timing {
    /// All pages alike, and none of what a device can do beyond reading, programming and erasing.
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
