//! The policy `auto`: which cores send their requests where the least work is queued.

use crate::level::{Demand, MESSAGES, lowest_level};
use crate::load::Load;
use crate::route::{ByQueue, Costs, Route};
use crate::settings::Settings;
use base::Nanos;

/// A difference between cores is chance if it is below so many standard deviations.
const DEVIATIONS: f64 = 3.0;

/// A core begins to divert if its outstanding requests take more than this times the mean of all
/// cores.
const BEGIN: f64 = 1.5;

/// It diverts until they take less than this times the mean.
const END: f64 = 1.25;

/// A core that is busy for a larger share of the time has none left.
const FULL: f64 = 0.98;

/// In each window in which all cores are full, the share of requests that may move is multiplied
/// by this.
const FALL: f64 = 0.9;

/// In each window in which a core is not full, it is multiplied by this.
const RISE: f64 = 1.2;

/// The share of the time of requests that messages may take while all cores are full.
const MESSAGES_MAX: f64 = 0.02;

/// Which cores have too much to do. Requests may wait for two reasons, and each shows where the
/// other does not:
///
/// - the stages of a core take more of the time than those of another one. That shows unless
///   clients wait for answers until all cores are busy all the time;
/// - more requests are outstanding on a core than on another one. That shows only if many are.
///
/// Both are taken as they would be without diversion, so that what `auto` does is no reason to stop
/// doing it.
pub(crate) struct Plan {
    cores: Vec<Core>,
    /// See [`lowest_level`].
    level: f64,
    /// The utilisation of the least busy core.
    least_busy: f64,
}

/// How it shows that a core has too much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// It does not.
    None,
    /// Its stages take more of the time than the level.
    Above,
    /// Its outstanding requests take more time than those of other cores.
    Deep,
}

/// What the plan knows of a core.
#[derive(Clone, Copy, Debug)]
struct Core {
    demand: Demand,
    costs: Costs,
    /// The mean number of its outstanding requests.
    depth: f64,
}

impl Plan {
    /// Plans for cores that had these loads in a window.
    pub(crate) fn of(window: Nanos, loads: &[Load]) -> Self {
        let mut cores: Vec<Core> = loads.iter().map(|load| Core::of(*load, window)).collect();
        // What else a core does is no cost of its requests.
        let fixed = cores.iter().filter(|core| core.demand.commands > 0).map(|it| it.costs.fixed);
        let fixed = fixed.min().unwrap_or_default();
        for core in &mut cores {
            core.costs.fixed = fixed;
        }
        let demands: Vec<Demand> = cores.iter().map(|core| core.demand).collect();
        let least_busy = loads.iter().map(|load| load.utilisation(window)).fold(1.0, f64::min);
        Self { level: lowest_level(&demands), cores, least_busy }
    }

    /// Returns which part of the capacity without diversion a diversion that begins now must reach:
    /// a little more, or a little less if all cores are full and it only shortens waits.
    pub(crate) fn least_capacity(&self) -> f64 {
        if self.least_busy >= FULL { 1.0 - 2.0 * MESSAGES_MAX } else { 1.0 + MESSAGES_MAX }
    }

    /// Returns for each core, whose routes are these, which cores take some of its requests: none
    /// if it has not too much to do.
    pub(crate) fn takers(&self, settings: &Settings, routes: &[Route]) -> Vec<Vec<bool>> {
        let is_diverting = routes.iter().any(Route::diverts_by_queue);
        let uneven = self.cores.iter().any(|core| self.is_above(core, settings, is_diverting));
        let signs: Vec<Sign> =
            self.cores.iter().zip(routes).map(|it| self.sign(it, uneven, settings)).collect();
        let of = |sign: &Sign| match sign {
            Sign::None => vec![false; signs.len()],
            Sign::Above => self.cores.iter().map(|it| it.demand.room(self.level) > 0.0).collect(),
            Sign::Deep => signs.iter().map(|other| *other == Sign::None).collect(),
        };
        signs.iter().map(of).collect()
    }

    /// Changes `routes`, so that these cores take requests.
    pub(crate) fn apply(&self, takers: Vec<Vec<bool>>, routes: &mut [Route]) {
        for ((core, takes), route) in self.cores.iter().zip(takers).zip(routes) {
            let by_queue = if takes.contains(&true) {
                self.by_queue(core, route.by_queue().may, takes)
            } else {
                ByQueue::default()
            };
            route.set_by_queue(core.costs, by_queue);
        }
    }

    /// Returns the sign by which a core, whose route is this one, has too much to do.
    fn sign(&self, (core, route): (&Core, &Route), uneven: bool, settings: &Settings) -> Sign {
        if core.demand.all <= settings.overload {
            Sign::None
        } else if uneven && core.demand.diverted(self.level) > 0.0 {
            Sign::Above
        } else if self.is_deep(core, route.by_queue().may > 0.0) {
            Sign::Deep
        } else {
            Sign::None
        }
    }

