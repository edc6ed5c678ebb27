//! Figures for a paper, as SVG: what was measured, against what, in one column of a page.
//!
//! A [`Figure`] is data; [`svg`] alone decides how it looks. Equal figures give equal bytes.
//!
//! # How it works
//!
//! 1. [`svg`] puts the title, the panels below each other and the caption into one column.
//! 2. `axis` finds the range of an axis and the densest ticks whose labels do not touch.
//! 3. `panel` draws the grid, the marks and the axes; `legend` names the series above them.
//! 4. `style` tells series apart by colour and by dash, marker or hatching, so also in grey.

mod axis;
mod canvas;
mod label;
mod legend;
mod panel;
mod style;
#[cfg(test)]
mod tests;

use crate::path::shown;
use canvas::{BOLD, Canvas, GREY, MARGIN, WIDTH};
use panel::Sheet;
use std::fs;
use std::path::Path;
use style::Styles;

/// What is drawn into one file.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// What was run, in small type below the panels.
    pub(crate) caption: String,
    /// Below each other, in this order.
    pub(crate) panels: Vec<Panel>,
}

/// One pair of axes and what is drawn between them.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// What one direction of a panel measures.
pub(crate) struct Axis {
    /// What is measured; with the unit, where the labels of the ticks do not name it.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) unit: Unit,
}

/// Where a value stands on an axis. Values that have no place there are left out of the panel,
/// which says how many.
pub(crate) enum Scale {
    /// In proportion, from zero; only values not below zero have a place.
    Linear,
    /// By its decimal logarithm; only values above zero have a place.
    Log10,
    /// By its binary logarithm; only values above zero have a place.
    Log2,
    /// A share q of all, from 0 to below 1, by its nines: -log10(1 - q), so that 99 % and 99.9 %
    /// are as far apart as 90 % and 99 %. The largest of n values belongs at 1 - 1/n, as 1 has no
    /// place.
    Nines,
    /// The value i stands at the i-th name, from 0.
    Categories(Vec<String>),
}

/// How the values of an axis are written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// As they are: 1024.
    Plain,
    /// With k, M, G or T: 20 k.
    Count,
    /// The values are nanoseconds: 50 us, 1 ms.
    Nanos,
    /// The values are bytes, few enough to be counted: 255 B.
    Bytes,
}

/// Values of one kind. In all panels of a figure, equal names look equal.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// x and y, in the order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How the points of a series are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Joined; a few points also have markers.
    Line,
    /// Markers alone.
    Points,
    /// Each y holds until the x of the next point; the last point ends the last step.
    Steps,
    /// From zero up, on an x axis of names; side by side where series share a name.
    Bars,
}

/// Draws `figure` into the file `path`. Returns why it cannot be written, as a sentence.
pub(crate) fn write(path: &Path, figure: &Figure) -> Option<String> {
    let error = fs::write(path, svg(figure)).err()?;
    Some(format!("the figure {} cannot be written: {error}", shown(path)))
}

/// `figure` as the text of an SVG file, as wide as a column of a paper.
fn svg(figure: &Figure) -> String {
    let styles = Styles::of(figure);
    let sheets: Vec<Sheet> = figure.panels.iter().map(Sheet::new).collect();
    let left = sheets.iter().map(Sheet::left_needed).fold(0.0, f64::max);
    let mut canvas = Canvas::new();
    let width = WIDTH - 2.0 * MARGIN;
    let mut top = canvas.paragraph((MARGIN, MARGIN), width, 8.5, BOLD, &figure.title);
    for sheet in &sheets {
        top = sheet.draw(&mut canvas, &styles, left, top + 5.0);
    }
    top = canvas.paragraph((MARGIN, top + 4.0), width, 6.0, GREY, &figure.caption);
    canvas.finish(top + MARGIN)
}

/// `count` for arithmetic with lengths and ranks.
#[expect(clippy::cast_precision_loss, reason = "counts of points, ticks and series are small")]
const fn float(count: usize) -> f64 {
    count as f64
}
