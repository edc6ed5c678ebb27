//! What CONFIG SET changes while the door is open.

use crate::client_limits::ClientLimits;
use crate::failure::Failure;
use crate::number::integer;
use base::Nanos;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A parameter that is a number.
struct Number {
    name: &'static str,
    least: i64,
    most: i64,
    /// Whether it may be said in kb, mb or gb.
    is_size: bool,
}

const fn number(name: &'static str, least: i64, most: i64) -> Number {
    Number { name, least, most, is_size: false }
}

/// With the bounds that Redis has.
const NUMBERS: [Number; 6] = [
    number("slowlog-log-slower-than", -1, i64::MAX),
    number("slowlog-max-len", 0, i64::MAX),
    number("latency-monitor-threshold", 0, i64::MAX),
    number("maxclients", 1, u32::MAX as i64),
    number("timeout", 0, i32::MAX as i64),
    Number { name: "client-query-buffer-limit", least: 1 << 20, most: i64::MAX, is_size: true },
];

const SLOWER_THAN: usize = 0;
const SLOW_LOG_LEN: usize = 1;
const LATENCY: usize = 2;
const CLIENTS: usize = 3;
const TIMEOUT: usize = 4;
const QUERY: usize = 5;

/// The one that is not one number.
const OUTPUT: &str = "client-output-buffer-limit";

/// A change of parameters that can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Number(usize, i64),
    /// Bytes that are too many at once, and those that are after so many seconds.
    Output([i64; 3]),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Parameters {
    numbers: [AtomicI64; NUMBERS.len()],
    output: [AtomicI64; 3],
    clients_most: u32,
}

impl Parameters {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (query, output) = (number(limits.query_bytes), number(limits.output_bytes));
        let (clients, timeout) = (limits.clients, limits.timeout_seconds);
        let numbers = [10_000, 128, 0, i64::from(clients), i64::from(timeout), query];
        Self {
            numbers: numbers.map(AtomicI64::new),
            output: [output, 0, 0].map(AtomicI64::new),
            clients_most: clients,
        }
    }

    fn number(&self, at: usize) -> i64 {
        self.numbers[at].load(Relaxed)
    }

    fn count(&self, at: usize) -> usize {
        usize::try_from(self.number(at)).unwrap_or(usize::MAX)
    }

    /// How long a command takes that is kept in the slow log, if any is.
    pub(crate) fn slower_than(&self) -> Option<Nanos> {
        let micros = u64::try_from(self.number(SLOWER_THAN)).ok()?;
        Some(Nanos(micros.saturating_mul(1_000)))
    }

    pub(crate) fn slow_log_len(&self) -> usize {
        self.count(SLOW_LOG_LEN)
    }

    /// How long a command takes that is an event, if any is.
    pub(crate) fn latency_threshold(&self) -> Option<Nanos> {
        let millis = u64::try_from(self.number(LATENCY)).ok().filter(|millis| *millis > 0)?;
        Some(Nanos(millis.saturating_mul(1_000_000)))
    }

    pub(crate) fn clients_max(&self) -> usize {
        self.count(CLIENTS)
    }

    /// For how long a client may do nothing, if not for ever.
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        let seconds = u64::try_from(self.number(TIMEOUT)).ok().filter(|seconds| *seconds > 0)?;
        Some(Nanos::from_secs(seconds))
    }

    /// Bytes of memory for a request.
    pub(crate) fn query_bytes_max(&self) -> usize {
        self.count(QUERY)
    }

    /// Bytes of answers that are too many.
    #[inline]
    pub(crate) fn output_bytes_max(&self) -> usize {
        limit(self.output[0].load(Relaxed))
    }

    /// Bytes that are too many when there are more of them for so long.
    pub(crate) fn output_bytes_for_long(&self) -> (usize, Nanos) {
        let seconds = u64::try_from(self.output[2].load(Relaxed)).unwrap_or(0);
        (limit(self.output[1].load(Relaxed)), Nanos(seconds.saturating_mul(1_000_000_000)))
    }

    /// Whether a client may do anything for so long only.
    pub(crate) fn has_limits_in_time(&self) -> bool {
        self.timeout().is_some() || self.output_bytes_for_long().0 < usize::MAX
    }

    /// Names and values of all.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, String)> {
        let numbers = NUMBERS.iter().zip(&self.numbers);
        let numbers = numbers.map(|(number, is)| (number.name, is.load(Relaxed).to_string()));
        let [hard, soft, seconds] = [0, 1, 2].map(|at| self.output[at].load(Relaxed));
        numbers.chain([(OUTPUT, format!("normal {hard} {soft} {seconds}"))])
    }

    /// The change that makes the parameter `name` what `text` says; nothing, if there is none of
    /// this name. What is wrong with it is told as Redis tells it.
    pub(crate) fn change(&self, name: &str, text: &[u8]) -> Option<Result<Change, String>> {
        if name == OUTPUT {
            return Some(output(text).map(Change::Output).map_err(str::to_owned));
        }
        let at = NUMBERS.iter().position(|number| number.name == name)?;
        Some(self.number_of(at, text).map(|value| Change::Number(at, value)))
    }

    fn number_of(&self, at: usize, text: &[u8]) -> Result<i64, String> {
        let Number { least, most, is_size, .. } = &NUMBERS[at];
        let value = if *is_size { size(text) } else { integer(text) };
        let value = value.ok_or(match is_size {
            true => "argument must be a memory value",
            false => "argument couldn't be parsed into an integer",
        })?;
        if !(*least..=*most).contains(&value) {
            return Err(format!("argument must be between {least} and {most} inclusive"));
        }
        if at == CLIENTS && value > i64::from(self.clients_most) {
            let most = self.clients_most;
            let text = "The operating system is not able to handle the specified number of clients";
            return Err(format!("{text}, try with {most}"));
        }
        Ok(value)
    }

    pub(crate) fn make(&self, change: Change) {
        match change {
            Change::Number(at, value) => self.numbers[at].store(value, Relaxed),
            Change::Output(values) => {
                for (one, value) in self.output.iter().zip(values) {
                    one.store(value, Relaxed);
                }
            }
        }
    }
}

