//! Writes the profile with its fitted numbers.

use super::knobs::{FitKnob, with_values};
use crate::path::shown;
use node::Profile;
use node::profile::{Draft, Fitted};
use std::fs;
use std::path::Path;

/// Columns of a comment.
const COLUMNS: usize = 96;

/// Writes `draft` with `knobs` at their `values`, a comment for each, into the file `path`. Returns
/// an error sentence if the file cannot be written.
pub(super) fn write(
    path: &Path,
    draft: &Draft,
    knobs: &[FitKnob],
    values: &[f64],
    fitted: &Fitted,
) -> Option<String> {
    let error = fs::write(path, text(draft, knobs, values, fitted)).err()?;
    Some(format!("the profile {} cannot be written: {error}", shown(path)))
}

fn text(draft: &Draft, knobs: &[FitKnob], values: &[f64], fitted: &Fitted) -> String {
    let mut draft = with_values(draft, knobs, values);
    for knob in knobs {
        let sentence = format!(
            "assumption: fitted by kvasir device calibrate to the points of {}.",
            fitted.file
        );
        draft = draft.commented(&knob.key, &wrapped(&sentence));
    }
    let text = without_fitted(draft.text()) + &section(knobs, fitted);
    let written = Profile::parse("the calibrated profile", &text);
    assert!(written.is_ok_and(|profile| profile.fitted.as_ref() == Some(fitted)), "{text}");
    text
}

/// Returns `text` without the section of an earlier fit and the comment above it.
fn without_fitted(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_kept = true;
    for line in text.lines() {
        if line.starts_with('[') {
            is_kept = line.trim_end() != "[fitted]";
            if !is_kept {
                while kept.last().is_some_and(|above| above.starts_with('#')) {
                    kept.pop();
                }
            }
        }
        if is_kept {
            kept.push(line);
        }
    }
    while kept.last().is_some_and(|line| line.is_empty()) {
        kept.pop();
    }
    kept.join("\n") + "\n"
}

fn section(knobs: &[FitKnob], fitted: &Fitted) -> String {
    let Fitted { file, workloads, value_bytes, key_bytes, queue_depth } = fitted;
    let keys: Vec<&str> = knobs.iter().map(|knob| knob.key.as_str()).collect();
    let sentence = format!(
        "These numbers were fitted together, and are valid within the ranges below: {}.",
        keys.join(", ")
    );
    let above = wrapped(&sentence).replace('\n', "\n# ");
    format!(
        "\n# {above}\n[fitted]\n\
         # CSV file of the points. Source: this file.\n\
         file = {file:?}\n\
         # Loads of the points. Source: the points.\n\
         workloads = {workloads:?}\n\
         # Shortest and longest value, in bytes. Source: the points.\n\
         value_bytes = {value_bytes:?}\n\
         # Shortest and longest key, in bytes. Source: the points.\n\
         key_bytes = {key_bytes:?}\n\
         # Fewest and most operations in flight. Source: the points.\n\
         queue_depth = {queue_depth:?}\n"
    )
}

/// Wraps `text` into lines that fit a comment.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut columns = 0;
    for word in text.split(' ') {
        if columns > 0 {
            let is_full = columns + 1 + word.len() > COLUMNS;
            lines.push(if is_full { '\n' } else { ' ' });
            columns = if is_full { 0 } else { columns + 1 };
        }
        lines += word;
        columns += word.len();
    }
    lines
}
