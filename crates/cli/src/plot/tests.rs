//! Parses SVG figures as a viewer does, and checks what they show.

use super::axis::{Ruler, Side};
use super::canvas::{float, text_width, wrapped};
use super::{Axis, Figure, Mark, Panel, Scale, Series, Unit, svg};
use roxmltree::{Document, Node};

const BLUE: &str = "#0072B2";
const RED: &str = "#D55E00";

fn axis(label: &str, scale: Scale, unit: Unit) -> Axis {
    Axis { label: label.to_owned(), scale, unit }
}

fn plain(scale: Scale) -> Axis {
    axis("axis", scale, Unit::Plain)
}

fn series(name: &str, mark: Mark, points: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), mark, points: points.to_vec() }
}

fn figure(x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    let panel = Panel { title: "panel".to_owned(), x, y, series };
    Figure { title: "title".to_owned(), caption: "caption".to_owned(), panels: vec![panel] }
}

fn line(x: Scale, y: Scale, points: &[(f64, f64)]) -> String {
    svg(&figure(plain(x), plain(y), vec![series("line", Mark::Line, points)]))
}

fn texts(file: &str) -> Vec<String> {
    let document = Document::parse(file).unwrap();
    document.descendants().filter_map(|node| node.text()).map(str::to_owned).collect()
}

fn names(names: &[&str]) -> Scale {
    Scale::Categories(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Returns the commands and numbers of the paths that `is_wanted` selects.
fn paths(file: &str, is_wanted: impl Fn(&Node) -> bool) -> Vec<Vec<(char, Vec<f64>)>> {
    let document = Document::parse(file).unwrap();
    let paths = document.descendants().filter(|node| node.has_tag_name("path"));
    paths.filter(is_wanted).map(|node| commands(node.attribute("d").unwrap())).collect()
}

fn commands(data: &str) -> Vec<(char, Vec<f64>)> {
    let mut commands = Vec::new();
    let mut rest = data;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|letter: char| letter.is_ascii_alphabetic());
        let end = end.map_or(rest.len(), |end| end + 1);
        let numbers = rest[1..end].replace('-', " -");
        let numbers = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        commands.push((command, numbers));
        rest = &rest[end..];
    }
    commands
}

/// Returns the corners of the longest line of `colour`.
fn corners(file: &str, colour: &str) -> Vec<(f64, f64)> {
    let is_line = |node: &Node| {
        node.attribute("stroke") == Some(colour) && node.attribute("fill") == Some("none")
    };
    let mut at = (0.0, 0.0);
    let line = paths(file, is_line).into_iter().max_by_key(Vec::len).unwrap();
    line.into_iter()
        .map(|(command, numbers)| {
            match command {
                'M' | 'L' => at = (numbers[0], numbers[1]),
                'H' => at.0 = numbers[0],
                'V' => at.1 = numbers[0],
                _ => panic!("an unknown command: {command}"),
            }
            at
        })
        .collect()
}

/// Returns the position of the only text that reads `text`.
fn place(file: &str, text: &str) -> (f64, f64) {
    let document = Document::parse(file).unwrap();
    let found: Vec<_> = document.descendants().filter(|node| node.text() == Some(text)).collect();
    let node = found.iter().find(|node| node.is_element()).expect(text);
    let number = |name| node.attribute(name).unwrap().parse().unwrap();
    (number("x"), number("y"))
}

/// True if the steps between `places` have the ratios of `parts`, within the precision of the file.
fn are_as(places: &[f64], parts: &[f64]) -> bool {
    let whole = (places[places.len() - 1] - places[0]) / parts.iter().sum::<f64>();
    let steps = places.windows(2).map(|pair| pair[1] - pair[0]);
    whole.abs() > 1.0 && steps.zip(parts).all(|(step, part)| (step - part * whole).abs() < 0.02)
}

fn xs(corners: &[(f64, f64)]) -> Vec<f64> {
    corners.iter().map(|corner| corner.0).collect()
}

fn ys(corners: &[(f64, f64)]) -> Vec<f64> {
    corners.iter().map(|corner| corner.1).collect()
}

