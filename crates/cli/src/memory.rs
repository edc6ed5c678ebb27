//! The memory of the machine.

use std::fs::read_to_string;

/// Returns the memory in bytes that this process can use: the machine's, or less if its control
/// group has a limit. Returns `None` if the kernel does not report it.
pub(crate) fn total_bytes() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| mem_total(&text))?;
    let group = read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = group.and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(machine, |limit: u64| limit.min(machine)))
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::mem_total;

    #[test]
    fn the_total_is_read_in_bytes() {
        let text = "MemFree:   12 kB\nMemTotal:       24607552 kB\nMemTotal: 1 kB\n";
        assert_eq!(mem_total(text), Some(24_607_552 * 1024));
        for other in ["", "MemTotal: many kB", "MemTotal: 12", "MemTotal: 99999999999999999 kB"] {
            assert_eq!(mem_total(other), None);
        }
    }
}
