use crate::permutation::Permutation;
use crate::zipfian::Zipfian;
use base::Rng;

/// How often each key is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All as often.
    #[default]
    Uniform,
    /// By Zipf's law with YCSB's exponent 0.99; hot keys are spread over the key numbers.
    Zipfian,
}

/// Draws key numbers.
#[derive(Clone, Debug)]
pub struct Chooser {
    rng: Rng,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform { keys: u64 },
    Zipfian { ranks: Zipfian, spread: Permutation },
}

impl Chooser {
    /// Draws from key numbers `0..keys`, of which there is at least one, as `seed` names them.
    pub fn new(distribution: Distribution, keys: u64, seed: u64) -> Self {
        assert!(keys > 0, "there is a key to choose");
        let mut rng = Rng::new(seed);
        let law = match distribution {
            Distribution::Uniform => Law::Uniform { keys },
            Distribution::Zipfian => Law::Zipfian {
                ranks: Zipfian::new(keys),
                spread: Permutation::new(keys, rng.next_u64()),
            },
        };
        Self { rng, law }
    }

    /// The next key number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        match &self.law {
            Law::Uniform { keys } => self.rng.below(*keys),
            Law::Zipfian { ranks, spread } => spread.at(ranks.rank(&mut self.rng)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: Distribution, keys: u64, draws: u32) -> Vec<u32> {
        let mut chooser = Chooser::new(distribution, keys, 9);
        let mut seen = vec![0; usize::try_from(keys).unwrap()];
        (0..draws).for_each(|_| seen[usize::try_from(chooser.draw()).unwrap()] += 1);
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
    fn a_seed_names_the_draws() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian] {
            let draws = |seed| {
                let mut chooser = Chooser::new(distribution, 1_000, seed);
                (0..100).map(|_| chooser.draw()).collect::<Vec<u64>>()
            };
            assert_eq!(draws(1), draws(1));
            assert_ne!(draws(1), draws(2));
        }
    }
}
