//! Serves devices to NVMe hosts on a network: which thread runs what.
//!
//! With one reactor, devices and connections share it, and no command leaves its core. With more,
//! the first reactors have one device or more each, and at least one reactor is for connections.
//! New connections are distributed over those, in turn or by load ([`dealer`]). A connection's
//! reactor executes the commands on a drive on a disk or in memory itself, unless the balancer
//! ([`balance`]) has another one do it. Commands on an emulated device go through the [`bridge`] to
//! its reactor. With both kinds, the [`router`] selects by the name in the queue's Connect. Without
//! emulated devices, Redis clients are distributed over the reactor of their drive and those for
//! connections, and a reactor that has all drives is for connections too.

mod accept_order;
mod address;
mod arrivals;
mod balance;
mod bridge;
mod certificates;
mod config;
mod connection_mover;
mod connections;
mod cores;
mod dealer;
mod device_census;
mod device_listeners;
mod device_set;
mod disk_watch;
mod drive;
mod error;
mod facts;
#[cfg(test)]
mod hand_off;
mod http;
mod identity;
mod inquirer;
mod metrics;
mod movable_connections;
mod no_function;
mod pace;
mod placed_connections;
mod places;
mod polled_function;
mod process;
mod reactor_counters;
mod reactors;
mod report;
mod resp;
mod resp_limits;
mod router;
mod served;
mod served_resp;
mod served_state;
mod served_vfio;
mod setup;
mod status;
mod status_builder;
mod status_service;
mod stopper;
mod tenant_status;
mod tenants;
mod vfio;

pub use self::address::{HTTP_PORT, parse_address, parse_http_address};
pub use self::balance::{
    BalanceConfig, Diverter, DiverterLinks, Shared as BalanceState, link as link_diverters,
};
pub use self::config::{Config, DeviceConfig, SubsystemConfig, check_balance};
pub use self::cores::Cores;
pub use self::error::ServerError;
pub use self::identity::{SerialNumber, check_nqn, default_nqn, default_serial};
pub use self::inquirer::{Inquirer, NoStatus};
pub use self::places::ConnectionLimits;
pub use self::report::{Moved, ReactorReport, RedisReport, ServerReport};
pub use self::resp_limits::{CLIENT_LIMITS, resp_clients, resp_output, resp_query, resp_timeout};
pub use self::served::{NotServed, Pace, Served};
pub use self::served_resp::{ServedResp, ServedTls};
pub use self::served_state::Began;
pub use self::served_vfio::{Doorbells, vfio_user_path};
pub use self::setup::{ServedDevice, ServedSubsystem, ServerConfig};
pub use self::status::{
    AssociationStatus, CacheStatus, ClientStatus, DeviceStatus, LongPollStatus, NamespaceStatus,
    QueueStatus, ReactorStatus, RedisStatus, ScrubStatus, ServerStatus, StagesStatus, Status,
    SubsystemStatus, WorkStatus,
};
pub use self::stopper::Stopper;
pub use self::tenant_status::{TenantStatus, fairness};
pub use self::tenants::{TenantConfig, TenantTerms};

use self::facts::Facts;
use self::http::HttpDoor;
use self::places::ConnectionLimit;
use self::reactors::{Plan, Ready, RuleWriters, ServerHandles, start};
use self::resp::RespAddrs;
use self::served_state::DeviceStart;
use self::status_service::StatusService;
use self::tenants::Tenants;
use controller::Rules;
use reactor::{Load, Remote};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// A running server.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    starts: Vec<(usize, DeviceStart)>,
    places: ConnectionLimit,
    remotes: Vec<Remote>,
    handles: ServerHandles,
    http: Option<HttpDoor>,
    told: Option<mpsc::Receiver<String>>,
    tenants: Option<Arc<Tenants>>,
}

