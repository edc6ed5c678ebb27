use std::num::NonZero;

/// A tenant of a server: connections that share one weight and one set of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantConfig {
    /// Its name. `default` has all connections that no other tenant names.
    pub name: String,
    /// The NQNs of its NVMe hosts.
    pub host_nqns: Vec<String>,
    /// The names of its Redis users.
    pub resp_users: Vec<String>,
    /// What can change while the server runs.
    pub terms: TenantTerms,
}

/// The weight and the limits of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantTerms {
    /// Its share of a reactor in proportion to the other tenants that wait.
    pub weight: NonZero<u32>,
    /// The maximum rate of requests, on all reactors together.
    pub requests_per_second: Option<NonZero<u64>>,
    /// The maximum rate of bytes on its sockets, both directions and all reactors together.
    pub bytes_per_second: Option<NonZero<u64>>,
}

impl Default for TenantTerms {
    /// Weight 1 without limits.
    fn default() -> Self {
        let weight = NonZero::<u32>::MIN;
        Self { weight, requests_per_second: None, bytes_per_second: None }
    }
}

impl TenantConfig {
    /// The name of the tenant that has all other connections.
    pub const DEFAULT: &str = "default";

    /// Creates a tenant without hosts and users, with the default terms.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            host_nqns: Vec::new(),
            resp_users: Vec::new(),
            terms: TenantTerms::default(),
        }
    }

    /// Returns all but the terms, which need a restart to change.
    pub(in crate::server) fn identity(&self) -> (&str, &[String], &[String]) {
        (&self.name, &self.host_nqns, &self.resp_users)
    }
}
