use crate::load::share;
use crate::settings::Settings;
use base::Nanos;

/// How many windows in a row a move has to be due. An assumption: what one window shows is noise.
const DUE_WINDOWS: u32 = 3;

/// Windows without a move after one, in both cores. An assumption: its effect has to show first.
const REST_WINDOWS: u32 = 10;

/// The longest such rest, after moves that did not help.
const REST_WINDOWS_MAX: u32 = 640;

/// The least busy share of a connection that moves: an idle one takes no load along.
const SHARE_MIN: f64 = 0.001;

/// Decides which connection a core gives to another one. Each core has a mover of its own.
///
/// - Only the busiest core gives a connection away, to the least busy one, if its busy share is
///   above `overload` and the shares of the two differ by more than `spread`.
/// - Of the connections, it chooses the one that evens the two cores out best. One that would make
///   the other core the busier one moves only if the difference falls by more than `spread`. So a
///   core keeps a hot connection that is most of its load.
/// - A move has to be due in [`DUE_WINDOWS`] windows in a row. Of the first of them, only the
///   shares of the cores are known. Then both cores rest. The core that gave a connection away
///   rests twice as long if the difference has not fallen since its last move.
#[derive(Clone, Debug)]
pub struct ConnectionMover {
    /// The number of this core.
    core: usize,
    /// For how many windows a move has been due.
    due: u32,
    /// Whether the last window was unbalanced: it has read what each connection did.
    was_unbalanced: bool,
    /// Windows left without a move.
    rest: u32,
    /// The length of its last rest.
    rest_windows: u32,
    /// The connection of its last move, and the difference then.
    moved: Option<u64>,
    moved_at: f64,
    /// Connections that were asked to move and stayed, and for how many windows each is passed
    /// over.
    stayed: Vec<(u64, u32)>,
}

/// What a connection of the core did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionWork {
    /// Its number in the server.
    pub number: u64,
    /// Reads from and writes to its socket that moved something.
    pub calls: u64,
    /// Requests received.
    pub requests: u64,
    /// Bytes received and sent.
    pub bytes: u64,
}

/// A move of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionMove {
    /// The number of the connection.
    pub number: u64,
    /// The core that gets it.
    pub to: usize,
}

impl ConnectionWork {
    /// Returns the cost in parts of a socket call, to divide the busy time of a core. The ratios
    /// are assumptions: two requests, or 16 KiB, cost as much as a call.
    #[expect(clippy::cast_precision_loss, reason = "a window has far fewer than 2^52 of each")]
    fn cost(&self) -> f64 {
        self.calls as f64 + self.requests as f64 / 2.0 + self.bytes as f64 / 16_384.0
    }
}

impl ConnectionMover {
    /// A mover for the core with this number.
    pub fn new(core: usize) -> Self {
        let (rest_windows, moved_at) = (REST_WINDOWS, f64::MAX);
        let (due, rest, was_unbalanced, stayed) = (0, 0, false, Vec::new());
        Self { core, due, was_unbalanced, rest, rest_windows, moved: None, moved_at, stayed }
    }

    /// Notes that the core has got a connection of another one.
    pub fn connection_arrived(&mut self) {
        self.rest = self.rest.max(REST_WINDOWS);
    }

    /// Notes that a connection did not move, though it was asked to. If it was the last one, there
    /// was no move. Others come first for [`REST_WINDOWS_MAX`] windows: some connections never
    /// move.
    pub fn connection_stayed(&mut self, number: u64) {
        self.stayed.push((number, REST_WINDOWS_MAX));
        if self.moved == Some(number) {
            (self.rest, self.rest_windows, self.moved_at) = (0, REST_WINDOWS, f64::MAX);
        }
    }

