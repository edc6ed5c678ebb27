use base::Rng;

/// Which of several, extents of a log or blocks of flash, is cleaned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// The one with the least that is live.
    Greedy,
    /// The one with the best free space gained times age over cost (Rosenblum and Ousterhout,
    /// 1992).
    CostBenefit,
    /// Any.
    Random,
    /// The one that was opened first.
    Fifo,
    /// The one with the least that is live of four random ones (Van Houdt, 2013).
    DChoices,
}

/// How many a d-choices draw looks at.
const CHOICES: usize = 4;

/// Something that cleaning would win space from.
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
}

impl Candidate {
    /// (1 - u) * age / 2u, as whole numbers: compared, never printed.
    fn benefit(&self, now: u64) -> u128 {
        let dead = u128::from(self.written.saturating_sub(self.live));
        dead * u128::from(now - self.born) / u128::from(2 * self.live + 1)
    }
}

impl Victims {
    /// The id of one of `candidates`, which stand in the order of their ids; `now` is in the count
    /// of [`Candidate::born`].
    pub fn choose(self, candidates: &[Candidate], now: u64, rng: &mut Rng) -> Option<u32> {
        let mut draw = || {
            let at = rng.below(candidates.len() as u64);
            candidates[usize::try_from(at).expect("an index")]
        };
        if candidates.is_empty() {
            return None;
        }
        let chosen = match self {
            Self::Greedy => candidates.iter().min_by_key(|c| c.live).copied(),
            Self::CostBenefit => candidates.iter().max_by_key(|c| c.benefit(now)).copied(),
            Self::Random => Some(draw()),
            Self::Fifo => candidates.iter().min_by_key(|c| c.born).copied(),
            Self::DChoices => {
                let drawn: Vec<Candidate> = (0..CHOICES).map(|_| draw()).collect();
                drawn.into_iter().min_by_key(|c| c.live)
            }
        };
        chosen.map(|candidate| candidate.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        let of = |(id, born, live)| Candidate { id, born, live, written: 100 };
        [(0, 50, 60), (1, 10, 70), (2, 90, 20), (3, 95, 55)].into_iter().map(of).collect()
    }

    #[test]
    fn each_policy_chooses_by_its_own_rule() {
        let choose = |victims: Victims| victims.choose(&candidates(), 100, &mut Rng::new(1));
        assert_eq!(choose(Victims::Greedy), Some(2));
        assert_eq!(choose(Victims::Fifo), Some(1));
        // 40*50/121 = 16, 30*90/141 = 19, 80*10/41 = 19.5 (cut to 19), 45*5/111 = 2.
        assert_eq!(choose(Victims::CostBenefit), Some(2));
        let mut rng = Rng::new(3);
        let mut drawn = [0; 4];
        for _ in 0..4_000 {
            let id = Victims::Random.choose(&candidates(), 100, &mut rng).unwrap();
            drawn[id as usize] += 1;
        }
        assert!(drawn.iter().all(|count| (900..1_100).contains(count)), "{drawn:?}");
        let best = (0..4_000)
            .filter(|_| Victims::DChoices.choose(&candidates(), 100, &mut rng) == Some(2))
            .count();
        // The best of four is among four draws with 1 - (3/4)^4 = 68 %.
        assert!((2_600..2_860).contains(&best), "{best}");
        assert_eq!(Victims::Greedy.choose(&[], 1, &mut rng), None);
    }
}