#[test]
fn every_word_of_a_figure_appears_in_well_formed_xml() {
    let names = ["a < b & \"c\"", "</svg>", "it's \u{e9}"];
    let lines = names.map(|name| series(name, Mark::Line, &[(1.0, 1.0), (2.0, 3.0)]));
    let x = axis("depth & <x>", Scale::Linear, Unit::Plain);
    let y = axis("latency", Scale::Log10, Unit::Nanos);
    let file = svg(&figure(x, y, lines.into()));
    let texts = texts(&file);
    for text in names.iter().chain(&["title", "panel", "caption", "depth & <x>", "latency"]) {
        assert!(texts.iter().any(|found| found == text), "{text}");
    }
    let long = (0..40).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
    let lines = vec![series(&long, Mark::Line, &[]), series("short", Mark::Line, &[])];
    let drawn = svg(&figure(plain(Scale::Linear), plain(Scale::Linear), lines));
    let words = self::texts(&drawn).join(" ");
    let has_word = |word: &str| words.split_whitespace().any(|found| found == word);
    assert!(long.split_whitespace().all(has_word), "{words}");
    let control = figure(
        axis("a\u{1}b\u{ffff}", Scale::Linear, Unit::Plain),
        plain(Scale::Linear),
        Vec::new(),
    );
    assert!(Document::parse(&svg(&control)).is_ok());
}

#[test]
fn equal_figures_give_equal_bytes() {
    let points: Vec<_> = (0..5_000).map(|i| (f64::from(i), f64::from(i * 7_919 % 1_009))).collect();
    let draw = || line(Scale::Linear, Scale::Linear, &points);
    assert_eq!(draw(), draw());
}

#[test]
fn places_on_a_linear_axis_are_in_proportion() {
    let points = [(0.0, 0.0), (1.0, 10.0), (4.0, 20.0), (10.0, 100.0)];
    let corners = corners(&line(Scale::Linear, Scale::Linear, &points), BLUE);
    assert!(are_as(&xs(&corners), &[1.0, 3.0, 6.0]), "{corners:?}");
    assert!(are_as(&ys(&corners), &[1.0, 1.0, 8.0]), "{corners:?}");
    assert!(corners[3].0 > corners[0].0 && corners[3].1 < corners[0].1, "up and to the right");
}

#[test]
fn equal_factors_are_equally_far_apart_on_a_logarithmic_axis() {
    let points = [(1.0, 1e3), (2.0, 1e4), (4.0, 1e5), (16.0, 1e7)];
    for x in [Scale::Log10, Scale::Log2] {
        let corners = corners(&line(x, Scale::Log10, &points), BLUE);
        assert!(are_as(&xs(&corners), &[1.0, 1.0, 2.0]), "{corners:?}");
        assert!(are_as(&ys(&corners), &[1.0, 1.0, 2.0]), "{corners:?}");
    }
}

#[test]
fn each_nine_takes_equal_room() {
    let points = [(0.0, 1.0), (0.9, 2.0), (0.99, 3.0), (0.999, 4.0), (0.999_99, 5.0)];
    let file = line(Scale::Nines, Scale::Linear, &points);
    let corners = corners(&file, BLUE);
    assert!(are_as(&xs(&corners), &[1.0, 1.0, 1.0, 2.0]), "{corners:?}");
    for (label, corner) in ["0%", "90%", "99%", "99.9%"].iter().zip(&corners) {
        assert!((place(&file, label).0 - corner.0).abs() < 0.02, "{label}");
    }
}

#[test]
fn the_label_of_a_tick_stands_at_its_value() {
    let points = [(1.0, 1e4), (8.0, 1e5), (64.0, 1e9)];
    let x = axis("depth", Scale::Log2, Unit::Plain);
    let y = axis("latency", Scale::Log10, Unit::Nanos);
    let file = svg(&figure(x, y, vec![series("line", Mark::Line, &points)]));
    let corners = corners(&file, BLUE);
    for (label, corner) in ["1", "8", "64"].iter().zip(&corners) {
        assert!((place(&file, label).0 - corner.0).abs() < 0.02, "{label}");
    }
    // A line of text is placed by its baseline, so the same distance below each tick.
    let below = place(&file, "10 us").1 - corners[0].1;
    assert!(below > 0.0 && below < 4.0, "{below}");
    for (label, corner) in ["100 us", "1 s"].iter().zip(&corners[1..]) {
        assert!((place(&file, label).1 - corner.1 - below).abs() < 0.02, "{label}");
    }
}

#[test]
fn an_empty_panel_says_so() {
    let file = line(Scale::Linear, Scale::Log10, &[]);
    for text in ["no points", "line", "panel", "axis"] {
        assert!(texts(&file).iter().any(|found| found == text), "{text}");
    }
    let shown = line(Scale::Linear, Scale::Log10, &[(1.0, 1.0)]);
    assert!(!texts(&shown).iter().any(|found| found == "no points"));
}

