use crate::auto::Plan;
use crate::groups::Groups;
use crate::load::{Load, share};
use crate::route::Route;
use crate::settings::{Memory, Policy, Settings};
use crate::trial::Trial;
use base::Nanos;

/// Chooses the routes of all cores, window by window.
#[derive(Clone, Debug)]
pub struct Balancer {
    policy: Policy,
    settings: Settings,
    routes: Vec<Route>,
    trial: Trial,
}

impl Balancer {
    /// A balancer of `cores`, which execute all their requests.
    pub fn new(policy: Policy, settings: Settings, cores: usize) -> Self {
        Self { policy, settings, routes: vec![Route::new(cores); cores], trial: Trial::NEW }
    }

    /// Balances by this policy and these settings from now on. The routes stay until the end of the
    /// window.
    pub fn set(&mut self, policy: Policy, settings: Settings) {
        (self.policy, self.settings) = (policy, settings);
    }

    /// Returns the route of each core after a window of length `window`, in which the cores had
    /// these `loads`.
    ///
    /// # Panics
    /// If the window is empty, or `loads` is not of as many cores as the balancer.
    pub fn end_window(&mut self, window: Nanos, loads: &[Load]) -> &[Route] {
        assert!(window > Nanos::ZERO, "a window has a length");
        assert_eq!(loads.len(), self.routes.len(), "each core has a load");
        if self.policy == Policy::Auto {
            self.plan(window, loads);
        } else {
            self.step(window, loads);
        }
        &self.routes
    }

    /// Plans anew, unless diverting has not paid.
    fn plan(&mut self, window: Nanos, loads: &[Load]) {
        let plan = Plan::of(window, loads);
        let mut takers = plan.takers(&self.settings, &self.routes);
        let diverting = self.routes.iter().any(Route::diverts_by_queue);
        if !self.trial.end_window(loads, diverting, &takers, plan.least_capacity()) {
            for takes in &mut takers {
                takes.fill(false);
            }
        }
        plan.apply(takers, &mut self.routes);
    }

    /// Takes a step towards even cores, as `OctoKV`.
    fn step(&mut self, window: Nanos, loads: &[Load]) {
        self.routes.iter_mut().for_each(Route::set_by_shares);
        let groups = Groups::of(loads.iter().map(|load| load.utilisation(window)).collect());
        let is_unbalanced = self.policy.diverts() && groups.are_unbalanced(&self.settings);
        let given = if is_unbalanced { self.given(&groups) } else { vec![0.0; loads.len()] };
        let movable: Vec<f64> = loads.iter().map(|load| share(load.movable, window)).collect();
        for core in 0..loads.len() {
            let is_high = groups.excess(core) > 0.0;
            self.lower(core, is_high && groups.are_overloaded(&self.settings));
        }
        for (core, given) in given.into_iter().enumerate().filter(|(_, given)| *given > 0.0) {
            self.divide(core, given, &groups, &movable);
        }
    }

    /// Returns the utilisation that each core gives away: the high group all it may, or a part of
    /// that if the low group can take only as much.
    fn given(&self, groups: &Groups) -> Vec<f64> {
        let mut given: Vec<f64> =
            (0..self.routes.len()).map(|core| self.offered(groups, core)).collect();
        let taken = (groups.acceptable() / given.iter().sum::<f64>()).min(1.0);
        for given in &mut given {
            *given *= taken;
        }
        given
    }

    /// Returns the utilisation that `core` may give away: 0 unless it is in the high group.
    fn offered(&self, groups: &Groups, core: usize) -> f64 {
        let excess = groups.excess(core);
        let movable = self.settings.movable * groups.utilisation(core);
        match self.settings.memory {
            _ if excess == 0.0 => 0.0,
            Memory::Off => movable,
            Memory::On { .. } => movable.min(excess),
        }
    }

    /// Lowers what `core` diverts, before it may divert more. With memory it `keeps` all or takes
    /// a part back.
    fn lower(&mut self, core: usize, keeps: bool) {
        let kept = match self.settings.memory {
            Memory::On { release } if self.policy.diverts() => {
                if keeps {
                    1.0
                } else {
                    1.0 - release
                }
            }
            _ => 0.0,
        };
        self.routes[core].keep(kept);
    }

