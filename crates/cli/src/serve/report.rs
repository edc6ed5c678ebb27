use crate::args::ServeArgs;
use crate::drive::durability_name;
use crate::number::counted;
use crate::output::say_aside;
use crate::path::shown;
use crate::serve::balance::Balance;
use crate::serve::qemu;
use crate::serve::reach::reachable;
use crate::serve::tenant::Tenant;
use base::human_bytes;
use controller::TransportAddress;
use node::server::{
    Began, Config, DeviceConfig, Doorbells, Pace, RedisReport, SerialNumber, Served, Server,
    ServerError, ServerReport, SubsystemConfig,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;

/// Facts for hosts.
#[derive(Debug, Serialize)]
pub(super) struct Listening {
    /// Device of the command line.
    #[serde(flatten)]
    only: Option<Only>,
    cores: u16,
    /// By thread, if the server was given a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<Balance>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tenants: Vec<Tenant>,
    listeners: Vec<Listener>,
    /// Addresses of NVMe hosts.
    #[serde(skip)]
    reached: Vec<Listener>,
    /// HTTP address of the server's status.
    http: Option<String>,
    /// The same for `kvasir top`.
    #[serde(skip)]
    top: Option<SocketAddr>,
    limits: Limits,
    devices: Vec<Drive>,
    subsystems: Vec<Subsystem>,
    referrals: Vec<Listener>,
    /// The configuration file.
    #[serde(skip)]
    file: Option<String>,
    #[serde(skip)]
    is_for_all: bool,
}

#[derive(Debug, Serialize)]
struct Only {
    device: String,
    description: String,
    uri: String,
    address: String,
    port: u16,
    nqn: String,
}

#[derive(Debug, Serialize)]
struct Listener {
    address: String,
    port: u16,
}

#[derive(Debug, Serialize)]
struct Limits {
    connections: u32,
    connection_memory_bytes: u64,
    associations: u16,
    io_queues: u16,
    queue_entries: u16,
    value_bytes: u32,
}

#[derive(Debug, Serialize)]
struct Drive {
    name: String,
    device: String,
    description: String,
    seed: u64,
    /// The file in which an emulated device is kept.
    state: Option<State>,
    /// Addresses of Redis clients.
    resp: Option<String>,
    /// Addresses of Redis clients over TLS.
    resp_tls: Option<String>,
    /// Profile, clock and seed of the device.
    #[serde(skip)]
    nature: String,
}

#[derive(Debug, Serialize)]
struct State {
    file: String,
    /// None: not known yet.
    began: Option<&'static str>,
    /// How often the content of the device was lost: it is part of the identifiers of namespaces.
    /// In a check, that of the next start.
    incarnation: Option<u64>,
    /// Text about the device.
    warning: Option<String>,
}

#[derive(Debug, Serialize)]
struct Subsystem {
    nqn: String,
    device: String,
    serial: String,
    /// What the serial number is made of.
    #[serde(skip)]
    number: SerialNumber,
    uris: Vec<String>,
    /// Sockets for virtual machines.
    vfio_user: Vec<String>,
    /// How these write doorbells: none without sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    doorbells: Option<&'static str>,
    /// None: any host.
    hosts: Option<BTreeSet<String>>,
    #[serde(skip)]
    place: usize,
}

impl Listening {
    /// Returns the report of `config`, with its bound addresses for hosts and the HTTP address for
    /// the administrator.
    pub(super) fn new(
        args: &ServeArgs,
        config: &Config,
        (addresses, http): (&[SocketAddr], Option<SocketAddr>),
    ) -> Self {
        let reached: Vec<_> = addresses.iter().copied().map(reachable).collect();
        let devices = config.devices.iter().map(|device| Drive::new(device, config.pace));
        let subsystems =
            config.subsystems.iter().map(|it| Subsystem::new(it, &config.devices, &reached));
        let (devices, subsystems): (Vec<_>, Vec<_>) = (devices.collect(), subsystems.collect());
        let reached: Vec<_> = reached.iter().map(Listener::new).collect();
        let file = args.config.as_deref().map(shown);
        let first = reached.first().filter(|_| file.is_none());
        let only = first.map(|listener| Only::new(&devices[0], &subsystems[0], listener));
        Self {
            only,
            cores: config.cores.count().get(),
            processors: config.cores.processors().map(<[u16]>::to_vec),
            balance: config.balance.map(Balance::from),
            tenants: config.tenants.iter().map(Tenant::from).collect(),
            listeners: addresses.iter().map(Listener::new).collect(),
            reached,
            http: http.map(|address| format!("http://{}/status", reachable(address))),
            top: http,
            limits: Limits {
                connections: config.connections.most,
                connection_memory_bytes: config.connections.memory_bytes,
                associations: config.limits.associations,
                io_queues: config.limits.io_queues,
                queue_entries: config.limits.queue_entries,
                value_bytes: config.limits.value_bytes,
            },
            devices,
            subsystems,
            referrals: config.referrals.iter().map(Listener::of_referral).collect(),
            file,
            is_for_all: addresses.iter().any(|address| !address.ip().is_loopback()),
        }
    }

    /// Adds what `server` found in the files of devices, and its listeners for Redis clients.
    pub(super) fn of_server(mut self, server: &Server) -> Self {
        for (place, device) in self.devices.iter_mut().enumerate() {
            device.resp = server.resp_address(place).map(resp_uri);
            device.resp_tls = server.resp_tls_address(place).map(resp_tls_uri);
            if let (Some(state), Some(began)) = (&mut device.state, server.began(place)) {
                state.began = Some(match began {
                    Began::New => "new",
                    Began::Resumed => "resumed",
                    Began::Lost => "lost",
                });
                state.warning = (began == Began::Lost).then(|| {
                    format!(
                        "the state {} was in use when its server was killed, so its content is \
                         lost: {} is a new device, and its namespaces have new identifiers",
                        state.file, device.name
                    )
                });
            }
        }
        let incarnations = (0..self.devices.len()).map(|place| server.incarnation(place));
        let incarnations = incarnations.collect::<Vec<_>>();
        self.set_incarnations(&incarnations);
        self
    }

    /// Adds what a server of `devices` would find in their files.
    pub(super) fn of_check(mut self, devices: &[DeviceConfig]) -> Result<Self, ServerError> {
        let incarnations = devices.iter().map(DeviceConfig::next_incarnation);
        let incarnations = incarnations.collect::<Result<Vec<_>, _>>()?;
        self.set_incarnations(&incarnations);
        Ok(self)
    }

    /// Sets the incarnation of each device, and the serial numbers that follow from it.
    fn set_incarnations(&mut self, incarnations: &[u64]) {
        for (device, &incarnation) in self.devices.iter_mut().zip(incarnations) {
            if let Some(state) = &mut device.state {
                state.incarnation = Some(incarnation);
            }
        }
        for subsystem in &mut self.subsystems {
            subsystem.serial = subsystem.number.of(incarnations[subsystem.place]);
        }
    }

    /// Prints warnings that users may not expect.
    pub(super) fn warn(&self) {
        let states = self.devices.iter().filter_map(|device| device.state.as_ref());
        for warning in states.filter_map(|state| state.warning.as_ref()) {
            say_aside(warning);
        }
    }

    /// Returns the lines of a server that is ready.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.describe_devices(&mut text);
        if self.is_for_all && self.subsystems.iter().any(|subsystem| subsystem.hosts.is_none()) {
            text +=
                "warning: no access control; any host that can reach this address can connect\n";
        }
        self.describe_http(&mut text);
        text
    }

    /// Returns what is served, and the addresses for hosts and clients.
    fn describe_devices(&self, text: &mut String) {
        for subsystem in &self.subsystems {
            subsystem.describe(text, &self.devices, self.reached.first());
        }
        let bound = self
            .listeners
            .iter()
            .zip(&self.reached)
            .filter(|(bound, reached)| bound.address != reached.address);
        for (Listener { address, .. }, Listener { address: reached, .. }) in bound {
            writeln!(text, "{address} is every address of this machine; {reached} is one of them")
                .expect("a string takes all text");
        }
        let devices = self.devices.iter().enumerate();
        for (_, device) in devices.filter(|(place, _)| !self.has_subsystem(*place)) {
            *text += &(device.line() + "\n");
        }
        self.describe_resp(text);
    }

    fn has_subsystem(&self, device: usize) -> bool {
        self.subsystems.iter().any(|subsystem| subsystem.place == device)
    }

    fn describe_resp(&self, text: &mut String) {
        for Drive { name, resp, resp_tls, .. } in &self.devices {
            let uris: Vec<_> = [resp, resp_tls].into_iter().flatten().map(String::as_str).collect();
            if !uris.is_empty() {
                let uris = uris.join("\n");
                writeln!(text, "{name} for Redis clients:\n{uris}")
                    .expect("a string takes all text");
            }
        }
    }

    fn describe_http(&self, text: &mut String) {
        let (Some(address), Some(uri)) = (self.top, &self.http) else { return };
        writeln!(text, "status: kvasir top {}\n{uri}", reachable(address))
            .expect("it takes all text");
        if !address.ip().is_loopback() {
            *text += "warning: anyone who can reach the HTTP address can see the connected hosts\n";
        }
    }

    /// Returns the lines for a valid configuration file.
    pub(super) fn checked(&self) -> String {
        let Limits { connections, associations, io_queues, queue_entries, .. } = self.limits;
        let mut text = format!(
            "{} is right: {} cores, at most {connections} connections with {} in flight each, \
             {associations} associations of a subsystem, {io_queues} I/O queues of \
             {queue_entries} entries, values of {}\n",
            self.file.as_deref().unwrap_or_default(),
            self.cores,
            human_bytes(self.limits.connection_memory_bytes),
            human_bytes(self.limits.value_bytes.into()),
        );
        if let Some(balance) = &self.balance {
            text += &(balance.line() + "\n");
        }
        for tenant in &self.tenants {
            text += &(tenant.line() + "\n");
        }
        self.describe_devices(&mut text);
        for Listener { address, port } in &self.referrals {
            writeln!(text, "refers to {address}, port {port}").expect("a string takes all text");
        }
        self.describe_http(&mut text);
        text
    }
}

