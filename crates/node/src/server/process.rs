//! What the system says of this process, in `/proc/self` (proc(5)).

use base::Nanos;
use resp::Process;
use std::fs::read_to_string;

/// A tick of the times in `stat`: there are 100 in a second on all machines that this runs on.
const TICK: Nanos = Nanos::from_micros(10_000);

/// Which words of `stat` behind the name are the times of the process itself and of the system.
const TIMES: [usize; 2] = [11, 12];

/// What is known now; `None` where there is no `/proc`.
pub(super) fn read() -> Option<Process> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    parse(std::process::id(), &stat, &read_to_string("/proc/self/status").ok()?)
}

fn parse(id: u32, stat: &str, status: &str) -> Option<Process> {
    // The name may hold anything but ends with the last of these.
    let (_, behind) = stat.rsplit_once(')')?;
    let words: Vec<&str> = behind.split_whitespace().collect();
    let time = |at: usize| Some(Nanos(words.get(at)?.parse::<u64>().ok()? * TICK.0));
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let [user, system] = TIMES.map(time);
    Some(Process { id, user: user?, system: system?, resident_bytes: kib << 10 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_memory_are_those_that_the_system_writes() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 9 0 0 0 123 45 6 7 20 0 3 0 99 1000 200";
        let status = "Name:\tb c\nVmPeak:\t 99 kB\nVmRSS:\t   2048 kB\nThreads:\t1\n";
        let expected = Process {
            id: 7,
            user: Nanos(1_230_000_000),
            system: Nanos(450_000_000),
            resident_bytes: 2 << 20,
        };
        assert_eq!(parse(7, stat, status), Some(expected));
        assert_eq!(parse(7, "7 (a", status), None);
        assert!(read().is_some_and(|process| process.resident_bytes > 0));
    }
}
