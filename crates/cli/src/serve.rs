//! `kvasir serve`: devices that NVMe hosts on a network can use.
//!
//! 1. The command line says what to serve, or a file does: [`config`] makes the same of both.
//! 2. `node::server` serves it on threads of its own, and this one waits for a signal.
//! 3. [`report`] says what it is, and how it was.

mod config;
mod report;

use crate::args::ServeArgs;
use crate::output::{Failure, Output};
use node::server::{Server, ServerError};
use report::{Listening, Stopped};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};

/// Serves what `args` name until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> Result<Output, Failure> {
    let config = config::of(args)?;
    if args.check {
        let listening = Listening::new(args, &config, &config.nvme_tcp);
        return Ok(if args.json {
            Output::json(&listening)
        } else {
            Output::new(listening.checked())
        });
    }
    // Before the threads start, so that all leave signals to this one.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::Broken(format!("signals cannot be waited for: {error}")))?;
    let server = Server::start(config.server()).map_err(failure)?;
    let listening = Listening::new(args, &config, server.addresses()).with_states(&server);
    listening.warn();
    say(&listening, args.json)?;
    let (stopper, handle) = (server.stopper(), signals.handle());
    let waiting = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    let served = server.join();
    handle.close();
    // It has nothing left to wait for, and nothing that can fail.
    let _ = waiting.join();
    let stopped = Stopped::new(config.pace, &served.map_err(failure)?);
    Ok(if args.json { Output::json(&stopped) } else { Output::new(stopped.text()) })
}

fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Name(_) | ServerError::Listen { .. } | ServerError::NoState => {
            Failure::refused(error)
        }
        ServerError::State { path, problem } => {
            Failure::Refused(crate::rig::sentence(&path, &problem))
        }
        ServerError::Device(error) => crate::rig::device_failure(error),
        ServerError::Unsaved { .. } | ServerError::Reactor(_) | ServerError::Machine(_) => {
            Failure::Broken(error.to_string())
        }
    }
}

/// Prints at once what others wait for.
fn say(listening: &Listening, is_json: bool) -> Result<(), Failure> {
    let text = if is_json {
        serde_json::to_string(listening).expect("it has only names as keys") + "\n"
    } else {
        listening.text()
    };
    let mut stdout = io::stdout().lock();
    let said = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|error| Failure::Broken(format!("the output cannot be written: {error}")))
}
