//! Turning a controller on and off by its properties.

use super::{ask, low_half};
use crate::connection::Connection;
use crate::error::Error;
use base::{Buf, Nanos};
use clock::Stage;
use net::Stream;
use spec::ShutdownStatus;
use spec::{Capabilities, Command, Configuration, ControllerStatus, Property, Shutdown};

/// The time between two polls of a controller's status.
const PAUSE: Nanos = Nanos::from_millis(1);

/// The least time that a controller gets to become ready, whatever it claims.
const READY_LIMIT_MIN: Nanos = Nanos::from_secs(1);

/// Enables a controller with all of its command sets, and waits until it is ready.
pub(super) async fn enable<S: Stream>(
    admin: &Connection<S>,
    is_discovery: bool,
) -> Result<Capabilities, Error> {
    let capabilities = Capabilities(get(admin, Property::CAP).await?);
    let has_sets = capabilities.contains(Capabilities::COMMAND_SETS);
    if !is_discovery && !has_sets {
        return Err(Error::NoCommandSets);
    }
    set(admin, Property::CC, configuration(capabilities).0).await?;
    let limit = u64::try_from(capabilities.ready_timeout().as_nanos()).map_or(Nanos::ZERO, Nanos);
    let limit = limit.max(READY_LIMIT_MIN);
    wait_for(admin, limit, ControllerStatus::is_ready).await?;
    Ok(capabilities)
}

/// Shuts a controller down in order.
pub(super) async fn shut_down<S: Stream>(
    admin: &Connection<S>,
    capabilities: Capabilities,
    limit: Nanos,
) -> Result<(), Error> {
    let configuration = configuration(capabilities).with_shutdown(Shutdown::Normal);
    set(admin, Property::CC, configuration.0).await?;
    wait_for(admin, limit, |status| status.shutdown() == ShutdownStatus::Complete).await
}

/// Returns a configuration that enables all command sets.
fn configuration(capabilities: Capabilities) -> Configuration {
    if capabilities.contains(Capabilities::COMMAND_SETS) {
        return Configuration::ENABLE_ALL_COMMAND_SETS;
    }
    Configuration(Configuration::ENTRY_SIZES.0 | Configuration::ENABLE.0)
}

async fn wait_for<S: Stream>(
    admin: &Connection<S>,
    limit: Nanos,
    is_so: impl Fn(ControllerStatus) -> bool,
) -> Result<(), Error> {
    let started = clock::host_now();
    loop {
        let status = u32::from_le_bytes(low_half(get(admin, Property::CSTS).await?));
        let status = ControllerStatus(status);
        if status.is_fatal() {
            return Err(Error::Failed);
        }
        if is_so(status) {
            return Ok(());
        }
        if clock::host_now() - started > limit {
            return Err(Error::NotReady(limit));
        }
        clock::sleep(PAUSE, Stage::Queue).await;
    }
}

async fn get<S: Stream>(admin: &Connection<S>, property: Property) -> Result<u64, Error> {
    let command = Command::property_get(property);
    Ok(ask(admin, command, Buf::phantom(0, 0), 0).await?.result)
}

async fn set<S: Stream>(
    admin: &Connection<S>,
    property: Property,
    value: u32,
) -> Result<(), Error> {
    let command = Command::property_set(property, value.into());
    ask(admin, command, Buf::phantom(0, 0), 0).await.map(drop)
}
