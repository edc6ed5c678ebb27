//! Times that vary.

use base::{Nanos, Rng};

/// How times vary around their means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// Not at all.
    Constant,
    Exponential,
}

impl Times {
    /// Draws a time with this mean.
    pub(super) fn draw(self, mean: Nanos, rng: &mut Rng) -> Nanos {
        match self {
            Self::Constant => mean,
            Self::Exponential => {
                let (whole, part) = exponential(rng);
                Nanos(mean.0 * whole + part_of(mean, part))
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part below 1 of a time far below 2^52 ns"
)]
fn part_of(mean: Nanos, part: f64) -> u64 {
    (mean.0 as f64 * part) as u64
}

/// Draws from the exponential distribution with the mean 1: its whole part, and the rest. By
/// comparisons alone (von Neumann, "Various techniques used in connection with random digits",
/// 1951), so that every machine draws the same.
fn exponential(rng: &mut Rng) -> (u64, f64) {
    let mut whole = 0;
    loop {
        let first = rng.unit();
        let (mut last, mut falling) = (first, 1);
        loop {
            let next = rng.unit();
            if next >= last {
                break;
            }
            (last, falling) = (next, falling + 1);
        }
        // The chance of an odd number of falling draws is exp(-first).
        if falling % 2 == 1 {
            return (whole, first);
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_time_has_its_mean_and_its_tail() {
        let mut rng = Rng::new(1);
        let draws = 200_000_u32;
        let mean = Nanos(1_000_000);
        let times: Vec<u64> =
            (0..draws).map(|_| Times::Exponential.draw(mean, &mut rng).0).collect();
        let of_all = |count: usize| f64::from(u32::try_from(count).unwrap()) / f64::from(draws);
        let sum: u64 = times.iter().sum();
        let found = f64::from(u32::try_from(sum / u64::from(draws)).unwrap());
        assert!((found / 1e6 - 1.0).abs() < 0.01, "{found}");
        for multiple in [0.5, 1.0, 2.0, 3.0_f64] {
            let above = times.iter().filter(|time| part_of(mean, multiple) < **time).count();
            assert!((of_all(above) - (-multiple).exp()).abs() < 0.005, "{multiple}");
        }
    }
}
