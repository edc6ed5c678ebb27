//! Finds the numbers at which the sum of squared residuals is smallest.

/// Largest change of a number in one step, in its logarithm: a factor of two.
const STEP_MAX: f64 = std::f64::consts::LN_2;

/// Change of a number in a probe, in its logarithm: large enough to stand out from the noise of
/// short runs.
const PROBE: f64 = 0.03;

/// Most rounds of probes; a search needs two or three.
const ROUNDS_MAX: usize = 10;

/// More damping than this does not improve a step.
const DAMPING_MAX: f64 = 1e2;

/// The search ends at a step or a round that reduces the sum of squares by less than this share.
const LEAST_GAIN: f64 = 0.01;

/// The search ends when all residuals are smaller.
const CLOSE: f64 = 1e-4;

/// A number with a smaller sum of squared slopes has no measurable effect: a residual changes by
/// less than 1 % when the number changes by a factor of e.
const LEAST_SLOPE: f64 = 1e-4;

/// The end of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Logarithm of each number.
    pub(super) at: Vec<f64>,
    pub(super) residuals: Vec<f64>,
}

impl Found {
    /// Returns the sum of squares.
    pub(super) fn cost(&self) -> f64 {
        cost(&self.residuals)
    }

    fn is_close(&self) -> bool {
        self.residuals.iter().all(|residual| residual.abs() < CLOSE)
    }
}

fn cost(residuals: &[f64]) -> f64 {
    residuals.iter().map(|one| one * one).sum()
}

/// Returns the logarithms of the numbers at which the squares of `residuals` are smallest, found
/// from `start`. Numbers for which `residuals` returns `None` are not allowed.
///
/// No derivative is known. The search moves every number alone to measure its slopes. Then it moves
/// all together to where the squares would be smallest if the residuals were linear (Levenberg and
/// Marquardt). Each step corrects the slopes (Broyden). When steps no longer improve the result,
/// the search measures the slopes again.
pub(super) fn least_squares<E>(
    start: Found,
    mut residuals: impl FnMut(&[f64]) -> Result<Option<Vec<f64>>, E>,
) -> Result<Found, E> {
    let mut found = start;
    for _ in 0..ROUNDS_MAX {
        let mut slopes = slopes(&found, &mut residuals)?;
        let before = found.cost();
        descend(&mut found, &mut slopes, &mut residuals)?;
        if found.is_close() || found.cost() > before * (1.0 - LEAST_GAIN) {
            break;
        }
    }
    Ok(found)
}

/// Steps from `found` until steps no longer improve it.
fn descend<E>(
    found: &mut Found,
    slopes: &mut [Vec<f64>],
    residuals: &mut impl FnMut(&[f64]) -> Result<Option<Vec<f64>>, E>,
) -> Result<(), E> {
    let mut damping = 1e-3;
    while damping < DAMPING_MAX && !found.is_close() {
        let at = stepped(found, slopes, damping);
        let Some(reached) = residuals(&at)? else {
            damping *= 100.0;
            continue;
        };
        correct(slopes, found, &at, &reached);
        let (before, after) = (found.cost(), cost(&reached));
        if after < before {
            *found = Found { at, residuals: reached };
            damping /= 10.0;
        } else {
            damping *= 10.0;
        }
        if after < before && after > before * (1.0 - LEAST_GAIN) {
            break;
        }
    }
    Ok(())
}

/// Corrects `slopes` by the change that the step from `found` to `at` made.
fn correct(slopes: &mut [Vec<f64>], found: &Found, at: &[f64], reached: &[f64]) {
    let step: Vec<f64> = at.iter().zip(&found.at).map(|(to, from)| to - from).collect();
    let length: f64 = step.iter().map(|part| part * part).sum();
    if length == 0.0 {
        return;
    }
    for (index, now) in reached.iter().enumerate() {
        let said: f64 = slopes.iter().zip(&step).map(|(slope, part)| slope[index] * part).sum();
        let missing = now - found.residuals[index] - said;
        for (slope, part) in slopes.iter_mut().zip(&step) {
            slope[index] += missing * part / length;
        }
    }
}

