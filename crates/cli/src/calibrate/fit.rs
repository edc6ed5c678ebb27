//! Fits knobs to points, and predicts points that a fit left out.

use super::knobs::{FitKnob, profile_with};
use super::points::Point;
use super::search::{Found, least_squares};
use super::simulate::{self, Task};
use crate::output::Failure;
use crate::progress::Bar;
use node::profile::Draft;
use std::collections::BTreeSet;

/// Factor by which a knob is moved to show its effect on the points.
const NUDGE: f64 = 1.05;

/// A step of a whole number must reduce the sum of squares by at least this share.
const LEAST_GAIN: f64 = 1e-3;

/// A profile whose knobs are fitted to points.
pub(super) struct Fitting<'a> {
    pub(super) draft: &'a Draft,
    pub(super) knobs: &'a [FitKnob],
    /// The points to fit to.
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) bar: &'a mut Bar,
    /// Points simulated so far.
    pub(super) simulations: u64,
}

/// The prediction for a left-out point by a fit to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeftOut {
    pub(super) figure: f64,
    /// Whether its size is outside the sizes of the others.
    pub(super) is_beyond: bool,
}

/// Values of all knobs, and the errors of all points with them.
#[derive(Clone, Debug)]
struct Fit {
    values: Vec<f64>,
    cost: f64,
}

