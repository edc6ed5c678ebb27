//! Limits of clients of the Redis protocol, as they are said on a command line or in a file.

use base::{GIB, MIB, human_bytes, parse_size};
use resp::ClientLimits;

/// Bytes for one request: as little as Redis has it, and more than any request needs.
const QUERY: (u64, u64) = (MIB, 4 * GIB);
/// Bytes of answers that a client has not taken.
const OUTPUT: (u64, u64) = (64 << 10, 64 * GIB);

/// Clients that a device has at a time, at most.
const CLIENTS_MAX: u32 = 65_536;

/// What clients may have unless it is said: as many as there is place for on the server.
pub const CLIENT_LIMITS: ClientLimits =
    ClientLimits { clients: CLIENTS_MAX, ..ClientLimits::DEFAULT };

/// The number of clients that `text` says.
pub fn resp_clients(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=CLIENTS_MAX).contains(number));
    number.ok_or_else(|| {
        format!("the number of clients must be a whole number from 1 to {CLIENTS_MAX}")
    })
}

/// The memory for one request that `text` says.
pub fn resp_query(text: &str) -> Result<u64, String> {
    within(QUERY, parse_size(text).map_err(|error| error.to_string())?)
}

/// The bytes of answers that `text` says, or `off`.
pub fn resp_output(text: &str) -> Result<u64, String> {
    match text {
        "off" => Ok(0),
        size => within(OUTPUT, parse_size(size).map_err(|error| format!("{error}, or say off"))?),
    }
}

/// The seconds that `text` says, or `off`.
pub fn resp_timeout(text: &str) -> Result<u32, String> {
    const SECONDS_MAX: u32 = i32::MAX as u32;
    if text == "off" {
        return Ok(0);
    }
    let seconds = text.strip_suffix('s').and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
    seconds.ok_or_else(|| {
        format!("a timeout must be a number of seconds, as 300s, or off, not {text:?}")
    })
}

fn within((least, most): (u64, u64), size: u64) -> Result<u64, String> {
    if (least..=most).contains(&size) {
        return Ok(size);
    }
    let [least, most] = [least, most].map(human_bytes);
    Err(format!("the size must be from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_refused_with_a_sentence() {
        assert_eq!(resp_clients("100"), Ok(100));
        assert_eq!(resp_query("1MiB"), Ok(MIB));
        assert_eq!((resp_output("64KiB"), resp_output("off")), (Ok(64 << 10), Ok(0)));
        assert_eq!((resp_timeout("300s"), resp_timeout("off")), (Ok(300), Ok(0)));
        for wrong in ["0", "-1", "65537", "x", ""] {
            assert!(resp_clients(wrong).is_err(), "{wrong}");
        }
        for wrong in ["300", "0s", "-1s", "s", "2147483648s"] {
            assert!(resp_timeout(wrong).is_err(), "{wrong}");
        }
        assert!(resp_query("1023KiB").is_err() && resp_query("off").is_err());
        assert!(resp_output("1KiB").is_err() && resp_output("x").is_err());
    }
}