    /// Takes the measurement of a window of length `window`: for how long each core was busy.
    /// Returns the move that is due. `connections` returns what each connection of this core did
    /// since its last call. It is called only in unbalanced windows, because a core may have many
    /// connections. In such a window this core is the busiest one, and busier than the settings
    /// `overload` and `spread` allow. The first of several has not read the work of its own time
    /// only, so it does not use what it reads.
    ///
    /// # Panics
    /// If the window is empty, or `busy` lacks this core.
    pub fn end_window(
        &mut self,
        window: Nanos,
        busy: &[Nanos],
        connections: impl FnOnce() -> Vec<ConnectionWork>,
        settings: &Settings,
    ) -> Option<ConnectionMove> {
        assert!(window > Nanos::ZERO, "a window has a length");
        let shares: Vec<f64> = busy.iter().map(|busy| share(*busy, window).min(1.0)).collect();
        let here = shares[self.core];
        let to = (0..shares.len()).min_by(|a, b| shares[*a].total_cmp(&shares[*b]))?;
        // Of equally busy cores, the first one is the busiest.
        let is_busiest = shares[..self.core].iter().all(|share| *share < here)
            && shares.iter().all(|share| *share <= here);
        let gap = here - shares[to];
        let is_unbalanced = is_busiest && here > settings.overload && gap > settings.spread;
        self.stayed.iter_mut().for_each(|(_, windows)| *windows -= 1);
        self.stayed.retain(|(_, windows)| *windows > 0);
        let may = |number| self.stayed.iter().all(|(stayed, _)| *stayed != number);
        let work = is_unbalanced.then(connections);
        let was_unbalanced = std::mem::replace(&mut self.was_unbalanced, is_unbalanced);
        // The work up to the first unbalanced window is not of this window.
        let is_first = is_unbalanced && !was_unbalanced;
        let work = work.filter(|_| !is_first);
        let best = work.and_then(|work| best(here, gap, &work, settings.spread, may));
        self.due = if is_first || best.is_some() { self.due + 1 } else { 0 };
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let number = best.filter(|_| self.due >= DUE_WINDOWS)?;
        let has_helped = gap < self.moved_at;
        let longer = (2 * self.rest_windows).min(REST_WINDOWS_MAX);
        self.rest_windows = if has_helped { REST_WINDOWS } else { longer };
        (self.rest, self.due, self.moved_at) = (self.rest_windows, 0, gap);
        self.moved = Some(number);
        Some(ConnectionMove { number, to })
    }
}

