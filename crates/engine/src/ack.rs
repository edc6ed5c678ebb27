/// When a store is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// When its page is programmed. A page is padded and programmed when no announced store is to
    /// join it.
    Program,
    /// When it is in memory that outlives a loss of power.
    Buffer {
        /// The size of that memory: stores wait while it is full.
        bytes: u64,
    },
}
