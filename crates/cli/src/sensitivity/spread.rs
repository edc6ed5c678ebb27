//! Random differences between figures of the same profile.

use super::load::{Figures, Loads};
use serde::Serialize;

/// The figures by which changes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    Mean,
    P99,
    Rate,
    #[serde(rename = "WA")]
    WriteAmplification,
}

impl Measure {
    pub(super) const ALL: [Self; 4] = [Self::Mean, Self::P99, Self::Rate, Self::WriteAmplification];

    /// Formats a table cell.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P99 => "p99",
            Self::Rate => "rate",
            Self::WriteAmplification => "WA",
        }
    }

    /// Returns this measure of `figures`, unless it is zero.
    pub(super) fn of(self, figures: &Figures) -> Option<f64> {
        let value = match self {
            Self::Mean => figures.mean_ns,
            Self::P99 => figures.p99_ns,
            Self::Rate => figures.per_second,
            Self::WriteAmplification => figures.write_amplification?,
        };
        (value > 0.0).then_some(value)
    }
}

/// Range of a measure of the unchanged profile with other seeds, as ratios to its value with the
/// first seed. A ratio within the range shows no effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The spread of a measure of a load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LoadSpread {
    pub(super) load: String,
    pub(super) measure: Measure,
    #[serde(flatten)]
    pub(super) spread: Spread,
}

/// Returns the spread of each measure of each load. Several seeds were measured; the first is the
/// reference.
pub(super) fn all(runs: &[Loads]) -> Vec<LoadSpread> {
    let Some((base, _)) = runs.split_first() else { return Vec::new() };
    let spread = |load: &str, measure: Measure| {
        let of_load = |loads: &Loads| {
            let measurement = loads.iter().find(|measurement| measurement.load == load)?;
            measure.of(&measurement.figures)
        };
        let values: Vec<f64> = runs.iter().filter_map(of_load).collect();
        let spread = Spread::of(&values)?;
        Some(LoadSpread { load: load.to_owned(), measure, spread })
    };
    let each = base.iter().flat_map(|measurement| {
        Measure::ALL.into_iter().filter_map(move |measure| spread(&measurement.load, measure))
    });
    each.collect()
}

impl Spread {
    /// Returns the spread of `values`, the first of which is the reference: their range, extended
    /// by twice its width on both sides. A draw from the same normal distribution is outside the
    /// range of eight others in two cases of nine. It is outside the extended range in fewer than
    /// one of a thousand; a table has hundreds of measures.
    fn of(values: &[f64]) -> Option<Self> {
        let first = values.first()?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let margin = 2.0 * (most - least);
        Some(Self { low: (least - margin) / first, high: (most + margin) / first })
    }

    pub(super) fn contains(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Returns the largest distance of a ratio in it from 1.
    pub(super) fn reach(self) -> f64 {
        (self.high - 1.0).max(1.0 - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn a_spread_is_five_times_the_range() {
        let spread = Spread::of(&[8.0, 9.0, 7.0]).unwrap();
        assert_eq!(spread, Spread { low: 0.375, high: 1.625 });
        assert!(spread.contains(1.625) && spread.contains(0.375));
        assert!(!spread.contains(1.626) && !spread.contains(0.374));
        assert!((spread.reach() - 0.625).abs() < 1e-12);
        assert_eq!(Spread::of(&[2.0, 2.0]), Some(Spread { low: 1.0, high: 1.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    /// The sum of twelve uniform numbers is close enough to normal here.
    #[test]
    fn chance_leaves_the_spread_of_eight_seldom() {
        let mut rng = Rng::new(1);
        let mut draw = || {
            let terms = (0..12).map(|_| u32::try_from(rng.below(1 << 20)).unwrap());
            1e9 + terms.map(f64::from).sum::<f64>()
        };
        let (draws, mut outside) = (20_000, 0);
        for _ in 0..draws {
            let values: Vec<f64> = (0..8).map(|_| draw()).collect();
            let ratio = draw() / values[0];
            outside += u32::from(!Spread::of(&values).unwrap().contains(ratio));
        }
        assert!(outside * 1_000 < draws, "{outside} of {draws}");
    }
}
