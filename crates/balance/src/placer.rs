use crate::connections::Connections;
use crate::load::share;
use base::{Nanos, Rng};

/// The weight of the newest window in the busy share of a core. The windows before it share the
/// rest. An assumption: two windows smooth the noise of one, and a change counts within a few.
const NEWEST: f64 = 0.5;

/// The least that is expected of a new connection, as a busy share. Without it, all connections
/// that come before the first one is measured would go to the core that idles most by chance.
const MEAN_MIN: f64 = 0.01;

/// Chooses the core of each new connection by measured load.
///
/// - The load of a core is its busy share in recent windows, from 0 to 1, and a reserve for the
///   connections that this does not include. The reserve of a connection is the mean busy share of
///   all measured ones. It falls by each window that includes the connection.
/// - Connections that have closed take their part off the load. The newest are assumed to close
///   first, so short connections hide no load of those that stay.
/// - Cores whose load is near the lowest count as equally loaded. Of these, the core with the
///   fewest open connections is chosen, and a random one if several have equally few.
///
/// So equally loaded cores get one connection each round, in another order each round. A host
/// connects an admin queue and then its I/O queues, which have all the work. With one order for all
/// rounds and one I/O queue a host, one of two cores would have all the I/O queues.
#[derive(Clone, Debug)]
pub struct ConnectionPlacer {
    cores: Vec<Core>,
    /// The mean busy share of a measured connection, from [`MEAN_MIN`] to 1.
    mean: f64,
    rng: Rng,
}

/// What is known of a core.
#[derive(Clone, Copy, Debug)]
struct Core {
    /// The busy share of its open connections in recent windows, from 0 to 1.
    busy: f64,
    /// The connections, counted in parts, that were there at the end of a window and that `busy`
    /// does not include.
    reserved: f64,
    /// The open connections that were there at the end of the last window.
    old: u64,
    /// The part of that window's connections that is still open, from 0 to 1.
    kept: f64,
    /// The open connections that were placed since.
    new: u64,
    /// Its connections when they were last counted.
    seen: Connections,
}

impl ConnectionPlacer {
    /// A placer for `cores` that have no connections yet.
    ///
    /// # Panics
    /// If there is no core.
    pub fn new(cores: usize) -> Self {
        assert!(cores > 0, "at least one core takes connections");
        Self { cores: vec![Core::EMPTY; cores], mean: MEAN_MIN, rng: Rng::new(1) }
    }

    /// Takes the measurement of a window of length `window`: for how long each core was busy in it,
    /// and its connections at the end.
    ///
    /// # Panics
    /// If the window is empty, or a slice is not of as many cores as the placer.
    pub fn end_window(&mut self, window: Nanos, busy: &[Nanos], connections: &[Connections]) {
        assert!(window > Nanos::ZERO, "a window has a length");
        assert_eq!(busy.len(), self.cores.len(), "each core has a busy time");
        assert_eq!(connections.len(), self.cores.len(), "each core has connections");
        for ((core, busy), now) in self.cores.iter_mut().zip(busy).zip(connections) {
            core.count(*now);
            core.end_window(share(*busy, window).min(1.0));
        }
        let measured: f64 = self.cores.iter().map(Core::measured).sum();
        // With less than one connection, the share of the cores' other work would count for it.
        if measured >= 1.0 {
            let busy: f64 = self.cores.iter().map(|core| core.busy).sum();
            self.mean = (busy / measured).clamp(MEAN_MIN, 1.0);
        }
    }

    /// Returns the core for a new connection, if the cores have these `connections` now. Loads of
    /// up to `spread` above the lowest, a busy share, count as equal.
    ///
    /// # Panics
    /// If `connections` is not of as many cores as the placer.
    pub fn choose(&mut self, connections: &[Connections], spread: f64) -> usize {
        assert_eq!(connections.len(), self.cores.len(), "each core has connections");
        self.cores.iter_mut().zip(connections).for_each(|(core, now)| core.count(*now));
        let loads: Vec<f64> = self.cores.iter().map(|core| core.load(self.mean)).collect();
        let lowest = loads.iter().copied().fold(f64::MAX, f64::min);
        let is_low = |core: &usize| loads[*core] <= lowest + spread;
        let open = |core: usize| connections[core].open();
        let fewest = (0..loads.len()).filter(is_low).map(open).min();
        let is_best = |core: &usize| is_low(core) && Some(open(*core)) == fewest;
        let best: Vec<usize> = (0..loads.len()).filter(is_best).collect();
        assert!(!best.is_empty(), "the core with the lowest load is low");
        let at = self.rng.below(best.len() as u64);
        best[usize::try_from(at).expect("it is below a length")]
    }
}

