use base::Nanos;
use std::collections::VecDeque;
use std::num::NonZero;

/// Virtual time of one nanosecond of service of a flow with weight 1. It bounds what rounding adds:
/// less than 1/4,096 ns a charge.
const SCALE: u128 = 1 << 12;

/// Start-time fair queueing: decides which member of which flow is served next.
///
/// A flow has a weight and any number of members. While several flows have waiting members, each
/// gets service in proportion to its weight. A flow that was idle starts at the present virtual
/// time, so it has no credit for the time before.
#[derive(Debug)]
pub struct FairQueue<M> {
    flows: Vec<Flow<M>>,
    /// The virtual start time of the service that began last.
    now: u128,
}

#[derive(Debug)]
struct Flow<M> {
    /// Virtual time up to which it has been served.
    served_to: u128,
    waiting: VecDeque<M>,
}

impl<M: PartialEq> FairQueue<M> {
    /// Creates a queue of `flows` flows without members.
    pub fn new(flows: usize) -> Self {
        let flow = |_| Flow { served_to: 0, waiting: VecDeque::new() };
        Self { flows: (0..flows).map(flow).collect(), now: 0 }
    }

    /// Returns whether no member waits.
    pub fn is_empty(&self) -> bool {
        self.flows.iter().all(|flow| flow.waiting.is_empty())
    }

    /// Returns whether a member of this flow waits.
    pub fn is_waiting(&self, flow: usize) -> bool {
        !self.flows[flow].waiting.is_empty()
    }

