use base::Rng;

/// Selects which of several extents of a log or blocks of flash is cleaned next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// The one with the least that is live.
    Greedy,
    /// The one with the best free space gained times age over cost (Rosenblum and Ousterhout,
    /// 1992).
    CostBenefit,
    /// Any, each with the same chance, whatever is live in it.
    Random,
    /// The one that was opened first, whatever is live in it.
    Fifo,
    /// The one with the least that is live of four random ones (Van Houdt, 2013).
    DChoices,
}

/// How many a d-choices draw looks at.
const CHOICES: usize = 4;

/// Draws in a row that may win too little. The next draw is from candidates that are worth it.
const FRUITLESS_MAX: u32 = 64;

/// Something full that could be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The owner's number for it.
    pub id: u32,
    /// When it was opened, in any count that grows.
    pub born: u64,
    /// How much of it is live, in any unit.
    pub live: u64,
    /// How much was written to it, in the same unit.
    pub written: u64,
    /// Whether cleaning it wins enough space.
    pub is_worth: bool,
}

impl Candidate {
    /// (1 - u) * age / 2u, as whole numbers: compared, never printed.
    fn benefit(&self, now: u64) -> u128 {
        let dead = u128::from(self.written.saturating_sub(self.live));
        dead * u128::from(now - self.born) / u128::from(2 * self.live + 1)
    }
}

impl Victims {
    /// Returns the id of one of `candidates`, which are in the order of their ids. `None` when none
    /// is worth it: then cleaning would move data for nothing. `now` is in the count of
    /// [`Candidate::born`]; `fruitless` counts choices in a row that were not worth it.
    ///
    /// Policies that do not look at what they win choose from all candidates, so they also take
    /// some that are not worth it. Draws that win too little `FRUITLESS_MAX` times in a row are
    /// followed by one that wins, and a first in, first out order reaches each candidate.
    pub fn choose(
        self,
        candidates: &[Candidate],
        now: u64,
        fruitless: &mut u32,
        rng: &mut Rng,
    ) -> Option<u32> {
        let worth = || candidates.iter().filter(|candidate| candidate.is_worth);
        worth().next()?;
        let chosen = match self {
            Self::Greedy => worth().min_by_key(|c| c.live).copied(),
            Self::CostBenefit => worth().max_by_key(|c| c.benefit(now)).copied(),
            Self::Fifo => candidates.iter().min_by_key(|c| c.born).copied(),
            Self::Random | Self::DChoices => {
                let only_worth: Vec<Candidate>;
                let pool = if *fruitless < FRUITLESS_MAX {
                    candidates
                } else {
                    only_worth = worth().copied().collect();
                    &only_worth
                };
                let draws = if self == Self::Random { 1 } else { CHOICES };
                let drawn = (0..draws).map(|_| {
                    let at = rng.below(pool.len() as u64);
                    pool[usize::try_from(at).expect("an index")]
                });
                drawn.min_by_key(|c| c.live)
            }
        }?;
        *fruitless = if chosen.is_worth { 0 } else { *fruitless + 1 };
        Some(chosen.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        let of = |(id, born, live, is_worth)| Candidate { id, born, live, written: 100, is_worth };
        let all = [(0, 50, 60, true), (1, 10, 100, false), (2, 90, 20, true), (3, 95, 55, true)];
        all.into_iter().map(of).collect()
    }

    /// How often each of [`candidates`] is chosen.
    fn chosen(victims: Victims, times: u32) -> [u32; 4] {
        let (mut rng, mut fruitless, mut counts) = (Rng::new(3), 0, [0; 4]);
        for _ in 0..times {
            let id = victims.choose(&candidates(), 100, &mut fruitless, &mut rng);
            counts[id.expect("some are worth it") as usize] += 1;
        }
        counts
    }

    #[test]
    fn each_policy_chooses_by_its_own_rule() {
        assert_eq!(chosen(Victims::Greedy, 1), [0, 0, 1, 0]);
        assert_eq!(chosen(Victims::Fifo, 1), [0, 1, 0, 0], "the oldest, though it wins nothing");
        // 40*50/121 = 16, 0, 80*10/41 = 19, 45*5/111 = 2.
        assert_eq!(chosen(Victims::CostBenefit, 1), [0, 0, 1, 0]);
        let drawn = chosen(Victims::Random, 4_000);
        assert!(drawn.iter().all(|count| (900..1_100).contains(count)), "{drawn:?}");
        // The best of four is among four draws with 1 - (3/4)^4 = 68 %.
        let best = chosen(Victims::DChoices, 4_000)[2];
        assert!((2_600..2_860).contains(&best), "{best}");
    }

    #[test]
    fn policies_choose_nothing_where_nothing_is_worth_it() {
        let mut rng = Rng::new(1);
        let all = candidates().into_iter().map(|c| Candidate { is_worth: false, ..c });
        let all: Vec<Candidate> = all.collect();
        for victims in [Victims::Greedy, Victims::Random, Victims::Fifo, Victims::DChoices] {
            assert_eq!(victims.choose(&all, 100, &mut 0, &mut rng), None);
            assert_eq!(victims.choose(&[], 100, &mut 0, &mut rng), None);
        }
    }

    #[test]
    fn draws_win_after_a_bounded_number_that_do_not() {
        let of = |id| Candidate { id, born: 0, live: 100, written: 100, is_worth: id == 777 };
        let all: Vec<Candidate> = (0..100_000).map(of).collect();
        let (mut rng, mut fruitless) = (Rng::new(1), 0);
        for _ in 0..5 {
            let mut draws = 1;
            while Victims::Random.choose(&all, 1, &mut fruitless, &mut rng) != Some(777) {
                draws += 1;
            }
            assert_eq!(draws, FRUITLESS_MAX + 1);
        }
    }
}
