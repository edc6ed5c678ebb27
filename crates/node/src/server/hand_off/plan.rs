//! What a seed draws before its run.

use crate::server::balance::BalanceConfig;
use balance::{Memory, Policy, Settings};
use base::{Nanos, Rng};
use reactor::CoreTimes;

/// The policies that decide where commands are executed.
const POLICIES: [Policy; 4] =
    [Policy::None, Policy::RoundRobin, Policy::ProportionalShare, Policy::Auto];

/// The plan of a run.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) reactors: usize,
    /// Whether the first reactor has an emulated device too, and no hosts then.
    pub(super) has_emulated: bool,
    pub(super) times: CoreTimes,
    pub(super) hosts: Vec<HostPlan>,
    /// When the server is stopped, if not after the last host has ended.
    pub(super) stops_at: Option<Nanos>,
    pub(super) balance: BalanceConfig,
}

/// A host.
#[derive(Clone, Copy)]
pub(super) struct HostPlan {
    pub(super) number: u16,
    /// The reactor that serves its connections.
    pub(super) reactor: usize,
    /// Whether it uses the emulated device.
    pub(super) is_far: bool,
    /// Its connections, one after another.
    pub(super) connections: u64,
    /// Commands of each.
    pub(super) commands: u64,
    /// Commands that it keeps outstanding.
    pub(super) depth: usize,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(base::mix(seed));
        let reactors = 2 + pick(&mut rng, 3);
        let has_emulated = reactors > 2 && rng.below(3) == 0;
        let first = usize::from(has_emulated);
        // Most hosts are on one reactor, so that it has something to divert.
        let hot = first + pick(&mut rng, reactors - first);
        let hosts = (0..3 + rng.below(5)).map(|number| HostPlan {
            number: u16::try_from(number).expect("a few"),
            reactor: if rng.below(4) > 0 { hot } else { first + pick(&mut rng, reactors - first) },
            is_far: has_emulated && rng.below(3) == 0,
            connections: 1 + rng.below(3),
            commands: 10 + rng.below(30),
            depth: 1 + pick(&mut rng, 12),
        });
        let hosts = hosts.collect();
        let times = CoreTimes {
            poll: Nanos(100 + rng.below(2_000)),
            read: Nanos(10 + rng.below(300)),
            message: Nanos(1 + rng.below(20_000)),
            stall: Nanos(1_000 + rng.below(100_000)),
            stall_one_in: 10 + rng.below(500),
        };
        let stops_at = (rng.below(4) == 0).then(|| Nanos::from_micros(20 + rng.below(1_000)));
        let balance = draw_balance(&mut rng);
        Self { seed, reactors, has_emulated, times, hosts, stops_at, balance }
    }
}

/// Draws a policy and its settings, with short windows and low bounds.
pub(super) fn draw_balance(rng: &mut Rng) -> BalanceConfig {
    let memory = if rng.below(2) == 0 { Memory::Off } else { Memory::On { release: rng.unit() } };
    let settings = Settings {
        overload: 0.2 * rng.unit(),
        spread: 0.1 * rng.unit(),
        movable: 0.2 + 0.8 * rng.unit(),
        window: Nanos::from_micros(10 + rng.below(100)),
        memory,
    };
    BalanceConfig { policy: POLICIES[pick(rng, POLICIES.len())], settings }
}

/// Draws a number below `count`.
pub(super) fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.below(count as u64)).expect("it is below a length")
}
