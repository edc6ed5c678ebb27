//! Delta debugging (Zeller and Hildebrandt, 2002): which of the faults of a failing run are needed
//! for it to fail.

use crate::faults::RunFaults;
use std::time::{Duration, Instant};

/// A shorter plan with which `fails` still holds, as short as `time` allows. It holds for `faults`.
pub(crate) fn shortened(
    faults: &RunFaults,
    time: Duration,
    mut fails: impl FnMut(&RunFaults) -> bool,
) -> RunFaults {
    let end = Instant::now() + time;
    let mut kept: Vec<usize> = (0..faults.rules()).collect();
    let of = |kept: &[usize]| faults.only(|rule| kept.contains(&rule));
    if !kept.is_empty() && fails(&of(&[])) {
        return of(&[]);
    }
    let mut parts = 2;
    while kept.len() > 1 && Instant::now() < end {
        let size = kept.len().div_ceil(parts);
        let chunks: Vec<Vec<usize>> = kept.chunks(size).map(<[usize]>::to_vec).collect();
        let without = |chunk: &Vec<usize>| -> Vec<usize> {
            kept.iter().filter(|rule| !chunk.contains(rule)).copied().collect()
        };
        let mut candidates = chunks.iter().cloned().chain(chunks.iter().map(without));
        let shorter = candidates
            .find(|some| some.len() < kept.len() && Instant::now() < end && fails(&of(some)));
        match shorter {
            Some(some) => (kept, parts) = (some, 2),
            None if parts >= kept.len() => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    of(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::{FaultKind, FaultPlan, FaultRule, When};

    /// Two devices with eight faults each.
    fn faults() -> RunFaults {
        let plan = |first: u64| FaultPlan {
            seed: first,
            rules: (first..first + 8)
                .map(|nth| FaultRule::new(FaultKind::UncorrectableRead, When::Nth(nth)))
                .collect(),
        };
        RunFaults(vec![plan(1), plan(101)])
    }

    fn numbers(faults: &RunFaults) -> Vec<u64> {
        let rules = faults.0.iter().flat_map(|plan| &plan.rules);
        rules
            .map(|rule| match rule.when {
                When::Nth(nth) => nth,
                When::Ppm(_) => 0,
            })
            .collect()
    }

    #[test]
    fn what_is_not_needed_to_fail_is_left_out() {
        for needed in [&[][..], &[5], &[2, 107], &[1, 3, 8, 101]] {
            let fails = |faults: &RunFaults| {
                let numbers = numbers(faults);
                needed.iter().all(|nth| numbers.contains(nth))
            };
            let shorter = shortened(&faults(), Duration::from_mins(1), fails);
            assert_eq!(numbers(&shorter), needed);
        }
    }

    #[test]
    fn without_time_all_is_kept() {
        let fails = |faults: &RunFaults| !numbers(faults).is_empty();
        assert_eq!(shortened(&faults(), Duration::ZERO, fails), faults());
    }

    #[test]
    fn a_plan_that_was_written_is_read_back() {
        let faults = faults().only(|rule| rule > 9);
        assert_eq!(RunFaults::parse("test", &faults.text()).0[1], faults.0[1]);
    }
}