#[test]
fn values_without_a_place_are_left_out_and_counted() {
    let good = [(0.5, 10.0), (0.9, 100.0)];
    let bad = [
        (0.1, 0.0),
        (0.2, -1.0),
        (0.3, f64::NAN),
        (0.4, f64::INFINITY),
        (f64::NEG_INFINITY, 1.0),
        (1.0, 1.0),
        (-0.1, 1.0),
    ];
    let file = line(Scale::Nines, Scale::Log10, &[&good[..], &bad[..]].concat());
    assert_eq!(corners(&file, BLUE), corners(&line(Scale::Nines, Scale::Log10, &good), BLUE));
    assert!(texts(&file).iter().any(|text| text.ends_with("these axes: 7")), "{file}");
    let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (-1.0, 3.0), (1.0, -1.0)];
    let file = line(names(&["a", "b"]), Scale::Linear, &points);
    assert!(texts(&file).iter().any(|text| text.ends_with("these axes: 3")), "{file}");
}

#[test]
fn ranges_of_any_size_give_numbers_and_stay_on_the_page() {
    let extremes = [
        vec![(5.0, 7.0)],
        vec![(0.0, 0.0)],
        vec![(5.0, 7.0), (5.0, 7.0)],
        vec![(1.0, 100.0), (2.0, 100.000_001)],
        vec![(1e-150, 1e-150), (1e150, 1e150)],
        vec![(5e-324, f64::MAX), (1.0, 1.0), (2.0, 2.0)],
        vec![(-1e150, -1e150), (1e150, 1e150)],
        vec![(1e-299, 1e-299), (1e299, 1e299), (1.0, 2.0)],
        vec![(-f64::MAX, -f64::MAX), (f64::MAX, f64::MAX), (1.0, 2.0)],
        vec![(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 3.0), (0.5, 2.0)],
        vec![(-3.0, -7.0), (-2.0, -5.0)],
    ];
    for points in extremes {
        for scale in [|| Scale::Linear, || Scale::Log10, || Scale::Log2, || Scale::Nines] {
            for mark in [Mark::Line, Mark::Steps, Mark::Bars] {
                let x = if mark == Mark::Bars { names(&[""; 8]) } else { scale() };
                let (x, y) = (plain(x), plain(scale()));
                let file = svg(&figure(x, y, vec![series("extreme", mark, &points)]));
                assert!(!file.contains("NaN") && !file.contains("inf"), "{points:?}: {file}");
                for (command, numbers) in paths(&file, |_| true).concat() {
                    let bound = if command == 'a' { 10.0 } else { 400.0 };
                    assert!(numbers.iter().all(|number| number.abs() < bound), "{points:?}");
                }
            }
        }
    }
}

#[test]
fn a_step_holds_until_the_next_point() {
    let points = [(0.0, 10.0), (5.0, 30.0), (10.0, 30.0)];
    let same = corners(&line(Scale::Linear, Scale::Linear, &points), BLUE);
    let steps = vec![series("line", Mark::Steps, &points)];
    let stairs = corners(&svg(&figure(plain(Scale::Linear), plain(Scale::Linear), steps)), BLUE);
    // Each corner of the step: horizontally at the old height, then vertically.
    let way = [same[0], (same[1].0, same[0].1), same[1], (same[2].0, same[1].1), same[2]];
    assert!(way.iter().all(|corner| stairs.contains(corner)), "{stairs:?}");
    assert!(!stairs.contains(&(same[0].0, same[1].1)), "{stairs:?}");
}

#[test]
fn bars_rise_from_zero_in_proportion_and_do_not_cover_each_other() {
    let paper = series("paper", Mark::Bars, &[(0.0, 10.0), (1.0, 20.0), (2.0, 40.0)]);
    let ours = series("ours", Mark::Bars, &[(0.0, 20.0), (1.0, 10.0), (2.0, 30.0)]);
    let file =
        svg(&figure(plain(names(&["a", "b", "c"])), plain(Scale::Linear), vec![paper, ours]));
    let bars = |colour: &'static str| -> Vec<[f64; 4]> {
        let is_bar = move |node: &Node| node.attribute("stroke") == Some(colour);
        let bars = paths(&file, is_bar).into_iter().skip(1);
        bars.map(|bar| [bar[0].1[0], bar[2].1[0], bar[0].1[1], bar[1].1[0]]).collect()
    };
    let (paper, ours) = (bars(BLUE), bars(RED));
    let heights = |bars: &[[f64; 4]]| bars.iter().map(|bar| bar[2] - bar[3]).collect::<Vec<_>>();
    assert!(are_as(&[&[0.0], &heights(&paper)[..]].concat(), &[10.0, 10.0, 20.0]), "{paper:?}");
    assert!((heights(&ours)[0] - heights(&paper)[1]).abs() < 0.02, "{ours:?}");
    let in_order: Vec<_> =
        paper.iter().zip(&ours).flat_map(|(left, right)| [left, right]).collect();
    assert!(in_order.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{in_order:?}");
    for text in ["a", "b", "c", "10", "20", "40", "30"] {
        assert!(texts(&file).iter().any(|found| found == text), "{text}");
    }
}