impl Fitting<'_> {
    /// Returns the figures of `tasks` with the knobs at `values`, or nothing if the profile refuses
    /// them.
    pub(super) fn figures(
        &mut self,
        values: &[f64],
        tasks: &[Task<'_>],
    ) -> Result<Option<Vec<f64>>, Failure> {
        let Some(profile) = profile_with(self.draft, self.knobs, values) else { return Ok(None) };
        let figures = simulate::all(&profile, tasks)?;
        self.count(tasks.len() as u64);
        Ok(Some(figures))
    }

    /// Returns the figures of the fit's points with the knobs at `values`, unless the profile
    /// refuses them.
    pub(super) fn figures_here(&mut self, values: &[f64]) -> Result<Vec<f64>, Failure> {
        let tasks = self.tasks.clone();
        let figures = self.figures(values, &tasks)?;
        Ok(figures.expect("a search begins and ends where a profile can be"))
    }

    fn count(&mut self, simulations: u64) {
        self.simulations += simulations;
        self.bar.set(self.simulations, 0);
    }

    /// Chooses the number of operations of each point with the knobs at `values`, never fewer than
    /// before. Returns true if a point got more.
    pub(super) fn choose(&mut self, values: &[f64]) -> Result<bool, Failure> {
        let profile = profile_with(self.draft, self.knobs, values);
        let profile = profile.expect("a search begins and ends where a profile can be");
        let points: Vec<&Point> = self.tasks.iter().map(|task| task.point).collect();
        let (chosen, simulations) = simulate::tasks(&profile, &points)?;
        self.count(simulations);
        let mut has_more = false;
        for (task, chosen) in self.tasks.iter_mut().zip(chosen) {
            has_more |= chosen.operations > task.operations;
            task.operations = task.operations.max(chosen.operations);
        }
        Ok(has_more)
    }

    /// Returns the knob values, found from `start`, at which the errors of `tasks` are smallest.
    pub(super) fn fit(&mut self, start: &[f64], tasks: &[Task<'_>]) -> Result<Vec<f64>, Failure> {
        let mut best = self
            .fit_fractions(start, tasks)?
            .unwrap_or_else(|| Fit { values: start.to_vec(), cost: f64::INFINITY });
        while let Some(better) = self.neighbour(&best, tasks)? {
            best = better;
        }
        Ok(best.values)
    }

    /// Returns a fit that is better than `best` and has one whole number one higher or lower.
    fn neighbour(&mut self, best: &Fit, tasks: &[Task<'_>]) -> Result<Option<Fit>, Failure> {
        let knobs = self.knobs;
        for (index, _) in knobs.iter().enumerate().filter(|(_, knob)| knob.is_whole) {
            for step in [-1.0, 1.0] {
                let mut values = best.values.clone();
                values[index] = knobs[index].rounded(values[index]) + step;
                let tried = self.fit_fractions(&values, tasks)?;
                let is_better = |fit: &Fit| fit.cost < best.cost * (1.0 - LEAST_GAIN);
                if let Some(better) = tried.filter(is_better) {
                    return Ok(Some(better));
                }
            }
        }
        Ok(None)
    }

    /// Returns the best fit with the whole numbers of `values`, or nothing if the profile refuses
    /// them.
    fn fit_fractions(
        &mut self,
        values: &[f64],
        tasks: &[Task<'_>],
    ) -> Result<Option<Fit>, Failure> {
        let knobs = self.knobs;
        let free: Vec<usize> = (0..knobs.len()).filter(|&index| !knobs[index].is_whole).collect();
        let with = |logs: &[f64]| {
            let mut values = values.to_vec();
            free.iter().zip(logs).for_each(|(&index, log)| values[index] = log.exp());
            values
        };
        let mut residuals = |logs: &[f64]| {
            let figures = self.figures(&with(logs), tasks)?;
            Ok(figures.map(|figures| {
                let pairs = figures.iter().zip(tasks);
                pairs.map(|(figure, task)| (figure / task.point.measured).ln()).collect()
            }))
        };
        let at: Vec<f64> = free.iter().map(|&index| values[index].ln()).collect();
        let Some(first) = residuals(&at)? else { return Ok(None) };
        let start = Found { at, residuals: first };
        let found = least_squares(start, residuals)?;
        Ok(Some(Fit { values: with(&found.at), cost: found.cost() }))
    }

    /// Returns for each knob at `values` the largest relative change of a point when the knob is
    /// 1.05 times as large; nothing if the profile refuses that. `figures` are those of the points.
    pub(super) fn moves(
        &mut self,
        values: &[f64],
        figures: &[f64],
    ) -> Result<Vec<Option<f64>>, Failure> {
        let tasks = self.tasks.clone();
        let mut moves = Vec::new();
        for (index, knob) in self.knobs.iter().enumerate() {
            let mut nudged = values.to_vec();
            nudged[index] = if knob.is_whole { nudged[index] + 1.0 } else { nudged[index] * NUDGE };
            let moved = self.figures(&nudged, &tasks)?.map(|moved| {
                let pairs = moved.iter().zip(figures);
                pairs.map(|(moved, figure)| (moved / figure - 1.0).abs()).fold(0.0, f64::max)
            });
            moves.push(moved);
        }
        Ok(moves)
    }

    /// Predicts each point, from `start`, by a fit to the points of the other sizes of values; if
    /// there is only one size, to the other points. Returns nothing if too few points are left.
    /// Whole numbers stay as they are in `start`.
    pub(super) fn left_out(&mut self, start: &[f64]) -> Result<Vec<Option<LeftOut>>, Failure> {
        let tasks = self.tasks.clone();
        let size = |task: &Task<'_>| task.point.load.value_bytes;
        let sizes: BTreeSet<u32> = tasks.iter().map(size).collect();
        let groups: Vec<Vec<usize>> = if sizes.len() > 1 {
            let of = |bytes| (0..tasks.len()).filter(|&at| size(&tasks[at]) == bytes).collect();
            sizes.into_iter().map(of).collect()
        } else {
            (0..tasks.len()).map(|index| vec![index]).collect()
        };
        let mut left_out = vec![None; tasks.len()];
        for group in groups {
            let is_out = |index: &usize| group.contains(index);
            let rest: Vec<usize> = (0..tasks.len()).filter(|index| !is_out(index)).collect();
            if rest.len() < self.knobs.len() {
                continue;
            }
            let of = |indices: &[usize]| indices.iter().map(|&at| tasks[at]).collect::<Vec<_>>();
            let (seen, unseen) = (of(&rest), of(&group));
            let Some(fit) = self.fit_fractions(start, &seen)? else { continue };
            let Some(figures) = self.figures(&fit.values, &unseen)? else { continue };
            for (&index, figure) in group.iter().zip(figures) {
                let bytes = seen.iter().map(size);
                let (least, most) = (bytes.clone().min(), bytes.max());
                let own = Some(size(&tasks[index]));
                left_out[index] = Some(LeftOut { figure, is_beyond: own < least || own > most });
            }
        }
        Ok(left_out)
    }
}
