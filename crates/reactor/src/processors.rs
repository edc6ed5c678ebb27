//! The processors that a thread runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Processors have numbers below this one: Linux calls this `CPU_SETSIZE`.
#[expect(clippy::cast_possible_truncation, reason = "it is 1024")]
pub const PROCESSORS_MAX: u16 = CpuSet::MAX_CPU as u16;

/// Returns the processors that the calling thread may run on, in rising order.
///
/// # Errors
/// That of the system, as where it has more than [`PROCESSORS_MAX`].
pub fn processors() -> io::Result<Vec<u16>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..PROCESSORS_MAX).filter(|processor| allowed.is_set(usize::from(*processor))).collect())
}

/// Has the calling thread run on this processor only.
///
/// # Errors
/// That of the system, where the thread may not run there.
///
/// # Panics
/// If `processor` is [`PROCESSORS_MAX`] or more.
pub fn run_on(processor: u16) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(usize::from(processor));
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_on_the_processor_that_it_is_given() {
        let allowed = processors().unwrap();
        for processor in allowed {
            let ran_on = std::thread::spawn(move || {
                run_on(processor).unwrap();
                processors().unwrap()
            });
            assert_eq!(ran_on.join().unwrap(), [processor]);
        }
    }
}
