use base::{Nanos, Rng};

/// What connections of a simulated [`Network`](crate::Network) are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The least and the most time that a piece takes to arrive. No piece overtakes another.
    pub delay: (Nanos, Nanos),
    /// Bytes of the longest piece. Short ones are as common as long ones: the number of binary
    /// digits of a length is uniform.
    pub piece_max: usize,
    /// Bytes that each direction holds: written, and not yet read.
    pub capacity: usize,
    /// The least and the most time after which a connection is cut. `None`: nothing cuts it but
    /// [`Network::cut`](crate::Network::cut).
    pub life: Option<(Nanos, Nanos)>,
}

impl Conditions {
    /// A small switch: 5 to 20 us, pieces of up to 64 KiB, as many bytes on the way as a socket of
    /// Linux takes without being told, and nothing cut.
    pub const CALM: Self = Self {
        delay: (Nanos::from_micros(5), Nanos::from_micros(20)),
        piece_max: 65_536,
        capacity: 262_144,
        life: None,
    };

    pub(crate) fn check(&self) {
        assert!(self.delay.0 <= self.delay.1, "the least delay is above the most");
        assert!(self.piece_max > 0 && self.capacity > 0, "nothing could ever be sent");
        assert!(
            self.life.is_none_or(|(least, most)| least <= most),
            "the shortest life is above the longest"
        );
    }

    pub(crate) fn draw_delay(&self, rng: &mut Rng) -> Nanos {
        between(self.delay, rng)
    }

    pub(crate) fn draw_life(&self, rng: &mut Rng) -> Option<Nanos> {
        self.life.map(|life| between(life, rng))
    }

    /// The length of the next piece of `len` bytes that are left.
    pub(crate) fn draw_piece(&self, len: usize, rng: &mut Rng) -> usize {
        let digits = rng.below(u64::from(usize::BITS - self.piece_max.leading_zeros())) + 1;
        let longest = self.piece_max.min((1 << digits) - 1);
        len.min(1 + below(longest, rng))
    }
}

fn between((least, most): (Nanos, Nanos), rng: &mut Rng) -> Nanos {
    least + Nanos(rng.below(most.0 - least.0 + 1))
}

/// Uniform in `0..bound`.
#[expect(clippy::cast_possible_truncation, reason = "below a bound that is a usize")]
pub(crate) fn below(bound: usize, rng: &mut Rng) -> usize {
    rng.below(bound as u64) as usize
}
