use super::DeviceConfig;
use crate::ProfileError;
use crate::profile::field::Field;
use crate::profile::quote::listed;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::identity::is_serial;
use crate::server::{
    Doorbells, SerialNumber, ServedSubsystem, check_nqn, default_nqn, default_serial,
    vfio_user_path,
};
use spec::is_qualified_name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) const SCHEMA: Schema = Schema {
    name: "subsystem",
    title: "[[subsystem]]",
    keys: &["nqn", "device", "serial", "hosts", "vfio_user", "doorbells"],
};

/// A subsystem of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsystemConfig {
    /// What is served.
    pub served: ServedSubsystem,
    /// NQNs of the hosts that may connect; all hosts if there is no list.
    pub hosts: Option<BTreeSet<String>>,
}

pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    devices: &[DeviceConfig],
    folder: &Path,
) -> Result<Vec<SubsystemConfig>, ProfileError> {
    let mut subsystems: Vec<SubsystemConfig> = Vec::new();
    let mut sockets = Vec::new();
    for section in sections {
        let mut subsystem = read(section, devices)?;
        if let Some(field) = section.optional("vfio_user") {
            subsystem.served.vfio_user = read_sockets(field, folder, &sockets)?;
            sockets.extend_from_slice(&subsystem.served.vfio_user);
        }
        if let Some(field) = section.optional("doorbells") {
            if subsystem.served.vfio_user.is_empty() {
                let problem = "doorbells is for virtual machines: give this [[subsystem]] \
                               vfio_user too";
                return Err(field.wrong(problem.to_owned()));
            }
            let choices = Doorbells::ALL.map(|it| (it.name(), it));
            subsystem.served.doorbells = field.choice(&choices)?;
        }
        let ServedSubsystem { nqn, serial, .. } = &subsystem.served;
        let mut others = subsystems.iter().map(|other| &other.served);
        if others.clone().any(|other| other.nqn == *nqn) {
            let problem = format!("another [[subsystem]] is called {nqn}: give each an nqn");
            return Err(section.wrong(problem));
        }
        let serial = serial.of(0);
        if others.any(|other| other.serial.of(0) == serial) {
            let problem = format!("another [[subsystem]] has the serial {serial}: give each one");
            return Err(section.wrong(problem));
        }
        subsystems.push(subsystem);
    }
    Ok(subsystems)
}

fn read(section: Section<'_>, devices: &[DeviceConfig]) -> Result<SubsystemConfig, ProfileError> {
    let field = section.field("device")?;
    let at = devices.iter().position(|device| field.is(&device.name));
    let at = at.ok_or_else(|| {
        let names = devices.iter().map(|device| &device.name[..]);
        field.must_be(&format!("the name of a [[device]]: {}", listed(names, "or")))
    })?;
    let DeviceConfig { device, seed, .. } = &devices[at];
    let nqn = match section.optional("nqn") {
        None => default_nqn(device, *seed),
        Some(field) => {
            let nqn = field.line_of_text()?;
            check_nqn(&nqn).map_err(|problem| field.wrong(problem.to_string()))?;
            nqn
        }
    };
    let serial = match section.optional("serial") {
        None => SerialNumber::Default(default_serial(device, *seed)),
        Some(field) => {
            let serial = field.line_of_text()?;
            if !is_serial(&serial) {
                return Err(field.must_be("1 to 20 printable ASCII characters without a space"));
            }
            SerialNumber::Given(serial)
        }
    };
    let hosts = section.optional("hosts").map(read_hosts).transpose()?;
    let (vfio_user, doorbells) = Default::default();
    let served = ServedSubsystem { nqn, serial, device: at, vfio_user, doorbells };
    Ok(SubsystemConfig { served, hosts })
}

/// Reads a list of the paths of vfio-user sockets, each of which differs from those in `taken`.
fn read_sockets(
    field: Field<'_>,
    folder: &Path,
    taken: &[PathBuf],
) -> Result<Vec<PathBuf>, ProfileError> {
    let mut sockets = Vec::new();
    for element in field.elements() {
        let path = folder.join(element.line_of_text()?);
        let path = vfio_user_path(&path, taken.iter().chain(&sockets));
        sockets.push(path.map_err(|problem| element.wrong(problem))?);
    }
    if sockets.is_empty() {
        return Err(field.must_be("a list of paths, as [\"/run/kvasir/vm1.sock\"]"));
    }
    Ok(sockets)
}

/// Reads a list of NQNs, which may be empty.
pub(super) fn read_hosts(field: Field<'_>) -> Result<BTreeSet<String>, ProfileError> {
    if !field.is_array() {
        return Err(field.must_be("a list of the NQNs of hosts"));
    }
    let names = field.elements().into_iter().map(|element| {
        let name = element.line_of_text()?;
        if !is_qualified_name(&name) {
            return Err(element.must_be(
                "the NQN of a host, as in /etc/nvme/hostnqn: nqn.YYYY-MM.REVERSE.DOMAIN:NAME or \
                 nqn.2014-08.org.nvmexpress:uuid:UUID, of at most 223 bytes",
            ));
        }
        Ok(name)
    });
    names.collect()
}
