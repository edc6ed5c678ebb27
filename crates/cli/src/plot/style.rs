//! Looks of series: colours that colour-blind readers can distinguish; and dashes, markers and
//! hatching for print in grey.

use super::canvas::{Canvas, number};
use super::figure::{Figure, Mark, Panel, Series};

/// The palette of Okabe and Ito, without its yellow, which is invisible on white paper.
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9"];

const DASHES: [&str; 6] = ["", "4 1.5", "1.2 1.2", "6 1.5 1.2 1.5", "2.5 1", "8 2"];

/// A marker has about the area of a circle of this radius.
const MARKER: f64 = 1.9;

/// Lines with more points have no markers.
const MARKERS_MAX: usize = 16;

/// Look of the marks of a series.
#[derive(Clone, Copy)]
pub(super) struct Style {
    colour: &'static str,
    dash: &'static str,
    /// Rank of its colour among those of the figure.
    rank: usize,
}

impl Style {
    /// Returns the attributes of its lines.
    pub(super) fn stroke(&self) -> String {
        let dash = if self.dash.is_empty() {
            String::new()
        } else {
            format!(r#" stroke-dasharray="{}""#, self.dash)
        };
        format!(r#"fill="none" stroke="{}" stroke-width="1.1"{dash}"#, self.colour)
    }

    /// Returns the attributes of its bars.
    fn bar_look(&self, canvas: &mut Canvas) -> String {
        let colour = self.colour;
        let fill = match self.rank % 3 {
            0 => format!(r#"fill="{colour}""#),
            1 => format!(r#"fill="{}""#, canvas.hatching(colour)),
            _ => format!(r#"fill="{colour}" fill-opacity="0.3""#),
        };
        format!(r#"{fill} stroke="{colour}" stroke-width="0.6""#)
    }

    /// Draws a bar between two corners.
    pub(super) fn bar(
        &self,
        canvas: &mut Canvas,
        (left, top, right, bottom): (f64, f64, f64, f64),
    ) {
        let [left, top, right, bottom] = [left, top, right, bottom].map(number);
        let data = format!("M{left} {bottom}V{top}H{right}V{bottom}z");
        let look = self.bar_look(canvas);
        canvas.path(&data, &look);
    }

    /// Draws its marker at each of `points`.
    pub(super) fn markers(&self, canvas: &mut Canvas, points: &[(f64, f64)]) {
        let shape = self.outline();
        let moved = |&(x, y): &(f64, f64)| format!("M{} {}{shape}", number(x), number(y));
        let data: String = points.iter().map(moved).collect();
        let colour = self.colour;
        canvas.path(&data, &format!(r#"fill="{colour}" stroke="{colour}" stroke-width="0.8""#));
    }

    /// Returns the outline of its marker around a point.
    fn outline(&self) -> String {
        let corners: &[(f64, f64)] = match self.rank % 5 {
            0 => {
                let (radius, side) = (number(MARKER), number(MARKER * 2.0));
                let arc = |to: &str| format!("a{radius} {radius} 0 1 0 {to} 0");
                return format!("m-{radius} 0{}{}z", arc(&side), arc(&format!("-{side}")));
            }
            1 => &[(-0.9, -0.9), (1.8, 0.0), (0.0, 1.8), (-1.8, 0.0)],
            2 => &[(0.0, -1.25), (1.2, 2.1), (-2.4, 0.0)],
            3 => &[(0.0, -1.35), (1.2, 1.35), (-1.2, 1.35), (-1.2, -1.35)],
            _ => &[(0.0, 1.25), (1.2, -2.1), (-2.4, 0.0)],
        };
        let steps = corners.iter().map(|(x, y)| [number(x * MARKER), number(y * MARKER)].join(" "));
        format!("m{}z", steps.collect::<Vec<_>>().join("l"))
    }
}

/// Looks of all series of a figure.
pub(super) struct Styles<'a> {
    /// Names of the series, in the order of their first use.
    names: Vec<&'a str>,
}

impl<'a> Styles<'a> {
    pub(super) fn of(figure: &'a Figure) -> Self {
        let mut names = Vec::new();
        for series in figure.panels.iter().flat_map(|panel| &panel.series) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        Self { names }
    }

    /// Returns the look of `series` in `panel`; a single line needs no dashes.
    pub(super) fn style(&self, panel: &Panel, series: &Series) -> Style {
        let rank = self.names.iter().position(|&name| name == series.name).unwrap_or(0);
        let dash = if panel.series.len() == 1 { "" } else { DASHES[rank % DASHES.len()] };
        Style { colour: COLOURS[rank % COLOURS.len()], dash, rank }
    }
}

/// True if the points of `series` have markers.
pub(super) fn has_markers(series: &Series) -> bool {
    match series.mark {
        Mark::Points => true,
        Mark::Line => series.points.len() <= MARKERS_MAX,
        Mark::Steps | Mark::Bars => false,
    }
}
