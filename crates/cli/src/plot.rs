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
mod figure;
mod label;
mod legend;
mod panel;
mod style;
#[cfg(test)]
mod tests;

use crate::path::shown;
use canvas::{BOLD, Canvas, GREY, MARGIN, WIDTH};
pub(crate) use figure::{Axis, Figure, Mark, Panel, Scale, Series, Unit};
use panel::Sheet;
use std::fs;
use std::path::Path;
use style::Styles;

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
