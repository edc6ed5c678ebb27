use crate::schedule::{Schedule, with};
use crate::unix_millis::UnixMillis;
use base::Nanos;
use std::time::Duration;

/// Returns the date on the device's clock.
#[inline]
pub fn unix_now() -> UnixMillis {
    with(|schedule| schedule.date_at(schedule.now))
}

/// The date for hosts, at [`host_now`](crate::host_now): never before the date that a host on this
/// machine has read.
pub fn host_unix_now() -> UnixMillis {
    with(|schedule| schedule.date_at(schedule.host_now()))
}

/// Sets the date on the device's clock, from where it advances with the clock. A loss of power
/// clears it: as with a drive, the host sets the date after each start.
///
/// # Panics
/// When that would turn the date back: expired values would be visible again.
pub fn set_unix_now(date: UnixMillis) {
    with(|schedule| {
        schedule.unix_part = Nanos(0);
        let since = schedule.now.0 / 1_000_000;
        let begun = UnixMillis(date.0.saturating_sub(since));
        assert!(begun >= schedule.unix_start, "the date on a clock goes forward");
        schedule.unix_start = begun;
    });
}

impl Schedule {
    /// Sets the date from outside: so long after the beginning of 1970, or to what it is by now if
    /// that is later.
    pub fn set_date(&mut self, since_1970: Duration) {
        let begun = since_1970.saturating_sub(Duration::from_nanos(self.now.0));
        let start = UnixMillis(u64::try_from(begun.as_millis()).unwrap_or(u64::MAX));
        let part = Nanos(u64::from(begun.subsec_nanos() % 1_000_000));
        if (start, part) > (self.unix_start, self.unix_part) {
            (self.unix_start, self.unix_part) = (start, part);
        }
    }

    pub(crate) fn date_at(&self, now: Nanos) -> UnixMillis {
        self.unix_start.after(Nanos(now.0 + self.unix_part.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{install, uninstall};

    /// Runs `f` on a clock that stands at `now`.
    fn at(
        now: Nanos,
        f: impl FnOnce() + std::panic::UnwindSafe,
    ) -> Result<(), Box<dyn std::any::Any + Send>> {
        install(Box::new(Schedule::new(None)));
        with(|schedule| schedule.now = now);
        let result = std::panic::catch_unwind(f);
        uninstall();
        result
    }

    #[test]
    fn a_clock_that_was_told_no_date_began_in_2026() {
        // 2026 - 1970 years, of which 14 had a 29th of February.
        let days = 56 * 365 + 14;
        assert_eq!(UnixMillis::START, UnixMillis(days * 24 * 3_600 * 1_000));
        let later = Nanos::from_micros(2_500);
        at(later, || assert_eq!(unix_now(), UnixMillis(UnixMillis::START.0 + 2))).unwrap();
    }

    #[test]
    fn a_date_from_outside_is_exact() {
        let mut schedule = Schedule::new(None);
        let start = Duration::from_millis(UnixMillis::START.0);
        for micros in [0_u64, 1, 300, 999, 1_000, 1_700, 5_432_100] {
            schedule.now = Nanos::from_micros(micros * 3);
            let date = start + Duration::from_micros(1_000_000 * micros + 700);
            schedule.set_date(date);
            for later in [0, 299, 300, 301, 1_300] {
                let at = Nanos(schedule.now.0 + later * 1_000);
                let expected = (date + Duration::from_micros(later)).as_millis();
                assert_eq!(u128::from(schedule.date_at(at).0), expected, "{micros} {later}");
            }
        }
    }

    #[test]
    fn a_date_advances_with_the_clock_and_never_goes_back() {
        let date = UnixMillis(UnixMillis::START.0 + 10_000);
        let set = move || {
            set_unix_now(date);
            assert_eq!(unix_now(), date);
            with(|schedule| schedule.now = Nanos::from_micros(7_000_000));
            assert_eq!(unix_now(), UnixMillis(date.0 + 2_000));
        };
        at(Nanos::from_micros(5_000_000), set).unwrap();
        let back = move || {
            set_unix_now(date);
            set_unix_now(UnixMillis(date.0 - 1));
        };
        assert!(at(Nanos::default(), back).is_err());
    }
}