impl Only {
    fn new(device: &Drive, subsystem: &Subsystem, listener: &Listener) -> Self {
        Self {
            device: device.device.clone(),
            description: device.description.clone(),
            uri: subsystem.uris[0].clone(),
            address: listener.address.clone(),
            port: listener.port,
            nqn: subsystem.nqn.clone(),
        }
    }
}

impl Listener {
    fn new(address: &SocketAddr) -> Self {
        Self { address: address.ip().to_string(), port: address.port() }
    }

    fn of_referral(referral: &TransportAddress) -> Self {
        let address = referral.address.as_str().expect("an address is text");
        Self { address: address.to_owned(), port: referral.port }
    }
}

impl Drive {
    fn new(device: &DeviceConfig, pace: Pace) -> Self {
        Self {
            name: device.name.clone(),
            device: device.device.clone(),
            description: device.served.description().to_owned(),
            seed: device.seed,
            state: device.state.as_deref().map(|path| State {
                file: shown(path),
                began: None,
                incarnation: None,
                warning: None,
            }),
            resp: device.resp.as_ref().and_then(|resp| resp.address).map(resp_uri),
            resp_tls: device
                .resp
                .as_ref()
                .and_then(|resp| Some(resp_tls_uri(resp.tls.as_ref()?.address))),
            nature: nature(&device.served, pace),
        }
    }