    /// Returns the flows with waiting members.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        let flows = self.flows.iter().enumerate();
        flows.filter(|(_, flow)| !flow.waiting.is_empty()).map(|(place, _)| place)
    }

    /// Adds a member behind those of its flow.
    pub fn push(&mut self, flow: usize, member: M) {
        let flow = &mut self.flows[flow];
        if flow.waiting.is_empty() {
            flow.served_to = flow.served_to.max(self.now);
        }
        flow.waiting.push_back(member);
    }

    /// Removes a waiting member. Does nothing if it does not wait.
    pub fn remove(&mut self, flow: usize, member: &M) {
        self.flows[flow].waiting.retain(|other| other != member);
    }

    /// Removes and returns the next member of the flows that `may` be served, with its flow. To the
    /// others that time is one in which they were idle.
    pub fn pop(&mut self, mut may: impl FnMut(usize) -> bool) -> Option<(usize, M)> {
        let places = (0..self.flows.len()).filter(|place| self.is_waiting(*place) && may(*place));
        let place = places.min_by_key(|place| self.flows[*place].served_to)?;
        self.now = self.now.max(self.flows[place].served_to);
        for (other, flow) in self.flows.iter_mut().enumerate() {
            if !flow.waiting.is_empty() && !may(other) {
                flow.served_to = flow.served_to.max(self.now);
            }
        }
        self.flows[place].waiting.pop_front().map(|member| (place, member))
    }

    /// Charges a flow for service that took this time.
    pub fn charge(&mut self, flow: usize, time: Nanos, weight: NonZero<u32>) {
        self.flows[flow].served_to += u128::from(time.0) * SCALE / u128::from(weight.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn weight(weight: u64) -> NonZero<u32> {
        u32::try_from(weight).ok().and_then(NonZero::new).unwrap()
    }

    /// Flows whose members wait again at once after each service.
    struct Backlog {
        queue: FairQueue<u64>,
        weights: Vec<u64>,
        served: Vec<u64>,
        rng: Rng,
        cost_max: u64,
    }

    impl Backlog {
        /// Creates flows of these weights and numbers of members.
        fn new(flows: &[(u64, u64)], cost_max: u64, seed: u64) -> Self {
            let mut queue = FairQueue::new(flows.len());
            for (place, (_, members)) in flows.iter().enumerate() {
                (0..*members).for_each(|member| queue.push(place, member));
            }
            let weights = flows.iter().map(|(weight, _)| *weight).collect();
            let served = vec![0; flows.len()];
            Self { queue, weights, served, rng: Rng::new(seed), cost_max }
        }

        /// Serves one member for a random time.
        fn serve(&mut self) {
            let (flow, member) = self.queue.pop(|_| true).unwrap();
            let cost = 1 + self.rng.below(self.cost_max);
            self.served[flow] += cost;
            self.queue.charge(flow, Nanos(cost), weight(self.weights[flow]));
            self.queue.push(flow, member);
        }
    }

    #[test]
    fn backlogged_flows_share_by_weight_to_within_one_service_each() {
        let mut rng = Rng::new(7);
        for seed in 0..200 {
            let mut flow = || (1 + rng.below(9), 1 + rng.below(20));
            let flows = [(1, 1), (3, 8), flow(), flow()];
            let mut backlog = Backlog::new(&flows, 1_000, seed);
            for _ in 0..2_000 {
                backlog.serve();
                for (a, b) in [(0, 1), (1, 2), (2, 3), (0, 3)] {
                    let [served_a, served_b] = [a, b].map(|at| i128::from(backlog.served[at]));
                    let [of_a, of_b] = [a, b].map(|at| i128::from(flows[at].0));
                    // |served_a / of_a - served_b / of_b| <= 1,000 / of_a + 1,000 / of_b; each
                    // charge may be rounded down by 1/4,096 ns.
                    let difference = (served_a * of_b - served_b * of_a).abs();
                    assert!(difference <= 1_001 * (of_a + of_b), "{flows:?}: {difference}");
                }
            }
        }
    }

    #[test]
    fn flow_that_was_idle_has_no_credit() {
        let mut backlog = Backlog::new(&[(1, 1), (1, 0)], 1, 1);
        (0..1_000).for_each(|_| backlog.serve());
        backlog.queue.push(1, 0);
        backlog.served = vec![0, 0];
        (0..100).for_each(|_| backlog.serve());
        assert!(backlog.served[1].abs_diff(50) <= 1, "{:?}", backlog.served);
    }

    #[test]
    fn flow_that_has_been_alone_owes_nothing() {
        let mut backlog = Backlog::new(&[(1, 1), (1, 0)], 1, 1);
        (0..1_000).for_each(|_| backlog.serve());
        assert_eq!(backlog.served[0], 1_000, "a flow that is alone gets all service");
        (0..5).for_each(|_| backlog.queue.push(1, 0));
        (0..5).for_each(|_| backlog.serve());
        assert!(backlog.served[0] >= 1_002, "it does not wait until the other one has caught up");
    }

    #[test]
    fn flow_that_may_not_be_served_delays_no_other() {
        let mut queue = FairQueue::new(2);
        queue.push(0, 'a');
        queue.push(1, 'b');
        assert_eq!(queue.pop(|flow| flow == 1), Some((1, 'b')));
        assert_eq!(queue.pop(|flow| flow == 1), None);
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [0]);
        assert_eq!(queue.pop(|_| true), Some((0, 'a')));
        assert!(queue.is_empty());
    }

    #[test]
    fn flow_that_could_not_be_served_has_no_credit() {
        let mut queue = FairQueue::new(2);
        for member in 0..300 {
            queue.push(0, member);
            queue.push(1, member);
        }
        let serve = |queue: &mut FairQueue<u64>, may: fn(usize) -> bool| {
            let (flow, _) = queue.pop(may).unwrap();
            queue.charge(flow, Nanos(1), weight(1));
            flow
        };
        for _ in 0..200 {
            assert_eq!(serve(&mut queue, |flow| flow == 1), 1);
        }
        let first = (0..100).filter(|_| serve(&mut queue, |_| true) == 0).count();
        assert!(first.abs_diff(50) <= 1, "{first}");
    }

    #[test]
    fn member_that_left_is_not_served() {
        let mut queue = FairQueue::new(1);
        (1..=3).for_each(|member| queue.push(0, member));
        queue.remove(0, &2);
        queue.remove(0, &4);
        let served: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).collect();
        assert_eq!(served, [(0, 1), (0, 3)]);
        assert!(!queue.is_waiting(0));
    }
}
