use crate::output::{Failure, say_aside};
use crate::path::shown;
use node::server::{Config, Ruler, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::{Path, PathBuf};
use std::thread::{JoinHandle, spawn};

/// Catches signals, so that they no longer end the process.
pub(super) fn catch() -> Result<Signals, Failure> {
    Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::Broken(format!("cannot wait for signals: {error}")))
}

/// A thread that waits for signals.
pub(super) struct Waiting {
    thread: JoinHandle<()>,
    handle: Handle,
}

impl Waiting {
    /// Stops `server` at a signal. SIGHUP reloads the server's configuration file. Without a file
    /// SIGHUP means that the terminal was closed, and stops the server.
    pub(super) fn begin(
        mut signals: Signals,
        server: &Server,
        mut file: Option<(PathBuf, Config)>,
    ) -> Self {
        let (stopper, ruler, handle) = (server.stopper(), server.ruler(), signals.handle());
        let thread = spawn(move || {
            for signal in signals.forever() {
                match &mut file {
                    Some((path, config)) if signal == SIGHUP => {
                        say_aside(&read_again(path, config, &ruler));
                    }
                    _ => return stopper.stop(),
                }
            }
        });
        Self { thread, handle }
    }

    /// Ends the thread after the server has stopped.
    pub(super) fn end(self) {
        self.handle.close();
        // The closed handle ends the thread, which cannot fail.
        let _ = self.thread.join();
    }
}

/// Applies the file at `path`, either completely or not at all. Returns the message to print.
fn read_again(path: &Path, config: &mut Config, ruler: &Ruler) -> String {
    let new = match Config::load(path) {
        Ok(new) => new,
        Err(problem) => return format!("{problem}; nothing was reloaded"),
    };
    let path = shown(path);
    if let Some(difference) = config.difference(&new) {
        return format!(
            "{path}: {difference} has changed, but only hosts, limits, referrals, certificates, \
             the settings of [balance], and the weights and limits of a [[tenant]] can change \
             without a restart; nothing was reloaded"
        );
    }
    ruler.set(&new.rules(), new.connections);
    ruler.renew(&new.devices);
    if let Some(balance) = new.balance {
        ruler.set_balance(balance);
    }
    ruler.set_tenants(&new.tenants);
    *config = new;
    format!("reloaded {path}")
}
