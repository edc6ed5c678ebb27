use crate::output::{Failure, say_aside};
use crate::path::shown;
use node::server::{Config, Ruler, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::{Path, PathBuf};
use std::thread::{JoinHandle, spawn};

/// From here on signals end nothing by themselves.
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
    /// Has `server` stop at a signal. With the file that it was told by, SIGHUP has that read
    /// again; without one it is the end of the terminal, and of the server.
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

    /// The server is over.
    pub(super) fn end(self) {
        self.handle.close();
        // It has nothing left to wait for, and nothing that can fail.
        let _ = self.thread.join();
    }
}

/// Has the server do what the file at `path` says now, and says what came of it. As a whole, or
/// not at all.
fn read_again(path: &Path, config: &mut Config, ruler: &Ruler) -> String {
    let new = match Config::load(path) {
        Ok(new) => new,
        Err(problem) => return format!("{problem}; nothing was reloaded"),
    };
    let path = shown(path);
    if let Some(difference) = config.difference(&new) {
        return format!(
            "{path}: {difference} has changed, but only hosts, limits, referrals and certificates \
             can change without a restart; nothing was reloaded"
        );
    }
    ruler.set(&new.rules(), new.connections);
    ruler.renew(&new.devices);
    *config = new;
    format!("reloaded {path}")
}