    /// Returns which of the core's requests move, of which the share `may` could before, to the
    /// cores that `takes` names.
    ///
    /// If all cores are busy all the time, moves shorten waits, and their messages take time from
    /// requests. So the share falls, until a core has time again or messages take [`MESSAGES_MAX`]
    /// of the time of requests.
    fn by_queue(&self, core: &Core, may: f64, takes: Vec<bool>) -> ByQueue {
        let is_full = self.least_busy >= FULL;
        if is_full {
            return ByQueue { must: 0.0, may: (FALL * may).max(core.messages_max()), takes };
        }
        let may = if may == 0.0 { 1.0 } else { (RISE * may).min(1.0) };
        let needed = core.demand.diverted(self.level);
        let must = if needed > 0.0 { needed / core.demand.movable } else { 0.0 };
        ByQueue { must: must.min(may), may, takes }
    }

    /// Returns whether the core would be relieved by half of `spread`, and by more than by chance,
    /// or by half of that if there is diversion already.
    fn is_above(&self, core: &Core, settings: &Settings, is_diverting: bool) -> bool {
        let least = (settings.spread / 2.0).max(DEVIATIONS * core.deviation());
        let relief = core.demand.all - core.demand.left(self.level);
        relief >= if is_diverting { least / 2.0 } else { least }
    }

    /// Returns whether more work is outstanding on the core than on others, by more than what a
    /// move takes.
    #[expect(clippy::cast_precision_loss, reason = "times of a few commands, and few cores")]
    fn is_deep(&self, core: &Core, is_diverting: bool) -> bool {
        let mean = self.cores.iter().map(Core::offered).sum::<f64>() / self.cores.len() as f64;
        let move_cost = 2 * MESSAGES.0 + core.costs.movable.0;
        let times = if is_diverting { END } else { BEGIN };
        core.demand.can_move()
            && core.offered() > times * mean
            && core.offered() > mean + move_cost as f64
    }
}

impl Core {
    /// Returns the standard deviation of its demand, if its requests are independent and their
    /// times exponential.
    #[expect(clippy::cast_precision_loss, reason = "requests of a window, far below 2^53")]
    fn deviation(&self) -> f64 {
        self.demand.all / (self.demand.commands.max(1) as f64).sqrt()
    }

