//! What memory this process takes, as Linux counts it.

use base::human_bytes;

const STATUS: &str = "/proc/self/status";

/// Resident bytes, if the system reports them.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    resident: Option<u64>,
    peak: Option<u64>,
}

impl Memory {
    pub(crate) fn now() -> Self {
        let status = std::fs::read_to_string(STATUS).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(number * 1024)
        };
        Self { resident: kib("VmRSS:"), peak: kib("VmHWM:") }
    }

    pub(crate) fn resident(&self) -> String {
        text(self.resident)
    }

    pub(crate) fn peak(&self) -> String {
        text(self.peak)
    }

    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    pub(crate) fn bytes_each_since(&self, before: &Self, count: u64) -> String {
        let (Some(resident), Some(before)) = (self.resident, before.resident) else {
            return unknown();
        };
        format!("{:.1}", resident.saturating_sub(before) as f64 / count as f64)
    }
}

fn text(bytes: Option<u64>) -> String {
    bytes.map_or_else(unknown, human_bytes)
}

fn unknown() -> String {
    format!("unknown ({STATUS} does not say)")
}
