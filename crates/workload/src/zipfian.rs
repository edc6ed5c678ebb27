use base::Rng;
use serde::{Deserialize, Serialize};

/// Draws ranks by Zipf's law with the exponent 0.99 of YCSB (Cooper et al., 2010), by the method of
/// Gray et al. ("Quickly Generating Billion-Record Synthetic Databases", 1994) that YCSB uses.
///
/// Ranks 0 and 1 have exactly their probabilities. The others share theirs along a smooth curve: of
/// 1,000 ranks or more, rank 2 gets up to a fifth too much, and those from 10 on are within 4.5 %.
///
/// # Without the platform's math library
/// Its powers differ between machines and would feed the digest. The exponent 99/100 needs none:
/// the method's power is the 100th (1 / (1 - 0.99)), by multiplication, and k^-0.99 is the 100th
/// root of k over k, by Newton's method. Additions, multiplications and divisions of IEEE 754 are
/// the same everywhere.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Zipfian {
    count: u64,
    zeta: f64,
    eta: f64,
    /// (1/2)^0.99: the weight of rank 1 against that of rank 0.
    second: f64,
}

/// The number of weights that are summed directly. The rest of the sum is an integral with
/// corrections, whose error is less than 10^-13 beyond this number.
const SUMMED: u64 = 1_000;

impl Zipfian {
    /// Returns ranks `0..count`, at least one.
    pub(crate) fn new(count: u64) -> Self {
        let zeta = zeta(count);
        let second = weight(2.0);
        let eta = eta(count, root100(as_f64(count)), zeta, second);
        Self { count, zeta, eta, second }
    }

    /// Returns the number of ranks.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a rank.
    pub(crate) fn grow(&mut self) {
        self.count += 1;
        let root = root100(as_f64(self.count));
        self.zeta += root / as_f64(self.count);
        self.eta = eta(self.count, root, self.zeta, self.second);
    }

    /// Returns the mean of the ranks.
    pub(crate) fn mean_rank(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // The chances of at least rank 1, 2, 3 and so on. From rank 2 on the method gives
        // (1 - (rank / count)^0.01) / eta.
        let root = root100(as_f64(self.count));
        let (ranks, roots) = (as_f64(self.count) - 2.0, roots_between(2, self.count));
        let from_two = if self.count > 2 { (ranks - roots / root) / self.eta } else { 0.0 };
        1.0 - 1.0 / self.zeta + from_two
    }

    /// Draws a rank; 0 is the most frequent.
    #[inline]
    pub(crate) fn rank(&self, rng: &mut Rng) -> u64 {
        self.rank_at(rng.unit())
    }

    /// Returns the rank below which the share `unit` of all draws is, from 0 to less than 1.
    #[inline]
    pub(crate) fn rank_at(&self, unit: f64) -> u64 {
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.second {
            return 1;
        }
        let rank = as_f64(self.count) * power100(self.eta * unit - self.eta + 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounds down a number between 0 and the count"
        )]
        let rank = rank as u64;
        rank.min(self.count - 1)
    }
}

/// Returns the method's scale of the ranks from 2 on; `root` is the 100th root of `count`.
fn eta(count: u64, root: f64, zeta: f64, second: f64) -> f64 {
    if count > 2 { (1.0 - root100(2.0) / root) / (1.0 - (1.0 + second) / zeta) } else { 0.0 }
}

/// The sum of k^0.01 for k from `from` to below `to`, by the Euler-Maclaurin formula from
/// [`SUMMED`] on.
fn roots_between(from: u64, to: u64) -> f64 {
    let summed = (from..to.min(SUMMED)).map(|k| root100(as_f64(k))).sum::<f64>();
    if to <= SUMMED {
        return summed;
    }
    let (from, to) = (as_f64(SUMMED), as_f64(to));
    let integral = (to * root100(to) - from * root100(from)) / 1.01;
    let ends = (root100(from) - root100(to)) / 2.0;
    let slopes = 0.01 * (weight(to) - weight(from));
    summed + integral + ends + slopes / 12.0
}

/// The sum of k^-0.99 for k from 1 to `count`, by the Euler-Maclaurin formula from [`SUMMED`] on.
fn zeta(count: u64) -> f64 {
    let summed = (1..=count.min(SUMMED)).rev().map(|k| weight(as_f64(k))).sum::<f64>();
    if count <= SUMMED {
        return summed;
    }
    let (from, to) = (as_f64(SUMMED), as_f64(count));
    let integral = 100.0 * (root100(to) - root100(from));
    let ends = (weight(to) - weight(from)) / 2.0;
    let slopes = -0.99 * (weight(to) / to - weight(from) / from);
    summed + integral + ends + slopes / 12.0
}

/// k^-0.99.
fn weight(k: f64) -> f64 {
    root100(k) / k
}

#[inline]
fn power100(x: f64) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let x8 = x4 * x4;
    let x16 = x8 * x8;
    let x32 = x16 * x16;
    x32 * x32 * x32 * x4
}

