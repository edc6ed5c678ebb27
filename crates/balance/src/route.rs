/// The smallest share that is kept: one request of 10,000.
const LEAST: f64 = 1e-4;

/// Which shares of the requests that a core receives other cores execute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The share of each core, from 0 to 1. Together at most 1; the core itself has 0.
    shares: Vec<f64>,
}

impl Route {
    /// A route of a core that executes all its requests, one of `cores`.
    pub(crate) fn new(cores: usize) -> Self {
        Self { shares: vec![0.0; cores] }
    }

    /// Returns the share of requests that core `to` executes.
    pub fn share(&self, to: usize) -> f64 {
        self.shares[to]
    }

    /// Returns the share of requests that other cores execute.
    pub fn diverted(&self) -> f64 {
        self.shares.iter().sum()
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
/// Each core has a balance. A request adds the core's share to it, and the request goes to the core
/// that has the highest balance, if this is at least 1, which it then pays.
#[derive(Clone, Debug)]
pub struct Router {
    route: Route,
    /// The diverted share of the route.
    diverted: f64,
    /// Diverted requests that are due, less than 2.
    due: f64,
    /// The same for each core.
    balances: Vec<f64>,
}

impl Router {
    /// A router of a core that executes all its requests, one of `cores`.
    pub fn new(cores: usize) -> Self {
        Self { route: Route::new(cores), diverted: 0.0, due: 0.0, balances: vec![0.0; cores] }
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

    /// Returns the core for the movable stages of the next request. `None`: the core that received
    /// it.
    #[inline]
    pub fn choose(&mut self) -> Option<usize> {
        if self.diverted == 0.0 {
            return None;
        }
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

    #[test]
    fn each_core_gets_its_share_of_any_number_of_requests() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let cores = 2 + usize::try_from(rng.below(7)).unwrap();
            let route = random_route(&mut rng, cores);
            let (mut router, mut counts) = (Router::new(cores), vec![0.0; cores]);
            router.set(&route);
            for requests in 1..2_000 {
                if let Some(to) = router.choose() {
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
        let mut router = Router::new(3);
        router.set(&route);
        assert!((0..100).all(|_| router.choose().is_some()));
        assert!((route.lower(1, 0.9) - 0.7).abs() < 1e-12, "it diverts no more than that");
        route.keep(0.0);
        router.set(&route);
        assert!((0..100).all(|_| router.choose().is_none()));
    }
}
