use std::time::{Duration, Instant};

/// How long to retry EBUSY and EADDRINUSE: the kernel releases a file or a socket when the last of
/// its own threads is done with it, which may be a few ms after the process that had it exits.
const RETRY_LIMIT: Duration = Duration::from_millis(500);

const STEP: Duration = Duration::from_millis(5);

/// Repeats `attempt` for up to 500 ms as long as `is_taken` finds its outcome busy, and returns the
/// last outcome. Blocks the thread, so it is only for start-up.
pub fn retry_busy<T>(mut attempt: impl FnMut() -> T, is_taken: impl Fn(&T) -> bool) -> T {
    let until = Instant::now() + RETRY_LIMIT;
    loop {
        let outcome = attempt();
        if !is_taken(&outcome) || Instant::now() >= until {
            return outcome;
        }
        std::thread::sleep(STEP);
    }
}