/// Returns for each number the change of each residual per unit step.
fn slopes<E>(
    found: &Found,
    residuals: &mut impl FnMut(&[f64]) -> Result<Option<Vec<f64>>, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut slopes = Vec::new();
    for number in 0..found.at.len() {
        let mut slope = vec![0.0; found.residuals.len()];
        for step in [PROBE, -PROBE] {
            let mut at = found.at.clone();
            at[number] += step;
            if let Some(moved) = residuals(&at)? {
                let pairs = moved.iter().zip(&found.residuals);
                slope = pairs.map(|(moved, here)| (moved - here) / step).collect();
                break;
            }
        }
        slopes.push(slope);
    }
    Ok(slopes)
}

/// Returns the end of the step from `found`. More damping makes it shorter and steeper.
fn stepped(found: &Found, slopes: &[Vec<f64>], damping: f64) -> Vec<f64> {
    let product =
        |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
    let mut equations: Vec<Vec<f64>> = slopes
        .iter()
        .map(|slope| slopes.iter().map(|other| product(slope, other)).collect())
        .collect();
    for (number, row) in equations.iter_mut().enumerate() {
        // A number with almost no effect stays unchanged.
        row[number] = row[number] * (1.0 + damping) + LEAST_SLOPE;
        row.push(-product(&slopes[number], &found.residuals));
    }
    let step = solved(equations);
    let pairs = found.at.iter().zip(step);
    pairs.map(|(at, step)| at + step.clamp(-STEP_MAX, STEP_MAX)).collect()
}

/// Solves linear `equations`, each with its right side last, by Gauss elimination with pivots.
fn solved(mut equations: Vec<Vec<f64>>) -> Vec<f64> {
    let count = equations.len();
    for column in 0..count {
        let largest = (column..count)
            .max_by(|a, b| equations[*a][column].abs().total_cmp(&equations[*b][column].abs()));
        equations.swap(column, largest.unwrap_or(column));
        let pivot = equations[column].clone();
        for (index, row) in equations.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    (0..count).map(|at| equations[at][count] / equations[at][at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn search(start: &[f64], residuals: impl Fn(&[f64]) -> Option<Vec<f64>>) -> (Vec<f64>, usize) {
        let mut asked = 0;
        let at: Vec<f64> = start.iter().map(|number| number.ln()).collect();
        let first = residuals(&at).unwrap();
        let found = least_squares::<Infallible>(Found { at, residuals: first }, |at| {
            asked += 1;
            Ok(residuals(at))
        });
        let Ok(found) = found;
        (found.at.iter().map(|log| log.exp()).collect(), asked)
    }

    /// Points of a line with a known offset and slope.
    fn line(at: &[f64]) -> Vec<f64> {
        let model = |x: f64| (at[0].exp() + at[1].exp() * x).ln() - (7.0 + 0.5 * x).ln();
        [0.1, 1.0, 4.0, 16.0].map(model).to_vec()
    }

    #[test]
    fn the_numbers_that_points_were_made_of_are_found_from_far_away() {
        for start in [[7.0, 0.5], [1.0, 1.0], [50.0, 0.01], [0.2, 20.0]] {
            let (found, asked) = search(&start, |at| Some(line(at)));
            assert!((found[0] / 7.0 - 1.0).abs() < 1e-3, "{start:?}: {found:?}");
            assert!((found[1] / 0.5 - 1.0).abs() < 1e-3, "{start:?}: {found:?}");
            assert!(asked < 100, "{start:?}: {asked}");
        }
    }

    /// Only the smaller of two limits has an effect, as in a drive: the search finds it, and the
    /// other stays above it.
    #[test]
    fn a_bound_that_is_not_reached_stays() {
        let (found, _) = search(&[3.0, 40.0], |at| Some(vec![at[0].min(at[1]) - 5_f64.ln()]));
        assert!((found[0] - 5.0).abs() < 1e-2, "{found:?}");
        assert!((found[1] - 40.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_number_does_not_leave_where_it_may_be() {
        let (found, _) =
            search(&[2.0], |at| (at[0].exp() <= 4.0).then(|| vec![at[0] - 9_f64.ln()]));
        assert!((3.9..=4.0).contains(&found[0]), "{found:?}");
    }

    /// The sum of squares is smallest at the mean of two logarithms.
    #[test]
    fn what_cannot_be_met_is_met_halfway() {
        let (found, _) = search(&[1.0], |at| Some(vec![at[0] - 4_f64.ln(), at[0] - 9_f64.ln()]));
        assert!((found[0] - 6.0).abs() < 0.01, "{found:?}");
    }
}
