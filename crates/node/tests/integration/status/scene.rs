use node::server::{
    AssociationStatus, Doorbells, Inquirer, Pace, SerialNumber, Served, ServedDevice,
    ServedSubsystem, Server, ServerConfig, Status,
};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) const PAIRS: &str = "nqn.2026-11.com.example:pairs";
pub(crate) const BLOCKS: &str = "nqn.2026-11.com.example:blocks";
pub(crate) const FLASH: &str = "nqn.2026-11.com.example:flash";
/// Of the device of pairs too.
pub(crate) const MORE_PAIRS: &str = "nqn.2026-11.com.example:more-pairs";

/// Timeout of each step, many times what a busy machine needs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A server of three devices and four subsystems, and a client of its status.
pub(crate) struct Scene {
    pub(crate) server: Server,
    inquirer: Inquirer,
}

impl Scene {
    pub(crate) fn new(reactors: u16) -> Self {
        let device = |name: &str, what: &str| ServedDevice {
            name: name.to_owned(),
            served: Served::named(what, Path::new(""), Pace::None).unwrap(),
            seed: 1,
            state: None,
            resp: None,
        };
        let subsystem = |nqn: &str, device| ServedSubsystem {
            nqn: nqn.to_owned(),
            serial: SerialNumber::Given(device_serial(nqn)),
            device,
            vfio_user: Vec::new(),
            doorbells: Doorbells::Trapped,
        };
        let config = ServerConfig {
            nvme_tcp: vec![([127, 0, 0, 1], 0).into()],
            http: Some(([127, 0, 0, 1], 0).into()),
            balance: None,
            tenants: Vec::new(),
            cores: NonZero::new(reactors).unwrap().into(),
            connections: node::server::ConnectionLimits::default(),
            rules: controller::Rules::default(),
            devices: vec![
                device("pairs", "mem:64MiB"),
                device("blocks", "mem:64MiB?kind=block"),
                device("flash", "ideal"),
            ],
            subsystems: vec![
                subsystem(PAIRS, 0),
                subsystem(BLOCKS, 1),
                subsystem(FLASH, 2),
                subsystem(MORE_PAIRS, 0),
            ],
        };
        let server = Server::start(config).unwrap();
        let inquirer = Inquirer::new(server.http_address().unwrap()).unwrap();
        Self { server, inquirer }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.server.http_address().unwrap()
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Status {
        self.inquirer.ask().unwrap()
    }

    /// The first status that `is_so`.
    #[track_caller]
    pub(crate) fn wait_for(&self, is_so: impl Fn(&Status) -> bool) -> Status {
        let start = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "that never comes: {status:#?}");
            sleep(Duration::from_millis(10));
        }
    }
}

fn device_serial(nqn: &str) -> String {
    nqn.rsplit(':').next().unwrap_or_default().to_owned()
}

/// The association of `host` with `subsystem`.
pub(crate) fn of_host<'a>(
    status: &'a Status,
    host: &str,
    subsystem: &str,
) -> Option<&'a AssociationStatus> {
    let mut all = status.associations.iter();
    all.find(|it| it.host == host && it.subsystem == subsystem)
}