    /// Divides the utilisation that `core` gives away among the low group.
    fn divide(&mut self, core: usize, given: f64, groups: &Groups, movable: &[f64]) {
        let weight = |to: usize| match groups.room(to) {
            room if room > 0.0 && self.policy == Policy::RoundRobin => 1.0,
            room => room,
        };
        let weights: Vec<f64> = (0..self.routes.len()).map(weight).collect();
        let all: f64 = weights.iter().sum();
        for (to, weight) in weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0) {
            self.divert(core, to, given * weight / all, movable);
        }
    }

    /// Moves `utilisation` from one core to another. What the other one diverts to the first it
    /// takes back, before the first diverts anything to it.
    fn divert(&mut self, from: usize, to: usize, utilisation: f64, movable: &[f64]) {
        let mut left = utilisation;
        if movable[to] > 0.0 {
            left -= self.routes[to].lower(from, left / movable[to]) * movable[to];
        }
        if movable[from] > 0.0 {
            self.routes[from].raise(to, left / movable[from]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos::from_millis(10);

    /// Loads of cores by their utilisation in percent. The movable stages of a core's requests
    /// take half a window.
    fn loads(percent: &[u64]) -> Vec<Load> {
        let of = |percent: &u64| Load {
            busy: Nanos(WINDOW.0 / 100 * percent),
            movable: Nanos(WINDOW.0 / 2),
            ..Load::default()
        };
        percent.iter().map(of).collect()
    }

    fn balancer(policy: Policy, memory: Memory, cores: usize) -> Balancer {
        let settings = Settings { window: WINDOW, memory, ..Settings::default() };
        Balancer::new(policy, settings, cores)
    }

    /// Returns the shares of each core's route.
    fn shares(routes: &[Route]) -> Vec<Vec<f64>> {
        let of = |route| (0..routes.len()).map(|to| Route::share(route, to)).collect();
        routes.iter().map(of).collect()
    }

    fn assert_near(found: &[Vec<f64>], expected: &[[f64; 3]]) {
        let near = |(one, other): (&Vec<f64>, &[f64; 3])| {
            one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-12)
        };
        assert!(found.iter().zip(expected).all(near), "{found:?} is not {expected:?}");
    }

    /// The example of the slides: utilisations of 0.1, 0.8 and 0.3 have the mean 0.4. The second
    /// core gives away 20 % of 0.8, which is 0.16, and the others can take 0.3 + 0.1 = 0.4. Its
    /// movable stages take 0.5, so it diverts 0.16 / 0.5 = 0.32 of its requests.
    #[test]
    fn the_example_of_the_slides_is_divided_equally_or_3_to_1() {
        let groups = Groups::of(vec![0.1, 0.8, 0.3]);
        assert!((groups.acceptable() - 0.4).abs() < 1e-12);
        for memory in [Memory::Off, Memory::On { release: 0.05 }] {
            let mut equal = balancer(Policy::RoundRobin, memory, 3);
            let routes = shares(equal.end_window(WINDOW, &loads(&[10, 80, 30])));
            assert_near(&routes, &[[0.0; 3], [0.16, 0.0, 0.16], [0.0; 3]]);
            let mut proportional = balancer(Policy::ProportionalShare, memory, 3);
            let routes = shares(proportional.end_window(WINDOW, &loads(&[10, 80, 30])));
            assert_near(&routes, &[[0.0; 3], [0.24, 0.0, 0.08], [0.0; 3]]);
        }
    }

    #[test]
    fn nothing_is_diverted_below_either_bound() {
        for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::Auto) {
            let mut balancer = balancer(policy, Memory::On { release: 0.05 }, 3);
            for percent in [[40, 10, 10], [90, 80, 85], [0, 0, 0]] {
                let routes = balancer.end_window(WINDOW, &loads(&percent));
                assert!(routes.iter().all(|route| route.diverted() == 0.0), "{percent:?}");
            }
            let routes = balancer.end_window(WINDOW, &loads(&[90, 79, 85]));
            let is_diverted = routes.iter().any(|route| route.diverted() > 0.0);
            assert_eq!(is_diverted, policy.diverts());
            balancer.set(Policy::None, Settings::default());
            let routes = balancer.end_window(WINDOW, &loads(&[90, 79, 85]));
            assert!(routes.iter().all(|route| route.diverted() == 0.0), "it is switched off");
        }
    }

    /// Loads of two cores of which the first has all 5,000 requests. Another core that executes
    /// them takes `times` as long.
    fn hot(route: &Route, times: u64) -> [Load; 2] {
        let (all, movable) = (WINDOW.0, WINDOW.0 / 10 * 6);
        let is_diverted = route.diverts_by_queue();
        let there = if is_diverted { movable * times } else { 0 };
        let load = |busy| Load { busy: Nanos(busy), ..Load::default() };
        let first = Load {
            movable: Nanos(if is_diverted { there } else { movable }),
            executed: Nanos(if is_diverted { 0 } else { movable }),
            commands: 500,
            depths: 5_000,
            diverted: if is_diverted { 500 } else { 0 },
            ..load(if is_diverted { all - movable } else { all })
        };
        [first, Load { executed: Nanos(there), taken: first.diverted, ..load(there) }]
    }

    #[test]
    fn auto_diverts_while_that_pays_and_another_policy_ends_it() {
        for (times, pays) in [(1, true), (2, false)] {
            let mut balancer = balancer(Policy::Auto, Memory::Off, 2);
            let mut route = Route::new(2);
            for _ in 0..10 {
                route = balancer.end_window(WINDOW, &hot(&route, times))[0].clone();
            }
            assert_eq!(route.diverts_by_queue(), pays, "{times} times as long");
            balancer.set(Policy::Connections, Settings::default());
            let routes = balancer.end_window(WINDOW, &hot(&route, times));
            assert_eq!(routes, [Route::new(2), Route::new(2)]);
        }
    }

    #[test]
    fn the_low_group_takes_no_more_than_it_lacks_to_the_mean() {
        // The mean is 0.88, and the third core can take 0.18. The others offer 0.2 of 0.97 each.
        let mut balancer = balancer(Policy::ProportionalShare, Memory::Off, 3);
        let routes = shares(balancer.end_window(WINDOW, &loads(&[97, 97, 70])));
        assert_near(&routes, &[[0.0, 0.0, 0.18], [0.0, 0.0, 0.18], [0.0; 3]]);
    }

    #[test]
    fn without_memory_each_window_starts_anew() {
        let mut balancer = balancer(Policy::ProportionalShare, Memory::Off, 3);
        for _ in 0..3 {
            let routes = shares(balancer.end_window(WINDOW, &loads(&[10, 80, 30])));
            assert_near(&routes[1..2], &[[0.24, 0.0, 0.08]]);
        }
        let routes = shares(balancer.end_window(WINDOW, &loads(&[40, 40, 40])));
        assert_near(&routes, &[[0.0; 3]; 3]);
    }

    #[test]
    fn with_memory_a_share_rises_while_the_core_is_above_the_mean_and_then_falls() {
        let mut balancer = balancer(Policy::ProportionalShare, Memory::On { release: 0.05 }, 3);
        balancer.end_window(WINDOW, &loads(&[10, 80, 30]));
        // The mean is 0.4 again. The core gives away 20 % of 0.6, all to the one below the mean.
        let routes = shares(balancer.end_window(WINDOW, &loads(&[10, 60, 50])));
        assert_near(&routes[1..2], &[[0.24 + 0.24, 0.0, 0.08]]);
        // It has 0.02 above the mean, less than 20 % of 0.42.
        let routes = shares(balancer.end_window(WINDOW, &loads(&[30, 42, 48])));
        let more = 0.02 / 0.5;
        assert_near(&routes[1..2], &[[0.48 + more, 0.0, 0.08]]);
        let routes = shares(balancer.end_window(WINDOW, &loads(&[40, 40, 40])));
        assert_near(&routes[1..2], &[[0.95 * (0.48 + more), 0.0, 0.95 * 0.08]]);
        // It is above the mean, first with an overloaded core and then without.
        let routes = shares(balancer.end_window(WINDOW, &loads(&[40, 42, 40])));
        assert_near(&routes[1..2], &[[0.95 * (0.48 + more), 0.0, 0.95 * 0.08]]);
        for _ in 0..200 {
            balancer.end_window(WINDOW, &loads(&[1, 2, 1]));
        }
        assert_eq!(balancer.end_window(WINDOW, &loads(&[1, 2, 1]))[1], Route::new(3));
    }

    #[test]
    fn a_core_takes_back_what_it_diverts_before_the_other_diverts_to_it() {
        let mut balancer = balancer(Policy::ProportionalShare, Memory::On { release: 0.0 }, 3);
        balancer.end_window(WINDOW, &loads(&[60, 30, 30]));
        let routes = shares(balancer.end_window(WINDOW, &loads(&[40, 40, 40])));
        assert_near(&routes, &[[0.0, 0.12, 0.12], [0.0; 3], [0.0; 3]]);
        // The second core has 0.1 above the mean, and the first takes back 0.06 of it.
        let routes = shares(balancer.end_window(WINDOW, &loads(&[30, 50, 40])));
        assert_near(&routes, &[[0.0, 0.0, 0.12], [0.08, 0.0, 0.0], [0.0; 3]]);
    }
}
