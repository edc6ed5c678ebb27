//! `kvasir serve`: serves devices to NVMe hosts, virtual machines and Redis clients.
//!
//! 1. The command line or a file says what to serve: [`config`] parses both into the same form.
//! 2. `node::server` serves it on its own threads. Another thread waits for [`signals`], which
//!    reload the file or stop the server.
//! 3. [`report`] prints what is served, and counters at the end.

mod balance;
mod config;
mod files;
mod qemu;
mod reach;
mod report;
mod signals;
mod tenant;

use crate::args::ServeArgs;
use crate::output::{Failure, Output, say_aside};
use crate::rig::device_failure;
use node::server::{Server, ServerError};
use report::{Listening, Stopped};
use signals::Waiting;
use std::io::{self, Write};
use std::thread;

/// Serves the devices that `args` name until a signal stops it.
pub(crate) fn run(args: &ServeArgs) -> Result<Output, Failure> {
    let config = config::of(args)?;
    if args.check {
        for device in &config.devices {
            device.served.check(device.seed).map_err(device_failure)?;
        }
        let listening = Listening::new(args, &config, (&config.nvme_tcp, config.http));
        let listening = listening.of_check(&config.devices).map_err(failure)?;
        return Ok(if args.json {
            Output::json_line(&listening)
        } else {
            Output::new(listening.checked())
        });
    }
    // Catch signals before the threads start.
    let signals = signals::catch()?;
    if let Some(warning) = files::raise_limit(config.connections.most) {
        say_aside(&warning);
    }
    let mut server = Server::start(config.server()).map_err(failure)?;
    let listening = Listening::new(args, &config, (server.addresses(), server.http_address()));
    let listening = listening.of_server(&server);
    listening.warn();
    if let Some(told) = server.listen() {
        thread::spawn(move || told.iter().for_each(|sentence| say_aside(&sentence)));
    }
    say(&listening, args.json)?;
    let pace = config.pace;
    let waiting = Waiting::begin(signals, &server, args.config.clone().zip(Some(config)));
    let served = server.join();
    waiting.end();
    let mut report = served.map_err(failure)?;
    let unsaved = report.failure.take().map(|error| failure(error).to_string());
    let stopped = Stopped::new(pace, &report);
    let output = if args.json { Output::json_line(&stopped) } else { Output::new(stopped.text()) };
    Ok(output.with_errors(unsaved))
}

fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Name(_)
        | ServerError::Listen { .. }
        | ServerError::VfioUser { .. }
        | ServerError::Processor { .. }
        | ServerError::NoState
        | ServerError::NoPairs
        | ServerError::NoDisk(_)
        | ServerError::Disk { failure: None, .. } => Failure::refused(error),
        ServerError::State { path, problem } => {
            Failure::Refused(crate::rig::sentence(&path, &problem))
        }
        ServerError::Device(error) => crate::rig::device_failure(error),
        ServerError::Unsaved { .. }
        | ServerError::Disk { .. }
        | ServerError::Lost { .. }
        | ServerError::Reactor(_)
        | ServerError::Resp(_)
        | ServerError::Machine(_) => Failure::Broken(error.to_string()),
    }
}

/// Prints and flushes: other programs wait for this output.
fn say(listening: &Listening, is_json: bool) -> Result<(), Failure> {
    let text = if is_json {
        serde_json::to_string(listening).expect("it has only names as keys") + "\n"
    } else {
        listening.text()
    };
    let mut stdout = io::stdout().lock();
    let said = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|error| Failure::Broken(format!("cannot write the output: {error}")))
}
