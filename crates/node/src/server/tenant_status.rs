use super::tenants::TenantUsage;
use balance::jain_index;
use serde::{Deserialize, Serialize};

/// A tenant: connections that share one weight and one set of limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Its name.
    pub name: String,
    /// Its share of a reactor in proportion to the other tenants that wait.
    pub weight: u32,
    /// The limit of its requests per second; absent without one.
    pub requests_per_second: Option<u64>,
    /// The limit of its bytes per second; absent without one.
    pub bytes_per_second: Option<u64>,
    /// I/O commands of its hosts and commands of its Redis clients.
    pub requests: u64,
    /// Bytes received and sent.
    pub bytes: u64,
    /// Time that reactors worked for its connections: receiving, executing and replying.
    pub busy_ns: u64,
    /// Time that its connections waited for their turn, beside other connections. Waits of
    /// connections at the same time add up.
    pub waited_share_ns: u64,
    /// The same for its limits.
    pub waited_limit_ns: u64,
}

impl From<TenantUsage> for TenantStatus {
    fn from(usage: TenantUsage) -> Self {
        let TenantUsage { name, terms, requests, bytes, busy, waited_share, waited_limit } = usage;
        Self {
            name,
            weight: terms.weight.get(),
            requests_per_second: terms.requests_per_second.map(Into::into),
            bytes_per_second: terms.bytes_per_second.map(Into::into),
            requests,
            bytes,
            busy_ns: busy.0,
            waited_share_ns: waited_share.0,
            waited_limit_ns: waited_limit.0,
        }
    }
}

/// Returns Jain's fairness index between two statuses: of the busy time of each tenant divided by
/// its weight, over the tenants that had requests. 1 means shares by weight. `None`: no tenant had
/// requests.
#[expect(clippy::cast_precision_loss, reason = "for people, for whom 53 bits are plenty")]
pub fn fairness(before: &[TenantStatus], after: &[TenantStatus]) -> Option<f64> {
    let shares = after.iter().filter_map(|after| {
        let before = before.iter().find(|before| before.name == after.name);
        let grown = |of: fn(&TenantStatus) -> u64| of(after) - before.map_or(0, of).min(of(after));
        let busy = grown(|it| it.busy_ns);
        (grown(|it| it.requests) > 0).then(|| busy as f64 / f64::from(after.weight))
    });
    jain_index(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, weight: u32, requests: u64, busy_ns: u64) -> TenantStatus {
        TenantStatus {
            name: name.to_owned(),
            weight,
            requests_per_second: None,
            bytes_per_second: None,
            requests,
            bytes: 0,
            busy_ns,
            waited_share_ns: 0,
            waited_limit_ns: 0,
        }
    }

    #[test]
    fn fairness_is_of_busy_time_by_weight_between_two_statuses() {
        let before = [tenant("a", 1, 5, 100), tenant("b", 3, 5, 700), tenant("c", 1, 9, 0)];
        let after = [tenant("a", 1, 6, 200), tenant("b", 3, 7, 1_000), tenant("c", 1, 9, 50)];
        assert_eq!(fairness(&before, &after), Some(1.0), "c had no requests");
        let unfair = [tenant("a", 1, 6, 400), tenant("b", 3, 7, 1_000), tenant("c", 1, 9, 0)];
        // (3 + 1)^2 / (2 * (9 + 1))
        let found = fairness(&before, &unfair).unwrap();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        assert_eq!(fairness(&before, &before), None);
    }
}
