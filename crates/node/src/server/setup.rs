use super::ServedResp;
use super::{ConnectionLimits, Served};
use controller::Rules;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

/// What is served, and where.
#[derive(Debug)]
pub struct ServerConfig {
    /// Where NVMe/TCP hosts connect; port 0 is any that is free.
    pub nvme_tcp: Vec<SocketAddr>,
    /// Where whoever serves it asks what it is doing, if anywhere; port 0 is any that is free.
    pub http: Option<SocketAddr>,
    /// How many reactors there are: a thread each.
    pub reactors: NonZero<u16>,
    /// What connections may have.
    pub connections: ConnectionLimits,
    /// What hosts may do.
    pub rules: Rules,
    /// The devices.
    pub devices: Vec<ServedDevice>,
    /// What hosts connect to: each by another name.
    pub subsystems: Vec<ServedSubsystem>,
}

impl ServerConfig {
    /// A server of one device for any host, under the rules that there are without any.
    pub fn of_one(served: Served, nqn: &str, address: SocketAddr, reactors: NonZero<u16>) -> Self {
        let subsystem = ServedSubsystem { nqn: nqn.to_owned(), serial: "1".to_owned(), device: 0 };
        Self {
            nvme_tcp: vec![address],
            http: None,
            reactors,
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
    /// What whoever serves it calls it.
    pub name: String,
    /// What it is.
    pub served: Served,
    /// Decides its random choices.
    pub seed: u64,
    /// The file that it is kept in from one start to the next; of an emulated drive only.
    pub state: Option<PathBuf>,
    /// Where clients of the Redis protocol connect, if anywhere.
    pub resp: Option<ServedResp>,
}

/// A subsystem of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedSubsystem {
    /// The name by which hosts connect.
    pub nqn: String,
    /// The serial number: at most 20 printable ASCII characters.
    pub serial: String,
    /// The device behind it, by its place in the list.
    pub device: usize,
}
