use std::sync::{Arc, Mutex, PoisonError};
use tls::Server;

/// The certificate of a Redis service, which another thread can replace. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Certificates(Arc<Mutex<Server>>);

impl Certificates {
    pub(super) fn new(server: Server) -> Self {
        Self(Arc::new(Mutex::new(server)))
    }

    /// Returns the certificate for a new connection.
    pub(super) fn get(&self) -> Server {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the certificate of new connections. Open connections keep theirs.
    pub(super) fn renew(&self, server: Server) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }
}
