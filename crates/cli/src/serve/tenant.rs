//! A tenant of a server, as it reports it.

use node::server::TenantConfig;
use serde::Serialize;

/// The keys of a `[[tenant]]` in a server's file.
#[derive(Debug, Serialize)]
pub(super) struct Tenant {
    name: String,
    weight: u32,
    /// None: no limit.
    requests_per_second: Option<u64>,
    /// None: no limit.
    bytes_per_second: Option<u64>,
    host_nqns: Vec<String>,
    resp_users: Vec<String>,
}

impl From<&TenantConfig> for Tenant {
    fn from(tenant: &TenantConfig) -> Self {
        let terms = tenant.terms;
        Self {
            name: tenant.name.clone(),
            weight: terms.weight.get(),
            requests_per_second: terms.requests_per_second.map(Into::into),
            bytes_per_second: terms.bytes_per_second.map(Into::into),
            host_nqns: tenant.host_nqns.clone(),
            resp_users: tenant.resp_users.clone(),
        }
    }
}

impl Tenant {
    /// Returns a line for people.
    pub(super) fn line(&self) -> String {
        let Self { name, weight, requests_per_second, bytes_per_second, .. } = self;
        let mut line = format!("tenant {name}: weight {weight}");
        for (key, limit) in
            [("requests_per_second", requests_per_second), ("bytes_per_second", bytes_per_second)]
        {
            line += &limit.map_or(String::new(), |limit| format!(", {key} {limit}"));
        }
        line
    }
}