/// Returns the number of the connection that best evens out a core with the busy share `here`, and
/// another one whose share is less by `gap`, among those that `may` move.
fn best(
    here: f64,
    gap: f64,
    connections: &[ConnectionWork],
    spread: f64,
    may: impl Fn(u64) -> bool,
) -> Option<u64> {
    let all: f64 = connections.iter().map(ConnectionWork::cost).sum();
    let shares = connections.iter().map(|it| (it.number, here * it.cost() / all));
    let after = |share: f64| (gap - 2.0 * share).abs();
    let helps = |&(number, share): &(u64, f64)| {
        may(number) && share >= SHARE_MIN && (2.0 * share <= gap || after(share) < gap - spread)
    };
    let best = shares.filter(helps).min_by(|a, b| after(a.1).total_cmp(&after(b.1)));
    best.map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos::from_millis(100);

    /// Cores with connections, each of a busy share in percent.
    struct Scene {
        cores: Vec<Vec<(u64, u64)>>,
        movers: Vec<ConnectionMover>,
        moves: Vec<(u64, usize, usize)>,
    }

    impl Scene {
        fn new(cores: &[&[u64]]) -> Self {
            let mut number = 0;
            let mut add = |&percent: &u64| {
                number += 1;
                (number, percent)
            };
            let cores: Vec<Vec<(u64, u64)>> =
                cores.iter().map(|it| it.iter().map(&mut add).collect()).collect();
            let movers = (0..cores.len()).map(ConnectionMover::new).collect();
            Self { cores, movers, moves: Vec::new() }
        }

        fn percents(&self) -> Vec<u64> {
            let sum = |core: &Vec<(u64, u64)>| core.iter().map(|it| it.1).sum::<u64>();
            self.cores.iter().map(sum).collect()
        }

        /// Ends windows, each with a busy time that `noise` adds for its number and each core.
        fn end_windows(&mut self, windows: u64, noise: impl Fn(u64, usize) -> u64) {
            for window in 0..windows {
                let percents = self.percents().into_iter().enumerate();
                let busy = percents.map(|(core, percent)| percent + noise(window, core));
                let busy: Vec<Nanos> = busy.map(|it| Nanos(WINDOW.0 / 100 * it)).collect();
                for core in 0..self.cores.len() {
                    let work = self.cores[core].iter().map(|&(number, percent)| ConnectionWork {
                        number,
                        calls: percent * 10,
                        requests: percent * 320,
                        bytes: percent << 20,
                    });
                    let work = || work.collect();
                    let (mover, settings) = (&mut self.movers[core], Settings::default());
                    if let Some(it) = mover.end_window(WINDOW, &busy, work, &settings) {
                        self.shift(core, it);
                    }
                }
            }
        }

        fn shift(&mut self, from: usize, ConnectionMove { number, to }: ConnectionMove) {
            let at = self.cores[from].iter().position(|it| it.0 == number).unwrap();
            let it = self.cores[from].remove(at);
            self.cores[to].push(it);
            self.movers[to].connection_arrived();
            self.moves.push((number, from, to));
        }
    }

    fn none(_: u64, _: usize) -> u64 {
        0
    }

    #[test]
    fn one_of_two_hot_connections_moves_once() {
        let mut scene = Scene::new(&[&[45, 45], &[0, 0]]);
        scene.end_windows(2, none);
        assert_eq!(scene.moves, [], "two windows are too few");
        scene.end_windows(1_000, none);
        assert_eq!(scene.percents(), [45, 45]);
        assert_eq!(scene.moves.len(), 1, "{:?}", scene.moves);
    }

    #[test]
    fn hot_connection_that_is_most_of_a_core_stays() {
        // Its move would exchange the two cores. Its neighbours leave it instead.
        let mut scene = Scene::new(&[&[80, 3, 3], &[5], &[5]]);
        scene.end_windows(1_000, none);
        assert!(scene.moves.iter().all(|it| it.0 != 1), "{:?}", scene.moves);
        assert!(scene.moves.len() <= 2, "{:?}", scene.moves);
        let mut alone = Scene::new(&[&[95, 0], &[0]]);
        alone.end_windows(1_000, none);
        assert_eq!(alone.moves, []);
    }

    #[test]
    fn many_small_connections_move_until_the_cores_differ_by_less_than_the_spread() {
        let mut scene = Scene::new(&[&[1; 90], &[]]);
        scene.end_windows(2_000, none);
        let percents = scene.percents();
        assert!(percents[0].abs_diff(percents[1]) <= 10, "{percents:?}");
        assert!(scene.moves.iter().all(|it| (it.1, it.2) == (0, 1)), "none comes back");
    }

    #[test]
    fn balanced_and_idle_cores_keep_their_connections() {
        for cores in [[&[30, 30][..], &[30, 30]], [&[19, 19], &[]], [&[44, 2], &[40]]] {
            let mut scene = Scene::new(&cores);
            scene.end_windows(1_000, none);
            assert_eq!(scene.moves, [], "{cores:?}");
        }
    }

    /// A burst in one window, on either core.
    #[test]
    fn short_bursts_move_nothing() {
        let mut scene = Scene::new(&[&[30, 20], &[30, 20]]);
        scene.end_windows(1_000, |window, core| {
            if window % 3 != 0 && (window / 3 % 2 == 0) == (core == 0) { 40 } else { 0 }
        });
        assert_eq!(scene.moves, []);
    }

    /// The core has other work, which stays when its connections leave.
    #[test]
    fn moves_that_do_not_help_become_rare() {
        let mut mover = ConnectionMover::new(0);
        let busy = [80, 20].map(|percent| Nanos(WINDOW.0 / 100 * percent));
        let work = [1, 2, 3].map(|number| ConnectionWork {
            number,
            calls: 9,
            ..ConnectionWork::default()
        });
        let end_window = |_: &u32| {
            mover.end_window(WINDOW, &busy, || work.to_vec(), &Settings::default()).is_some()
        };
        let count = (0..5_000).filter(end_window).count();
        assert!((5..=15).contains(&count), "{count} moves");
    }

    #[test]
    fn cores_that_are_equally_busy_give_one_connection_away() {
        let mut scene = Scene::new(&[&[30, 30], &[30, 30], &[]]);
        scene.end_windows(4, none);
        assert_eq!(scene.moves.len(), 1, "{:?}", scene.moves);
    }

    #[test]
    fn connection_that_stays_late_does_not_end_the_rest_after_a_later_move() {
        let work = |number, requests| ConnectionWork { number, requests, ..Default::default() };
        let (busy, settings) = ([WINDOW, Nanos::ZERO], Settings::default());
        let mut mover = ConnectionMover::new(0);
        let next = |mover: &mut ConnectionMover, requests: [u64; 3], windows| {
            let work = || (1..).zip(requests).map(|(number, it)| work(number, it)).collect();
            let mut window = || mover.end_window(WINDOW, &busy, work, &settings);
            (0..windows).find_map(|_| window()).map(|it| it.number)
        };
        assert_eq!(next(&mut mover, [500, 400, 100], DUE_WINDOWS), Some(1));
        assert_eq!(next(&mut mover, [100, 500, 400], REST_WINDOWS + 1), Some(2));
        mover.connection_stayed(1);
        assert_eq!(next(&mut mover, [100, 500, 400], REST_WINDOWS), None);
    }

    /// The first reading of each unbalanced time has the work of the balanced one before.
    #[test]
    fn work_of_balanced_windows_moves_nothing_and_delays_nothing() {
        let work = |number, calls| ConnectionWork { number, calls, ..Default::default() };
        let (even, alone) = ([work(1, 50), work(2, 50)], [work(1, 100), work(2, 0)]);
        let settings = Settings::default();
        // Each time is of so many unbalanced windows, after a balanced one.
        let moves = |earlier: [ConnectionWork; 2], now: [ConnectionWork; 2], times: &[u32]| {
            let (mut mover, mut moves) = (ConnectionMover::new(0), Vec::new());
            for windows in times {
                mover.end_window(WINDOW, &[WINDOW; 2], || panic!("balanced"), &settings);
                let mut first = Some(earlier);
                for window in 0..*windows {
                    let work = || first.take().unwrap_or(now).to_vec();
                    let due = mover.end_window(WINDOW, &[WINDOW, Nanos::ZERO], work, &settings);
                    moves.extend(due.map(|_| window));
                }
            }
            moves
        };
        assert_eq!(moves(alone, even, &[2, 2, 3]), [2], "of the last time");
        assert_eq!(moves(even, alone, &[1, 9, 9]), []);
    }

    #[test]
    fn connection_that_stayed_is_passed_over_for_another_one() {
        let work = |number, requests| ConnectionWork { number, requests, ..Default::default() };
        // The first evens the cores out best, and the second helps too.
        let connections = [work(1, 500), work(2, 400), work(3, 100)];
        let busy = [WINDOW, Nanos::ZERO];
        let settings = Settings::default();
        let mut mover = ConnectionMover::new(0);
        let next = |mover: &mut ConnectionMover, windows| {
            let mut window = || mover.end_window(WINDOW, &busy, || connections.to_vec(), &settings);
            (0..windows).find_map(|_| window()).map(|it| it.number)
        };
        assert_eq!(next(&mut mover, DUE_WINDOWS), Some(1));
        mover.connection_stayed(1);
        assert_eq!(next(&mut mover, DUE_WINDOWS), Some(2), "without a rest");
        mover.connection_stayed(2);
        assert_eq!(next(&mut mover, DUE_WINDOWS), Some(3));
        mover.connection_stayed(3);
        assert_eq!(next(&mut mover, REST_WINDOWS_MAX - 2 * DUE_WINDOWS - 1), None);
        assert_eq!(next(&mut mover, DUE_WINDOWS), Some(1), "after all these windows");
    }
}
