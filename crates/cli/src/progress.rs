use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};
use workload::{Plan, Until};

/// Shows the progress of long work, if and where it is visible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    is_shown: bool,
}

/// Unit of the count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Count,
    Bytes,
    /// Nanoseconds, which are shown as seconds.
    Time,
}

impl Unit {
    /// Unit of `workload::run` while it runs `plan`.
    pub(crate) const fn of(plan: &Plan) -> Self {
        match plan.until {
            Until::Operations(_) => Self::Count,
            Until::Time(_) => Self::Time,
        }
    }
}

/// The progress of one piece of work. Dropping it removes its line.
#[derive(Debug)]
pub(crate) struct Bar {
    is_shown: bool,
    title: &'static str,
    unit: Unit,
    started: Instant,
    drawn: Option<ProgressBar>,
}

/// Shorter work needs no bar.
const TIMEOUT: Duration = Duration::from_millis(400);

impl Progress {
    /// Shows progress on a terminal, unless the output is JSON.
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_shown: !is_json && stderr().is_terminal() }
    }

    /// Starts the bar of work named `title`.
    pub(crate) fn bar(self, title: &'static str, unit: Unit) -> Bar {
        Bar { is_shown: self.is_shown, title, unit, started: Instant::now(), drawn: None }
    }
}

impl Bar {
    /// Sets the bar to `done` of `total`; a `total` of 0 is unknown.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        if self.drawn.is_none() && self.is_shown && self.started.elapsed() >= TIMEOUT {
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
        (0, Unit::Time) => "{msg:12} {seconds}",
        (_, Unit::Time) => "{msg:12} [{bar:32}] {percent:>3} %  {seconds}  {eta} left",
    };
    let style = ProgressStyle::with_template(template)
        .expect("the template is one")
        .with_key("seconds", |state: &ProgressState, into: &mut dyn Write| {
            into.write_str(&in_seconds(state.pos())).expect("a string takes any text");
        })
        .progress_chars("=> ");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target((total > 0).then_some(total), target)
        .with_style(style)
        .with_message(title)
}

/// Formats `nanos` as seconds with one decimal.
fn in_seconds(nanos: u64) -> String {
    let tenths = nanos / 100_000_000;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal that keeps its output.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_run_for_a_time_shows_seconds() {
        let screen = Screen::default();
        let bar = draw("measuring", Unit::Time, 5_000_000_000);
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        bar.set_position(2_350_000_000);
        bar.tick();
        let shown = screen.0.lock().unwrap().clone();
        assert!(shown.contains(" 47 %  2.3 s  "), "{shown}");
    }

    #[test]
    fn every_kind_of_bar_can_be_drawn() {
        for unit in [Unit::Count, Unit::Bytes, Unit::Time] {
            for total in [0, 9] {
                draw("storing", unit, total).set_position(3);
            }
        }
    }
}
