//! What this process has read from disks and written to them.

/// Bytes of reads and writes that bypassed the page cache or filled it.
#[derive(Clone, Copy)]
pub(crate) struct DiskBytes {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl DiskBytes {
    /// Returns the bytes so far.
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/self/io").expect("the kernel counts I/O");
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|number| number.parse().ok()).expect("proc(5) has the line")
        };
        Self { read: of("read_bytes: "), written: of("write_bytes: ") }
    }
}
