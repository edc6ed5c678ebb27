use crate::extent::Extent;
use base::Rng;
use media::ExtentId;

/// Which extent is cleaned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// The one with the fewest live bytes.
    Greedy,
    /// The one with the best free space gained times age over cost (Rosenblum and Ousterhout,
    /// 1992).
    CostBenefit,
    /// Any.
    Random,
    /// The one that was opened first.
    Fifo,
    /// The one with the fewest live bytes of four random ones (Van Houdt, 2013).
    DChoices,
}

/// How many a d-choices draw looks at.
const CHOICES: usize = 4;

/// An extent that cleaning would win space from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: ExtentId,
    pub(crate) epoch: u64,
    pub(crate) live_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl Candidate {
    /// `None` when there is too little to win: no more than `worth` dead bytes, and something
    /// alive.
    pub(crate) fn new(id: ExtentId, extent: &Extent, page_bytes: u32, worth: u64) -> Option<Self> {
        let written_bytes = u64::from(extent.pages) * u64::from(page_bytes);
        let live_bytes = extent.live_bytes();
        let wins = live_bytes == 0 || live_bytes + worth < written_bytes;
        (extent.is_cleanable() && wins).then_some(Self {
            id,
            epoch: extent.label.epoch,
            live_bytes,
            written_bytes,
        })
    }

    /// (1 - u) * age / 2u, as whole numbers: compared, never printed.
    fn benefit(&self, now: u64) -> u128 {
        let dead = u128::from(self.written_bytes.saturating_sub(self.live_bytes));
        dead * u128::from(now - self.epoch) / u128::from(2 * self.live_bytes + 1)
    }
}

impl Victims {
    /// One of `candidates`, which stand in the order of their ids; `now` is the log's sequence
    /// number.
    pub(crate) fn choose(
        self,
        candidates: &[Candidate],
        now: u64,
        rng: &mut Rng,
    ) -> Option<ExtentId> {
        let mut draw = || {
            let at = rng.below(candidates.len() as u64);
            candidates[usize::try_from(at).expect("an index")]
        };
        if candidates.is_empty() {
            return None;
        }
        let chosen = match self {
            Self::Greedy => candidates.iter().min_by_key(|c| c.live_bytes).copied(),
            Self::CostBenefit => candidates.iter().max_by_key(|c| c.benefit(now)).copied(),
            Self::Random => Some(draw()),
            Self::Fifo => candidates.iter().min_by_key(|c| c.epoch).copied(),
            Self::DChoices => {
                let drawn: Vec<Candidate> = (0..CHOICES).map(|_| draw()).collect();
                drawn.into_iter().min_by_key(|c| c.live_bytes)
            }
        };
        chosen.map(|candidate| candidate.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        let of = |(id, epoch, live_bytes)| Candidate {
            id: ExtentId(id),
            epoch,
            live_bytes,
            written_bytes: 100,
        };
        [(0, 50, 60), (1, 10, 70), (2, 90, 20), (3, 95, 55)].into_iter().map(of).collect()
    }

    #[test]
    fn each_policy_chooses_by_its_own_rule() {
        let choose =
            |victims: Victims| victims.choose(&candidates(), 100, &mut Rng::new(1)).map(|id| id.0);
        assert_eq!(choose(Victims::Greedy), Some(2));
        assert_eq!(choose(Victims::Fifo), Some(1));
        // 40*50/121 = 16, 30*90/141 = 19, 80*10/41 = 19.5 (cut to 19), 45*5/111 = 2.
        assert_eq!(choose(Victims::CostBenefit), Some(2));
        let mut rng = Rng::new(3);
        let mut drawn = [0; 4];
        for _ in 0..4_000 {
            let id = Victims::Random.choose(&candidates(), 100, &mut rng).unwrap();
            drawn[id.0 as usize] += 1;
        }
        assert!(drawn.iter().all(|count| (900..1_100).contains(count)), "{drawn:?}");
        let best = (0..4_000)
            .filter(|_| Victims::DChoices.choose(&candidates(), 100, &mut rng) == Some(ExtentId(2)))
            .count();
        // The best of four is among four draws with 1 - (3/4)^4 = 68 %.
        assert!((2_600..2_860).contains(&best), "{best}");
        assert_eq!(Victims::Greedy.choose(&[], 1, &mut rng), None);
    }
}
