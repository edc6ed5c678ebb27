//! `kvasir top`: shows the counters of a server at intervals.
//!
//! 1. `node::server::Inquirer` requests the server's counters.
//! 2. [`sample`] computes rates from two answers, by the server's own clock.
//! 3. [`screen`] shows them on a terminal, drawn by [`view`]. Otherwise [`text`] or JSON is
//!    printed. All of them use the same [`columns`].

mod columns;
mod rate;
mod redis;
mod sample;
mod screen;
mod stages;
mod tenants;
mod text;
mod view;

use crate::args::TopArgs;
use crate::output::{Failure, Output};
use base::Nanos;
use node::server::{Inquirer, NoStatus, Status, parse_http_address};
use sample::Sample;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

/// Shows the work of the server that `args` name, until a key or a signal ends it.
pub(crate) fn run(args: &TopArgs) -> Result<Output, Failure> {
    let address = parse_http_address(&args.address).map_err(Failure::Refused)?;
    let inquirer = Inquirer::new(address)
        .map_err(|error| Failure::Broken(format!("cannot open a file or socket: {error}")))?;
    let first = inquirer.ask().map_err(|error| broken(&error))?;
    let watch = Watch { address, inquirer, interval: args.interval, latest: first };
    let is_shown = io::stdout().is_terminal() && io::stdin().is_terminal();
    if is_shown && !args.once && !args.json { screen::show(watch) } else { print(watch, args) }
}

/// Requests a server's counters at intervals.
struct Watch {
    address: SocketAddr,
    inquirer: Inquirer,
    interval: Nanos,
    latest: Status,
}

impl Watch {
    /// Returns the server's work in the next interval.
    fn next(&mut self) -> Result<Sample, NoStatus> {
        sleep(Duration::from_nanos(self.interval.0));
        let new = self.inquirer.ask()?;
        let old = std::mem::replace(&mut self.latest, new);
        Ok(Sample::of(self.address, &old, &self.latest))
    }
}

/// Prints each interval until the reader closes the pipe or the server stops.
fn print(mut watch: Watch, args: &TopArgs) -> Result<Output, Failure> {
    let mut stdout = io::stdout().lock();
    loop {
        let sample = watch.next().map_err(|error| broken(&error))?;
        let text = if args.json {
            serde_json::to_string(&sample).expect("it has only names as keys") + "\n"
        } else {
            text::of(&sample)
        };
        if args.once {
            return Ok(Output::new(text));
        }
        let printed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        match printed.and_then(|()| stdout.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                return Ok(Output::new(String::new()));
            }
            Err(error) => {
                return Err(Failure::Broken(format!("cannot write the output: {error}")));
            }
        }
    }
}

fn broken(error: &NoStatus) -> Failure {
    Failure::Broken(error.to_string())
}
