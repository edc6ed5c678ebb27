//! The figure of the largest effects: a row for each knob, with a point for each of its changes.

use super::report::{Changed, Report, Row};
use crate::plot::{self, Axis, Figure, Mark, Panel, Scale, Series, Unit};
use std::path::Path;

/// Draws `report` into the file `path`. Returns why it cannot be written, as a sentence.
pub(super) fn draw(path: &Path, report: &Report) -> Option<String> {
    let figure = Figure {
        title: format!("What the knobs of {} move", report.profile),
        caption: report.setup(),
        panels: vec![panel(report)],
    };
    plot::write(path, &figure)
}

/// The first knob is at the top; a knob that could not be changed has no row.
fn panel(report: &Report) -> Panel {
    let rows = report.knobs.iter().rev().map(|row| (row, row.ratios(&report.base)));
    let rows: Vec<(&Row, Vec<(&Changed, f64)>)> =
        rows.filter(|(_, ratios)| !ratios.is_empty()).collect();
    let series = |name: &str, is_of: fn(&str) -> bool| {
        let points = (0_u32..).zip(&rows).flat_map(|(at, (_, ratios))| {
            let ratios = ratios.iter().filter(|(changed, _)| is_of(changed.change));
            ratios.map(move |&(_, ratio)| (ratio, f64::from(at)))
        });
        Series { name: name.to_owned(), mark: Mark::Points, points: points.collect() }
    };
    Panel {
        title: String::new(),
        x: Axis {
            label: "what moves most, times what it was".to_owned(),
            scale: Scale::Log2,
            unit: Unit::Plain,
        },
        y: Axis {
            label: String::new(),
            scale: Scale::Categories(rows.iter().map(|(row, _)| row.key.clone()).collect()),
            unit: Unit::Plain,
        },
        series: vec![
            series("halved", |change| change == "halved"),
            series("doubled", |change| change == "doubled"),
            series("another word", |change| change != "halved" && change != "doubled"),
        ],
    }
}
