//! Draws one panel: its grid, marks, axes and their labels.

use super::axis::{self, Ruler, Side};
use super::canvas::{
    Anchor, BOLD, Canvas, GREY, MARGIN, WIDTH, float, line_height, number, text_width, wrapped,
};
use super::figure::{Mark, Panel, Scale, Series};
use super::legend;
use super::style::{Style, Styles, has_markers};
use std::fmt::Write;

/// Height between the axes.
const HEIGHT: f64 = 112.0;

/// Height for each name on a y axis of names.
const NAME_HEIGHT: f64 = 9.0;

/// Margin right of the x axis, for the half of the last label that extends beyond it.
const RIGHT: f64 = 12.0;

const TITLE: f64 = 7.5;
const LABEL: f64 = 7.5;
const TICK: f64 = 2.5;

/// Font size of values above bars.
const VALUE: f64 = 6.0;

const EMPTY: &str = "no points";

/// A panel with those points that its axes can show.
pub(super) struct Sheet<'a> {
    panel: &'a Panel,
    shown: Vec<Vec<(f64, f64)>>,
    left_out: usize,
    /// Height between the axes.
    height: f64,
    y: Option<Ruler<'a>>,
}

/// Origin and length of the axes on the canvas.
struct Area<'a> {
    left: f64,
    bottom: f64,
    width: f64,
    height: f64,
    x: Ruler<'a>,
    y: &'a Ruler<'a>,
}

impl Area<'_> {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.left + self.x.place(x) * self.width, self.bottom - self.y.place(y) * self.height)
    }
}

impl<'a> Sheet<'a> {
    pub(super) fn new(panel: &'a Panel) -> Self {
        let shown: Vec<Vec<_>> = panel.series.iter().map(|series| shown(panel, series)).collect();
        let all: usize = panel.series.iter().map(|series| series.points.len()).sum();
        let left_out = all - shown.iter().map(Vec::len).sum::<usize>();
        let values = shown.iter().flatten().map(|point| point.1);
        let height = match &panel.y.scale {
            Scale::Categories(names) => NAME_HEIGHT * float(names.len()),
            _ => HEIGHT,
        };
        let y = Ruler::new(&panel.y, values, Side::Left, height, 0.0);
        Self { panel, shown, left_out, height, y }
    }

    /// Margin left of the y axis.
    pub(super) fn left_needed(&self) -> f64 {
        let ticks = self.y.iter().flat_map(|ruler| &ruler.ticks);
        let widest = ticks.map(|tick| text_width(&tick.label, axis::SIZE)).fold(0.0, f64::max);
        MARGIN + line_height(LABEL) * float(self.y_label().len()) + widest + TICK + 4.0
    }

    fn y_label(&self) -> Vec<String> {
        wrapped(&self.panel.y.label, LABEL, self.height + 10.0)
    }

    /// Draws the panel below `top`, its y axis at `left`. Returns the lower end.
    pub(super) fn draw(&self, canvas: &mut Canvas, styles: &Styles, left: f64, top: f64) -> f64 {
        let width = WIDTH - RIGHT - left;
        let room = WIDTH - 2.0 * MARGIN;
        let top = canvas.paragraph((MARGIN, top), room, TITLE, BOLD, &self.panel.title);
        let top = legend::draw(canvas, self.panel, styles, top + 1.0) + 6.0;
        let bottom = top + self.bars_headroom(width) + self.height;
        let values = self.shown.iter().flatten().map(|point| point.0);
        let x = Ruler::new(&self.panel.x, values, Side::Below, width, RIGHT - 1.0);
        let below = if let (Some(x), Some(y)) = (x, &self.y) {
            let area = Area { left, bottom, width, height: self.height, x, y };
            grid(canvas, &area);
            self.marks(canvas, &area, styles);
            axes(canvas, &area);
            y_ticks(canvas, &area);
            x_ticks(canvas, &area)
        } else {
            let at = (left + width / 2.0, bottom - self.height / 2.0);
            canvas.text(at, LABEL, Anchor::Middle, GREY, EMPTY);
            lines(canvas, (left, bottom), (width, self.height));
            bottom
        };
        self.labels(canvas, left, width, bottom, below)
    }

