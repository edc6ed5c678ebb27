//! Threads that read blocks, each from its own plane, and their latencies.

use super::open_channel::{COMMAND_BLOCKS_MAX, nanos};
use crate::output::Failure;
use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos, Rng};
use controller::{Completion, Queue, Submission};
use node::Device;
use spec::{Command, Status};
use std::thread::sleep;
use std::time::Duration;

/// Pages of each plane that are written first, and then read.
pub(super) const PAGES: u64 = 16;

/// Most latencies of a measurement. Each is kept.
const LATENCIES_MAX: usize = 400_000;

/// Warm-up reads of each thread.
const WARM_UP: usize = 64;

/// Sleep of a host that does not poll.
const TICK: Duration = Duration::from_micros(100);

const SEED: u64 = 1;

/// Placement of blocks on the planes of a drive that was written in order: page by page in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) planes: u64,
    pub(super) blocks_per_page: u64,
}

/// A measurement with several threads, each with one read in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    pub(super) layout: Layout,
    pub(super) threads: usize,
    /// Duration of the measurement on the host's clock.
    pub(super) time: Nanos,
    /// Whether the host sleeps before it looks for completions, instead of polling.
    pub(super) sleeps: bool,
}

/// Latencies of one measurement.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    reads: usize,
    mean: f64,
    p99: f64,
    /// The longest hundredth of the latencies in nanoseconds, descending.
    longest: Vec<u64>,
}

/// Summary of latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) p99: f64,
    pub(super) p9999: f64,
}

impl Layout {
    /// Blocks to write, from the first on.
    pub(super) const fn blocks(self) -> u64 {
        PAGES * self.planes * self.blocks_per_page
    }

    /// Returns a block of the plane of `thread`.
    fn draw(self, thread: usize, rng: &mut Rng) -> u64 {
        let plane = thread as u64 % self.planes;
        let page = rng.below(PAGES) * self.planes + plane;
        page * self.blocks_per_page + rng.below(self.blocks_per_page)
    }
}

/// Writes the blocks of `layout` in order, one command at a time.
pub(super) async fn fill(queue: &impl Queue, layout: Layout) -> Result<(), Failure> {
    let blocks = layout.blocks();
    for first in (0..blocks).step_by(COMMAND_BLOCKS_MAX as usize) {
        let rest = u32::try_from(blocks - first).unwrap_or(u32::MAX);
        let count = rest.min(COMMAND_BLOCKS_MAX);
        let mut bytes = vec![0; (count * BLOCK_BYTES) as usize];
        Rng::new(first).fill(&mut bytes);
        let command = Command::write(Device::NAMESPACE, first, count);
        let data = Buf::copy_from(&bytes);
        queue.submit(Submission { command, long_key: None, data });
        check(&queue.next().await)?;
    }
    let command = Command::flush(Device::NAMESPACE);
    queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
    check(&queue.next().await)
}

impl Reads {
    /// Returns latencies as the host sees them, from submission until it takes the completion.
    pub(super) async fn measure(self, queue: &impl Queue) -> Result<Sample, Failure> {
        let mut latencies = Vec::with_capacity(LATENCIES_MAX);
        let (mut warming, mut end) = (WARM_UP * self.threads, Nanos::ZERO);
        self.go_on_while(queue, |completion| {
            let seen = clock::host_now();
            if warming > 0 {
                warming -= 1;
                end = seen + self.time;
                return true;
            }
            latencies.push((seen - completion.submitted).0);
            seen < end && latencies.len() < LATENCIES_MAX
        })
        .await?;
        Ok(Sample::of(latencies))
    }

    /// Reads this many times without recording latencies.
    pub(super) async fn carry_out(self, queue: &impl Queue, mut count: u32) -> Result<(), Failure> {
        self.go_on_while(queue, |_| {
            count -= 1;
            count > 0
        })
        .await
    }

