/// A number that others are divided by, with its reciprocal: a multiplication takes far less time
/// than a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    by: u64,
    /// (2^64 - 1) / `by`, rounded down.
    reciprocal: u64,
}

impl Divisor {
    /// Panics if `by` is 0.
    pub const fn new(by: u64) -> Self {
        assert!(by > 0, "nothing is divided by 0");
        Self { by, reciprocal: u64::MAX / by }
    }

    /// The number itself.
    #[inline]
    pub const fn get(self) -> u64 {
        self.by
    }

    /// Returns `number / by` and `number % by`.
    #[inline]
    pub const fn split(self, number: u64) -> (u64, u64) {
        // The quotient or one less: the product is less than number / by, and the difference is
        // number / 2^64 at most, which is less than 1.
        let product = number as u128 * self.reciprocal as u128;
        let quotient = (product >> 64) as u64;
        let rest = number - quotient * self.by;
        if rest < self.by { (quotient, rest) } else { (quotient + 1, rest - self.by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn a_divisor_splits_as_a_division_does() {
        let mut rng = Rng::new(3);
        let mut ends: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) + 1]).collect();
        ends.extend((0..64).map(|bit| u64::MAX >> bit));
        ends.extend((0..200).map(|_| rng.below(u64::MAX) >> rng.below(64)));
        for by in ends.iter().copied().filter(|by| *by > 0) {
            let divisor = Divisor::new(by);
            assert_eq!(divisor.get(), by);
            let around =
                [by - 1, by, by.saturating_add(1), by.saturating_mul(3), u64::MAX / by * by];
            for number in ends.iter().copied().chain(around).chain([0]) {
                assert_eq!(divisor.split(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }
}