    /// Describes what is served.
    fn line(&self) -> String {
        let Self { name, description, nature, state, .. } = self;
        let state = match state {
            Some(State { began: Some("resumed"), file, .. }) => format!(", as saved in {file}"),
            Some(State { file, .. }) => format!(", kept in {file}"),
            None => String::new(),
        };
        format!("serving {name}: {description}, {nature}{state}")
    }
}

/// Only an emulated device has its own latencies.
fn nature(served: &Served, pace: Pace) -> String {
    match served {
        Served::Emulated(_) if pace == Pace::Real => "latencies in real time".to_owned(),
        Served::Emulated(_) => "no latencies".to_owned(),
        Served::Disk { options, .. } => {
            format!("as fast as the disk, durability {}", durability_name(options.durability))
        }
        Served::Memory { .. } => "as fast as memory, lost when the server stops".to_owned(),
    }
}

fn resp_uri(address: SocketAddr) -> String {
    format!("resp://{}", reachable(address))
}

fn resp_tls_uri(address: SocketAddr) -> String {
    format!("rediss://{}", reachable(address))
}

impl Subsystem {
    fn new(subsystem: &SubsystemConfig, devices: &[DeviceConfig], at: &[SocketAddr]) -> Self {
        let served = &subsystem.served;
        let uri = |address| format!("nvme-tcp://{address}/{}", served.nqn);
        Self {
            nqn: served.nqn.clone(),
            device: devices[served.device].name.clone(),
            serial: served.serial.of(0),
            number: served.serial.clone(),
            uris: at.iter().map(uri).collect(),
            vfio_user: served.vfio_user.iter().map(|path| shown(path)).collect(),
            doorbells: (!served.vfio_user.is_empty()).then(|| served.doorbells.name()),
            hosts: subsystem.hosts.clone(),
            place: served.device,
        }
    }

