use crate::value_sizes::{SizeMix, ValueSizes};
use crate::zipfian::Zipfian;
use base::mix;

/// Gives the value of each version of each key its length.
#[derive(Clone, Debug)]
pub(crate) struct Sizer {
    seed: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Fixed(u32),
    /// `count` lengths from `min` on.
    Uniform {
        min: u32,
        count: u64,
    },
    Zipfian {
        min: u32,
        ranks: Zipfian,
    },
    Mix {
        mix: SizeMix,
        weight: u64,
    },
}

impl Sizer {
    /// Returns the lengths that `seed` draws from `sizes`, which were validated.
    pub(crate) fn new(sizes: &ValueSizes, seed: u64) -> Self {
        let count = |min: u32, max: u32| u64::from(max - min) + 1;
        let law = match *sizes {
            ValueSizes::Fixed(bytes) => Law::Fixed(bytes),
            ValueSizes::Uniform { min, max } => Law::Uniform { min, count: count(min, max) },
            ValueSizes::Zipfian { min, max } => {
                Law::Zipfian { min, ranks: Zipfian::new(count(min, max)) }
            }
            ValueSizes::Mix(mix) => Law::Mix { mix, weight: mix.weight() },
        };
        Self { seed, law }
    }

    /// Returns the length in bytes of the value of `version` of key number `key`.
    #[inline]
    pub(crate) fn bytes(&self, key: u32, version: u32) -> u32 {
        match &self.law {
            Law::Fixed(bytes) => *bytes,
            _ => self.draw(mix(mix(self.seed ^ u64::from(key)) ^ u64::from(version))),
        }
    }

    /// Returns the length for 64 uniform bits.
    fn draw(&self, bits: u64) -> u32 {
        let above = |min: u32, more: u64| {
            min + u32::try_from(more).expect("lengths of values are far below 2^32")
        };
        match &self.law {
            Law::Fixed(bytes) => *bytes,
            Law::Uniform { min, count } => above(*min, below(bits, *count)),
            Law::Zipfian { min, ranks } => above(*min, ranks.rank_at(unit(bits))),
            Law::Mix { mix, weight } => {
                let mut place = below(bits, *weight);
                for share in mix.shares() {
                    match place.checked_sub(share.weight.into()) {
                        Some(rest) => place = rest,
                        None => return share.bytes,
                    }
                }
                unreachable!("a place is below all weights together")
            }
        }
    }
}

/// As `Rng::below` of a generator whose next word is `bits`.
fn below(bits: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(bits) * u128::from(bound)) >> u64::BITS).expect("below the bound")
}

/// As `Rng::unit` of a generator whose next word is `bits`.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact in an f64")]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const DRAWS: u32 = 1_000_000;

    /// How often each length comes in a million values of 1,000 keys.
    fn counts(text: &str) -> BTreeMap<u32, f64> {
        let sizer = Sizer::new(&text.parse().unwrap(), 7);
        let mut counts = BTreeMap::new();
        for draw in 0..DRAWS {
            *counts.entry(sizer.bytes(draw / 1_000, draw % 1_000)).or_default() += 1.0;
        }
        counts
    }

    fn mean(counts: &BTreeMap<u32, f64>) -> f64 {
        counts.iter().map(|(&bytes, count)| f64::from(bytes) * count).sum::<f64>() / 1e6
    }

    fn stated_mean(text: &str) -> f64 {
        text.parse::<ValueSizes>().unwrap().mean()
    }

    #[test]
    fn uniform_lengths_are_uniform_over_the_whole_range() {
        let counts = counts("uniform:64B-1063B");
        let ends = (counts.first_key_value().unwrap().0, counts.last_key_value().unwrap().0);
        assert_eq!((ends, counts.len()), ((&64, &1_063), 1_000));
        let chi_square: f64 = counts.values().map(|seen| (seen - 1e3).powi(2) / 1e3).sum();
        // 999 degrees of freedom: 999 +- 4 sqrt(2 * 999).
        assert!((820.0..1_178.0).contains(&chi_square), "{chi_square}");
        // Four deviations of the mean: 1,000 / sqrt(12) over sqrt(10^6).
        assert!((mean(&counts) - stated_mean("uniform:64B-1063B")).abs() < 1.2);
    }

    #[test]
    fn the_shortest_lengths_are_the_most_frequent_by_zipfs_law() {
        let text = "zipfian:64B-1063B";
        let counts = counts(text);
        let zeta: f64 = (1..=1_000).map(|k| f64::from(k).powf(-0.99)).sum();
        for (rank, tolerance) in [(0_u32, 0.02), (1, 0.02), (9, 0.08), (99, 0.2)] {
            let expected = f64::from(rank + 1).powf(-0.99) / zeta * 1e6;
            let found = counts[&(64 + rank)];
            // What Gray's method is off by, and four deviations of the count.
            assert!((found / expected - 1.0).abs() < tolerance, "rank {rank}: {found}, {expected}");
        }
        assert!(counts.keys().all(|bytes| (64..=1_063).contains(bytes)));
        // Four deviations of the mean; that of one length is below 300 bytes.
        let (found, stated) = (mean(&counts), stated_mean(text));
        assert!((found - stated).abs() < 1.2, "{found} and {stated}");
    }

    #[test]
    fn the_stated_mean_of_zipfs_lengths_is_that_of_the_draws_over_the_widest_range() {
        let text = "zipfian:0B-2MiB";
        let sizer = Sizer::new(&text.parse().unwrap(), 1);
        // Lengths at evenly spaced places of the law: their mean is its integral.
        let sum: u64 = (0..1_u64 << 22).map(|k| u64::from(sizer.draw((2 * k + 1) << 41))).sum();
        #[expect(clippy::cast_precision_loss, reason = "a sum of 2^22 numbers of 21 bits")]
        let mean = sum as f64 / f64::from(1 << 22);
        let stated = stated_mean(text);
        assert!((mean / stated - 1.0).abs() < 1e-5, "{mean} and {stated}");
    }

    #[test]
    fn a_mix_has_the_shares_of_its_weights() {
        let text = "mix:100B=60,4KiB=30,1MiB=10";
        let counts = counts(text);
        let expected: [(u32, f64); 3] = [(100, 6e5), (4_096, 3e5), (1 << 20, 1e5)];
        assert_eq!(counts.len(), 3);
        for (bytes, expected) in expected {
            let deviation = (expected * (1.0 - expected / 1e6)).sqrt();
            assert!((counts[&bytes] - expected).abs() < 4.0 * deviation, "{bytes} bytes");
        }
        assert!((mean(&counts) / stated_mean(text) - 1.0).abs() < 0.02);
    }

    #[test]
    fn seed_key_and_version_name_a_length() {
        let sizes = "uniform:0B-2MiB".parse().unwrap();
        let lengths = |seed| {
            let sizer = Sizer::new(&sizes, seed);
            let pairs = (0..100).flat_map(|key| (0..100).map(move |version| (key, version)));
            pairs.map(|(key, version)| sizer.bytes(key, version)).collect::<Vec<u32>>()
        };
        assert_eq!(lengths(1), lengths(1));
        let (one, other) = (lengths(1), lengths(2));
        let equal = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(equal < 5, "{equal} of 10,000");
        let mut distinct = one.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // Of 10,000 draws from 2 million, 24 are expected to repeat another.
        assert!(distinct.len() > 9_900, "{}", distinct.len());
    }
}
