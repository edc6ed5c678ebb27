//! The figure of a calibration: rates and latencies of points and simulation by the size of values.

use super::points::Figure;
use super::report::{PointReport, Report};
use crate::plot::{self, Axis, Mark, Panel, Scale, Series, Unit};
use std::path::Path;

/// Draws `report` into the file `path`. Returns why it cannot be written, as a sentence.
pub(super) fn draw(path: &Path, report: &Report) -> Option<String> {
    let panels = [(Figure::OpsPerSecond, "Rate"), (Figure::LatencyNs, "Mean latency")];
    let panels = panels.map(|(figure, title)| panel(report, figure, title));
    let figure = plot::Figure {
        title: format!("Calibration of {}", report.device),
        caption: format!("points of {}; marks: measured, lines: simulated", report.file),
        panels: panels.into_iter().flatten().collect(),
    };
    plot::write(path, &figure)
}

/// Marks for measured and lines for simulated figures, for each load.
fn panel(report: &Report, figure: Figure, title: &str) -> Option<Panel> {
    let points: Vec<&PointReport> =
        report.points.iter().filter(|point| point.figure == figure).collect();
    let mut names: Vec<String> = Vec::new();
    for point in &points {
        let name = name(point);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let series = |name: &String, label: String, mark, of: fn(&PointReport) -> f64| {
        let own = points.iter().filter(|point| self::name(point) == *name);
        let mut points: Vec<(f64, f64)> =
            own.map(|point| (f64::from(point.load.value_bytes), of(point))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name: label, mark, points }
    };
    let series: Vec<Series> = names
        .iter()
        .flat_map(|name| {
            [
                series(name, format!("{name}, measured"), Mark::Points, |point| point.measured),
                series(name, name.clone(), Mark::Line, |point| point.ours),
            ]
        })
        .collect();
    let (label, unit) = match figure {
        Figure::OpsPerSecond => ("operations a second", Unit::Count),
        Figure::LatencyNs => ("latency", Unit::Nanos),
    };
    (!series.is_empty()).then(|| Panel {
        title: title.to_owned(),
        x: Axis { label: "bytes of a value".to_owned(), scale: Scale::Log2, unit: Unit::Plain },
        y: Axis { label: label.to_owned(), scale: Scale::Linear, unit },
        series,
    })
}

fn name(point: &PointReport) -> String {
    format!("{} QD{}", point.load.workload.name, point.load.queue_depth)
}
