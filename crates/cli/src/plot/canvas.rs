//! Writes the text of an SVG file, and estimates the width of text in it.

use std::fmt::Write;

/// The width of a figure in points of 1/72 inch: a column of 85 mm. All lengths are points.
pub(super) const WIDTH: f64 = 241.0;

/// Margin of the figure.
pub(super) const MARGIN: f64 = 4.0;

pub(super) const BOLD: &str = r#"font-weight="bold""#;
pub(super) const GREY: &str = r##"fill="#555""##;

/// Line height, as a multiple of the font size.
const LEADING: f64 = 1.25;

/// Alignment of a text at its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// Rotated to read upwards, centred at the point.
    Upwards,
}

/// Collects elements; later ones cover earlier ones.
pub(super) struct Canvas {
    body: String,
    patterns: Vec<&'static str>,
}

impl Canvas {
    pub(super) const fn new() -> Self {
        Self { body: String::new(), patterns: Vec::new() }
    }

    /// Adds a path along `data`; `look` has its attributes.
    pub(super) fn path(&mut self, data: &str, look: &str) {
        let _ = writeln!(self.body, r#"<path d="{data}" {look}/>"#);
    }

    /// Adds one line of `text`, on the baseline `at`.
    pub(super) fn text(
        &mut self,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        look: &str,
        text: &str,
    ) {
        let (x, y) = (number(at.0), number(at.1));
        let place = match anchor {
            Anchor::Start | Anchor::Middle | Anchor::End => format!(r#"x="{x}" y="{y}""#),
            Anchor::Upwards => format!(r#"transform="translate({x} {y}) rotate(-90)""#),
        };
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle | Anchor::Upwards => "middle",
            Anchor::End => "end",
        };
        let (size, text) = (number(size), escaped(text));
        let _ = writeln!(
            self.body,
            r#"<text {place} font-size="{size}" text-anchor="{anchor}" {look}>{text}</text>"#
        );
    }

    /// Adds `text` in lines of at most `width`, from the upper left corner `at`. Returns the lower
    /// end.
    pub(super) fn paragraph(
        &mut self,
        at: (f64, f64),
        width: f64,
        size: f64,
        look: &str,
        text: &str,
    ) -> f64 {
        let mut bottom = at.1;
        let width = if look == BOLD { width / 1.1 } else { width };
        for line in wrapped(text, size, width) {
            self.text((at.0, bottom + size), size, Anchor::Start, look, &line);
            bottom += line_height(size);
        }
        bottom
    }

    /// Returns the paint that hatches in `colour`.
    pub(super) fn hatching(&mut self, colour: &'static str) -> String {
        if !self.patterns.contains(&colour) {
            self.patterns.push(colour);
        }
        format!("url(#{})", pattern_id(colour))
    }

    /// Returns the whole file, `height` high.
    pub(super) fn finish(self, height: f64) -> String {
        let (wide, high) = (number(WIDTH), number(height));
        let millimetres = number(height / 72.0 * 25.4);
        let mut file = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="85mm" height="{millimetres}mm" "#
        );
        let _ = writeln!(file, r#"viewBox="0 0 {wide} {high}" {FONT} stroke-linejoin="round">"#);
        for colour in self.patterns {
            let id = pattern_id(colour);
            let _ = writeln!(
                file,
                r#"<pattern id="{id}" width="3" height="3" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="3" height="3" fill="white"/>
<rect width="1.3" height="3" fill="{colour}"/></pattern>"#
            );
        }
        file + r#"<rect width="100%" height="100%" fill="white"/>"# + "\n" + &self.body + "</svg>\n"
    }
}

const FONT: &str = r#"font-family="Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif""#;

fn pattern_id(colour: &str) -> String {
    format!("hatching-{}", colour.trim_start_matches('#'))
}

/// Converts `count` for arithmetic with lengths and ranks.
#[expect(clippy::cast_precision_loss, reason = "counts of points, ticks and series are small")]
pub(super) const fn float(count: usize) -> f64 {
    count as f64
}

/// Returns the height of a line of letters of `size`.
pub(super) fn line_height(size: f64) -> f64 {
    size * LEADING
}

/// Rounds a length to a hundredth of a point.
pub(super) fn number(length: f64) -> String {
    let text = format!("{length:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns an upper bound of the width of `text` in the widest font of [`FONT`].
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(letter_width).sum::<f64>() * size
}

fn letter_width(letter: char) -> f64 {
    match letter {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | 'i' | 'j' | 'l' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | 'I' | 'J' => 0.42,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 0.6,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1.0,
        'A'..='Z' => 0.79,
        '+' | '<' | '=' | '>' | '&' | '#' | '~' => 0.84,
        '\0'..='\u{2e7f}' => 0.64,
        _ => 1.1,
    }
}

/// Splits `text` into lines of at most `width`, at blanks, and inside a word if necessary.
pub(super) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let fits = |line: &str| text_width(line, size) <= width;
        if let Some(line) = lines.last_mut()
            && fits(&format!("{line} {word}"))
        {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        lines.push(String::new());
        for letter in word.chars() {
            let line = lines.last_mut().expect("a line has just begun");
            if line.is_empty() || fits(&format!("{line}{letter}")) {
                line.push(letter);
            } else {
                lines.push(letter.to_string());
            }
        }
    }
    lines
}

/// Escapes `text` for an element: no markup, and no character that XML forbids.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}