#[test]
fn a_name_has_one_colour_in_all_panels() {
    let points = [(0.0, 1.0), (1.0, 2.0)];
    let mut drawn = figure(
        plain(Scale::Linear),
        plain(Scale::Linear),
        vec![series("ours", Mark::Line, &points), series("other", Mark::Line, &points)],
    );
    let second = vec![series("other", Mark::Line, &points)];
    drawn.panels.extend(figure(plain(Scale::Linear), plain(Scale::Linear), second).panels);
    let file = svg(&drawn);
    let document = Document::parse(&file).unwrap();
    let strokes = document.descendants().filter_map(|node| node.attribute("stroke"));
    let mut colours: Vec<_> = strokes.filter(|stroke| stroke.starts_with('#')).collect();
    colours.retain(|colour| *colour != "#ddd");
    assert_eq!(colours.iter().filter(|colour| **colour == BLUE).count(), 4, "legend and line");
    assert_eq!(colours.iter().filter(|colour| **colour == RED).count(), 8, "{colours:?}");
    assert_eq!(colours.len(), 12);
}

#[test]
fn labels_of_ticks_differ_and_do_not_touch() {
    let scales = [|| Scale::Linear, || Scale::Log10, || Scale::Log2];
    let units = [Unit::Plain, Unit::Count, Unit::Nanos, Unit::Bytes];
    for exponent in -4..13 {
        for factor in [1.0, 1.3, 2.0, 7.0, 40.0, 1e3, 1e7] {
            for (scale, unit) in scales.iter().flat_map(|scale| units.map(|unit| (scale(), unit))) {
                let low = 1.7 * 10_f64.powi(exponent);
                check_labels(&axis("", scale, unit), &[low, low * factor]);
            }
        }
    }
    for nines in 1..16 {
        check_labels(&plain(Scale::Nines), &[0.0, 1.0 - 10_f64.powi(-nines)]);
    }
}

fn check_labels(axis: &Axis, values: &[f64]) {
    for (side, length) in [(Side::Below, 180.0), (Side::Left, 112.0)] {
        let ruler = Ruler::new(axis, values.iter().copied(), side, length, 11.0).unwrap();
        let labels: Vec<_> = ruler.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert!(labels.len() >= 2, "{values:?}: {labels:?}");
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}: {labels:?}");
        assert!(ruler.ticks.iter().all(|tick| (-1e-6..1.0 + 1e-6).contains(&tick.at)));
        for pair in ruler.ticks.windows(2) {
            let apart = (pair[1].at - pair[0].at) * length;
            let size = |label: &str| float(label.len()) * 3.5;
            let needed = match side {
                Side::Left => 7.0,
                Side::Below => f64::midpoint(size(&pair[0].label), size(&pair[1].label)),
            };
            assert!(apart >= needed, "{labels:?}");
        }
    }
}

#[test]
fn wrapped_lines_fit_and_keep_every_word() {
    for text in ["", "one", "some words that follow each other", "a-single-word-without-a-blank"] {
        for width in [20.0, 50.0, 400.0] {
            let lines = wrapped(text, 7.0, width);
            assert!(lines.iter().all(|line| text_width(line, 7.0) <= width), "{lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text));
        }
    }
    assert_eq!(wrapped("one two", 7.0, 400.0), ["one two"]);
    assert_eq!(wrapped("one two", 7.0, 15.0), ["one", "two"]);
}

#[test]
fn numbers_are_written_as_people_read_them() {
    for (unit, value, reference, text) in [
        (Unit::Plain, 1_024.0, 1_024.0, "1024"),
        (Unit::Plain, 0.1 + 0.2, 1.0, "0.3"),
        (Unit::Plain, 1e-9, 1e-9, "1e-9"),
        (Unit::Count, 0.0, 1e5, "0"),
        (Unit::Count, 20_000.0, 1e5, "20 k"),
        (Unit::Count, 500_000.0, 2e6, "0.5 M"),
        (Unit::Count, 10.0, 10.0, "10"),
        (Unit::Nanos, 50_000.0, 50_000.0, "50 us"),
        (Unit::Nanos, 1e6, 1e6, "1 ms"),
        (Unit::Nanos, 999.999_999_9, 999.999_999_9, "1 us"),
        (Unit::Bytes, 255.0, 255.0, "255 B"),
    ] {
        assert_eq!(unit.label(value, reference), text);
    }
}