impl Core {
    /// A core without connections.
    const EMPTY: Self = Self {
        busy: 0.0,
        reserved: 0.0,
        old: 0,
        kept: 1.0,
        new: 0,
        seen: Connections { placed: 0, closed: 0 },
    };

    /// Adds a window in which the core was busy for this share.
    fn end_window(&mut self, share: f64) {
        self.busy = NEWEST * self.kept * share + (1.0 - NEWEST) * self.busy;
        self.reserved = (1.0 - NEWEST) * self.reserved + count(self.new);
        self.old += self.new;
        (self.kept, self.new) = (1.0, 0);
    }

    /// Counts the connections that it has `now`. Of those that have closed since it last counted,
    /// as many as possible are new.
    fn count(&mut self, now: Connections) {
        let Connections { placed, closed } = self.seen;
        let closed = now.closed - closed;
        self.new += now.placed - placed;
        let closed_new = closed.min(self.new);
        self.new -= closed_new;
        if closed > closed_new {
            let left = self.old.checked_sub(closed - closed_new);
            let left = left.expect("a core closes only connections that it has");
            let kept = count(left) / count(self.old);
            self.busy *= kept;
            self.reserved *= kept;
            self.kept *= kept;
            self.old = left;
        }
        self.seen = now;
        assert_eq!(self.old + self.new, now.open(), "each open connection is old or new");
    }

    /// Returns the busy share that is expected of the core, if the `mean` connection has this one.
    fn load(&self, mean: f64) -> f64 {
        self.busy + (self.reserved + count(self.new)) * mean
    }