/// Bytes that may be; 0 is for no limit.
fn limit(bytes: i64) -> usize {
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(usize::MAX)
}

/// A size as Redis reads it: in bytes, k, m and g, or kb, mb and gb, which are powers of two.
fn size(text: &[u8]) -> Option<i64> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let unit: i64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let digits = if digits.is_empty() { b"0" } else { digits };
    std::str::from_utf8(digits).ok()?.parse::<i64>().ok()?.checked_mul(unit)
}

/// The limits of the one class of clients that there is.
fn output(text: &[u8]) -> Result<[i64; 3], &'static str> {
    let words: Vec<_> = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let [class, hard, soft, seconds] = words[..] else {
        return Err("Wrong number of arguments in buffer limit configuration.");
    };
    if !class.eq_ignore_ascii_case(b"normal") {
        return Err("Invalid client class specified in buffer limit configuration.");
    }
    let seconds = integer(seconds).filter(|seconds| *seconds >= 0);
    match (size(hard), size(soft), seconds) {
        (Some(hard), Some(soft), Some(seconds)) => Ok([hard, soft, seconds]),
        _ => Err("Error in hard, soft or soft_seconds setting in buffer limit configuration."),
    }
}

/// Says of a change that it cannot be made.
pub(crate) fn refused(name: &[u8], why: &str) -> Failure {
    let before = "ERR CONFIG SET failed (possibly related to argument '";
    Failure::quoting(before, name, &format!("') - {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_redis_reads_them() {
        let right = [("0", 0), ("12b", 12), ("2K", 2_000), ("2kb", 2_048), ("1MB", 1 << 20)];
        for (text, bytes) in right.into_iter().chain([("3g", 3_000_000_000), ("1gB", 1 << 30)]) {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for wrong in ["-1", "x", "1t", "1 k", "9223372036854775807k"] {
            assert_eq!(size(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