    /// Reads until `take` returns true for a completion.
    async fn go_on_while(
        self,
        queue: &impl Queue,
        mut take: impl FnMut(&Completion) -> bool,
    ) -> Result<(), Failure> {
        let mut rng = Rng::new(SEED);
        let mut submit = |thread| {
            let lba = self.layout.draw(thread, &mut rng);
            let command = Command::read(Device::NAMESPACE, lba, 1);
            queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) })
        };
        let first = submit(0);
        for thread in 1..self.threads {
            submit(thread);
        }
        // By command number, from the first one on.
        let mut threads: Vec<usize> = (0..self.threads).collect();
        loop {
            if self.sleeps {
                sleep(TICK);
            }
            let completion = queue.next().await;
            check(&completion)?;
            if !take(&completion) {
                break;
            }
            let at = usize::try_from(completion.id - first).expect("some hundred thousand");
            let thread = threads[at];
            threads.push(thread);
            submit(thread);
        }
        for _ in 1..self.threads {
            check(&queue.next().await)?;
        }
        Ok(())
    }
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "there are less than a million")]
    fn of(mut latencies: Vec<u64>) -> Self {
        latencies.sort_unstable_by(|one, other| other.cmp(one));
        let reads = latencies.len();
        let mean = nanos(Nanos(latencies.iter().sum())) / reads as f64;
        let above = above(reads, 100);
        let p99 = nanos(Nanos(latencies[above]));
        latencies.truncate(above + 1);
        Self { reads, mean, p99, longest: latencies }
    }
}

/// Returns how many of this many values exceed the quantile that leaves out one in `part`.
const fn above(reads: usize, part: usize) -> usize {
    (reads - 1) / part
}

impl Latency {
    /// Returns for `samples`, an odd number up to 99, the medians of their means and of their 99th
    /// percentiles, and the 99.99th percentile of all reads.
    pub(super) fn of(samples: &[Sample]) -> Self {
        // Even if one sample had all reads above it, they would be less than its hundredth part.
        assert!(samples.len() < 100, "what is kept of samples is enough for 99");
        let middle = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
        let mut longest: Vec<u64> =
            samples.iter().flat_map(|sample| &sample.longest).copied().collect();
        longest.sort_unstable_by(|one, other| other.cmp(one));
        let reads = samples.iter().map(|sample| sample.reads).sum();
        let p9999 = nanos(Nanos(longest[above(reads, 10_000)]));
        Self { mean: middle(|sample| sample.mean), p99: middle(|sample| sample.p99), p9999 }
    }
}

/// Returns the median of an odd number of values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Panics if a read fails or returns no data: all figures would be worthless.
fn check(completion: &Completion) -> Result<(), Failure> {
    let is_whole = completion.opcode != spec::Opcode::READ || completion.data.len() == BLOCK_BYTES;
    match completion.status {
        Status::SUCCESS if is_whole => Ok(()),
        status => Err(Failure::Broken(format!("an operation of the experiment failed: {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_read_from_a_plane_of_their_own_and_in_one_plane_all_from_it() {
        let mut rng = Rng::new(1);
        let layout = Layout { planes: 64, blocks_per_page: 4 };
        for thread in 0..64 {
            for _ in 0..100 {
                let block = layout.draw(thread, &mut rng);
                assert_eq!(block / 4 % 64, thread as u64);
                assert!(block < layout.blocks());
            }
        }
        let one = Layout { planes: 1, blocks_per_page: 4 };
        assert!((0..64).all(|thread| one.draw(thread, &mut rng) < 64));
    }

    #[test]
    fn percentiles_leave_out_their_share_and_no_more() {
        let of = |from, count| Sample::of((from..from + count).collect());
        let latency = |samples: &[Sample]| Latency::of(samples);
        let some = [of(1, 100)];
        assert_eq!(latency(&some), Latency { mean: 50.5, p99: 100.0, p9999: 100.0 });
        assert_eq!(latency(&[of(1, 101)]), Latency { mean: 51.0, p99: 100.0, p9999: 101.0 });
        let many = [of(1, 20_001)];
        assert_eq!(latency(&many), Latency { mean: 10_001.0, p99: 19_801.0, p9999: 19_999.0 });
        // Of 30,000 reads three are above, all of one sample.
        let of_three = latency(&[of(1, 10_000), of(9_000_001, 10_000), of(5_001, 10_001)]);
        assert_eq!(of_three, Latency { mean: 10_001.0, p99: 14_901.0, p9999: 9_009_997.0 });
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_string(), "2");
    }
}