    /// Returns the share of requests whose messages take [`MESSAGES_MAX`] of the time of all.
    #[expect(clippy::cast_precision_loss, reason = "times of a request")]
    fn messages_max(&self) -> f64 {
        let all = (self.costs.fixed + self.costs.movable).0 as f64;
        (MESSAGES_MAX * all / (2 * MESSAGES.0) as f64).min(1.0)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times of a window and its requests, far below 2^53"
    )]
    fn of(load: Load, window: Nanos) -> Self {
        let demand = Demand::of(load, window);
        let requests = load.commands.max(1) as f64;
        let each = |part: f64| Nanos((part * window.0 as f64 / requests) as u64);
        let costs =
            Costs { fixed: each(demand.all - demand.movable), movable: each(demand.movable) };
        Self { demand, costs, depth: load.depths as f64 / requests }
    }

    /// Returns the mean time that its outstanding requests take, in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "times of a request")]
    fn offered(&self) -> f64 {
        self.depth * (self.costs.fixed + self.costs.movable).0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Router;

    const WINDOW: Nanos = Nanos::from_millis(100);

    /// Requests in each window of a core.
    const COUNT: u64 = 5_000;

    /// Requests of a core: what all their stages and the movable ones take, in percent of a window,
    /// and how many are outstanding.
    #[derive(Clone, Copy)]
    struct Requests(u64, u64, u64);

    fn percent(percent: u64) -> Nanos {
        Nanos(WINDOW.0 / 100 * percent)
    }

    /// The loads of cores of which the first diverts a share of its requests, in percent, to the
    /// last.
    fn loads(requests: &[Requests], diverted: u64) -> Vec<Load> {
        let load = |Requests(all, movable, depth): &Requests| Load {
            busy: percent(*all),
            movable: percent(*movable),
            executed: percent(*movable),
            commands: COUNT,
            depths: COUNT * depth,
            ..Load::default()
        };
        let mut loads: Vec<Load> = requests.iter().map(load).collect();
        let (count, time) = (COUNT * diverted / 100, Nanos(loads[0].movable.0 * diverted / 100));
        let messages = Nanos(count * MESSAGES.0);
        let [first, .., last] = &mut loads[..] else { panic!("there are several cores") };
        (first.diverted, last.taken) = (count, count);
        first.executed -= time;
        last.executed += time;
        first.busy -= time;
        last.busy += time;
        first.busy += messages;
        last.busy += messages;
        loads
    }

    fn apply(loads: &[Load], routes: &mut [Route]) -> Vec<bool> {
        let plan = Plan::of(WINDOW, loads);
        plan.apply(plan.takers(&Settings::default(), routes), routes);
        routes.iter().map(|route| route.by_queue().may > 0.0).collect()
    }

    fn routes(cores: usize) -> Vec<Route> {
        vec![Route::new(cores); cores]
    }

    #[test]
    fn a_busy_core_diverts_until_its_own_requests_are_no_more_than_those_of_others() {
        let mut routes = routes(3);
        let requests = [Requests(80, 60, 4), Requests(30, 20, 2), Requests(10, 5, 1)];
        assert_eq!(apply(&loads(&requests, 0), &mut routes), [true, false, false]);
        for diverted in [90, 60, 40, 55, 50] {
            let open = apply(&loads(&requests, diverted), &mut routes);
            assert_eq!(open, [true, false, false], "{diverted} % diverted change no demand");
        }
        let even = [Requests(40, 30, 2); 3];
        assert_eq!(apply(&loads(&even, 40), &mut routes), [false; 3]);
    }

    #[test]
    fn among_busy_cores_the_one_with_the_most_outstanding_diverts() {
        let mut routes = routes(3);
        let requests =
            |depth| [Requests(100, 60, depth), Requests(100, 60, 32), Requests(100, 60, 32)];
        assert_eq!(apply(&loads(&requests(32), 0), &mut routes), [false; 3]);
        let even = apply(&loads(&requests(60), 0), &mut routes);
        assert_eq!(even, [false; 3], "60 of a mean of 41");
        assert_eq!(apply(&loads(&requests(70), 0), &mut routes), [true, false, false]);
        assert_eq!(apply(&loads(&requests(60), 30), &mut routes), [true, false, false]);
        assert_eq!(apply(&loads(&requests(40), 30), &mut routes), [false; 3]);
    }

    #[test]
    fn small_differences_and_light_loads_divert_nothing() {
        let near = [Requests(62, 40, 2), Requests(60, 40, 2), Requests(55, 40, 2)];
        let light = [Requests(39, 30, 9), Requests(0, 0, 0), Requests(0, 0, 0)];
        for requests in [near, light] {
            assert_eq!(apply(&loads(&requests, 0), &mut routes(3)), [false; 3]);
        }
    }

    /// A few long requests differ by chance, which is no reason to divert.
    #[test]
    fn differences_by_chance_divert_nothing() {
        let requests = [Requests(80, 40, 1), Requests(50, 25, 1)];
        let many = loads(&requests, 0);
        assert_eq!(apply(&many, &mut routes(2)), [true, false]);
        let few: Vec<Load> =
            many.iter().map(|load| Load { commands: 50, depths: 50, ..*load }).collect();
        assert_eq!(apply(&few, &mut routes(2)), [false; 2], "80 % +- 11 %");
    }

    /// 5,000 requests with movable stages of 1.5 % take 300 ns each, as their messages.
    #[test]
    fn requests_whose_messages_take_as_long_stay() {
        for requests in [
            [Requests(90, 1, 2), Requests(10, 1, 1)],
            [Requests(100, 1, 200), Requests(100, 1, 10)],
        ] {
            assert_eq!(apply(&loads(&requests, 0), &mut routes(2)), [false; 2]);
        }
    }

    /// The second core has 10 requests and is busy with something else.
    #[test]
    fn what_else_a_core_does_is_no_cost_of_requests_and_leaves_no_room_for_them() {
        let mut loads = loads(&[Requests(80, 60, 4), Requests(1, 1, 1), Requests(10, 5, 1)], 0);
        loads[1] = Load { busy: percent(90), commands: 10, depths: 10, ..loads[1] };
        let mut routes = routes(3);
        assert_eq!(apply(&loads, &mut routes), [true, true, false], "also its own may leave it");
        assert_eq!(routes[0].by_queue().takes, [false, false, true]);
        // 5 % of 100 ms for 5,000 requests, as on the third core.
        let router = |route: &Route| {
            let mut router = Router::new(0, 3);
            router.set(route);
            router.costs().unwrap().fixed
        };
        assert!(routes.iter().all(|route| router(route) == Nanos::from_micros(1)));
    }

    /// 5,000 requests in 100 ms take 20 us each, and the messages of one 600 ns.
    #[test]
    fn where_all_cores_are_full_messages_take_2_percent() {
        let mut routes = routes(2);
        let full = loads(&[Requests(100, 60, 60), Requests(100, 60, 10)], 0);
        let least = 0.02 * 20_000.0 / 600.0;
        apply(&full, &mut routes);
        assert!((routes[0].by_queue().may - least).abs() < 1e-3, "it begins there");
        let idle = [full[0], Load { busy: percent(97), ..full[1] }];
        for _ in 0..3 {
            apply(&idle, &mut routes);
        }
        assert!((routes[0].by_queue().may - 1.0).abs() < 1e-9, "the other core has time");
        for _ in 0..30 {
            apply(&full, &mut routes);
        }
        assert!((routes[0].by_queue().may - least).abs() < 1e-3, "it falls");
    }
}
