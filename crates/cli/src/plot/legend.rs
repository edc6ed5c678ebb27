//! Draws the legend of a panel: the names of its series, each beside a sample of its look.

use super::canvas::{Anchor, Canvas, MARGIN, WIDTH, line_height, number, text_width};
use super::figure::{Mark, Panel, Series};
use super::style::{Style, Styles, has_markers};

const SIZE: f64 = 7.0;
const SAMPLE: f64 = 17.0;
const GAP: f64 = 3.0;
const ROOM: f64 = WIDTH - 2.0 * MARGIN;

/// Entries start at multiples of this width, so that the entries of all rows line up.
const TAB: f64 = ROOM / 9.0;

/// Draws the legend of `panel` below `top`, in rows as wide as the figure. Returns the lower end.
pub(super) fn draw(canvas: &mut Canvas, panel: &Panel, styles: &Styles, top: f64) -> f64 {
    let (mut left, mut top, mut bottom) = (0.0, top, top);
    for series in &panel.series {
        let width = SAMPLE + GAP + text_width(&series.name, SIZE);
        if left + width > ROOM {
            (left, top) = (0.0, bottom);
        }
        sample(canvas, series, styles.style(panel, series), (MARGIN + left, top + SIZE * 0.65));
        let at = (MARGIN + left + SAMPLE + GAP, top + SIZE);
        canvas.text(at, SIZE, Anchor::Start, "", &series.name);
        bottom = top + line_height(SIZE);
        left += ((width + 2.0 * GAP) / TAB).ceil() * TAB;
    }
    bottom
}

/// Draws a sample of `series`, from the middle of the left edge.
fn sample(canvas: &mut Canvas, series: &Series, style: Style, (left, middle): (f64, f64)) {
    if series.mark == Mark::Bars {
        let corners = (left + 4.0, middle - 3.0, left + SAMPLE, middle + 3.0);
        return style.bar(canvas, corners);
    }
    if series.mark != Mark::Points {
        let line = format!("M{} {}h{}", number(left), number(middle), number(SAMPLE));
        canvas.path(&line, &style.stroke());
    }
    if has_markers(series) {
        style.markers(canvas, &[(left + SAMPLE / 2.0, middle)]);
    }
}
