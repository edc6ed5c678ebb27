use std::time::{Duration, Instant};

/// For how long somebody may still seem to have a disk or an address who has just gone: the kernel
/// lets go of a file or a socket only when the last of its own threads that worked on it has, which
/// may be after the process that asked it to is told, or has ended. That takes milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);

const STEP: Duration = Duration::from_millis(5);

/// What `attempt` returns, which is made again for half a second when somebody seems to have what
/// it is about. Blocks the thread: for what is done before anything is served.
pub fn patiently<T>(mut attempt: impl FnMut() -> T, is_taken: impl Fn(&T) -> bool) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        let outcome = attempt();
        if !is_taken(&outcome) || Instant::now() >= until {
            return outcome;
        }
        std::thread::sleep(STEP);
    }
}
