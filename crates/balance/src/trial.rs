//! Whether it pays to divert.

use crate::load::Load;

/// The window of a diversion in which it is judged. In those before, the routes settle.
const JUDGED: u32 = 4;

/// Windows without diversion after the first one that did not pay, and after many.
const PAUSE_MIN: u32 = 20;
const PAUSE_MAX: u32 = 640;

/// Judges diversion by what it does: what a move takes depends on the machine and on the values,
/// and no constant knows it.
///
/// The measure is the capacity: the requests of a window for the busy time of the busiest core of
/// those that divert or take. So a load that grows or falls counts for nothing.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// The cores that divert or take.
    cores: Vec<usize>,
    /// The capacity in the last window without diversion.
    before: f64,
    /// The part of that which diversion must reach.
    least: f64,
    /// Windows since the diversion began.
    windows: u32,
    /// Windows until the next one may begin.
    pause: u32,
    /// The length of the next pause.
    next_pause: u32,
}

impl Trial {
    pub(crate) const NEW: Self = Self {
        cores: Vec::new(),
        before: 0.0,
        least: 0.0,
        windows: 0,
        pause: 0,
        next_pause: PAUSE_MIN,
    };

    /// Ends a window with these `loads`, in which cores were `diverting` or not. `takers` are, for
    /// each core, those that would take requests of it in the next window. Returns whether they
    /// may. A diversion that begins must then reach `least` of the capacity.
    pub(crate) fn end_window(
        &mut self,
        loads: &[Load],
        diverting: bool,
        takers: &[Vec<bool>],
        least: f64,
    ) -> bool {
        if !diverting {
            let takes = |core: usize| takers.iter().any(|takes| takes[core]);
            let diverts = |core: usize| takers[core].contains(&true);
            self.cores = (0..loads.len()).filter(|core| takes(*core) || diverts(*core)).collect();
            (self.before, self.least, self.windows) = (self.capacity(loads), least, 0);
            self.pause = self.pause.saturating_sub(1);
            return self.pause == 0;
        }
        let capacity = self.capacity(loads);
        self.windows = self.windows.saturating_add(1);
        if self.windows != JUDGED {
            return true;
        }
        let pays = capacity >= self.least * self.before;
        if pays {
            self.next_pause = PAUSE_MIN;
        } else {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(PAUSE_MAX);
        }
        pays
    }

    /// Returns the requests of all cores for a nanosecond of the busiest core of the diversion.
    #[expect(clippy::cast_precision_loss, reason = "requests and times of a window, below 2^53")]
    fn capacity(&self, loads: &[Load]) -> f64 {
        let busiest = self.cores.iter().map(|core| loads[*core].busy.0).max();
        let requests: u64 = loads.iter().map(|load| load.commands).sum();
        requests as f64 / busiest.unwrap_or_default().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Nanos;

    /// Two cores that did so many requests, the busiest for so many milliseconds.
    fn loads(commands: u64, millis: u64) -> [Load; 2] {
        let busy = Nanos::from_millis(millis);
        [Load { busy, commands, ..Load::default() }, Load { busy: Nanos(1), ..Load::default() }]
    }

    /// The second core takes requests of the first.
    fn takers() -> [Vec<bool>; 2] {
        [vec![false, true], vec![false, false]]
    }

    /// Returns in how many of the windows cores divert, if that changes the requests of a window
    /// from 1,000 to `diverted`.
    fn diverting(windows: u32, diverted: u64) -> u32 {
        let (mut trial, mut may, mut count) = (Trial::NEW, false, 0);
        for _ in 0..windows {
            let requests = if may { diverted } else { 1_000 };
            count += u32::from(may);
            may = trial.end_window(&loads(requests, 100), may, &takers(), 1.02);
        }
        count
    }

    #[test]
    fn a_diversion_that_pays_stays() {
        assert_eq!(diverting(1_000, 1_030), 999);
    }

    #[test]
    fn one_that_does_not_pay_is_tried_less_and_less() {
        assert_eq!(diverting(5, 1_010), 4);
        assert_eq!(diverting(5 + 20, 1_010), 4);
        assert_eq!(diverting(5 + 21, 1_010), 5);
        let count = diverting(10_000, 1_010);
        assert!((40..140).contains(&count), "{count}");
    }

    #[test]
    fn a_load_that_falls_is_no_loss() {
        let mut trial = Trial::NEW;
        assert!(trial.end_window(&loads(1_000, 100), false, &takers(), 1.02));
        for _ in 0..100 {
            assert!(trial.end_window(&loads(300, 25), true, &takers(), 1.02));
        }
    }

    /// The third core is busy with something else.
    #[test]
    fn what_a_core_without_a_part_in_it_does_is_no_matter() {
        let mut trial = Trial::NEW;
        let with = |first: u64| {
            let [first, second] = loads(1_000, first);
            [first, second, Load { busy: Nanos::from_millis(90), ..Load::default() }]
        };
        let takers = [vec![false, true, false], vec![false; 3], vec![false; 3]];
        assert!(trial.end_window(&with(80), false, &takers, 1.02));
        assert!((0..10).all(|_| trial.end_window(&with(40), true, &takers, 1.02)));
    }
}
