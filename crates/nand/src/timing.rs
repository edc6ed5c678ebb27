use base::Nanos;

/// How the time of an operation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each step waits for what it needs and then takes its time.
    Staged,
    /// One next-free time for each die and channel, advanced when an operation arrives.
    Scalar,
}

/// Page registers of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// The array stands still while the register's page is on the channel.
    Single,
    /// One page can be on the channel while the array works on another.
    Double,
}

/// How long the steps of an operation take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How waiting is found.
    pub model: Model,
    /// Page registers of each die.
    pub registers: Registers,
    /// From the cells to a register: `t_R`.
    pub read: Nanos,
    /// From a register to the cells: `t_PROG`.
    pub program: Nanos,
    /// Erasing a block: `t_BERS`.
    pub erase: Nanos,
    /// Rate of each channel; 0 for no limit.
    pub channel_bytes_per_second: u64,
}
