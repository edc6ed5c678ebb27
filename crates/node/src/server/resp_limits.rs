//! Parses the limits of Redis clients from a command line or a file.

use base::{GIB, MIB, human_bytes, parse_size};
use resp::ClientLimits;

/// Range of the bytes of one request: the minimum of Redis, and more than any request needs.
const QUERY: (u64, u64) = (MIB, 4 * GIB);
/// Range of the bytes of unread replies of a client.
const OUTPUT: (u64, u64) = (64 << 10, 64 * GIB);

/// Maximum clients of a device at a time.
const CLIENTS_MAX: u32 = 65_536;

/// Default limits: as many clients as the server has slots.
pub const CLIENT_LIMITS: ClientLimits =
    ClientLimits { clients: CLIENTS_MAX, ..ClientLimits::DEFAULT };

/// Parses the number of clients.
pub fn resp_clients(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=CLIENTS_MAX).contains(number));
    number.ok_or_else(|| {
        format!("the number of clients must be a whole number from 1 to {CLIENTS_MAX}")
    })
}

/// Parses the memory for one request.
pub fn resp_query(text: &str) -> Result<u64, String> {
    within(QUERY, parse_size(text).map_err(|error| error.to_string())?)
}

/// Parses the bytes of unread replies, or `off`.
pub fn resp_output(text: &str) -> Result<u64, String> {
    match text {
        "off" => Ok(0),
        size => within(OUTPUT, parse_size(size).map_err(|error| format!("{error}, or say off"))?),
    }
}

/// Parses a timeout in seconds, or `off`.
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
