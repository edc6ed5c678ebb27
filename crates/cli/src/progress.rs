use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// Whether and where the progress of long work is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    is_shown: bool,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Count,
    Bytes,
}

/// The progress of one piece of work. Its line goes when this drops.
#[derive(Debug)]
pub(crate) struct Bar {
    is_shown: bool,
    title: &'static str,
    unit: Unit,
    started: Instant,
    drawn: Option<ProgressBar>,
}

/// Work that is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(400);

impl Progress {
    /// On a terminal, unless the output is for a program.
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_shown: !is_json && stderr().is_terminal() }
    }

    /// Work that `title` names.
    pub(crate) fn bar(self, title: &'static str, unit: Unit) -> Bar {
        Bar { is_shown: self.is_shown, title, unit, started: Instant::now(), drawn: None }
    }
}

impl Bar {
    /// `done` of `total` is done; a `total` of 0 is not known.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        if self.drawn.is_none() && self.is_shown && self.started.elapsed() >= PATIENCE {
            let (title, unit) = (self.title, self.unit);
            self.drawn = Some(draw(title, unit, total).with_elapsed(self.started.elapsed()));
        }
        if let Some(bar) = &self.drawn {
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }
}

fn draw(title: &'static str, unit: Unit, total: u64) -> ProgressBar {
    let template = match (total, unit) {
        (0, Unit::Count) => "{msg:12} {human_pos}",
        (0, Unit::Bytes) => "{msg:12} {bytes}",
        (_, Unit::Count) => "{msg:12} [{bar:32}] {percent:>3} %  {human_pos}  {eta} left",
        (_, Unit::Bytes) => "{msg:12} [{bar:32}] {percent:>3} %  {bytes}  {eta} left",
    };
    let style =
        ProgressStyle::with_template(template).expect("the template is one").progress_chars("=> ");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target((total > 0).then_some(total), target)
        .with_style(style)
        .with_message(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_bar_can_be_drawn() {
        for (unit, total) in
            [(Unit::Count, 0), (Unit::Count, 9), (Unit::Bytes, 0), (Unit::Bytes, 9)]
        {
            draw("storing", unit, total).set_position(3);
        }
    }
}
