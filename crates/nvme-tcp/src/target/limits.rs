use base::Nanos;

/// MAXH2CDATA: maximum bytes of data in one `H2CData`. Such a PDU blocks other PDUs of the
/// connection for 40 us at 6.5 GB/s.
pub const H2C_DATA_MAX: u32 = 256 << 10;

/// Timeout for a host to connect (until its first command succeeds, which is a Connect), to finish
/// a PDU that it has begun, and to close the connection.
pub const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Timeout to leave the reactor, after which the connection stays: later commands wait while it
/// leaves, and a host may withhold requested data without end. Longer than most commands take, and
/// a round trip to a distant host.
pub const LEAVE_MAX: Nanos = Nanos::from_millis(100);

/// Commands on a connection at a time, from their arrival until the group of their response is
/// sent: as many as a queue has entries, and a group. If a host sends more, the reader pauses until
/// the first are done.
pub const COMMANDS_MAX: usize = UNANSWERED_MAX + GROUP_MAX;

/// Commands of them without a response: no queue has more entries, and one that gets more commands
/// ends.
pub const UNANSWERED_MAX: usize = 1024;

/// Responses of a group: the slots of their commands become free together.
pub(super) const GROUP_MAX: usize = 16;

/// Data of this many bytes and more is never copied between the stream and its buffer, and counts
/// for the connection's [`super::Budget`]: smaller data is bounded by [`COMMANDS_MAX`].
pub const LARGE: u32 = 16 << 10;
