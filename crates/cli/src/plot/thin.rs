//! Leaves out what cannot be seen: a long series in few points, its shape kept.

use super::float;
use std::collections::BTreeSet;

/// Of points on the canvas, in the order of x, those that draw the same line at `columns` columns
/// of `width` in all: of each column the first, the lowest, the highest and the last.
pub(super) fn line(points: &[(f64, f64)], width: f64, columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= 4 * columns {
        return points.to_vec();
    }
    let column = |x: f64| (x / width * float(columns)).floor().to_bits();
    let mut kept = Vec::new();
    for run in points.chunk_by(|left, right| column(left.0) == column(right.0)) {
        let by_height = |&left: &usize, &right: &usize| run[left].1.total_cmp(&run[right].1);
        let last = run.len() - 1;
        let lowest = (0..=last).min_by(by_height).unwrap_or(0);
        let highest = (0..=last).max_by(by_height).unwrap_or(0);
        let chosen = BTreeSet::from([0, lowest, highest, last]);
        kept.extend(chosen.into_iter().map(|index| run[index]));
    }
    kept
}

/// Of points on the canvas at most about `most`: one of those in each square of a grid, and the
/// lowest and the highest of all.
pub(super) fn scatter(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let mut kept = points.to_vec();
    let mut side = 0.25;
    while kept.len() > most {
        side *= 2.0;
        let cell = |at: f64| (at / side).floor().to_bits();
        let mut taken = BTreeSet::new();
        kept.retain(|&(x, y)| taken.insert((cell(x), cell(y))));
    }
    if kept.len() < points.len() {
        let by_height = |left: &&(f64, f64), right: &&(f64, f64)| left.1.total_cmp(&right.1);
        kept.extend(points.iter().min_by(by_height));
        kept.extend(points.iter().max_by(by_height));
    }
    kept
}
