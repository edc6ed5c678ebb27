use super::rate::{per_second, seconds};
use node::server::{Status, TenantStatus};
use serde::Serialize;

/// A tenant's work in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TenantSample {
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) requests_per_second: f64,
    pub(super) bytes_per_second: f64,
    /// CPU time of reactors for its connections, in percent of one core.
    pub(super) busy_percent: f64,
    /// How many connections waited for their turn beside other connections, on average.
    pub(super) waiting_for_share: f64,
    /// How many waited for its limits.
    pub(super) waiting_for_limit: f64,
    /// None without a limit.
    pub(super) limit_requests_per_second: Option<u64>,
    /// None without a limit.
    pub(super) limit_bytes_per_second: Option<u64>,
}

impl TenantSample {
    /// Returns the tenants of a server in an interval of so many seconds.
    pub(super) fn all_of(before: Option<&Status>, after: &Status, interval: f64) -> Vec<Self> {
        let known = |name: &str| before?.tenants.iter().find(|tenant| tenant.name == name);
        after.tenants.iter().map(|it| Self::of(known(&it.name), it, interval)).collect()
    }

    fn of(before: Option<&TenantStatus>, after: &TenantStatus, interval: f64) -> Self {
        let growth = |of: fn(&TenantStatus) -> u64| of(after).saturating_sub(before.map_or(0, of));
        let share = |nanos| if interval > 0.0 { seconds(nanos) / interval } else { 0.0 };
        Self {
            name: after.name.clone(),
            weight: after.weight,
            requests_per_second: per_second(growth(|it| it.requests), interval),
            bytes_per_second: per_second(growth(|it| it.bytes), interval),
            busy_percent: share(growth(|it| it.busy_ns)) * 100.0,
            waiting_for_share: share(growth(|it| it.waited_share_ns)),
            waiting_for_limit: share(growth(|it| it.waited_limit_ns)),
            limit_requests_per_second: after.requests_per_second,
            limit_bytes_per_second: after.bytes_per_second,
        }
    }
}
