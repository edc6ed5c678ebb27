use crate::level::MESSAGES;
use base::Nanos;
use std::iter::successors;

/// The smallest share that is kept: one request of 10,000.
const LEAST: f64 = 1e-4;

/// While no move is worth it, moves are saved up to this number: as many as requests arrive
/// together.
const SAVED_MAX: f64 = 32.0;

/// Which of the requests that a core receives other cores execute: shares of them, and with the
/// policy `auto` those for which more work is queued on this core than on another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The share of each core, from 0 to 1. Together at most 1; the core itself has 0.
    shares: Vec<f64>,
    /// With the policy `auto`.
    costs: Option<Costs>,
    /// Which requests go where the least work is queued. Where some may, there are costs.
    by_queue: ByQueue,
}

/// Which requests of a core go where the least work is queued.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByQueue {
    /// The share that goes to another core, however much is queued on their own.
    pub(crate) must: f64,
    /// The share that may go to another core.
    pub(crate) may: f64,
    /// Whether each core takes some.
    pub(crate) takes: Vec<bool>,
}

/// What a request of a core takes, on the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The stages that stay on the core.
    pub fixed: Nanos,
    /// The movable stages.
    pub movable: Nanos,
}

impl Route {
    /// A route of a core that executes all its requests, one of `cores`.
    pub(crate) fn new(cores: usize) -> Self {
        Self { shares: vec![0.0; cores], costs: None, by_queue: ByQueue::default() }
    }

    /// Returns the share of requests that core `to` executes.
    pub fn share(&self, to: usize) -> f64 {
        self.shares[to]
    }

    /// Returns the share of requests that other cores execute.
    pub fn diverted(&self) -> f64 {
        self.shares.iter().sum()
    }

    /// Returns whether some requests may go where the least work is queued.
    pub(crate) fn diverts_by_queue(&self) -> bool {
        self.by_queue.may > 0.0
    }

    /// Returns which requests go where the least work is queued.
    pub(crate) fn by_queue(&self) -> &ByQueue {
        &self.by_queue
    }

    /// Sends requests, which take `costs`, where the least work is queued.
    pub(crate) fn set_by_queue(&mut self, costs: Costs, by_queue: ByQueue) {
        assert!(by_queue.must <= by_queue.may, "what must move may move");
        self.keep(0.0);
        assert!(by_queue.may == 0.0 || by_queue.takes.contains(&true), "some core takes some");
        (self.costs, self.by_queue) = (Some(costs), by_queue);
    }

    /// Sends requests by the shares.
    pub(crate) fn set_by_shares(&mut self) {
        (self.costs, self.by_queue) = (None, ByQueue::default());
    }

    /// Keeps the part `kept` of all shares, from 0 to 1. Shares below [`LEAST`] become 0.
    pub(crate) fn keep(&mut self, kept: f64) {
        for share in &mut self.shares {
            let part = *share * kept;
            *share = if part < LEAST { 0.0 } else { part };
        }
    }

    /// Diverts `more` of the requests to core `to`, at most those that are not diverted.
    pub(crate) fn raise(&mut self, to: usize, more: f64) {
        self.shares[to] += more.min(1.0 - self.diverted()).max(0.0);
    }

    /// Diverts `less` of the requests to core `to`, at most all. Returns by how much less.
    pub(crate) fn lower(&mut self, to: usize, less: f64) -> f64 {
        let lowered = less.min(self.shares[to]);
        self.shares[to] -= lowered;
        lowered
    }
}

/// Deals out the requests of a core by its [`Route`].
///
/// By shares, each core has a balance. A request adds the core's share to it, and the request goes
/// to the core that has the highest balance, if this is at least 1, which it then pays.
#[derive(Clone, Debug)]
pub struct Router {
    /// The core that receives the requests.
    core: usize,
    route: Route,
    /// The diverted share of the route.
    diverted: f64,
    /// Diverted requests that are due, less than 2.
    due: f64,
    /// The same for each core.
    balances: Vec<f64>,
    /// How long the work takes that is queued on each core, when requests arrived last.
    queues: Vec<Nanos>,
    /// The core that last had the shortest queue.
    last: usize,
    /// How many requests must and may move, by the shares. Both are at most [`SAVED_MAX`].
    must: f64,
    may: f64,
}

impl Router {
    /// A router of `core`, one of `cores`. The core executes all its requests.
    pub fn new(core: usize, cores: usize) -> Self {
        Self {
            core,
            route: Route::new(cores),
            diverted: 0.0,
            due: 0.0,
            balances: vec![0.0; cores],
            queues: vec![Nanos::ZERO; cores],
            last: core,
            must: 0.0,
            may: 0.0,
        }
    }

    /// Deals out later requests by `route`.
    ///
    /// # Panics
    /// If the route is of another number of cores.
    pub fn set(&mut self, route: &Route) {
        assert_eq!(route.shares.len(), self.balances.len(), "a route has a share for each core");
        self.route.clone_from(route);
        self.diverted = route.diverted();
    }

