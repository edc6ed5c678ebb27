use base::Nanos;
use clock::Stage;

/// Connections that a listener accepts at once. A host with many cores opens one for each core.
const BURST: u64 = 64;

/// Interval of connections after a burst, so that a flood of them takes a small part of a reactor.
/// `experiments/tcp` (`peers`) measures the rate that connected hosts keep.
const INTERVAL: Nanos = Nanos::from_millis(1);

/// Rate limit of a listener: [`BURST`] connections at once, then one each [`INTERVAL`]. Further
/// connections wait in the kernel's queue.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Time at which the accepted connections are within one each [`INTERVAL`].
    paid_at: Nanos,
}

impl Pace {
    /// Waits until one more connection may be accepted.
    pub(super) async fn wait(&mut self) {
        let now = clock::host_now();
        let paid_at = self.paid_at.max(now);
        let credit = Nanos(INTERVAL.0 * (BURST - 1));
        let owed = Nanos((paid_at - now).0.saturating_sub(credit.0));
        self.paid_at = paid_at + INTERVAL;
        if owed > Nanos::ZERO {
            clock::sleep(owed, Stage::Queue).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Reactor;

    /// Returns the accept times of `count` connections that arrive at once.
    async fn let_in(pace: &mut Pace, count: u64) -> Vec<Nanos> {
        let mut times = Vec::new();
        for _ in 0..count {
            pace.wait().await;
            times.push(clock::now());
        }
        times
    }

    #[test]
    fn some_come_in_at_once_and_then_one_each_interval() {
        Reactor::new(None).run(async {
            let (mut pace, start) = (Pace::default(), clock::now());
            let times = let_in(&mut pace, BURST + 3).await;
            let late = |time: &Nanos| (*time - start).0 / INTERVAL.0;
            assert!(times[..64].iter().all(|time| *time == start));
            assert_eq!(times[64..].iter().map(late).collect::<Vec<_>>(), [1, 2, 3]);
            // After a pause of n intervals n connections are accepted at once.
            clock::sleep(Nanos(10 * INTERVAL.0), Stage::Queue).await;
            let start = clock::now();
            let times = let_in(&mut pace, 12).await;
            assert!(times[..10].iter().all(|time| *time == start));
            assert_eq!((times[10] - start, times[11] - start), (INTERVAL, INTERVAL + INTERVAL));
        });
    }
}
