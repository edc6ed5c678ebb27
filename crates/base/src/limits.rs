//! Every bound that more than one crate relies on.

/// Longest key in bytes: the SNIA KV API's `KVS_MAX_KEY_LENGTH` (OpenMPDK `kvs_const.h`).
pub const KEY_BYTES_MAX: usize = 255;

/// Longest key that fits a KV command itself (KV command set 1.0d: CDW2, 3, 14 and 15). A longer
/// one is a transfer of its own.
pub const KEY_BYTES_INLINE: usize = 16;

/// Longest value in bytes: 2 MiB, the SNIA KV API's `KVS_MAX_VALUE_LENGTH`.
pub const VALUE_BYTES_MAX: u32 = 2 << 20;

/// Bytes of a logical block of block and zoned namespaces: what Linux and direct I/O work with.
pub const BLOCK_BYTES: u32 = 4096;

/// Alignment and granularity of buffers: what direct I/O asks of memory on every Linux.
pub const BUF_ALIGN: usize = 4096;

/// Shards of the index and the latches. 64 keeps a lane's lock idle nearly always at the queue
/// depths of real hosts (to 1024) and costs nothing when it is not.
pub const LANES: usize = 64;

/// How often in a row a waiter may be passed by a more urgent class before it goes first.
pub const BYPASS_MAX: u32 = 64;

/// How often a program or an erase may be interrupted for reads before it runs to its end. Keeps
/// what it costs to stop and go on below a few program times.
pub const SUSPENDS_MAX: u32 = 16;

const _: () = assert!(LANES.is_power_of_two(), "a lane is chosen by the top bits of a hash");
const _: () =
    assert!(KEY_BYTES_MAX <= u8::MAX as usize, "record headers hold key length in a byte");
