//! The listeners of devices, which the devices' reactors serve.

use super::error::ServerError;
use super::places::ConnectionLimit;
use super::resp::{RespAddrs, RespListeners};
use super::setup::ServerConfig;
use super::vfio::VfioListener;

/// The bound listeners of all devices for Redis clients and virtual machines.
pub(super) struct DeviceListeners {
    pub(super) resp: Vec<RespListeners>,
    pub(super) vfio_user: Vec<VfioListener>,
}

impl DeviceListeners {
    /// Binds the listeners of all devices in `config`.
    pub(super) fn bind(
        config: &ServerConfig,
        places: &ConnectionLimit,
    ) -> Result<Self, ServerError> {
        Ok(Self {
            resp: RespListeners::bind_all(&config.devices, places)?,
            vfio_user: VfioListener::bind_all(&config.subsystems, places)?,
        })
    }

    /// Returns the addresses for Redis clients.
    pub(super) fn resp_addresses(&self) -> Result<Vec<RespAddrs>, ServerError> {
        self.resp.iter().map(RespListeners::sign).collect()
    }
}