impl Server {
    /// Builds the devices, binds the listeners, and returns when hosts can connect.
    ///
    /// # Panics
    /// If two subsystems have the same name, or one has no device.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        for subsystem in &config.subsystems {
            check_nqn(&subsystem.nqn)?;
            assert!(subsystem.device < config.devices.len(), "a subsystem has a device");
        }
        config.cores.check()?;
        let count = usize::from(config.cores.count().get());
        let remotes = (0..count).map(|_| Remote::new()).collect::<io::Result<Vec<_>>>()?;
        let places = ConnectionLimit::new(config.connections);
        let listener = config.http.map(HttpDoor::listen).transpose()?;
        let tenants = (!config.tenants.is_empty()).then(|| Arc::new(Tenants::new(&config.tenants)));
        let facts = Facts {
            began: Instant::now(),
            devices: config.devices.iter().map(|device| device.name.clone()).collect(),
            subsystems: status_of_subsystems(&config),
            places: places.clone(),
            remotes: remotes.clone(),
            balance: None,
            tenants: tenants.clone(),
        };
        let (ready, is_ready) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let plan = Plan {
            config,
            remotes: remotes.clone(),
            places: places.clone(),
            tell,
            tenants: tenants.clone(),
        };
        let handles = start(plan, &ready)?;
        drop(ready);
        let (addresses, starts) = Default::default();
        let (http, told) = (None, Some(told));
        let mut server = Self { addresses, starts, places, remotes, handles, http, told, tenants };
        if !server.wait_until_ready(&is_ready) {
            return Err(server.stop().expect_err("a reactor that is not ready has failed"));
        }
        if let Some(listener) = listener {
            let facts = Facts { balance: server.handles.balance.clone(), ..facts };
            let status_service = StatusService::new(facts, server.handles.questions.clone());
            match HttpDoor::open(listener, status_service) {
                Ok(door) => server.http = Some(door),
                // Stopping saves the state files.
                Err(error) => return Err(server.stop().err().unwrap_or(error.into())),
            }
        }
        Ok(server)
    }

    /// Returns once every reactor is ready, or false when one fails.
    fn wait_until_ready(&mut self, ready: &mpsc::Receiver<Ready>) -> bool {
        for _ in 0..self.handles.threads.len() {
            let Ok(Ready::Up { addresses, starts }) = ready.recv() else { return false };
            self.addresses.extend(addresses);
            self.starts.extend(starts);
        }
        true
    }

    /// Returns how the device at this index started, if it has a state file.
    pub fn began(&self, device: usize) -> Option<Began> {
        self.start_of(device).map(|start| start.began)
    }

    /// Returns how often the device at this index has lost its content: 0 without a state file. It
    /// is part of the identifiers that hosts see, and of a [`SerialNumber`].
    pub fn incarnation(&self, device: usize) -> u64 {
        self.start_of(device).map_or(0, |start| start.incarnation)
    }

    fn start_of(&self, device: usize) -> Option<DeviceStart> {
        let mut starts = self.starts.iter();
        starts.find(|(place, _)| *place == device).map(|(_, start)| *start)
    }

    /// Returns the receiver of the server's messages to its operator: a sentence for each damaged
    /// part of the devices' content. Returns `None` after the first call.
    pub fn listen(&mut self) -> Option<mpsc::Receiver<String>> {
        self.told.take()
    }

    /// Returns the addresses where hosts connect, in the order of [`ServerConfig::nvme_tcp`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the address of the Redis service of the device at this index, if any.
    pub fn resp_address(&self, device: usize) -> Option<SocketAddr> {
        self.handles.resp.iter().find(|sign| sign.device == device)?.plain
    }

    /// Returns the TLS address of the Redis service of the device at this index, if any.
    pub fn resp_tls_address(&self, device: usize) -> Option<SocketAddr> {
        self.handles.resp.iter().find(|sign| sign.device == device)?.tls
    }

    /// Returns the load of each reactor so far, those of devices first.
    pub fn loads(&self) -> Vec<Load> {
        self.remotes.iter().map(Remote::load).collect()
    }

    /// Returns the address of the HTTP status service, if any.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpDoor::address)
    }

    /// Returns a handle that stops the server from another thread: [`Self::join`] then returns.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.remotes.clone())
    }

    /// Returns a handle that changes the rules of hosts from another thread.
    pub fn ruler(&self) -> Ruler {
        let (rules, places) = (self.handles.rules.clone(), self.places.clone());
        let (resp, balance) = (self.handles.resp.clone(), self.handles.balance.clone());
        Ruler { rules, places, resp, balance, tenants: self.tenants.clone() }
    }

    /// Stops the server: closes all connections, flushes acknowledged data, saves the state files
    /// and returns the report.
    pub fn stop(self) -> Result<ServerReport, ServerError> {
        self.stopper().stop();
        let mut report = self.join()?;
        report.failure.take().map_or(Ok(report), Err)
    }

    /// Waits until the server has been stopped, or has failed. [`ServerReport::failure`] says
    /// whether it could not close or save a device at the stop.
    pub fn join(self) -> Result<ServerReport, ServerError> {
        let mut reports = Vec::with_capacity(self.handles.threads.len());
        let mut failure = None;
        for thread in self.handles.threads {
            match thread.join() {
                Ok(Ok(report)) => reports.push(report),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let failure =
            reports.iter_mut().find_map(|report: &mut ReactorReport| report.failure.take());
        Ok(ServerReport { reactors: reports, refused: self.places.refused(), failure })
    }
}

/// Changes the rules of a [`Server`].
#[derive(Clone, Debug)]
pub struct Ruler {
    rules: RuleWriters,
    places: ConnectionLimit,
    resp: Vec<RespAddrs>,
    balance: Option<Arc<BalanceState>>,
    tenants: Option<Arc<Tenants>>,
}

impl Ruler {
    /// Gives the tenants the weights and limits of `configs`, if the server was started with
    /// tenants. Connections that wait follow within a second.
    pub fn set_tenants(&self, configs: &[TenantConfig]) {
        if let Some(tenants) = &self.tenants {
            tenants.set(configs);
        }
    }

    /// Balances the reactors by `config`, if the server was started with a balancer.
    pub fn set_balance(&self, config: BalanceConfig) {
        if let Some(balance) = &self.balance {
            balance.set_config(config);
        }
    }

    /// Replaces the access rules of hosts and the connection limits. Open connections stay, even
    /// if the new rules refuse them.
    pub fn set(&self, rules: &Rules, connections: ConnectionLimits) {
        self.places.set(connections);
        for writer in &self.rules {
            writer.put_up(rules.clone());
        }
    }

    /// Loads the current certificates and keys of `devices`. New TLS connections of Redis clients
    /// use them.
    pub fn renew(&self, devices: &[DeviceConfig]) {
        for sign in &self.resp {
            let served = devices[sign.device].resp.as_ref().and_then(|resp| resp.tls.as_ref());
            if let (Some(certificates), Some(served)) = (&sign.certificates, served) {
                certificates.renew(served.server.clone());
            }
        }
    }
}

fn status_of_subsystems(config: &ServerConfig) -> Vec<SubsystemStatus> {
    let subsystems = config.subsystems.iter().map(|subsystem| SubsystemStatus {
        nqn: subsystem.nqn.clone(),
        device: config.devices[subsystem.device].name.clone(),
    });
    subsystems.collect()
}