    fn describe(&self, text: &mut String, devices: &[Drive], at: Option<&Listener>) {
        let hosts = match &self.hosts {
            None => String::new(),
            Some(hosts) if hosts.is_empty() => ", for no host".to_owned(),
            Some(hosts) if hosts.len() == 1 => ", for 1 host".to_owned(),
            Some(hosts) => format!(", for {} hosts", hosts.len()),
        };
        let mut lines = vec![devices[self.place].line() + &hosts];
        lines.extend_from_slice(&self.uris);
        lines.extend(at.map(|Listener { address, port }| {
            format!("on Linux: nvme connect -t tcp -a {address} -s {port} -n {}", self.nqn)
        }));
        lines.extend(self.vfio_user.iter().map(|socket| qemu::line(socket)));
        if self.doorbells == Some(Doorbells::Mapped.name()) {
            lines.push(
                "mapped doorbells: a thread does not sleep while a VM uses the device".to_owned(),
            );
        }
        *text += &(lines.join("\n") + "\n");
    }
}

/// Counters at the end.
#[derive(Debug, Serialize)]
pub(super) struct Stopped {
    connections: u64,
    connections_refused: u64,
    bytes_received: u64,
    bytes_sent: u64,
    /// Counters of emulated devices; none without one.
    late_events: Option<u64>,
    latest_ns: Option<u64>,
    /// Counters of Redis clients; none without a listener for them.
    redis: Option<Redis>,
    #[serde(skip)]
    is_in_real_time: bool,
}

/// Counters of Redis clients.
#[derive(Debug, Serialize)]
struct Redis {
    connections: u64,
    commands: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

impl Stopped {
    pub(super) fn new(pace: Pace, report: &ServerReport) -> Self {
        let (bytes_received, bytes_sent) = report.bytes();
        let late = report.late_events();
        Self {
            connections: report.connections(),
            connections_refused: report.refused,
            bytes_received,
            bytes_sent,
            late_events: late.map(|(events, _)| events),
            latest_ns: late.map(|(_, latest)| latest.0),
            redis: report.redis().map(Redis::from),
            is_in_real_time: pace == Pace::Real,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "stopped after {} connections, {} received, {} sent\n",
            self.connections,
            human_bytes(self.bytes_received),
            human_bytes(self.bytes_sent)
        );
        if let Some(redis) = &self.redis {
            text += &redis.text();
        }
        if self.connections_refused > 0 {
            let refused = self.connections_refused;
            writeln!(
                text,
                "{refused} connections were refused: the limit of connections was reached"
            )
            .expect("a string takes all text");
        }
        if let (true, Some(late @ 1..), Some(latest)) =
            (self.is_in_real_time, self.late_events, self.latest_ns)
        {
            let latest = base::Nanos(latest);
            writeln!(
                text,
                "{late} events of emulated devices were late by 20 us or more, the latest by \
                 {latest}"
            )
            .expect("a string takes all text");
        }
        text
    }
}

impl From<RedisReport> for Redis {
    fn from(report: RedisReport) -> Self {
        Self {
            connections: report.connections,
            commands: report.commands,
            bytes_received: report.bytes_received,
            bytes_sent: report.bytes_sent,
        }
    }
}

impl Redis {
    fn text(&self) -> String {
        format!(
            "Redis clients: {}, {}, {} received, {} sent\n",
            counted(self.connections, "connection"),
            counted(self.commands, "command"),
            human_bytes(self.bytes_received),
            human_bytes(self.bytes_sent)
        )
    }
}
