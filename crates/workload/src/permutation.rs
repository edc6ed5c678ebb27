use base::Rng;
use serde::{Deserialize, Serialize};

/// The numbers below a count in an order determined by a seed: each once, in constant memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Permutation {
    count: u64,
    /// All bits of the numbers below the next power of two.
    mask: u64,
    /// Half of those bits.
    shift: u32,
    factors: [u64; 3],
}

impl Permutation {
    /// Returns an order of `0..count`, for a count of 1 to 2^63.
    pub const fn new(count: u64, seed: u64) -> Self {
        assert!(count > 0 && count <= 1 << 63, "an order is of 1 to 2^63 numbers");
        let bits = count.next_power_of_two().trailing_zeros();
        let shift = if bits < 2 { 1 } else { bits.div_ceil(2) };
        let mut rng = Rng::new(seed);
        let factors = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        Self { count, mask: (1 << bits) - 1, shift, factors }
    }

    /// Returns the number at `index`, which is below the count.
    #[inline]
    pub const fn at(&self, index: u64) -> u64 {
        assert!(index < self.count, "an index is below the count");
        // Walking along the larger order's cycle until it is back below the count is an order of
        // the numbers below the count; it takes less than two steps on average.
        let mut number = self.shuffle(index);
        while number >= self.count {
            number = self.shuffle(number);
        }
        number
    }

    /// Permutes `0..=mask`: each step can be undone.
    #[inline]
    const fn shuffle(&self, number: u64) -> u64 {
        let [a, b, c] = self.factors;
        self.spread(self.spread(self.spread(number, a), b), c)
    }

    #[inline]
    const fn spread(&self, number: u64, factor: u64) -> u64 {
        // The high bits of the factor, otherwise unused modulo the mask, make the offset.
        let product = number.wrapping_mul(factor | 1).wrapping_add(factor >> 32) & self.mask;
        product ^ (product >> self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(count: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::new(count, seed);
        (0..count).map(|index| permutation.at(index)).collect()
    }

    #[test]
    fn every_number_comes_once() {
        for (count, seed) in (1..300).map(|count| (count, count * 7)).chain([(100_003, 1)]) {
            let mut numbers = order(count, seed);
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count} numbers");
        }
    }

    #[test]
    fn seeds_name_different_orders() {
        assert_eq!(order(1_000, 4), order(1_000, 4));
        assert_ne!(order(1_000, 4), order(1_000, 5));
    }

    #[test]
    fn neighbours_are_as_far_apart_as_in_a_random_order() {
        // Two different numbers below n, drawn at random, differ by n/3 on average.
        const COUNT: u64 = 100_000;
        for seed in 0..20 {
            let numbers = order(COUNT, seed);
            let sum: u64 = numbers.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
            let mean = sum / (COUNT - 1);
            assert!((COUNT / 4..COUNT * 5 / 12).contains(&mean), "seed {seed}: {mean}");
        }
    }

    #[test]
    fn the_first_indexes_cover_the_whole_range() {
        // 64 ranges of 1,000 numbers; a random sample of a tenth puts 100 +- 9.5 in each.
        for seed in 0..20 {
            let mut ranges = [0_u32; 64];
            for number in order(64_000, seed).into_iter().take(6_400) {
                ranges[usize::try_from(number / 1_000).unwrap()] += 1;
            }
            assert!(
                ranges.iter().all(|count| (40..180).contains(count)),
                "seed {seed}: {ranges:?}"
            );
        }
    }
}