    /// Writes into `places` the cores for the movable stages of requests that have arrived
    /// together. `None`: the core that received them, as all are before. Returns whether some go to
    /// others.
    ///
    /// `look` is called if the queues decide: it writes how long the work takes that is queued on
    /// each core, on the core itself without these requests.
    #[inline]
    pub fn place(&mut self, places: &mut [Option<usize>], look: impl FnOnce(&mut [Nanos])) -> bool {
        if self.route.by_queue.may > 0.0 {
            look(&mut self.queues);
            self.place_by_queue(places)
        } else if self.diverted > 0.0 {
            for place in &mut *places {
                *place = self.next_by_share();
            }
            places.iter().any(Option::is_some)
        } else {
            false
        }
    }

    /// A request moves if the work that is queued here takes longer than that of another core, by
    /// more than its messages and its own movable stages.
    fn place_by_queue(&mut self, places: &mut [Option<usize>]) -> bool {
        let costs = self.route.costs.expect("the queues decide by what requests take");
        let margin = MESSAGES + MESSAGES + costs.movable;
        let ByQueue { must, may, .. } = self.route.by_queue;
        self.queues[self.core] += Nanos(costs.fixed.0 * places.len() as u64);
        let mut is_diverted = false;
        for place in places {
            self.must = (self.must + must).min(SAVED_MAX);
            self.may = (self.may + may).min(SAVED_MAX);
            let shortest = self.shortest();
            let is_shorter = self.queues[shortest] + margin < self.queues[self.core];
            if self.must >= 1.0 || (self.may >= 1.0 && is_shorter) {
                self.must = (self.must - 1.0).max(-SAVED_MAX);
                self.may -= 1.0;
                self.queues[shortest] += costs.movable + MESSAGES;
                self.queues[self.core] += MESSAGES;
                (*place, is_diverted) = (Some(shortest), true);
            } else {
                self.queues[self.core] += costs.movable;
            }
        }
        is_diverted
    }

    /// Returns what a request of the core takes, with the policy `auto`.
    pub fn costs(&self) -> Option<Costs> {
        self.route.costs
    }

    /// Returns the core with the shortest queue of those that take some. Of equal ones, each has
    /// its turn.
    fn shortest(&mut self) -> usize {
        let cores = self.queues.len();
        let after = |core: usize| (core + 1) % cores;
        let others = successors(Some(after(self.last)), |core| Some(after(*core))).take(cores);
        let others = others.filter(|core| self.route.by_queue.takes[*core]);
        let shortest = others.min_by_key(|core| self.queues[*core]);
        self.last = shortest.expect("where requests may move, a core takes some");
        self.last
    }

