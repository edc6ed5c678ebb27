//! The TOML configuration file of a server.
//!
//! Errors are one sentence with the file and the line, as for profiles. A running server can load
//! new rules; other changes need a restart.

mod balance;
mod device;
mod limits;
mod listen;
mod referral;
mod subsystem;
mod tenant;

pub use self::device::DeviceConfig;
pub use self::subsystem::SubsystemConfig;

use self::listen::Listen;
use super::ServerConfig;
use super::reactors::device_reactors;
use super::{BalanceConfig, ConnectionLimits, Cores, Pace, Served, ServedDevice};
use super::{ServedSubsystem, TenantConfig};
use crate::ProfileError;
use crate::profile::read_file;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::profile::source::Source;
use ::balance::Policy;
use controller::{Limits, Rules, TransportAddress};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;

/// The keys outside of any section.
const TOP: Schema = Schema {
    name: "",
    title: "",
    keys: &["server", "balance", "limits", "device", "subsystem", "referral", "tenant"],
};

/// A checked configuration of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Addresses where NVMe/TCP hosts connect; none if the server has other clients
    /// only.
    pub nvme_tcp: Vec<SocketAddr>,
    /// Address of the HTTP status service.
    pub http: Option<SocketAddr>,
    /// The threads, each with a reactor.
    pub cores: Cores,
    /// How reactors execute commands for each other. `None`: they do not.
    pub balance: Option<BalanceConfig>,
    /// The tenants. Without any, all connections are alike.
    pub tenants: Vec<TenantConfig>,
    /// Whether the devices keep their latencies.
    pub pace: Pace,
    /// Limits of connections.
    pub connections: ConnectionLimits,
    /// Limits of hosts.
    pub limits: Limits,
    /// The devices, each with a subsystem or a Redis service.
    pub devices: Vec<DeviceConfig>,
    /// The subsystems, each with a name and a serial number of its own.
    pub subsystems: Vec<SubsystemConfig>,
    /// Other discovery subsystems in the discovery log.
    pub referrals: Vec<TransportAddress>,
}

