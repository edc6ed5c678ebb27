//! A drive of blocks that is read in real time: in this process, or from a reactor of its own, over
//! TCP or by a guest.

use super::core_pair::CorePair;
use super::fresh::fresh;
use super::guest_queue::GuestQueue;
use super::open_channel;
use super::read_threads::{self, Layout, Reads, Sample};
use crate::output::Failure;
use crate::remote;
use base::Nanos;
use base::limits::BLOCK_BYTES;
use client::Uri;
use guest::Guest;
use node::profile::{Levels, Model};
use node::server::{Doorbells, SerialNumber, Served, ServedSubsystem, Server, ServerConfig};
use node::{Device, Profile};
use reactor::Reactor;
use rustix::time::{ClockId, clock_gettime};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use tempfile::TempDir;

/// Time that FEMU, section 3.2.1, adds to each read.
pub(super) const DELAY: Nanos = Nanos::from_micros(50);

/// Part of [`DELAY`] that a page spends on its channel in the staged model.
const TRANSFER: Nanos = Nanos::from_micros(10);

/// Channels of the drive, with one plane each.
pub(super) const PLANES: u32 = 64;

const SEED: u64 = 1;

/// Name of the subsystem that the experiment's host connects to.
const NQN: &str = "nqn.2026-11.com.example:experiment";

/// Name of the subsystem with the socket of the experiment's guest.
const GUEST_NQN: &str = "nqn.2026-11.com.example:guest";

/// Entries of the I/O queue: more than there are threads.
const QUEUE_ENTRIES: u16 = 128;

/// Model of a read's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    None,
    /// A fixed [`DELAY`] after the read arrives.
    Fixed,
    /// Register, plane and channel, each with a queue.
    Staged,
}

/// Returns the drive, with the latency of `delay` and this many planes.
pub(super) fn profile(delay: Delay, planes: u32) -> Result<Profile, Failure> {
    let mut profile = open_channel::profile(planes, 1)?.without_delays();
    let nand = &mut profile.nand;
    nand.model = Model::Scalar;
    match delay {
        Delay::None => {}
        Delay::Fixed => profile.firmware.t_read = DELAY,
        Delay::Staged => {
            nand.model = Model::Staged;
            nand.levels = Levels::uniform(DELAY - TRANSFER, Nanos::ZERO);
            nand.channel_bytes_per_second =
                u64::from(nand.page_bytes) * Nanos::from_secs(1).0 / TRANSFER.0;
        }
    }
    Ok(profile)
}

pub(super) fn layout(profile: &Profile) -> Layout {
    Layout {
        planes: profile.nand.units().into(),
        blocks_per_page: (profile.nand.page_bytes / BLOCK_BYTES).into(),
    }
}

/// A drive in this process.
pub(super) struct Inside {
    reactor: Reactor,
    device: Device,
}

impl Inside {
    /// Returns the drive, filled in virtual time.
    pub(super) fn new(profile: &Profile) -> Result<Self, Failure> {
        let (mut reactor, device) = fresh(profile, SEED)?;
        let queue = device.controller().queue_pair();
        reactor.run(read_threads::fill(&queue, layout(profile)))?;
        Ok(Self { reactor, device })
    }

    pub(super) fn measure(&mut self, reads: Reads) -> Result<Sample, Failure> {
        let queue = self.device.controller().queue_pair();
        self.reactor.run_in_real_time(reads.measure(&queue)).0
    }

    /// The same in virtual time.
    #[cfg(test)]
    fn simulate(&mut self, reads: Reads) -> Result<Sample, Failure> {
        let queue = self.device.controller().queue_pair();
        self.reactor.run(reads.measure(&queue))
    }

    /// Returns the CPU time in nanoseconds of a read on this thread, host included.
    pub(super) fn code_ns(&mut self, reads: Reads, count: u32) -> Result<f64, Failure> {
        let queue = self.device.controller().queue_pair();
        let started = thread_time();
        self.reactor.run(reads.carry_out(&queue, count))?;
        Ok((thread_time() - started) * 1e9 / f64::from(count))
    }
}