    /// Returns the core for the next request, by the shares.
    fn next_by_share(&mut self) -> Option<usize> {
        self.due += self.diverted;
        for (balance, share) in self.balances.iter_mut().zip(&self.route.shares) {
            *balance += share;
        }
        if self.due < 1.0 {
            return None;
        }
        self.due -= 1.0;
        let highest = |one: &usize, other: &usize| {
            // The first of two that are equal.
            self.balances[*one].total_cmp(&self.balances[*other]).then(other.cmp(one))
        };
        let cores = (0..self.balances.len()).filter(|core| self.route.shares[*core] > 0.0);
        let to = cores.max_by(highest).expect("a diverted share is that of some core");
        self.balances[to] -= 1.0;
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A random route of one of `cores`, which diverts up to all requests.
    #[expect(clippy::cast_precision_loss, reason = "there are few cores")]
    fn random_route(rng: &mut Rng, cores: usize) -> Route {
        let mut route = Route::new(cores);
        let most = 2.0 * rng.unit() / cores as f64;
        (1..cores).for_each(|to| route.raise(to, most * rng.unit()));
        route
    }

    /// Returns where the next request goes.
    fn next(router: &mut Router) -> Option<usize> {
        let mut place = [None];
        router.place(&mut place, |_| panic!("no queue decides"));
        place[0]
    }

    #[test]
    fn each_core_gets_its_share_of_any_number_of_requests() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let cores = 2 + usize::try_from(rng.below(7)).unwrap();
            let route = random_route(&mut rng, cores);
            let (mut router, mut counts) = (Router::new(0, cores), vec![0.0; cores]);
            router.set(&route);
            for requests in 1..2_000 {
                if let Some(to) = next(&mut router) {
                    counts[to] += 1.0;
                }
                let (diverted, requests) = (counts.iter().sum::<f64>(), f64::from(requests));
                assert!((diverted - requests * route.diverted()).abs() < 1.0 + 1e-6);
                for (core, count) in counts.iter().enumerate() {
                    let off = count - requests * route.share(core);
                    assert!(off.abs() < 2.0, "core {core} of {route:?}: {off}");
                }
            }
            assert!(counts[0] < 1.0, "a core diverts nothing to itself");
        }
    }

    #[test]
    fn a_route_diverts_at_most_all_requests() {
        let mut route = Route::new(3);
        route.raise(1, 0.7);
        route.raise(2, 0.7);
        assert!((route.share(1) - 0.7).abs() < 1e-12 && (route.share(2) - 0.3).abs() < 1e-12);
        let mut router = Router::new(0, 3);
        router.set(&route);
        assert!((0..100).all(|_| next(&mut router).is_some()));
        assert!((route.lower(1, 0.9) - 0.7).abs() < 1e-12, "it diverts no more than that");
        route.keep(0.0);
        router.set(&route);
        assert!((0..100).all(|_| next(&mut router).is_none()));
    }

    /// A router that sends requests where the least work is queued. They take 2 us of their core,
    /// and 10 us of any.
    fn by_queue(cores: usize) -> Router {
        let mut route = Route::new(cores);
        let costs = Costs { fixed: Nanos::from_micros(2), movable: Nanos::from_micros(10) };
        let takes = (0..cores).map(|core| core > 0).collect();
        route.set_by_queue(costs, ByQueue { must: 0.0, may: 1.0, takes });
        let mut router = Router::new(0, cores);
        router.set(&route);
        router
    }

    /// Returns how many of `count` requests go to each core, of which the first receives them, with
    /// work of so many microseconds queued.
    fn dealt(router: &mut Router, count: usize, queued: &[u64]) -> Vec<usize> {
        let mut places = vec![None; count];
        router.place(&mut places, |queues| {
            let all = queues.iter_mut().zip(queued);
            all.for_each(|(queue, micros)| *queue = Nanos::from_micros(*micros));
        });
        let on = |core| places.iter().filter(|place| place.unwrap_or(0) == core).count();
        (0..queued.len()).map(on).collect()
    }

    #[test]
    fn requests_that_arrive_together_end_together() {
        // 30 requests take 60 us of the first core. With 12 of them it needs 180 us, and the other
        // one 185 us for 18.
        let found = dealt(&mut by_queue(2), 30, &[0, 0]);
        assert!(found[0] <= 13 && found[1] <= 18 && found.iter().sum::<usize>() == 30, "{found:?}");
        // The first core needs its time for what cannot move.
        assert!(dealt(&mut by_queue(6), 100, &[0; 6])[0] <= 3);
        assert_eq!(dealt(&mut by_queue(2), 30, &[0, 10_000]), [30, 0]);
    }

    /// Many requests between two looks at the queues are not all sent to the core whose queue was
    /// the shortest.
    #[test]
    fn requests_are_spread_although_the_queues_are_looked_at_once() {
        let found = dealt(&mut by_queue(4), 300, &[10_000, 3, 1, 2]);
        assert_eq!(found[0], 0);
        let (most, least) = (found[1..].iter().max().unwrap(), found[1..].iter().min().unwrap());
        assert!(most - least <= 1, "{found:?}");
    }

    #[test]
    fn equal_queues_have_their_turns() {
        let mut router = by_queue(4);
        let mut all = [0; 4];
        for _ in 0..300 {
            let found = dealt(&mut router, 1, &[100, 0, 0, 0]);
            all.iter_mut().zip(found).for_each(|(all, more)| *all += more);
        }
        assert_eq!(all[0], 0);
        assert!(all[1..].iter().all(|count| (95..=105).contains(count)), "{all:?}");
    }

    #[test]
    fn a_request_stays_where_it_would_wait_for_less_than_a_move() {
        assert_eq!(dealt(&mut by_queue(2), 1, &[8, 0]), [1, 0]);
        assert_eq!(dealt(&mut by_queue(2), 1, &[9, 0]), [0, 1]);
    }

    #[test]
    fn shares_bound_what_the_queues_decide() {
        let costs = Costs { fixed: Nanos::from_micros(2), movable: Nanos::from_micros(10) };
        let mut route = Route::new(3);
        let takes = vec![false, true, true];
        route.set_by_queue(costs, ByQueue { must: 0.25, may: 0.5, takes });
        let mut router = Router::new(0, 3);
        router.set(&route);
        for (queued, share) in [([10_000, 0, 0], 50), ([0, 10_000, 10_000], 25)] {
            dealt(&mut router, 200, &queued);
            let found = dealt(&mut router, 400, &queued);
            assert_eq!(found[1] + found[2], 4 * share, "{found:?}");
        }
    }

    #[test]
    fn a_core_that_takes_none_gets_none_however_short_its_queue_is() {
        let costs = Costs { fixed: Nanos::from_micros(2), movable: Nanos::from_micros(10) };
        let mut route = Route::new(3);
        let takes = vec![false, false, true];
        route.set_by_queue(costs, ByQueue { must: 0.0, may: 1.0, takes });
        let mut router = Router::new(0, 3);
        router.set(&route);
        let found = dealt(&mut router, 100, &[10_000, 0, 50]);
        assert!(found[1] == 0 && found[2] > 0, "{found:?}");
    }
}
