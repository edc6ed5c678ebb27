//! A device behind a target of this process, and a host that puts it under a load.

use base::{Buf, Nanos};
use client::{Association, Host, IoQueue, Settings};
use controller::{Queue, Submission};
use node::Profile;
use node::server::{Served, Server, ServerConfig};
use reactor::{Load, Reactor, Remote, TcpStream};
use rustix::thread::{CpuSet, sched_setaffinity};
use spec::Command;
use std::num::NonZero;
use workload::{Outcome, Plan, Space};

const NQN: &str = "nqn.2026-11.com.example:experiment";

const TIMEOUT: Nanos = Nanos::from_secs(10);

/// One more than the most outstanding operations.
const QUEUE_ENTRIES: u16 = 257;

/// The core of each side.
const CLIENT: usize = 0;
const SERVER: usize = 1;

pub(crate) struct Target(Server);

/// The outcome of a load, and the busy share of the cores.
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    pub(crate) target_busy: f64,
    pub(crate) host_busy: f64,
}

impl Target {
    /// Serves `profile` in real time, filled for `plan`.
    pub(crate) fn start(profile: &Profile, plan: &Plan) -> Self {
        let served = Served::Emulated(Box::new(profile.clone()));
        let address = ([127, 0, 0, 1], 0).into();
        let config = ServerConfig::of_one(served, NQN, address, NonZero::<u16>::MIN);
        // A thread starts on the core of the thread that spawns it.
        pin(SERVER);
        let server = Server::start(config).expect("loopback has a free port");
        pin(CLIENT);
        let target = Self(server);
        target.with(async |queue, _| {
            workload::fill(queue, plan, |_, _| {}).await.expect("the keys fit");
            if plan.space == Space::Blocks {
                let command = Command::flush(plan.nsid);
                let data = Buf::phantom(0, 0);
                queue.submit(Submission { command, long_key: None, data });
                assert!(queue.next().await.status.is_success(), "the device is sound");
            }
        });
        target
    }

    pub(crate) fn measure(&self, plan: &Plan) -> Measured {
        self.with(async |queue, host| {
            let loads = || [self.0.loads()[0], host.load()];
            let before = loads();
            let outcome = workload::run(queue, plan, |_, _| {}).await;
            let after = loads();
            assert_eq!(outcome.errors(), 0, "every operation succeeds");
            let [target_busy, host_busy] = [0, 1].map(|core| busy(before[core], after[core]));
            Measured { outcome, target_busy, host_busy }
        })
    }

    pub(crate) fn stop(self) {
        self.0.stop().expect("the server served");
    }

    fn with<T>(&self, act: impl AsyncFnOnce(&IoQueue<TcpStream>, &Remote) -> T) -> T {
        let remote = Remote::new().expect("there are file descriptors");
        let served = Reactor::new(None).serve(&remote, async {
            let address = self.0.addresses()[0];
            let dial = || TcpStream::connect(address, TIMEOUT);
            let settings = Settings {
                queue_entries: QUEUE_ENTRIES,
                ..Settings::new(Host::of_name("nqn.2026-11.com.example:host"), NQN)
            };
            let association = Association::connect(settings, dial().await.expect("it listens"));
            let association = association.await.expect("it takes this host");
            let streams = vec![dial().await.expect("it listens")];
            let namespace = association.namespace(1).await.expect("it has a namespace");
            let queue = association.io_queue(streams, namespace.reads()).await;
            let queue = queue.expect("it has queues");
            let done = act(&queue, &remote).await;
            queue.close();
            association.shut_down().await.expect("it shuts down");
            done
        });
        served.expect("there is an io_uring").0
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn busy(before: Load, after: Load) -> f64 {
    let (busy, idle) = (after.busy - before.busy, after.idle - before.idle);
    busy.0 as f64 / (busy + idle).0.max(1) as f64
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).expect("the machine has two cores");
}