/// Returns the CPU time of this thread, in seconds.
#[expect(clippy::cast_precision_loss, reason = "a run takes some minutes")]
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A drive behind a target with its own thread.
pub(super) struct Outside {
    server: Server,
    uri: Uri,
    /// Where the guest attaches the drive.
    socket: PathBuf,
    /// The folder of the socket.
    _folder: TempDir,
}

impl Outside {
    /// Returns the drive, filled over the network.
    pub(super) fn start(profile: &Profile, cores: &CorePair) -> Result<Self, Failure> {
        let served = Served::Emulated(Box::new(profile.clone()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = ServerConfig::of_one(served, NQN, address, NonZero::<u16>::MIN);
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::Broken(format!("no folder for a socket: {error}")))?;
        let socket = folder.path().join("guest");
        // FEMU polls doorbells.
        config.subsystems.push(ServedSubsystem {
            nqn: GUEST_NQN.to_owned(),
            serial: SerialNumber::Given("2".to_owned()),
            device: 0,
            vfio_user: vec![socket.clone()],
            doorbells: Doorbells::Mapped,
        });
        let broken = |error: node::server::ServerError| Failure::Broken(error.to_string());
        let server = cores.as_target(|| Server::start(config)).map_err(broken)?;
        let address = server.addresses()[0];
        let uri = format!("nvme-tcp://{address}/{NQN}").parse().map_err(Failure::refused)?;
        let started = Self { server, uri, socket, _folder: folder };
        started.with(async |queue| read_threads::fill(queue, layout(profile)).await)?;
        Ok(started)
    }

    pub(super) fn measure(&self, reads: Reads) -> Result<Sample, Failure> {
        self.with(async |queue| reads.measure(queue).await)
    }

    /// The same by a guest, which is attached for this measurement. The error is a sentence.
    pub(super) fn measure_guest(&self, reads: Reads) -> Result<Sample, String> {
        let queue = GuestQueue::new(Guest::attach(&self.socket)?, QUEUE_ENTRIES)?;
        let (sample, _) = Reactor::new(None).run_in_real_time(reads.measure(&queue));
        sample.map_err(|failure| format!("{failure:?}"))
    }

    fn with<T>(
        &self,
        act: impl AsyncFnOnce(&client::IoQueue<reactor::TcpStream>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let done =
            remote::with(&self.uri, QUEUE_ENTRIES, async |connected| act(&connected.queue).await);
        done.map(|(done, _)| done)
    }

    /// Ends the target.
    pub(super) fn stop(self) -> Result<(), Failure> {
        let stopped = self.server.stop().map(drop);
        stopped.map_err(|error| Failure::Broken(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::read_threads::Latency;

    /// In whole nanoseconds.
    fn mean_of(delay: Delay, planes: u32, threads: usize) -> String {
        let profile = profile(delay, planes).unwrap();
        let mut drive = Inside::new(&profile).unwrap();
        let time = Nanos::from_millis(50);
        let reads = Reads { layout: layout(&profile), threads, time, sleeps: false };
        let latency = Latency::of(&[drive.simulate(reads).unwrap()]);
        assert_eq!((latency.p99, latency.p9999), (latency.mean, latency.mean), "all are alike");
        latency.mean.to_string()
    }

    /// Runs in virtual time, where code takes no time and threads do not delay each other.
    #[test]
    fn each_model_takes_its_delay_with_any_number_of_threads() {
        for threads in [1, 2, 32, 64] {
            assert_eq!(mean_of(Delay::None, PLANES, threads), "0");
            assert_eq!(mean_of(Delay::Fixed, PLANES, threads), "50000");
            assert_eq!(mean_of(Delay::Staged, PLANES, threads), "50000");
        }
    }

    /// With two registers a plane senses a page while the previous page is on the channel.
    #[test]
    fn threads_on_one_plane_wait_for_each_other() {
        assert_eq!(mean_of(Delay::Staged, 1, 1), "50000");
        assert_eq!(mean_of(Delay::Staged, 1, 64), "2560000");
        assert_eq!(mean_of(Delay::Fixed, 1, 64), "50000", "a fixed delay has no queue");
    }
}
