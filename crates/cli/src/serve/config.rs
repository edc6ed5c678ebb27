use crate::args::{ServeArgs, ServeBalance, ServeClock, ServeDoorbells};
use crate::drive;
use crate::output::Failure;
use balance::{Policy, Settings};
use controller::Limits;
use node::DiskOptions;
use node::server::{
    BalanceConfig, Config, ConnectionLimits, DeviceConfig, Doorbells, Pace, SerialNumber, Served,
    ServedResp, ServedSubsystem, SubsystemConfig, check_balance, check_nqn, default_nqn,
    default_serial, parse_address, parse_http_address, vfio_user_path,
};
use std::path::{Path, PathBuf};
use tls::ServerFiles;

/// Returns the configuration in the file that `args` name, or in `args` themselves.
pub(super) fn of(args: &ServeArgs) -> Result<Config, Failure> {
    if let Some(path) = &args.config {
        return Config::load(path).map_err(Failure::refused);
    }
    let device = args.device.as_deref().expect("it is there where no file is");
    let nvme_tcp = args.nvme_tcp.as_deref().map(parse_address).transpose();
    let nvme_tcp = nvme_tcp.map_err(Failure::Refused)?;
    let resp = resp(args).map_err(Failure::Refused)?;
    let http = args.http.as_deref().map(parse_http_address).transpose();
    let http = http.map_err(Failure::Refused)?;
    let pace = match args.clock {
        ServeClock::Real => Pace::Real,
        ServeClock::None => Pace::None,
    };
    let served = Served::named(device, Path::new(""), pace).map_err(Failure::refused)?;
    let served = served.with_options(options(args)?).map_err(Failure::refused)?;
    let balance = balance(args, &served).map_err(Failure::Refused)?;
    let nqn = args.nqn.clone().unwrap_or_else(|| default_nqn(device, args.seed));
    check_nqn(&nqn).map_err(Failure::refused)?;
    let served_subsystem = ServedSubsystem {
        nqn,
        serial: SerialNumber::Default(default_serial(device, args.seed)),
        device: 0,
        vfio_user: vfio_user(args).map_err(Failure::Refused)?,
        doorbells: match args.doorbells {
            ServeDoorbells::Trapped => Doorbells::Trapped,
            ServeDoorbells::Mapped => Doorbells::Mapped,
        },
    };
    Ok(Config {
        nvme_tcp: nvme_tcp.into_iter().collect(),
        http,
        cores: args.cores.clone(),
        balance,
        tenants: Vec::new(),
        pace,
        connections: connections(args),
        limits: Limits::default(),
        devices: vec![DeviceConfig {
            name: device.to_owned(),
            device: device.to_owned(),
            served,
            seed: args.seed,
            state: args.state.clone(),
            resp,
        }],
        subsystems: vec![SubsystemConfig { served: served_subsystem, hosts: None }],
        referrals: Vec::new(),
    })
}

/// Returns the sockets for virtual machines.
fn vfio_user(args: &ServeArgs) -> Result<Vec<PathBuf>, String> {
    let mut sockets = Vec::new();
    for path in &args.vfio_user {
        sockets.push(vfio_user_path(path, &sockets)?);
    }
    Ok(sockets)
}

/// Returns how the load of reactors is balanced.
fn balance(args: &ServeArgs, served: &Served) -> Result<Option<BalanceConfig>, String> {
    let policy = match args.balance {
        ServeBalance::None => return Ok(None),
        ServeBalance::Rr => Policy::RoundRobin,
        ServeBalance::Ps => Policy::ProportionalShare,
        ServeBalance::Conn => Policy::Connections,
        ServeBalance::Auto => Policy::Auto,
    };
    check_balance(policy, args.cores.count(), [served].into_iter())?;
    Ok(Some(BalanceConfig { policy, settings: Settings::default() }))
}

/// Returns the default number of connections, or more for Redis clients.
fn connections(args: &ServeArgs) -> ConnectionLimits {
    let usual = ConnectionLimits::default();
    ConnectionLimits { most: usual.most.max(args.resp_clients.unwrap_or(0)), ..usual }
}

/// Returns the listeners for Redis clients.
fn resp(args: &ServeArgs) -> Result<Option<ServedResp>, String> {
    if args.resp.is_none() && args.resp_tls.is_none() {
        return Ok(None);
    }
    let mut served = ServedResp::of_users(args.resp_users.as_deref())?;
    if let Some(text) = &args.resp {
        served = served.at(text)?;
    }
    if let Some(text) = &args.resp_tls {
        let there = |path: &Option<PathBuf>| path.clone().expect("the command line demands it");
        let files = ServerFiles {
            certificate: there(&args.resp_tls_cert),
            key: there(&args.resp_tls_key),
            clients: args.resp_tls_clients.clone(),
        };
        served = served.at_over_tls(text, files)?;
    }
    set_limits(&mut served, args);
    Ok(Some(served))
}

/// Returns the limits of Redis clients.
fn set_limits(served: &mut ServedResp, args: &ServeArgs) {
    let limits = &mut served.limits;
    limits.clients = args.resp_clients.unwrap_or(limits.clients);
    limits.query_bytes = args.resp_query.unwrap_or(limits.query_bytes);
    limits.output_bytes = args.resp_output.unwrap_or(limits.output_bytes);
    limits.timeout_seconds = args.resp_timeout.unwrap_or(limits.timeout_seconds);
}

/// Returns the options of a drive on a disk.
fn options(args: &ServeArgs) -> Result<DiskOptions, Failure> {
    let mut options = DiskOptions::of_server();
    if let Some(name) = &args.durability {
        options.durability = drive::durability(name)?;
    }
    options.checkpoint_bytes = args.checkpoint.unwrap_or(options.checkpoint_bytes);
    options.scrub_rate = args.scrub.unwrap_or(options.scrub_rate);
    options.cache_bytes = args.cache.unwrap_or(options.cache_bytes);
    Ok(options)
}