    /// Returns the number of connections that the busy share includes, counted in parts.
    fn measured(&self) -> f64 {
        (count(self.old) - self.reserved).max(0.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a server has far fewer than 2^52 connections")]
fn count(connections: u64) -> f64 {
    connections as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const WINDOW: Nanos = Nanos::from_millis(100);
    const SPREAD: f64 = 0.1;

    /// Cores with connections, each of a busy share in percent.
    struct Scene {
        placer: ConnectionPlacer,
        /// The busy shares of the open connections of each core.
        open: Vec<Vec<u64>>,
        connections: Vec<Connections>,
    }

    impl Scene {
        fn new(cores: usize) -> Self {
            Self {
                placer: ConnectionPlacer::new(cores),
                open: vec![Vec::new(); cores],
                connections: vec![Connections::default(); cores],
            }
        }

        fn add(&mut self, core: usize, percent: u64) {
            self.open[core].push(percent);
            self.connections[core].placed += 1;
        }

        /// Places a connection of this busy share.
        fn place(&mut self, percent: u64) -> usize {
            let core = self.placer.choose(&self.connections, SPREAD);
            self.add(core, percent);
            core
        }

        /// Closes the newest connection of a core.
        fn close(&mut self, core: usize) {
            self.open[core].pop().unwrap();
            self.connections[core].closed += 1;
        }

        fn end_windows(&mut self, windows: usize) {
            let sum = |open: &Vec<u64>| Nanos(WINDOW.0 / 100 * open.iter().sum::<u64>().min(100));
            let busy: Vec<Nanos> = self.open.iter().map(sum).collect();
            (0..windows).for_each(|_| self.placer.end_window(WINDOW, &busy, &self.connections));
        }

        fn counts(&self) -> Vec<usize> {
            self.open.iter().map(Vec::len).collect()
        }

        fn load(&mut self, core: usize) -> f64 {
            self.placer.cores[core].count(self.connections[core]);
            self.placer.cores[core].load(self.placer.mean)
        }
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3, "{found} is not {expected}");
    }

    /// One connection of 20 % each, then 100 arrive before the next measurement.
    #[test]
    fn connections_between_two_windows_are_spread_by_what_they_will_add() {
        let mut scene = Scene::new(4);
        (0..4).for_each(|core| scene.add(core, 20));
        scene.end_windows(20);
        (0..100).for_each(|_| _ = scene.place(1));
        assert_eq!(scene.counts(), [26; 4]);
        // One core is 30 points below the others: it gets the mean share of 15 points twice or
        // three times before the others are equally loaded, and not all connections.
        let mut scene = Scene::new(4);
        (0..4).for_each(|core| scene.add(core, if core == 3 { 0 } else { 30 }));
        (0..4).for_each(|core| scene.add(core, 0));
        scene.end_windows(20);
        (0..96).for_each(|_| _ = scene.place(1));
        let counts = scene.counts();
        assert!(counts.iter().all(|count| (24..=29).contains(count)), "{counts:?}");
        assert!(counts[3] > counts[0], "{counts:?}");
    }

    /// As after the start of a server, whose cores differ a little.
    #[test]
    fn connections_before_the_first_measurement_are_spread() {
        let mut scene = Scene::new(4);
        let busy = [3, 12, 1, 2].map(|percent| Nanos(WINDOW.0 / 100 * percent));
        scene.placer.end_window(WINDOW, &busy, &scene.connections);
        let mut placer = scene.placer.clone();
        for _ in 0..100 {
            let core = placer.choose(&scene.connections, 0.0);
            scene.connections[core].placed += 1;
        }
        let placed: Vec<u64> = scene.connections.iter().map(|it| it.placed).collect();
        assert!(placed.iter().all(|count| (18..=31).contains(count)), "{placed:?}");
    }

    #[test]
    fn a_core_with_one_hot_connection_gets_no_more() {
        let mut scene = Scene::new(3);
        scene.add(0, 90);
        for core in [1, 2] {
            (0..20).for_each(|_| scene.add(core, 0));
        }
        for _ in 0..50 {
            scene.end_windows(10);
            assert_ne!(scene.place(0), 0, "{:?}", scene.counts());
        }
    }

    #[test]
    fn a_core_without_its_connections_gets_the_next_ones() {
        for ends_window in [false, true] {
            let mut scene = Scene::new(3);
            for core in 0..3 {
                let percent = if core == 1 { 9 } else { 3 };
                (0..10).for_each(|_| scene.add(core, percent));
            }
            scene.end_windows(10);
            (0..10).for_each(|_| scene.close(1));
            if ends_window {
                // They closed at its end, so their work is in it.
                let busy = [30, 90, 30].map(|percent| Nanos(WINDOW.0 / 100 * percent));
                scene.placer.end_window(WINDOW, &busy, &scene.connections);
            }
            let next: Vec<usize> = (0..7).map(|_| scene.place(3)).collect();
            assert_eq!(next, [1; 7], "after a window: {ends_window}");
            scene.end_windows(10);
            assert_eq!(scene.place(3), 1, "it has 7 of 10");
        }
    }

    #[test]
    fn a_core_without_its_idle_connections_gets_the_next_ones() {
        let mut scene = Scene::new(3);
        (0..30).for_each(|_| _ = scene.place(0));
        (0..10).for_each(|_| scene.close(2));
        assert!((0..10).all(|_| scene.place(0) == 2));
    }

    #[test]
    fn short_connections_hide_no_load() {
        let mut scene = Scene::new(2);
        scene.add(0, 80);
        scene.add(1, 10);
        scene.end_windows(10);
        for _ in 0..5 {
            for core in [0, 1] {
                (0..100).for_each(|_| scene.add(core, 0));
                (0..100).for_each(|_| scene.close(core));
            }
            assert_near(scene.load(0), 0.8);
            assert_eq!(scene.placer.choose(&scene.connections, SPREAD), 1);
            scene.end_windows(1);
        }
    }

    /// The reserve of new connections falls as the measurement includes them.
    #[test]
    fn the_load_of_new_connections_is_counted_once() {
        let mut scene = Scene::new(2);
        (0..2).for_each(|core| scene.add(core, 5));
        scene.end_windows(20);
        (0..8).for_each(|_| scene.add(0, 5));
        assert_near(scene.load(0), 0.45);
        // The window that they arrive in does not include them.
        scene.placer.end_window(WINDOW, &[Nanos(WINDOW.0 / 20); 2], &scene.connections);
        for _ in 0..20 {
            assert_near(scene.load(0), 0.45);
            scene.end_windows(1);
        }
        assert!(scene.placer.cores[0].reserved < 1e-3);
    }

    #[test]
    fn work_is_even_however_many_queues_a_host_has() {
        for (count, io_queues) in (1..=6).flat_map(|count| (1..=5).map(move |io| (count, io))) {
            let mut scene = Scene::new(count);
            let mut work = vec![0_u32; count];
            for _ in 0..2_000 {
                scene.place(0);
                (0..io_queues).for_each(|_| work[scene.place(0)] += 1);
            }
            let even = 2_000 * io_queues / u32::try_from(count).unwrap();
            let bounds = even * 9 / 10..=even * 11 / 10;
            assert!(work.iter().all(|it| bounds.contains(it)), "{io_queues} of each: {work:?}");
        }
    }

    #[test]
    fn each_equally_loaded_core_has_one_turn_a_round() {
        let mut scene = Scene::new(5);
        let rounds: BTreeSet<Vec<usize>> =
            (0..20).map(|_| (0..5).map(|_| scene.place(0)).collect()).collect();
        assert!(rounds.len() > 10, "the order changes");
        for round in rounds {
            assert_eq!(round.into_iter().collect::<BTreeSet<_>>().len(), 5);
        }
    }
}
