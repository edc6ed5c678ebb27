//! How a server balances its cores, as it reports it.

use balance::Memory;
use node::server::BalanceConfig;
use serde::Serialize;

/// The keys of `[balance]` in a server's file.
#[derive(Debug, Serialize)]
pub(super) struct Balance {
    policy: &'static str,
    overload: f64,
    spread: f64,
    movable: f64,
    window_ms: u64,
    memory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<f64>,
}

impl From<BalanceConfig> for Balance {
    fn from(BalanceConfig { policy, settings }: BalanceConfig) -> Self {
        let release = match settings.memory {
            Memory::Off => None,
            Memory::On { release } => Some(release),
        };
        Self {
            policy: policy.name(),
            overload: settings.overload,
            spread: settings.spread,
            movable: settings.movable,
            window_ms: settings.window.0 / 1_000_000,
            memory: release.is_some(),
            release,
        }
    }
}

impl Balance {
    /// Returns a line for people.
    pub(super) fn line(&self) -> String {
        let Self { policy, overload, spread, movable, window_ms, memory, release } = self;
        let release = release.map_or(String::new(), |share| format!(", release {share}"));
        format!(
            "balance: policy {policy}, overload {overload}, spread {spread}, movable {movable}, \
             window_ms {window_ms}, memory {memory}{release}"
        )
    }
}