    fn marks(&self, canvas: &mut Canvas, area: &Area, styles: &Styles) {
        for (index, series) in self.panel.series.iter().enumerate() {
            let style = styles.style(self.panel, series);
            match series.mark {
                Mark::Bars => self.bars(canvas, area, index, style),
                Mark::Line | Mark::Steps | Mark::Points => self.line(canvas, area, index, style),
            }
        }
    }

    fn line(&self, canvas: &mut Canvas, area: &Area, index: usize, style: Style) {
        let series = &self.panel.series[index];
        let points: Vec<_> = self.shown[index].iter().map(|&point| area.at(point)).collect();
        if points.len() > 1 && series.mark != Mark::Points {
            canvas.path(&polyline(&points, series.mark == Mark::Steps), &style.stroke());
        }
        if has_markers(series) {
            style.markers(canvas, &points);
        }
    }

    fn bars(&self, canvas: &mut Canvas, area: &Area, index: usize, style: Style) {
        let width = self.bar_width(area.width);
        let start = width * (float(index) - float(self.shown.len()) / 2.0);
        let is_upright = self.has_upright_values(area.width);
        for &point in &self.shown[index] {
            let (x, y) = area.at(point);
            let left = x + start;
            style.bar(canvas, (left, y, left + width * 0.94, area.bottom));
            let (middle, above) = (left + width * 0.47, y - 1.5);
            let value = self.value(point.1);
            if is_upright {
                let at = (middle + VALUE * 0.35, above - text_width(&value, VALUE) / 2.0);
                canvas.text(at, VALUE, Anchor::Upwards, "", &value);
            } else {
                canvas.text((middle, above), VALUE, Anchor::Middle, "", &value);
            }
        }
    }

    /// Returns the width of one bar on an axis of `length`; infinite if the axis has no names.
    fn bar_width(&self, length: f64) -> f64 {
        let Scale::Categories(names) = &self.panel.x.scale else { return f64::INFINITY };
        length / float(names.len()) * 0.8 / float(self.shown.len())
    }

    /// True if the values above bars must be rotated on an axis of `length`, since they would
    /// touch.
    fn has_upright_values(&self, length: f64) -> bool {
        let width = self.bar_width(length);
        let is_wider = |point: &(f64, f64)| text_width(&self.value(point.1), VALUE) > width;
        self.shown.iter().flatten().any(is_wider)
    }

    /// Returns the margin above the axes for rotated values.
    fn bars_headroom(&self, length: f64) -> f64 {
        let Some(y) = &self.y else { return 0.0 };
        if !self.has_upright_values(length) {
            return 0.0;
        }
        let needed = |point: &(f64, f64)| {
            text_width(&self.value(point.1), VALUE) - (1.0 - y.place(point.1)) * self.height
        };
        self.shown.iter().flatten().map(needed).fold(0.0, f64::max)
    }

    /// Formats `value` with three digits, for the top of a bar.
    fn value(&self, value: f64) -> String {
        let rounded = format!("{value:.2e}").parse().unwrap_or(value);
        self.panel.y.unit.label(rounded, rounded)
    }

    /// Draws the labels of both axes, and the number of missing points. Returns the panel's lower
    /// end.
    fn labels(&self, canvas: &mut Canvas, left: f64, width: f64, bottom: f64, below: f64) -> f64 {
        for (index, line) in self.y_label().iter().enumerate() {
            let x = MARGIN + LABEL + line_height(LABEL) * float(index);
            canvas.text((x, bottom - self.height / 2.0), LABEL, Anchor::Upwards, "", line);
        }
        let mut end = below + 2.0;
        for line in wrapped(&self.panel.x.label, LABEL, width) {
            canvas.text((left + width / 2.0, end + LABEL), LABEL, Anchor::Middle, "", &line);
            end += line_height(LABEL);
        }
        if self.left_out > 0 {
            let note = format!("points without a place on these axes: {}", self.left_out);
            end = canvas.paragraph((left, end), width, 6.0, GREY, &note);
        }
        end
    }
}

/// Returns the points of `series` that have a position in `panel`.
fn shown(panel: &Panel, series: &Series) -> Vec<(f64, f64)> {
    let has_place = |&&(x, y): &&(f64, f64)| {
        panel.x.scale.coordinate(x).is_some() && panel.y.scale.coordinate(y).is_some()
    };
    series.points.iter().filter(has_place).copied().collect()
}

