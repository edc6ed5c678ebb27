use super::BalanceConfig;
use super::SerialNumber;
use super::ServedResp;
use super::TenantConfig;
use super::{ConnectionLimits, Cores, Doorbells, Served};
use controller::Rules;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

/// The configuration of a server.
#[derive(Debug)]
pub struct ServerConfig {
    /// Addresses where NVMe/TCP hosts connect; port 0 takes any free port.
    pub nvme_tcp: Vec<SocketAddr>,
    /// Address of the HTTP status service, if any; port 0 takes any free port.
    pub http: Option<SocketAddr>,
    /// The threads, each with a reactor.
    pub cores: Cores,
    /// How reactors execute commands for each other. `None`: they do not.
    pub balance: Option<BalanceConfig>,
    /// The tenants. Without any, all connections are alike.
    pub tenants: Vec<TenantConfig>,
    /// Limits of connections.
    pub connections: ConnectionLimits,
    /// Rules of hosts.
    pub rules: Rules,
    /// The devices.
    pub devices: Vec<ServedDevice>,
    /// The subsystems, each with its own name.
    pub subsystems: Vec<ServedSubsystem>,
}

impl ServerConfig {
    /// Returns a server of one device for any host, with the default rules.
    pub fn of_one(served: Served, nqn: &str, address: SocketAddr, reactors: NonZero<u16>) -> Self {
        let subsystem = ServedSubsystem {
            nqn: nqn.to_owned(),
            serial: SerialNumber::Given("1".to_owned()),
            device: 0,
            vfio_user: Vec::new(),
            doorbells: Doorbells::Trapped,
        };
        Self {
            nvme_tcp: vec![address],
            http: None,
            cores: reactors.into(),
            balance: None,
            tenants: Vec::new(),
            connections: ConnectionLimits::default(),
            rules: Rules::default(),
            devices: vec![ServedDevice {
                name: "device".to_owned(),
                served,
                seed: 1,
                state: None,
                resp: None,
            }],
            subsystems: vec![subsystem],
        }
    }
}

/// A device of a server.
#[derive(Debug)]
pub struct ServedDevice {
    /// The operator's name of the device.
    pub name: String,
    /// What is served.
    pub served: Served,
    /// Seed of its random choices.
    pub seed: u64,
    /// The state file that keeps it between runs; for an emulated drive only.
    pub state: Option<PathBuf>,
    /// Its Redis service, if any.
    pub resp: Option<ServedResp>,
}

/// A subsystem of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedSubsystem {
    /// The name by which hosts connect.
    pub nqn: String,
    /// The serial number.
    pub serial: SerialNumber,
    /// The index of its device in the list.
    pub device: usize,
    /// Absolute paths of its vfio-user sockets, each for one virtual machine at a time.
    pub vfio_user: Vec<PathBuf>,
    /// How those write doorbells.
    pub doorbells: Doorbells,
}
