use crate::permutation::Permutation;
use crate::zipfian::Zipfian;
use base::Rng;
use serde::{Deserialize, Serialize};

/// How often each key is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All equally often.
    #[default]
    Uniform,
    /// By Zipf's law with YCSB's exponent 0.99; hot keys are spread over the key numbers.
    Zipfian,
    /// As `Zipfian`, but the newer a key, the hotter it is: the key with the highest number most.
    Latest,
    /// In the order of their bytes, cyclically. They are also stored and deleted in this order.
    Sequential,
}

impl Distribution {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
            Self::Sequential => "sequential",
        }
    }
}

/// Draws key numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chooser {
    rng: Rng,
    law: Law,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Law {
    Uniform,
    Zipfian { ranks: Zipfian, spread: Permutation },
    Latest { ranks: Zipfian },
    Sequential { next: u64 },
}

impl Chooser {
    /// Returns a chooser of `keys` key numbers, at least one, to which the run may add `expected`
    /// others. `seed` determines the draws.
    ///
    /// As in YCSB, Zipf's law covers the expected keys too, so that a new key does not change which
    /// keys are hot. It never draws keys beyond the expected ones.
    pub fn new(distribution: Distribution, keys: u64, expected: u64, seed: u64) -> Self {
        assert!(keys > 0, "there is a key to choose");
        let mut rng = Rng::new(seed);
        let law = match distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipfian => Law::Zipfian {
                ranks: Zipfian::new(keys + expected),
                spread: Permutation::new(keys + expected, rng.next_u64()),
            },
            Distribution::Latest => Law::Latest { ranks: Zipfian::new(keys) },
            Distribution::Sequential => Law::Sequential { next: 0 },
        };
        Self { rng, law }
    }

    /// Draws a key number below `keys`, which is never less than at the draw before.
    #[inline]
    pub fn draw(&mut self, keys: u64) -> u64 {
        match &mut self.law {
            Law::Uniform => self.rng.below(keys),
            Law::Zipfian { ranks, spread } => loop {
                let key = spread.at(ranks.rank(&mut self.rng));
                if key < keys {
                    return key;
                }
            },
            Law::Latest { ranks } => {
                while ranks.count() < keys {
                    ranks.grow();
                }
                keys - 1 - ranks.rank(&mut self.rng)
            }
            Law::Sequential { next } => {
                let key = if *next < keys { *next } else { 0 };
                *next = key + 1;
                key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: Distribution, keys: u64, draws: u32) -> Vec<u32> {
        let mut chooser = Chooser::new(distribution, keys, 0, 9);
        let mut seen = vec![0; usize::try_from(keys).unwrap()];
        (0..draws).for_each(|_| seen[usize::try_from(chooser.draw(keys)).unwrap()] += 1);
        seen
    }

    #[test]
    fn uniform_draws_are_uniform() {
        let seen = counts(Distribution::Uniform, 1_000, 1_000_000);
        let chi_square: f64 =
            seen.iter().map(|&seen| (f64::from(seen) - 1_000.0).powi(2) / 1_000.0).sum();
        // 999 degrees of freedom: 999 +- 4 sqrt(2 * 999).
        assert!((820.0..1_178.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn hot_keys_have_zipfs_shares_and_lie_anywhere() {
        let seen = counts(Distribution::Zipfian, 10_000, 1_000_000);
        let mut ranked: Vec<usize> = (0..seen.len()).collect();
        ranked.sort_by_key(|&key| std::cmp::Reverse(seen[key]));
        // Sum of k^-0.99 for k to 10,000, from a table.
        let zeta: f64 = (1..=10_000).map(|k| f64::from(k).powf(-0.99)).sum();
        for (rank, weight) in [(0, 1.0), (1, 2.0_f64.powf(-0.99))] {
            let share = f64::from(seen[ranked[rank]]) / 1e6;
            assert!((share * zeta / weight - 1.0).abs() < 0.02, "rank {rank}: {share}");
        }
        let in_first_half = ranked[..100].iter().filter(|&&key| key < 5_000).count();
        assert!((30..70).contains(&in_first_half), "{in_first_half} of the 100 hottest");
        assert_eq!(seen.iter().map(|&seen| u64::from(seen)).sum::<u64>(), 1_000_000);
    }

    #[test]
    fn new_keys_are_drawn_as_soon_as_they_are_there() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian, Distribution::Latest] {
            let mut chooser = Chooser::new(distribution, 100, 100, 1);
            for keys in 100..=200_u64 {
                let draws: Vec<u64> = (0..3_000).map(|_| chooser.draw(keys)).collect();
                assert!(draws.iter().all(|&key| key < keys), "{distribution:?}");
                // The rarest of 200 keys gets a share of 1 in 1,170 by Zipf's law.
                let newest = draws.iter().filter(|&&key| key >= keys - 10).count();
                assert!(newest > 0, "{distribution:?}, {keys} keys");
            }
        }
    }

    #[test]
    fn zipfs_law_over_expected_keys_keeps_hot_keys_hot() {
        // Redrawing keeps the ratios of the shares: those of the keys that are there are the shares
        // of the whole law, scaled up.
        let seen = |keys| {
            let mut chooser = Chooser::new(Distribution::Zipfian, 500, 500, 3);
            let mut seen = vec![0_u32; 1_000];
            (0..1_000_000).for_each(|_| seen[usize::try_from(chooser.draw(keys)).unwrap()] += 1);
            seen
        };
        let (before, after) = (seen(500), seen(1_000));
        assert!(before[500..].iter().all(|&count| count == 0));
        let total: u32 = after[..500].iter().sum();
        let scale = 1e6 / f64::from(total);
        for (&before, &after) in before.iter().zip(&after).take(500) {
            let (expected, found) = (f64::from(after) * scale, f64::from(before));
            // Five standard deviations of two counts.
            let slack = 5.0 * (found + expected * scale).sqrt() + 1.0;
            assert!((found - expected).abs() < slack, "{found} and {expected}");
        }
    }

    #[test]
    fn the_newest_key_is_the_hottest_and_the_others_follow_by_age() {
        let mut chooser = Chooser::new(Distribution::Latest, 1_000, 0, 5);
        let mut by_age = vec![0_u32; 5_000];
        // Keys are added in the loop, so that an age belongs to another key each time.
        for keys in 1_000..5_000 {
            for _ in 0..250 {
                by_age[usize::try_from(keys - 1 - chooser.draw(keys)).unwrap()] += 1;
            }
        }
        // The sum of the shares that an age has of the keys at each number of them.
        let mut zeta: f64 = (1..1_000).map(|k| f64::from(k).powf(-0.99)).sum();
        let mut inverse = 0.0;
        for keys in 1_000..5_000 {
            zeta += f64::from(keys).powf(-0.99);
            inverse += 250.0 / zeta;
        }
        for age in [0_u32, 1] {
            let expected = f64::from(age + 1).powf(-0.99) * inverse;
            let found = f64::from(by_age[age as usize]);
            assert!((found / expected - 1.0).abs() < 0.02, "age {age}: {found}, {expected}");
        }
        let newest_tenth: u32 = by_age[..100].iter().sum();
        // zeta(100) / zeta(n) is between 0.55 and 0.68 for 1,000 to 5,000 keys.
        assert!((550_000..680_000).contains(&newest_tenth), "{newest_tenth}");
    }

    #[test]
    fn in_sequence_each_key_comes_in_turn_and_around_again() {
        let mut chooser = Chooser::new(Distribution::Sequential, 3, 0, 1);
        let mut draw = |keys, count| (0..count).map(|_| chooser.draw(keys)).collect::<Vec<u64>>();
        assert_eq!(draw(3, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(draw(4, 5), [1, 2, 3, 0, 1], "a new key comes in its turn");
    }

    #[test]
    fn a_seed_names_the_draws() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian, Distribution::Latest] {
            let draws = |seed| {
                let mut chooser = Chooser::new(distribution, 1_000, 0, seed);
                (0..100).map(|_| chooser.draw(1_000)).collect::<Vec<u64>>()
            };
            assert_eq!(draws(1), draws(1));
            assert_ne!(draws(1), draws(2));
        }
    }
}