fn polyline(points: &[(f64, f64)], is_stepped: bool) -> String {
    let mut data = String::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        let (x, y) = (number(x), number(y));
        let _ = match (index, is_stepped) {
            (0, _) => write!(data, "M{x} {y}"),
            (_, true) => write!(data, "H{x}V{y}"),
            (_, false) => write!(data, "L{x} {y}"),
        };
    }
    data
}

fn grid(canvas: &mut Canvas, area: &Area) {
    let mut data = String::new();
    for tick in &area.y.ticks {
        let y = area.bottom - tick.at * area.height;
        let _ = write!(data, "M{} {}h{}", number(area.left), number(y), number(area.width));
    }
    if !area.x.is_of_names() {
        for tick in &area.x.ticks {
            let x = area.left + tick.at * area.width;
            let _ = write!(data, "M{} {}v-{}", number(x), number(area.bottom), number(area.height));
        }
    }
    canvas.path(&data, r##"fill="none" stroke="#ddd" stroke-width="0.4""##);
}

/// Draws both axes and their ticks.
fn axes(canvas: &mut Canvas, area: &Area) {
    lines(canvas, (area.left, area.bottom), (area.width, area.height));
    let mut data = String::new();
    let major = |ruler: &Ruler| ruler.ticks.iter().map(|tick| (tick.at, TICK)).collect::<Vec<_>>();
    let minor = |ruler: &Ruler| ruler.minor.iter().map(|&at| (at, TICK * 0.5)).collect::<Vec<_>>();
    for (at, length) in [major(area.y), minor(area.y)].concat() {
        let y = area.bottom - at * area.height;
        let _ = write!(data, "M{} {}h-{}", number(area.left), number(y), number(length));
    }
    if !area.x.is_of_names() {
        for (at, length) in [major(&area.x), minor(&area.x)].concat() {
            let x = area.left + at * area.width;
            let _ = write!(data, "M{} {}v{}", number(x), number(area.bottom), number(length));
        }
    }
    canvas.path(&data, r#"fill="none" stroke="black" stroke-width="0.5""#);
}

fn lines(canvas: &mut Canvas, (left, bottom): (f64, f64), (width, height): (f64, f64)) {
    let (left, top, right) = (number(left), number(bottom - height), number(left + width));
    let data = format!("M{left} {top}V{}H{right}", number(bottom));
    canvas.path(&data, r#"fill="none" stroke="black" stroke-width="0.6""#);
}

fn y_ticks(canvas: &mut Canvas, area: &Area) {
    for tick in &area.y.ticks {
        let y = area.bottom - tick.at * area.height + axis::SIZE * 0.35;
        let at = (area.left - TICK - 1.5, y);
        canvas.text(at, axis::SIZE, Anchor::End, "", &tick.label);
    }
}

/// Draws the labels of the x axis. Returns the lower end.
fn x_ticks(canvas: &mut Canvas, area: &Area) -> f64 {
    let top = area.bottom + TICK + 1.0;
    if area.x.is_of_names() {
        return names(canvas, area, top);
    }
    for tick in &area.x.ticks {
        let half = text_width(&tick.label, axis::SIZE) / 2.0;
        let x = (area.left + tick.at * area.width).min(WIDTH - 1.0 - half);
        canvas.text((x, top + axis::SIZE), axis::SIZE, Anchor::Middle, "", &tick.label);
    }
    top + line_height(axis::SIZE)
}

/// Draws names below their bars. Returns the lower end.
fn names(canvas: &mut Canvas, area: &Area, top: f64) -> f64 {
    let room = area.width / float(area.x.ticks.len()) - 2.0;
    let height = line_height(axis::SIZE);
    let mut end = top;
    for tick in &area.x.ticks {
        let x = area.left + tick.at * area.width;
        for (index, line) in wrapped(&tick.label, axis::SIZE, room).iter().enumerate() {
            let offset = height * float(index);
            canvas.text((x, top + axis::SIZE + offset), axis::SIZE, Anchor::Middle, "", line);
            end = end.max(top + offset + height);
        }
    }
    end
}
