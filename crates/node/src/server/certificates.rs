use std::sync::{Arc, Mutex, PoisonError};
use tls::Server;

/// What a door shows of itself, which can be renewed from another thread. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Certificates(Arc<Mutex<Server>>);

impl Certificates {
    pub(super) fn new(server: Server) -> Self {
        Self(Arc::new(Mutex::new(server)))
    }

    /// For a connection that begins now.
    pub(super) fn get(&self) -> Server {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For connections from here on. Those that are there stay as they are.
    pub(super) fn renew(&self, server: Server) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }
}
