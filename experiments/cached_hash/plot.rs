//! The plot of the guide: lines over a budget, which is shown by its logarithm.

use std::fmt::Write;

/// A line: its name, its colour, and its points.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    /// Budget in percent of the table, and pages for each operation.
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// The budgets labelled below the plot.
const TICKS: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Returns the figure as SVG.
pub(crate) fn svg(title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|point| point.1).fold(0.0, f64::max);
    let top = (most * 2.0).ceil().max(1.0) / 2.0;
    let span = (TICKS[6] / TICKS[0]).ln();
    let x = |budget: f64| {
        let share = (budget / TICKS[0]).ln() / span;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    };
    let y = |rate: f64| HEIGHT - BOTTOM - rate / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{title}</text>\n"
    );
    let mut add = |line: String| writeln!(svg, "{line}").expect("a string takes all");
    for step in 0..=4 {
        let rate = top * f64::from(step) / 4.0;
        add(format!(
            "<path d=\"M{LEFT} {0:.1}H{1:.1}\" stroke=\"#ddd\"/><text x=\"{2}\" y=\"{3:.1}\" \
             text-anchor=\"end\">{rate:.2}</text>",
            y(rate),
            WIDTH - RIGHT,
            LEFT - 5.0,
            y(rate) + 4.0
        ));
    }
    for budget in TICKS {
        add(format!(
            "<path d=\"M{0:.1} {TOP}V{1}\" stroke=\"#ddd\"/><text x=\"{0:.1}\" y=\"{2}\" \
             text-anchor=\"middle\">{budget} %</text>",
            x(budget),
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 15.0
        ));
    }
    add(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">memory, in per cent of the table</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 10.0
    ));
    for (number, line) in (0_u32..).zip(lines) {
        let path: Vec<String> =
            line.points.iter().map(|&(a, b)| format!("{:.1} {:.1}", x(a), y(b))).collect();
        let colour = line.colour;
        add(format!(
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join("L")
        ));
        let (at, below) = (WIDTH - 190.0, TOP + 14.0 + 15.0 * f64::from(number));
        add(format!(
            "<path d=\"M{at} {0}h18\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{1}\" \
             y=\"{below}\">{2}</text>",
            below - 4.0,
            at + 24.0,
            line.name
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
