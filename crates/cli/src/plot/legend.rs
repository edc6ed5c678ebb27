//! The names of the series of a panel, above its data, each beside what it looks like.

use super::canvas::{Anchor, Canvas, MARGIN, WIDTH, line_height, number, text_width, wrapped};
use super::style::Styles;
use super::{Mark, Panel, float, panel};

const SIZE: f64 = 7.0;
const SAMPLE: f64 = 17.0;
const GAP: f64 = 3.0;
const ROOM: f64 = WIDTH - 2.0 * MARGIN;

/// Entries start at multiples of it, so that those of many rows line up.
const TAB: f64 = ROOM / 9.0;

/// Draws the legend of `panel` below `top`, in rows as wide as the figure; gives where it ends.
pub(super) fn draw(canvas: &mut Canvas, panel: &Panel, styles: &Styles, top: f64) -> f64 {
    let (mut left, mut top, mut bottom) = (0.0, top, top);
    for (index, series) in panel.series.iter().enumerate() {
        let lines = wrapped(&series.name, SIZE, ROOM - SAMPLE - GAP);
        let widest = lines.iter().map(|line| text_width(line, SIZE)).fold(0.0, f64::max);
        if left + SAMPLE + GAP + widest > ROOM {
            (left, top) = (0.0, bottom);
        }
        sample(canvas, panel, index, styles, (MARGIN + left, top + SIZE * 0.65));
        for (index, line) in lines.iter().enumerate() {
            let baseline = top + SIZE + line_height(SIZE) * float(index);
            canvas.text((MARGIN + left + SAMPLE + GAP, baseline), SIZE, Anchor::Start, "", line);
        }
        bottom = bottom.max(top + line_height(SIZE) * float(lines.len().max(1)));
        left += ((SAMPLE + GAP + widest + 2.0 * GAP) / TAB).ceil() * TAB;
    }
    bottom
}

/// What the `index`-th series looks like, from the middle of the left edge.
fn sample(
    canvas: &mut Canvas,
    panel: &Panel,
    index: usize,
    styles: &Styles,
    (left, middle): (f64, f64),
) {
    let series = &panel.series[index];
    let style = styles.style(panel, series);
    if series.mark == Mark::Bars {
        let corners = (left + 4.0, middle - 3.0, left + SAMPLE, middle + 3.0);
        return panel::bar(canvas, corners, style);
    }
    if series.mark != Mark::Points {
        let line = format!("M{} {}h{}", number(left), number(middle), number(SAMPLE));
        canvas.path(&line, &style.stroke());
    }
    if panel::has_markers(series) {
        style.markers(canvas, &[(left + SAMPLE / 2.0, middle)], series.mark);
    }
}
