//! The range of an axis, the positions of values on it, and its ticks.

use super::canvas::{float, line_height, text_width};
use super::figure::{Axis, Scale, Unit};
use super::label;

/// The size of the labels of ticks.
pub(super) const SIZE: f64 = 7.0;

/// Smallest gap between the labels of two ticks.
const GAP: f64 = 3.0;

/// Above this, sums and powers of values may overflow.
const LARGEST: f64 = 1e150;

/// Margin beyond the first and the last value of a logarithmic axis, in parts of its length.
const ROOM: f64 = 0.04;

/// Most steps of a linear axis.
const STEPS: f64 = 6.0;

/// Which axis of a panel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Below,
    Left,
}

/// A tick and its label; its position is from 0, the start of the axis, to 1.
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// An axis with a range.
pub(super) struct Ruler<'a> {
    scale: &'a Scale,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
    /// Positions of ticks without a label.
    pub(super) minor: Vec<f64>,
}

impl Scale {
    /// Returns the coordinate of `value`, unless it has no position on this scale.
    pub(super) fn coordinate(&self, value: f64) -> Option<f64> {
        if value.is_nan() || value > LARGEST {
            return None;
        }
        let is_positive = value >= 1.0 / LARGEST;
        match self {
            Self::Linear if is_positive => Some(value),
            Self::Linear => (value >= 0.0).then_some(0.0),
            Self::Log10 => is_positive.then(|| value.log10()),
            Self::Log2 => is_positive.then(|| value.log2()),
            Self::Nines => (0.0..1.0).contains(&value).then(|| 0.0 - (1.0 - value).log10()),
            Self::Categories(names) => {
                (0.0..=float(names.len()) - 1.0).contains(&value).then_some(value)
            }
        }
    }
}

impl<'a> Ruler<'a> {
    /// Returns the ruler of `axis` for `values`, which all have a position, or nothing for no
    /// values. It is `length` long, and the labels of its ticks may extend beyond its end by
    /// `overhang`.
    pub(super) fn new(
        axis: &'a Axis,
        values: impl Iterator<Item = f64>,
        side: Side,
        length: f64,
        overhang: f64,
    ) -> Option<Self> {
        let (low, high) = values
            .filter_map(|value| axis.scale.coordinate(value))
            .map(|value| (value, value))
            .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))?;
        let (low, high) = range(axis, side, low, high);
        let mut ruler =
            Self { scale: &axis.scale, low, high, ticks: Vec::new(), minor: Vec::new() };
        let mut choices = ruler.choices(axis.unit);
        let fits = |ticks: &Vec<Tick>| ticks_fit(ticks, side, length, overhang);
        let chosen = choices.iter().position(fits).unwrap_or(choices.len() - 1);
        ruler.ticks = choices.swap_remove(chosen);
        ruler.minor = ruler.minor_ticks();
        Some(ruler)
    }

    /// Returns the position of `value`, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.scale.coordinate(value).map_or(0.0, |coordinate| self.part(coordinate))
    }

    /// True for an axis of names.
    pub(super) const fn is_of_names(&self) -> bool {
        matches!(self.scale, Scale::Categories(_))
    }

    fn part(&self, coordinate: f64) -> f64 {
        (coordinate - self.low) / (self.high - self.low)
    }

    /// Returns suitable sets of ticks, the densest first, at least one.
    fn choices(&self, unit: Unit) -> Vec<Vec<Tick>> {
        let tick = |(at, label)| Tick { at: self.part(at), label };
        let powers = |stride: f64, base: f64| {
            let power = |exponent| (exponent, unit.label(base.powf(exponent), base.powf(exponent)));
            self.multiples(stride).into_iter().map(power).map(tick).collect()
        };
        let strides = || 1..=1 + self.multiples(1.0).len();
        match self.scale {
            Scale::Linear => [STEPS, 5.0, 4.0, 3.0, 2.0, 1.0]
                .map(|count| linear(unit, (self.low, self.high), count))
                .map(|ticks| ticks.into_iter().map(tick).collect())
                .into(),
            Scale::Log10 => {
                let fine = self.in_decades(&[1.0, 2.0, 5.0], unit);
                let even = if self.high - self.low < 1.0 { &[6.0, 4.0, 2.0][..] } else { &[] };
                let even = even.iter().map(|&count| self.even(unit, count));
                std::iter::once(fine)
                    .filter(|ticks| ticks.len() > 2)
                    .chain(even)
                    .chain([self.in_decades(&[1.0, 3.0], unit)])
                    .filter(|ticks| (2..=7).contains(&ticks.len()))
                    .map(|ticks| ticks.into_iter().map(tick).collect())
                    .chain(strides().map(|stride| powers(float(stride), 10.0)))
                    .collect()
            }
            Scale::Log2 => strides().map(|stride| powers(float(stride), 2.0)).collect(),
            Scale::Nines => strides()
                .map(|stride| {
                    let nines = (0..=16).step_by(stride).map(|nines| (float(nines), nines));
                    let shown = nines.take_while(|(at, _)| *at <= self.high);
                    shown.map(|(at, nines)| (at, label::nines(nines))).map(tick).collect()
                })
                .collect(),
            Scale::Categories(names) => {
                let names = names.iter().enumerate();
                vec![names.map(|(at, name)| (float(at), name.clone())).map(tick).collect()]
            }
        }
    }

    /// Equal steps on a logarithmic axis that is too short for steps of 1, 2 and 5.
    fn even(&self, unit: Unit, count: f64) -> Vec<(f64, String)> {
        let range = (10_f64.powf(self.low), 10_f64.powf(self.high));
        let ticks = linear(unit, range, count).into_iter();
        ticks.map(|(value, label)| (value.log10(), label)).collect()
    }

    /// Returns `factors` of the powers of ten.
    fn in_decades(&self, factors: &[f64], unit: Unit) -> Vec<(f64, String)> {
        let values =
            self.decades().into_iter().flat_map(|ten| factors.iter().map(move |of| of * ten));
        let ticks = values.map(|value| (value.log10(), unit.label(value, value)));
        ticks.filter(|(at, _)| (self.low..=self.high).contains(at)).collect()
    }

    /// Returns the powers of ten from below the axis to its end.
    fn decades(&self) -> Vec<f64> {
        let exponents =
            std::iter::successors(Some(self.low.floor()), |exponent| Some(exponent + 1.0));
        exponents.take_while(|&exponent| exponent <= self.high).map(|at| 10_f64.powf(at)).collect()
    }

    /// Returns the multiples of `stride` on the axis.
    fn multiples(&self, stride: f64) -> Vec<f64> {
        let first = (self.low / stride).ceil();
        std::iter::successors(Some(first), |index| Some(index + 1.0))
            .map(|index| index * stride)
            .take_while(|&at| at <= self.high)
            .collect()
    }

    fn minor_ticks(&self) -> Vec<f64> {
        let marks = match self.scale {
            Scale::Linear | Scale::Categories(_) => Vec::new(),
            Scale::Log10 if self.high - self.low <= 6.0 => {
                let nine = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
                let values = self.decades().into_iter().flat_map(|ten| nine.map(|of| of * ten));
                values.map(f64::log10).collect()
            }
            Scale::Log10 | Scale::Log2 | Scale::Nines => self.multiples(1.0),
        };
        let places = marks.into_iter().map(|at| self.part(at));
        places.filter(|place| (0.0..=1.0).contains(place)).collect()
    }
}

