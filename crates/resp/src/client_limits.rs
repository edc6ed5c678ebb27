/// What clients may have at first. CONFIG SET changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Clients at a time, and never more than this.
    pub clients: u32,
    /// Bytes of memory for one request.
    pub query_bytes: u64,
    /// Bytes of answers that a client has not taken: one with more is closed. 0 for no such limit;
    /// no more requests are taken then from some bytes on.
    pub output_bytes: u64,
    /// Seconds for which a client may do nothing before it is closed; 0 for ever.
    pub timeout_seconds: u32,
}

impl ClientLimits {
    /// As many clients as Redis accepts; a client may leave its replies unread.
    pub const DEFAULT: Self =
        Self { clients: 10_000, query_bytes: 64 << 20, output_bytes: 0, timeout_seconds: 0 };
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
