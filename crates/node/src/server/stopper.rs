use reactor::Remote;

/// Stops a [`Server`](crate::server::Server).
#[derive(Clone, Debug)]
pub struct Stopper(pub(super) Vec<Remote>);

impl Stopper {
    /// As [`Server::stop`](crate::server::Server::stop), without waiting for it.
    pub fn stop(&self) {
        self.0.iter().for_each(Remote::stop);
    }
}