/// Returns the coordinates of the start and the end of an axis for `low` to `high`.
fn range(axis: &Axis, side: Side, low: f64, high: f64) -> (f64, f64) {
    let around = |least: f64, equal: f64| {
        let middle = f64::midpoint(low, high);
        let span = if low < high { (high - low).max(least) } else { equal };
        let half = span * (0.5 + ROOM);
        (middle - half, middle + half)
    };
    match &axis.scale {
        Scale::Linear if high == 0.0 => (0.0, 1.0),
        // An axis of time ends with the run; one of values ends at a tick.
        Scale::Linear if side == Side::Below => (0.0, high),
        Scale::Linear => {
            let step = step((0.0, high), axis.unit, STEPS);
            (0.0, (high / step - 1e-6).ceil() * step)
        }
        // Minimum spans keep the labels of neighbouring ticks different.
        Scale::Log10 => around(0.02, 1.0),
        Scale::Log2 => around(2.0, 2.0),
        Scale::Nines => (0.0, high.max(1.0)),
        Scale::Categories(names) => (-0.5, float(names.len()) - 0.5),
    }
}

/// Returns about `count` equal steps on a linear axis from `range.0` to `range.1`.
fn linear(unit: Unit, range: (f64, f64), count: f64) -> Vec<(f64, String)> {
    let step = step(range, unit, count);
    let first = (range.0 / step - 1e-6).ceil();
    let reaches = |index: f64| index * step <= range.1 + step * 1e-6;
    std::iter::successors(Some(first), |index| Some(index + 1.0))
        .take_while(|&index| reaches(index))
        .map(|index| index * step)
        .map(|value| (value, unit.label(value, range.1)))
        .collect()
}

/// Returns the step of 1, 2 or 5 that divides `range` into at most `count`.
fn step(range: (f64, f64), unit: Unit, count: f64) -> f64 {
    let (size, _) = unit.multiple(range.1);
    let least = (range.1 - range.0) / size / count * (1.0 - 1e-9);
    let ten = 10_f64.powf(least.log10().floor());
    let of = [1.0, 2.0, 5.0].into_iter().find(|of| of * ten >= least).unwrap_or(10.0);
    of * ten * size
}

/// True if no two labels of `ticks` touch.
fn ticks_fit(ticks: &[Tick], side: Side, length: f64, overhang: f64) -> bool {
    ticks.windows(2).all(|pair| match side {
        Side::Left => (pair[1].at - pair[0].at) * length >= line_height(SIZE),
        Side::Below => {
            let [left, right] = [&pair[0], &pair[1]].map(|tick| {
                let half = text_width(&tick.label, SIZE) / 2.0;
                ((tick.at * length).min(length + overhang - half), half)
            });
            right.0 - left.0 >= left.1 + right.1 + GAP
        }
    })
}
