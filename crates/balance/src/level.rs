//! The lowest level to which the cores can be evened out.

use crate::load::{Load, share};
use base::Nanos;

/// What a diverted command takes of each of the two cores at least: a message there and one back.
/// An assumption. What it really takes depends on the machine and the value, so
/// [`Trial`](crate::trial::Trial) judges by what is measured.
pub(crate) const MESSAGES: Nanos = Nanos(300);

/// What the requests that a core receives would take of it in a window if it executed all of them.
/// Times are shares of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    /// All their stages.
    pub(crate) all: f64,
    /// Their movable stages.
    pub(crate) movable: f64,
    /// The messages, if all were diverted.
    pub(crate) messages: f64,
    /// How many of them have movable stages.
    pub(crate) commands: u64,
}

impl Demand {
    /// Returns the demand of a core that had this load. Messages of the window count as work that
    /// would not be there.
    pub(crate) fn of(load: Load, window: Nanos) -> Self {
        let messages = Nanos(MESSAGES.0 * (load.diverted + load.taken));
        let fixed = load.busy.0.saturating_sub(load.executed.0 + messages.0);
        let movable = share(load.movable, window);
        Self {
            all: share(Nanos(fixed), window) + movable,
            movable,
            messages: share(Nanos(MESSAGES.0 * load.commands), window),
            commands: load.commands,
        }
    }

    /// Returns whether a move takes less of the core than what it moves.
    pub(crate) fn can_move(&self) -> bool {
        self.movable > self.messages
    }

    /// Returns the movable time that the core must divert so that it is busy for at most `level`,
    /// or all of it.
    pub(crate) fn diverted(&self, level: f64) -> f64 {
        let excess = self.all - level;
        if excess <= 0.0 || !self.can_move() {
            return 0.0;
        }
        (excess / (self.movable - self.messages)).min(1.0) * self.movable
    }

    /// Returns what the core is busy for if it diverts that.
    pub(crate) fn left(&self, level: f64) -> f64 {
        let diverted = self.diverted(level);
        if diverted == 0.0 {
            return self.all;
        }
        self.all - diverted * (1.0 - self.messages / self.movable)
    }

    /// Returns what `diverted` movable time takes of the cores that execute it.
    fn burden(&self, diverted: f64) -> f64 {
        if diverted == 0.0 { 0.0 } else { diverted * (1.0 + self.messages / self.movable) }
    }

    /// Returns the time that is left on the core below `level`.
    pub(crate) fn room(&self, level: f64) -> f64 {
        (level - self.all).max(0.0)
    }
}

/// Returns the lowest level, as a share of the window, at which the cores below it have room for
/// what the cores above it must divert. Cores whose other stages exceed it stay above it.
pub(crate) fn lowest_level(demands: &[Demand]) -> f64 {
    let (mut low, mut high) = (0.0, highest(demands));
    // Each step halves an interval of at most a few windows: 2^-40 of a window is below 1 ns.
    for _ in 0..40 {
        let level = f64::midpoint(low, high);
        let given: f64 = demands.iter().map(|it| it.burden(it.diverted(level))).sum();
        let room: f64 = demands.iter().map(|it| it.room(level)).sum();
        if given <= room { high = level } else { low = level }
    }
    high
}

/// Returns the demand of the busiest core.
pub(crate) fn highest(demands: &[Demand]) -> f64 {
    demands.iter().map(|it| it.all).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn demand(all: f64, movable: f64, messages: f64) -> Demand {
        Demand { all, movable, messages, commands: 1_000 }
    }

    fn assert_level(demands: &[Demand], expected: f64) {
        let level = lowest_level(demands);
        assert!((level - expected).abs() < 1e-9, "{level} is not {expected}");
    }

    #[test]
    fn the_level_is_the_mean_if_messages_are_free_and_enough_is_movable() {
        assert_level(&[demand(0.1, 0.05, 0.0), demand(0.8, 0.5, 0.0), demand(0.3, 0.1, 0.0)], 0.4);
        assert_level(&[demand(0.5, 0.2, 0.0); 4], 0.5);
    }

    #[test]
    fn a_core_with_too_little_to_move_is_above_the_level_of_the_others() {
        // The first core keeps 0.7 of 0.9. The others have 0.2 + 0.2 + 0.4 on two cores.
        assert_level(&[demand(0.9, 0.2, 0.0), demand(0.2, 0.1, 0.0), demand(0.4, 0.1, 0.0)], 0.4);
    }

    #[test]
    fn messages_raise_the_level() {
        // A share s is diverted: 1 - 0.8 s + 0.2 s on the one, 0.8 s + 0.2 s on the other.
        let demands = [demand(1.0, 0.8, 0.2), demand(0.0, 0.0, 0.0)];
        assert_level(&demands, 1.0 / 1.6);
        assert!((demands[0].diverted(1.0 / 1.6) - 0.8 / 1.6).abs() < 1e-9);
    }

    #[test]
    fn nothing_moves_where_a_message_takes_more_than_what_it_moves() {
        let demands = [demand(0.9, 0.3, 0.3), demand(0.1, 0.1, 0.1)];
        assert!(demands.iter().all(|it| it.diverted(0.5) == 0.0));
        assert!(lowest_level(&demands) <= 0.1 + 1e-9);
    }

    /// Against a search in small steps.
    #[test]
    fn no_lower_level_has_room() {
        let mut rng = Rng::new(1);
        for _ in 0..300 {
            let draw = |_| {
                let all = rng.unit();
                let movable = all * rng.unit();
                demand(all, movable, movable * 0.8 * rng.unit())
            };
            let demands: Vec<Demand> = (0..6).map(draw).collect();
            let fits = |level: f64| {
                let given = demands.iter().map(|it| {
                    let diverted = it.diverted(level);
                    diverted
                        + if diverted > 0.0 { it.messages * diverted / it.movable } else { 0.0 }
                });
                let room = demands.iter().map(|it| (level - it.all).max(0.0)).sum::<f64>();
                given.sum::<f64>() <= room + 1e-9
            };
            let found = lowest_level(&demands);
            let first = (0..=10_000).map(|at| f64::from(at) / 1e4).find(|level| fits(*level));
            let first = first.expect("at the highest demand nothing is diverted");
            assert!(first - 1e-4 <= found && found <= first + 1e-9, "{found} and {first}");
        }
    }

    #[test]
    fn work_for_others_and_messages_are_not_a_demand() {
        let window = Nanos::from_millis(10);
        let load = Load {
            busy: Nanos(9_000_000),
            movable: Nanos(4_000_000),
            executed: Nanos(6_000_000),
            commands: 1_000,
            diverted: 500,
            taken: 1_500,
            ..Load::default()
        };
        let found = Demand::of(load, window);
        assert!((found.all - (0.9 - 0.6 - 0.06 + 0.4)).abs() < 1e-9);
        assert!((found.movable - 0.4).abs() < 1e-9 && (found.messages - 0.03).abs() < 1e-9);
    }
}
