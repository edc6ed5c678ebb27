use base::Rng;
use std::cell::RefCell;

/// Chooses the reactor of each new connection: each once a round, in another order each round.
///
/// A host connects an admin queue and then its I/O queues, which have all the work. With one order
/// for all rounds and one I/O queue a host, one of two reactors would have all the I/O queues.
#[derive(Debug)]
pub(super) struct AcceptOrder {
    count: usize,
    round: RefCell<Round>,
}

#[derive(Debug)]
struct Round {
    rng: Rng,
    left: Vec<usize>,
}

impl AcceptOrder {
    /// Chooses among `count` reactors.
    pub(super) fn among(count: usize) -> Self {
        assert!(count > 0, "at least one reactor takes connections");
        Self { count, round: RefCell::new(Round { rng: Rng::new(1), left: Vec::new() }) }
    }

    /// Returns the index of the next reactor.
    pub(super) fn take(&self) -> usize {
        let Round { rng, left } = &mut *self.round.borrow_mut();
        if left.is_empty() {
            left.extend(0..self.count);
        }
        let at = usize::try_from(rng.below(left.len() as u64)).expect("it is below a length");
        left.swap_remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn work_is_even_however_many_queues_a_host_has() {
        for (count, io_queues) in (1..=6).flat_map(|count| (1..=5).map(move |io| (count, io))) {
            let turns = AcceptOrder::among(count);
            let mut work = vec![0_u32; count];
            for _ in 0..2_000 {
                turns.take();
                (0..io_queues).for_each(|_| work[turns.take()] += 1);
            }
            let even = 2_000 * io_queues / u32::try_from(count).unwrap();
            let bounds = even * 9 / 10..=even * 11 / 10;
            assert!(work.iter().all(|it| bounds.contains(it)), "{io_queues} of each: {work:?}");
        }
    }

    #[test]
    fn each_has_one_turn_a_round() {
        let turns = AcceptOrder::among(5);
        for _ in 0..20 {
            let round: BTreeSet<usize> = (0..5).map(|_| turns.take()).collect();
            assert_eq!(round.len(), 5);
        }
    }
}
