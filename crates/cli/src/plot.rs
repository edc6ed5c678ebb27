//! Figures for a paper, as SVG, in one column of a page.
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

/// The content of one file.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// The setup, in small type below the panels.
    pub(crate) caption: String,
    /// From top to bottom.
    pub(crate) panels: Vec<Panel>,
}

/// One pair of axes and the data between them.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// One axis of a panel.
pub(crate) struct Axis {
    /// The measure; with its unit, if the labels of the ticks do not show it.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) unit: Unit,
}

/// Maps values to positions on an axis. A panel leaves out values without a position and states
/// their number.
pub(crate) enum Scale {
    /// Linear from zero; only values of at least zero have a position.
    Linear,
    /// By decimal logarithm; only values above zero have a position.
    Log10,
    /// By binary logarithm; only values above zero have a position.
    Log2,
    /// A share q, from 0 to below 1, by its nines: -log10(1 - q), so that 99 % and 99.9 % are as
    /// far apart as 90 % and 99 %. Draw the largest of n values at 1 - 1/n, since 1 has no
    /// position.
    Nines,
    /// The value i is at the i-th name, from 0.
    Categories(Vec<String>),
}

/// Format of the values of an axis.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Plain: 1024.
    Plain,
    /// With k, M, G or T: 20 k.
    Count,
    /// The values are nanoseconds: 50 us, 1 ms.
    Nanos,
    /// The values are bytes, few enough to be counted: 255 B.
    Bytes,
}

/// Values of one kind. In all panels of a figure, series with equal names look equal.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// x and y, in the order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Form of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line; a few points also have markers.
    Line,
    /// Markers only.
    Points,
    /// Each y holds until the x of the next point; the last point ends the last step.
    Steps,
    /// Bars from zero, on an x axis of names; side by side if series share a name.
    Bars,
}

/// Draws `figure` into the file `path`. Returns an error sentence if the file cannot be written.
pub(crate) fn write(path: &Path, figure: &Figure) -> Option<String> {
    let error = fs::write(path, svg(figure)).err()?;
    Some(format!("the figure {} cannot be written: {error}", shown(path)))
}

/// Returns `figure` as the text of an SVG file, as wide as a column of a paper.
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

/// Converts `count` for arithmetic with lengths and ranks.
#[expect(clippy::cast_precision_loss, reason = "counts of points, ticks and series are small")]
const fn float(count: usize) -> f64 {
    count as f64
}
