use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The numbers of new keys, issued in sequence. A key exists when its store and those of all lower
/// numbers were acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Acknowledged {
    /// All keys below this number exist.
    there: u64,
    /// For each number issued from `there` on: whether its store was acknowledged.
    waiting: VecDeque<bool>,
}

impl Acknowledged {
    /// Starts with `keys` existing keys.
    pub(crate) fn new(keys: u64) -> Self {
        Self { there: keys, waiting: VecDeque::new() }
    }

    /// Returns how many keys exist; all numbers below it do.
    #[inline]
    pub(crate) fn there(&self) -> u64 {
        self.there
    }

    /// Returns how many numbers were issued.
    pub(crate) fn issued(&self) -> u64 {
        self.there + self.waiting.len() as u64
    }

    /// Issues the number of a new key.
    pub(crate) fn issue(&mut self) -> u64 {
        self.waiting.push_back(false);
        self.issued() - 1
    }

    /// Acknowledges the store of the new key `number`. After a failed store neither its key nor a
    /// later one ever counts as existing.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        let place = number.checked_sub(self.there).and_then(|place| usize::try_from(place).ok());
        let acknowledged = place
            .and_then(|place| self.waiting.get_mut(place))
            .expect("a store is acknowledged once, after its key was given out");
        *acknowledged = true;
        while self.waiting.front() == Some(&true) {
            self.waiting.pop_front();
            self.there += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn a_key_is_there_when_all_lower_ones_are_acknowledged() {
        let mut rng = Rng::new(1);
        let mut keys = Acknowledged::new(10);
        let mut outstanding = BTreeSet::new();
        for step in 0..5_000 {
            if outstanding.is_empty() || outstanding.len() < 20 && rng.below(2) == 0 {
                assert!(outstanding.insert(keys.issue()));
            } else {
                let count = outstanding.len() as u64;
                let chosen = usize::try_from(rng.below(count)).unwrap();
                let number = *outstanding.iter().nth(chosen).unwrap();
                outstanding.remove(&number);
                keys.acknowledge(number);
            }
            let lowest = outstanding.first().copied().unwrap_or(keys.issued());
            assert_eq!(keys.there(), lowest, "step {step}");
        }
        assert!(keys.issued() > 2_000);
    }
}
