use super::balance::Shared;
use super::places::ConnectionLimit;
use super::status::SubsystemStatus;
use super::tenants::Tenants;
use reactor::Remote;
use std::sync::Arc;
use std::time::Instant;

/// Facts of a server that need no request to its reactors.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) began: Instant,
    /// The names of the devices.
    pub(super) devices: Vec<String>,
    pub(super) subsystems: Vec<SubsystemStatus>,
    pub(super) places: ConnectionLimit,
    pub(super) remotes: Vec<Remote>,
    /// What balanced reactors know of each other.
    pub(super) balance: Option<Arc<Shared>>,
    /// The tenants, if the server has any.
    pub(super) tenants: Option<Arc<Tenants>>,
}
