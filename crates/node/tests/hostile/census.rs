//! What this process has, the server in it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Open sockets.
pub(crate) fn sockets() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok);
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// Bytes of memory in use.
pub(crate) fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.and_then(|text| text.parse::<u64>().ok()).expect("Linux tells VmRSS") << 10
}

/// Bytes that this kernel takes at most of what a socket is to send.
pub(crate) fn send_buffer_max() -> u64 {
    let sizes = fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap();
    let most = sizes.split_whitespace().nth(2).and_then(|size| size.parse().ok());
    most.expect("Linux tells the least, the usual and the most")
}

/// Waits until so many sockets are open.
#[track_caller]
pub(crate) fn wait_for_sockets(count: usize, timeout: Duration) {
    let start = Instant::now();
    loop {
        let found = sockets();
        if found == count {
            return;
        }
        assert!(start.elapsed() < timeout, "{found} sockets stay open in place of {count}");
        thread::sleep(Duration::from_millis(1));
    }
}