/// The 100th root of `x`, at least 1.
fn root100(x: f64) -> f64 {
    assert!(x >= 1.0, "roots are taken of ranks and counts");
    // Not below the root, since 2^t <= 1 + t for t in 0..=1; from there Newton's method only falls.
    let mut doublings = 0.0;
    let mut power = 1.0;
    while power < x {
        power *= 2.0;
        doublings += 1.0;
    }
    let mut root = 1.0 + doublings / 100.0;
    loop {
        let power = power100(root);
        let next = root - root * (power - x) / (100.0 * power);
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of keys are far below 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance of each rank by the method as published, with the platform's powers.
    fn chances(count: u64) -> Vec<f64> {
        let n = as_f64(count);
        let zeta: f64 = (1..=count).map(|k| as_f64(k).powf(-0.99)).sum();
        let below_two = 1.0 + 2.0_f64.powf(-0.99);
        let eta = (1.0 - (2.0 / n).powf(0.01)) / (1.0 - below_two / zeta);
        let below = |rank: u64| match rank {
            0 => 0.0,
            1 => 1.0 / zeta,
            2 => below_two / zeta,
            _ => ((as_f64(rank) / n).powf(0.01) - 1.0 + eta) / eta,
        };
        (0..count).map(|rank| below(rank + 1) - below(rank)).collect()
    }

    #[test]
    fn ranks_come_as_often_as_the_method_says() {
        const DRAWS: u32 = 2_000_000;
        for count in [1, 2, 3, 10, 1_000] {
            let zipfian = Zipfian::new(count);
            let mut rng = Rng::new(count);
            let mut seen = vec![0_u32; usize::try_from(count).unwrap()];
            for _ in 0..DRAWS {
                seen[usize::try_from(zipfian.rank(&mut rng)).unwrap()] += 1;
            }
            let chi_square: f64 = chances(count)
                .iter()
                .zip(&seen)
                .map(|(chance, &seen)| (chance * f64::from(DRAWS), f64::from(seen)))
                .map(|(expected, seen)| (seen - expected).powi(2) / expected)
                .sum();
            // Mean and deviation of chi-square with d degrees of freedom: d and sqrt(2 d).
            let freedom = as_f64(count - 1);
            let limit = freedom + 4.0 * (2.0 * freedom).sqrt() + 1e-9;
            assert!(chi_square < limit, "{count} ranks: {chi_square} > {limit}");
        }
    }

    #[test]
    fn growing_rank_by_rank_is_as_beginning_with_as_many() {
        for (from, to) in [(1, 2), (1, 3), (2, 10), (1, 2_000), (900, 1_100), (5_000, 60_000)] {
            let mut grown = Zipfian::new(from);
            (from..to).for_each(|_| grown.grow());
            let fresh = Zipfian::new(to);
            assert_eq!(grown.count, fresh.count);
            assert!((grown.zeta / fresh.zeta - 1.0).abs() < 1e-12, "{from} to {to}");
            assert!((grown.eta - fresh.eta).abs() < 1e-12, "{from} to {to}");
            let (mut one, mut other) = (Rng::new(1), Rng::new(1));
            let equal = (0..10_000).filter(|_| grown.rank(&mut one) == fresh.rank(&mut other));
            // A draw at the edge between two ranks may fall to the other side.
            assert!(equal.count() >= 9_999, "{from} to {to}");
        }
    }

    #[test]
    fn the_mean_rank_is_that_of_the_chances() {
        for count in [1, 2, 3, 10, 999, 1_000, 1_001, 2_000, 300_000] {
            let chances = chances(count);
            let exact: f64 = (0..count).zip(&chances).map(|(k, chance)| as_f64(k) * chance).sum();
            let found = Zipfian::new(count).mean_rank();
            assert!((found - exact).abs() <= exact * 1e-8, "{count}: {found} and {exact}");
        }
    }

    #[test]
    fn the_method_is_as_close_to_zipfs_law_as_stated() {
        for count in [1_000, 10_000, 1_000_000] {
            let zeta = zeta(count);
            let excess: Vec<f64> = (1..=count)
                .zip(chances(count))
                .map(|(k, chance)| chance / (as_f64(k).powf(-0.99) / zeta) - 1.0)
                .collect();
            assert!(excess[..2].iter().all(|excess| excess.abs() < 1e-9));
            assert!(excess[2..10].iter().all(|excess| excess.abs() < 0.2));
            assert!(excess[10..].iter().all(|excess| excess.abs() < 0.045));
        }
    }

    #[test]
    fn the_sum_of_weights_agrees_with_the_sum_term_by_term() {
        for count in [1, 2, 999, 1_000, 1_001, 1_500, 100_000, 3_000_000] {
            // From the smallest up, so that rounding stays below what is compared.
            let direct: f64 = (1..=count).rev().map(|k| as_f64(k).powf(-0.99)).sum();
            assert!((zeta(count) / direct - 1.0).abs() < 1e-13, "{count} terms");
        }
    }

    #[test]
    fn roots_and_powers_agree_with_the_platform() {
        for x in [1.0, 1.5, 2.0, 3.0, 1e3, 12_345.0, 1e8, 9e15] {
            assert!((root100(x) / f64::powf(x, 0.01) - 1.0).abs() < 1e-15, "{x}");
            assert!((power100(root100(x)) / x - 1.0).abs() < 1e-13, "{x}");
        }
        assert!((power100(0.93) / 0.93_f64.powi(100) - 1.0).abs() < 1e-13);
    }
}
