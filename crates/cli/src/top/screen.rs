use super::view::View;
use super::{Watch, broken};
use crate::output::{Failure, Output};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

/// Interval between checks for keys and samples: short enough to feel immediate.
const LOOK: Duration = Duration::from_millis(50);

type News = Result<super::Sample, Failure>;

/// Shows samples of `watch` on the terminal, until a key or a signal ends it.
pub(super) fn show(mut watch: Watch) -> Result<Output, Failure> {
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let flag = is_ended.clone();
        signal_hook::flag::register(signal, flag).map_err(|error| unusable(&error))?;
    }
    let (say, news) = channel();
    // A thread waits for the server, so that a slow server does not delay keys. It ends when the
    // receiver is dropped, at the latest with the program.
    spawn(move || while say.send(watch.next().map_err(|error| broken(&error))).is_ok() {});
    // Also restores the terminal before a panic is reported.
    let terminal = ratatui::try_init().map_err(|error| unusable(&error))?;
    let shown = go_on(terminal, &news, &is_ended);
    ratatui::restore();
    shown.map_err(|error| unusable(&error))?;
    Ok(Output::new(String::new()))
}

fn go_on(
    mut terminal: DefaultTerminal,
    news: &Receiver<News>,
    is_ended: &AtomicBool,
) -> io::Result<()> {
    let mut view = View::default();
    let mut is_new = true;
    while !is_ended.load(Ordering::Relaxed) {
        for news in news.try_iter() {
            match news {
                Ok(sample) => view = View { sample: Some(sample), trouble: None },
                Err(failure) => view.trouble = Some(failure.to_string()),
            }
            is_new = true;
        }
        if std::mem::take(&mut is_new) {
            terminal.draw(|frame| view.draw(frame))?;
        }
        if event::poll(LOOK)? {
            match event::read()? {
                Event::Key(key) if quits(key) => return Ok(()),
                Event::Resize(..) => is_new = true,
                _ => {}
            }
        }
    }
    Ok(())
}

/// In raw mode the terminal sends Ctrl-C as a key.
fn quits(key: KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let is_quit = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc);
    key.kind == KeyEventKind::Press && (is_interrupt || is_quit)
}

fn unusable(error: &io::Error) -> Failure {
    Failure::Broken(format!("cannot use the terminal: {error}; try --once"))
}
