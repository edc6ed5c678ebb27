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
    let Some((base, others)) = runs.split_first() else { return Vec::new() };
    let spread = |load: &str, measure: Measure| {
        let of_load = |loads: &Loads| {
            let measurement = loads.iter().find(|measurement| measurement.load == load)?;
            measure.of(&measurement.figures)
        };
        let spread = Spread::of(of_load(base)?, others.iter().filter_map(of_load));
        Some(LoadSpread { load: load.to_owned(), measure, spread })
    };
    let each = base.iter().flat_map(|measurement| {
        Measure::ALL.into_iter().filter_map(move |measure| spread(&measurement.load, measure))
    });
    each.collect()
}

impl Spread {
    /// Returns the spread of `base`, the reference, and `others`: their range, extended by twice
    /// its width on both sides. A draw from the same normal distribution is outside the range of
    /// eight others in two cases of nine. It is outside the extended range in fewer than one of a
    /// thousand; a table has hundreds of measures.
    fn of(base: f64, others: impl Iterator<Item = f64>) -> Self {
        let (least, most) =
            others.fold((base, base), |(least, most), other| (least.min(other), most.max(other)));
        let margin = 2.0 * (most - least);
        Self { low: (least - margin) / base, high: (most + margin) / base }
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
    use super::super::load::Measurement;
    use super::*;
    use base::Rng;

    #[test]
    fn a_spread_is_five_times_the_range() {
        let spread = Spread::of(8.0, [9.0, 7.0].into_iter());
        assert_eq!(spread, Spread { low: 0.375, high: 1.625 });
        assert!(spread.contains(1.625) && spread.contains(0.375));
        assert!(!spread.contains(1.626) && !spread.contains(0.374));
        assert!((spread.reach() - 0.625).abs() < 1e-12);
        let alone = Spread { low: 1.0, high: 1.0 };
        assert_eq!(Spread::of(2.0, [2.0].into_iter()), alone);
        assert_eq!(Spread::of(2.0, [].into_iter()), alone);
    }

    /// Changes are compared to the run with the first seed. A run with another seed does not take
    /// its place where the first one has no value.
    #[test]
    fn a_measure_that_the_first_seed_lacks_has_no_spread() {
        let run = |write_amplification: Option<f64>| {
            let figures =
                Figures { mean_ns: 1.0, p99_ns: 1.0, per_second: 1.0, write_amplification };
            vec![Measurement { load: "store".to_owned(), figures }]
        };
        let found = |runs: &[Loads]| {
            let spreads = all(runs);
            let of_writes = |one: &&LoadSpread| one.measure == Measure::WriteAmplification;
            spreads.iter().find(of_writes).map(|one| one.spread)
        };
        assert_eq!(found(&[run(None), run(Some(2.0)), run(Some(4.0))]), None);
        let expected = Some(Spread { low: 1.0, high: 1.0 });
        assert_eq!(found(&[run(Some(2.0)), run(None), run(Some(2.0))]), expected);
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
            let spread = Spread::of(values[0], values[1..].iter().copied());
            outside += u32::from(!spread.contains(ratio));
        }
        assert!(outside * 1_000 < draws, "{outside} of {draws}");
    }
}
