use super::DeviceConfig;
use super::subsystem::read_hosts;
use crate::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::{TenantConfig, TenantTerms};
use resp::Users;
use std::num::NonZero;

pub(super) const SCHEMA: Schema = Schema {
    name: "tenant",
    title: "[[tenant]]",
    keys: &["name", "host_nqns", "resp_users", "weight", "requests_per_second", "bytes_per_second"],
};

/// The largest weight: the shares of two tenants differ at most so many times.
const WEIGHT_MAX: u32 = 10_000;

/// The largest limit per second.
const LIMIT_MAX: u64 = 1_000_000_000_000;

/// Reads the tenants, if any. `has_hosts`: the server has a listener for NVMe/TCP.
pub(super) fn read_all(
    top: Section<'_>,
    devices: &[DeviceConfig],
    has_hosts: bool,
) -> Result<Vec<TenantConfig>, ProfileError> {
    if top.optional(SCHEMA.name).is_none() {
        return Ok(Vec::new());
    }
    let mut tenants: Vec<TenantConfig> = Vec::new();
    for section in top.elements(&SCHEMA)? {
        let field = section.field("name")?;
        let name = field.line_of_text()?;
        if tenants.iter().any(|tenant| tenant.name == name) {
            return Err(field.wrong(format!("another [[tenant]] has the name {name:?}")));
        }
        let host_nqns = hosts(section, has_hosts, &tenants)?;
        let resp_users = users(section, devices, &tenants)?;
        if host_nqns.is_empty() && resp_users.is_empty() && name != TenantConfig::DEFAULT {
            return Err(section.wrong(format!(
                "the tenant {name:?} has neither host_nqns nor resp_users, so no connection \
                 belongs to it"
            )));
        }
        tenants.push(TenantConfig { name, host_nqns, resp_users, terms: terms(section)? });
    }
    Ok(tenants)
}

fn hosts(
    section: Section<'_>,
    has_hosts: bool,
    others: &[TenantConfig],
) -> Result<Vec<String>, ProfileError> {
    let Some(field) = section.optional("host_nqns") else { return Ok(Vec::new()) };
    if !has_hosts {
        return Err(field.wrong("host_nqns has no effect without nvme_tcp in [server]".to_owned()));
    }
    let hosts = read_hosts(field)?;
    let mut taken = others.iter().flat_map(|other| &other.host_nqns);
    match taken.find(|other| hosts.contains(*other)) {
        Some(host) => Err(field.wrong(format!("another [[tenant]] has the host {host}"))),
        None => Ok(hosts.into_iter().collect()),
    }
}

fn users(
    section: Section<'_>,
    devices: &[DeviceConfig],
    others: &[TenantConfig],
) -> Result<Vec<String>, ProfileError> {
    let Some(field) = section.optional("resp_users") else { return Ok(Vec::new()) };
    if !field.is_array() {
        return Err(field.must_be("a list of the names of Redis users"));
    }
    let mut users: Vec<String> = Vec::new();
    for element in field.elements() {
        let user = element.line_of_text()?;
        check_user(element, &user, devices)?;
        let mut taken = others.iter().flat_map(|other| &other.resp_users);
        if users.contains(&user) || taken.any(|other| *other == user) {
            return Err(element.wrong(format!("the user {user:?} is named twice")));
        }
        users.push(user);
    }
    Ok(users)
}

/// Checks that a Redis service has this user.
fn check_user(field: Field<'_>, user: &str, devices: &[DeviceConfig]) -> Result<(), ProfileError> {
    let mut services = devices.iter().filter_map(|device| device.resp.as_ref()).peekable();
    if services.peek().is_none() {
        return Err(field.wrong("resp_users has no effect without a resp in [[device]]".to_owned()));
    }
    let usual = Users::default();
    if services.any(|resp| resp.users.as_ref().unwrap_or(&usual).has(user)) {
        return Ok(());
    }
    Err(field.wrong(format!(
        "no Redis service has the user {user:?}: add it to the file of resp_users in [[device]]"
    )))
}

fn terms(section: Section<'_>) -> Result<TenantTerms, ProfileError> {
    let limit = |key| {
        let field = section.optional(key);
        let count = field.map(|field| field.count(1..=LIMIT_MAX)).transpose()?;
        Ok::<_, ProfileError>(count.and_then(NonZero::new))
    };
    let weight = section.whole_or("weight", 1..=WEIGHT_MAX, 1)?;
    Ok(TenantTerms {
        weight: NonZero::new(weight).expect("it is in that range"),
        requests_per_second: limit("requests_per_second")?,
        bytes_per_second: limit("bytes_per_second")?,
    })
}
