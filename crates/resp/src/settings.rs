use crate::client_limits::ClientLimits;
use base::Nanos;

/// How a door is to work.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many databases clients can select: at most 16,382.
    pub databases: u16,
    /// What clients may have.
    pub clients: ClientLimits,
    /// When answers say that something is durable, as INFO has it.
    pub durability: &'static str,
    /// Bytes of answers that wait for a client to read them, before no more of its requests are
    /// taken. One answer may be longer, and so may be those to 16 GETs that came together.
    pub output_bytes_max: usize,
    /// Bytes of values that one command reads, or those of one EXEC do.
    pub read_bytes_max: usize,
    /// How long a client may take to read what is left when its connection ends.
    pub timeout: Nanos,
    /// Reads what the machine says of the server's process.
    pub process: Option<fn() -> Option<Process>>,
    /// Decides which key is a random one.
    pub seed: u64,
}

/// What the machine says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Processor time that it took itself.
    pub user: Nanos,
    /// Processor time that the system took for it.
    pub system: Nanos,
    /// Bytes of its memory that are resident.
    pub resident_bytes: u64,
}

impl Default for Settings {
    /// 16 databases, as every client expects; 64 MiB for what a request reads, 16 MiB for answers.
    fn default() -> Self {
        Self {
            databases: 16,
            clients: ClientLimits::default(),
            durability: "none",
            output_bytes_max: 16 << 20,
            read_bytes_max: 64 << 20,
            timeout: Nanos(10_000_000_000),
            process: None,
            seed: 1,
        }
    }
}