impl Config {
    /// Loads the file at `path`. Relative paths in it start in its folder.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        let name = path.to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&name, &read_file(&name, "a server's file")?, folder)
    }

    /// Parses a configuration. Errors call it `name`.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, ProfileError> {
        let source = Source { name, text };
        let table = source.table()?;
        let top = Section::top(source, &TOP, &table)?;
        let Listen { nvme_tcp, http, cores, pace } = Listen::read(top.section(&listen::SCHEMA)?)?;
        let (connections, limits) = limits::read(top.section_or_defaults(&limits::SCHEMA)?)?;
        let of_devices = top.elements(&device::SCHEMA)?;
        let devices = device::read_all(&of_devices, folder, pace, connections.most)?;
        let of_subsystems = match top.optional(subsystem::SCHEMA.name) {
            None if devices.iter().any(|device| device.resp.is_some()) => Vec::new(),
            _ => top.elements(&subsystem::SCHEMA)?,
        };
        let lacks_hosts = |section: &&Section<'_>| section.optional("vfio_user").is_none();
        let mut lacking = of_subsystems.iter().filter(|_| nvme_tcp.is_empty());
        if let Some(section) = lacking.find(lacks_hosts) {
            let problem = "no host can connect to this [[subsystem]]: give it vfio_user, or \
                           [server] nvme_tcp";
            return Err(section.wrong(problem.to_owned()));
        }
        let subsystems = subsystem::read_all(of_subsystems, &devices, folder)?;
        let balance = match top.optional(balance::SCHEMA.name) {
            None => None,
            Some(field) => {
                let balance = balance::read(top.section(&balance::SCHEMA)?)?;
                let served = devices.iter().map(|device| &device.served);
                check_balance(balance.policy, cores.count(), served)
                    .map_err(|problem| field.wrong(problem))?;
                Some(balance)
            }
        };
        for (place, section) in of_devices.iter().enumerate() {
            let is_of_hosts = subsystems.iter().any(|subsystem| subsystem.served.device == place);
            if !is_of_hosts && devices[place].resp.is_none() {
                let name = &devices[place].name;
                return Err(section.wrong(format!(
                    "the device {name:?} has neither a [[subsystem]] nor resp, so no client can \
                     use it"
                )));
            }
        }
        let referrals = referral::read_all(top)?;
        let tenants = tenant::read_all(top, &devices, !nvme_tcp.is_empty())?;
        Ok(Self {
            nvme_tcp,
            http,
            cores,
            balance,
            tenants,
            pace,
            connections,
            limits,
            devices,
            subsystems,
            referrals,
        })
    }

    /// Returns the rules of hosts.
    pub fn rules(&self) -> Rules {
        let hosts = self
            .subsystems
            .iter()
            .filter_map(|subsystem| Some((subsystem.served.nqn.clone(), subsystem.hosts.clone()?)));
        Rules { limits: self.limits, hosts: hosts.collect(), referrals: self.referrals.clone() }
    }

    /// Returns the first setting that differs in `new` and needs a restart.
    pub fn difference(&self, new: &Self) -> Option<&'static str> {
        let listen = |it: &Self| (it.cores.clone(), it.pace, it.http, it.nvme_tcp.clone());
        if listen(self) != listen(new) {
            return Some("[server]");
        }
        if self.balance.is_some() != new.balance.is_some() {
            return Some("[balance]");
        }
        if self.devices != new.devices {
            return Some("a [[device]]");
        }
        let (old_tenants, new_tenants) = (self.tenants.iter(), new.tenants.iter());
        if !old_tenants.map(TenantConfig::identity).eq(new_tenants.map(TenantConfig::identity)) {
            return Some("the name, host_nqns or resp_users of a [[tenant]]");
        }
        let are_same = self.served_subsystems().eq(new.served_subsystems());
        (!are_same).then_some("the nqn, device, serial, vfio_user or doorbells of a [[subsystem]]")
    }

    /// Returns the configuration to start a server with.
    pub fn server(&self) -> ServerConfig {
        let devices = self.devices.iter().map(|device| ServedDevice {
            name: device.name.clone(),
            served: device.served.clone(),
            seed: device.seed,
            state: device.state.clone(),
            resp: device.resp.clone(),
        });
        ServerConfig {
            nvme_tcp: self.nvme_tcp.clone(),
            http: self.http,
            cores: self.cores.clone(),
            balance: self.balance,
            tenants: self.tenants.clone(),
            connections: self.connections,
            rules: self.rules(),
            devices: devices.collect(),
            subsystems: self.served_subsystems().cloned().collect(),
        }
    }

    fn served_subsystems(&self) -> impl Iterator<Item = &ServedSubsystem> {
        self.subsystems.iter().map(|subsystem| &subsystem.served)
    }
}

/// Checks that this policy can balance so many reactors with these devices. Returns an error
/// sentence if it cannot.
pub fn check_balance<'a>(
    policy: Policy,
    cores: NonZero<u16>,
    served: impl Iterator<Item = &'a Served>,
) -> Result<(), String> {
    let (served, cores): (Vec<&Served>, usize) = (served.collect(), cores.get().into());
    let has_emulated = served.iter().any(|served| matches!(served, Served::Emulated(_)));
    // The others move nothing there.
    if policy.diverts() && !policy.places_connections() && has_emulated {
        return Err(
            "commands on an emulated device stay on its core, so they cannot be balanced: \
                    serve a drive on a disk or in memory, or place connections with conn"
                .to_owned(),
        );
    }
    if cores < 2 {
        return Err("one core cannot be balanced: set cores to 2 or more".to_owned());
    }
    let of_devices = device_reactors(cores, served.len());
    // The reactor of the only device serves connections, unless it emulates latencies.
    let serves_all = of_devices == 1 && !has_emulated;
    if !serves_all && cores - of_devices < 2 {
        let have = if of_devices == 1 { "has" } else { "have" };
        return Err(format!(
            "{of_devices} of {cores} cores {have} devices, so one core is left for connections and \
             cannot be balanced: set cores to {} or more",
            served.len() + 2
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
