use crate::disk_drive::{cache_size, durability, no_durability, scrub_rate};
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::{
    NotServed, Pace, Served, ServedResp, ServerError, resp_output, resp_query, resp_timeout,
};
use crate::state::{Origin, StateFile};
use crate::{DiskOptions, ProfileError};
use base::parse_size;
use std::path::{Path, PathBuf};
use tls::ServerFiles;

pub(super) const SCHEMA: Schema = Schema {
    name: "device",
    title: "[[device]]",
    keys: &[
        "name",
        "device",
        "seed",
        "state",
        "resp",
        "resp_users",
        "resp_tls",
        "resp_tls_cert",
        "resp_tls_key",
        "resp_tls_clients",
        "resp_clients",
        "resp_query",
        "resp_output",
        "resp_timeout",
        "durability",
        "checkpoint",
        "scrub",
        "cache",
    ],
};

/// A device of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Its name, to which subsystems refer.
    pub name: String,
    /// The device as given: `mem:SIZE`, or the name or path of a profile.
    pub device: String,
    /// The parsed device.
    pub served: Served,
    /// Seed of its random choices.
    pub seed: u64,
    /// Its state file.
    pub state: Option<PathBuf>,
    /// Its Redis service.
    pub resp: Option<ServedResp>,
}

impl DeviceConfig {
    /// Returns the incarnation in which the next server starts the device, on which its identifiers
    /// depend. Reads its state file, if it has one, and changes nothing.
    pub fn next_incarnation(&self) -> Result<u64, ServerError> {
        let (Some(path), Served::Emulated(profile)) = (&self.state, &self.served) else {
            return Ok(0);
        };
        let origin = Origin { profile, seed: self.seed, shuffle: false };
        let incarnation = StateFile::next_incarnation(path, origin);
        incarnation.map_err(|problem| ServerError::State { path: path.clone(), problem })
    }
}

pub(super) fn read_all(
    sections: &[Section<'_>],
    folder: &Path,
    pace: Pace,
    connections: u32,
) -> Result<Vec<DeviceConfig>, ProfileError> {
    let mut devices: Vec<DeviceConfig> = Vec::new();
    for &section in sections {
        let field = section.field("name")?;
        let name = field.line_of_text()?;
        if devices.iter().any(|device| device.name == name) {
            return Err(field.wrong(format!("another [[device]] has the name {name:?}")));
        }
        let field = section.field("device")?;
        let device = field.line_of_text()?;
        let served = Served::named(&device, folder, pace);
        let served = served.map_err(|problem| field.wrong(problem.to_string()))?;
        let served = with_options(section, served)?;
        let seed = section.optional("seed").map_or(Ok(1), |field| field.count(0..=u64::MAX))?;
        let state = section.optional("state").map(|field| {
            let path = folder.join(field.line_of_text()?);
            if !matches!(served, Served::Emulated(_)) {
                return Err(field.wrong(ServerError::NoState.to_string()));
            }
            if devices.iter().any(|device| device.state.as_ref() == Some(&path)) {
                return Err(field.wrong("another [[device]] has this state file".to_owned()));
            }
            Ok(path)
        });
        let state = state.transpose()?;
        let resp = served_resp(section, folder, connections)?;
        devices.push(DeviceConfig { name, device, served, seed, state, resp });
    }
    Ok(devices)
}

fn served_resp(
    section: Section<'_>,
    folder: &Path,
    connections: u32,
) -> Result<Option<ServedResp>, ProfileError> {
    let (plain, tls) = (section.optional("resp"), section.optional("resp_tls"));
    let users = section.optional("resp_users");
    let without =
        |field: Field<'_>, what: &str| Err(field.wrong(format!("it has no effect {what}")));
    if tls.is_none() {
        for name in ["resp_tls_cert", "resp_tls_key", "resp_tls_clients"] {
            if let Some(field) = section.optional(name) {
                return without(field, "without resp_tls");
            }
        }
        if plain.is_none() {
            let keys = ["resp_users", "resp_clients", "resp_query", "resp_output", "resp_timeout"];
            let given = keys.into_iter().find_map(|key| section.optional(key));
            return given.map_or(Ok(None), |field| without(field, "without resp or resp_tls"));
        }
    }
    let path = |field: Field<'_>| Ok::<_, ProfileError>(folder.join(field.line_of_text()?));
    let last = users.or(plain).or(tls).expect("one of them is there");
    let users = users.map(path).transpose()?;
    let served = ServedResp::of_users(users.as_deref());
    let mut served = served.map_err(|problem| last.wrong(problem))?;
    if let Some(field) = plain {
        served = served.at(&field.line_of_text()?).map_err(|problem| field.wrong(problem))?;
    }
    if let Some(field) = tls {
        let files = ServerFiles {
            certificate: path(section.field("resp_tls_cert")?)?,
            key: path(section.field("resp_tls_key")?)?,
            clients: section.optional("resp_tls_clients").map(path).transpose()?,
        };
        let served_tls = served.at_over_tls(&field.line_of_text()?, files);
        served = served_tls.map_err(|problem| field.wrong(problem))?;
    }
    let limits = &mut served.limits;
    limits.clients = section.whole_or("resp_clients", 1..=limits.clients, limits.clients)?;
    if let Some(field) = section.optional("resp_clients").filter(|_| limits.clients > connections) {
        let clients = limits.clients;
        return Err(field.wrong(format!(
            "resp_clients in [[device]] is {clients}, but the server has {connections} connections \
             at most: raise connections in [limits]"
        )));
    }
    let of = |key, read: fn(&str) -> Result<u64, String>, default| {
        section.optional(key).map_or(Ok(default), |field| {
            read(&field.line_of_text()?).map_err(|problem| field.wrong(problem))
        })
    };
    limits.query_bytes = of("resp_query", resp_query, limits.query_bytes)?;
    limits.output_bytes = of("resp_output", resp_output, limits.output_bytes)?;
    if let Some(field) = section.optional("resp_timeout") {
        let seconds = resp_timeout(&field.line_of_text()?);
        limits.timeout_seconds = seconds.map_err(|problem| field.wrong(problem))?;
    }
    Ok(Some(served))
}

/// Reads the options of a drive on a disk.
fn with_options(section: Section<'_>, served: Served) -> Result<Served, ProfileError> {
    let mut options = DiskOptions::of_server();
    let mut last = None;
    if let Some(field) = section.optional("durability") {
        let name = field.line_of_text()?;
        options.durability = durability(&name).ok_or_else(|| field.wrong(no_durability(&name)))?;
        last = Some(field);
    }
    if let Some(field) = section.optional("checkpoint") {
        let text = field.line_of_text()?;
        options.checkpoint_bytes =
            parse_size(&text).map_err(|error| field.wrong(error.to_string()))?;
        last = Some(field);
    }
    if let Some(field) = section.optional("scrub") {
        let text = field.line_of_text()?;
        options.scrub_rate = scrub_rate(&text).map_err(|problem| field.wrong(problem))?;
        last = Some(field);
    }
    if let Some(field) = section.optional("cache") {
        let text = field.line_of_text()?;
        options.cache_bytes = cache_size(&text).map_err(|problem| field.wrong(problem))?;
        last = Some(field);
    }
    let Some(field) = last else { return Ok(served) };
    match served {
        Served::Disk { .. } => {
            served.with_options(options).map_err(|problem| field.wrong(problem.to_string()))
        }
        _ => Err(field.wrong(NotServed::NotADisk.to_string())),
    }
}
