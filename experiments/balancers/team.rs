//! Two reactors that share a drive and balance each other.

use crate::host::{self, NQN};
use balance::{Load, Policy, Settings};
use base::{BufPool, Nanos};
use clock::{Stage, Users};
use controller::{
    Entrance, FlashFigures, Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use engine::WorkPool;
use node::server::{BalanceConfig, BalanceState, DiverterLinks, link_diverters};
use node::{MemoryDrive, MemoryKind};
use reactor::{CommonClock, Peer, Reactor, Remote, peers};
use spec::{AddressFamily, Text};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// Time for the routes to settle.
const WARM_UP: Nanos = Nanos::from_secs(2);

/// Time measured.
const MEASURED: Nanos = Nanos::from_secs(2);

/// Bytes of each size that the pool of a reactor keeps, as that of its connections does.
const POOL_BYTES: usize = 16 << 20;

const MEMORY_BYTES: u64 = 2 << 30;

/// What a policy gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Stores a second.
    pub(crate) rate: f64,
    /// The share of them that the other reactor executed.
    pub(crate) diverted: f64,
    /// The share of the busy time that was not the key-value stage.
    pub(crate) stays: f64,
    /// The busy time of a store in both reactors, in nanoseconds.
    busy: f64,
}

impl Measured {
    /// Returns how much more time a diverted store took than one of `none`, in nanoseconds.
    pub(crate) fn cost_of_move(&self, none: &Self) -> f64 {
        if self.diverted == 0.0 { 0.0 } else { (self.busy - none.busy) / self.diverted }
    }
}

/// What both reactors share.
struct Team {
    state: Arc<BalanceState>,
    pool: Arc<WorkPool>,
    value_bytes: usize,
    stores: AtomicU64,
    is_over: AtomicBool,
    /// Reactors whose hosts run.
    running: AtomicUsize,
    /// Both end together.
    end: Barrier,
}

/// A reactor's part.
struct Place {
    number: u32,
    hosts: usize,
    links: DiverterLinks,
}

/// Measures a policy with so many hosts in each reactor.
pub(crate) fn measure(policy: Policy, hosts: [usize; 2], value_bytes: usize) -> Measured {
    let remotes = [(), ()].map(|()| Remote::new().expect("a file descriptor is free"));
    let mut links = [None, None];
    let config = BalanceConfig { policy, settings: Settings::default() };
    let state = link_diverters(config, CommonClock::wall(), &remotes, links.iter_mut());
    let team = Arc::new(Team {
        state,
        pool: Arc::default(),
        value_bytes,
        stores: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        running: AtomicUsize::new(0),
        end: Barrier::new(2),
    });
    let (sender, receiver) = channel();
    let mut members: Vec<(Peer, Place)> = (0..)
        .zip(peers(&remotes).into_iter().zip(links))
        .map(|(number, (peer, links))| {
            let links = links.expect("each reactor has links");
            (peer, Place { number, hosts: hosts[number as usize], links })
        })
        .collect();
    let (second, first) = (members.pop().expect("two"), members.pop().expect("two"));
    std::thread::scope(|scope| {
        let (helper, remote) = (team.clone(), &remotes[1]);
        scope.spawn(move || help(second, remote, &receiver, &helper));
        lead(first, &remotes[0], &sender, &team)
    })
}

/// Opens the drive, measures, and closes.
fn lead(
    (peer, place): (Peer, Place),
    remote: &Remote,
    sender: &Sender<Arc<Subsystems>>,
    team: &Arc<Team>,
) -> Measured {
    let root = async {
        let drive =
            MemoryDrive::format_among(team.pool.clone(), MemoryKind::Kv, MEMORY_BYTES, 2, 1);
        let drive = drive.await.expect("it has some extents");
        let config = SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "1".to_owned(),
            firmware: "1".to_owned(),
            flash: Box::new(|| FlashFigures::NEW),
        };
        let subsystems = Subsystems::new();
        subsystems.add(Subsystem::new(config, drive.controller().clone()));
        sender.send(subsystems.clone()).expect("the other thread is there");
        let users = Users::default();
        start(place, &subsystems, &users, team);
        clock::sleep(WARM_UP, Stage::Queue).await;
        let (began, before, stores) = (Instant::now(), team.state.loads(), team.stores());
        clock::sleep(MEASURED, Stage::Queue).await;
        let seconds = began.elapsed().as_secs_f64();
        let measured = Measured::of(seconds, team.stores() - stores, &before, &team.state.loads());
        finish(&users, team).await;
        measured
    };
    let mut reactor = Reactor::among(peer, None);
    let (measured, _) = reactor.serve(remote, root).expect("the kernel has io_uring");
    team.end.wait();
    measured
}

/// The other reactor.
fn help(
    (peer, place): (Peer, Place),
    remote: &Remote,
    receiver: &Receiver<Arc<Subsystems>>,
    team: &Arc<Team>,
) {
    let subsystems = receiver.recv().expect("the drive opens");
    let root = async {
        let worker = team.pool.join();
        let users = Users::default();
        start(place, &subsystems, &users, team);
        while !team.is_over.load(Ordering::Relaxed) {
            clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        }
        finish(&users, team).await;
        worker.leave().await;
    };
    Reactor::among(peer, None).serve(remote, root).expect("the kernel has io_uring");
    team.end.wait();
}

/// Starts the hosts of a reactor.
fn start(place: Place, subsystems: &Arc<Subsystems>, users: &Users, team: &Arc<Team>) {
    let diverter = place.links.open();
    let address = TransportAddress {
        family: AddressFamily::IPV4,
        address: Text::new("192.0.2.7"),
        port: 4420,
    };
    let entrance = Entrance::new(subsystems.clone(), address);
    let entrance =
        Rc::new(entrance.in_reactor(place.number, users.clone()).placed_by(Some(diverter)));
    team.running.fetch_add(1, Ordering::Relaxed);
    let pool = BufPool::new(POOL_BYTES);
    for _ in 0..place.hosts {
        let (entrance, pool, team) = (entrance.clone(), pool.clone(), team.clone());
        clock::spawn(async move {
            let count = |stores| {
                team.stores.fetch_add(stores, Ordering::Relaxed);
            };
            host::run(entrance, &pool, team.value_bytes, &team.is_over, count).await;
        });
    }
}

/// Ends the hosts of a reactor, and waits until no reactor executes a command of another one.
async fn finish(users: &Users, team: &Team) {
    team.is_over.store(true, Ordering::Relaxed);
    users.end(Stage::Queue).await;
    team.running.fetch_sub(1, Ordering::Relaxed);
    while team.running.load(Ordering::Relaxed) > 0 {
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
    }
}

impl Team {
    fn stores(&self) -> u64 {
        self.stores.load(Ordering::Relaxed)
    }
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "counts and times of a few seconds")]
    fn of(seconds: f64, stores: u64, before: &[Load], after: &[Load]) -> Self {
        let grown = after.iter().zip(before).map(|(after, before)| *after - *before);
        let total = grown.fold(Load::default(), |sum, load| sum + load);
        let (busy, stores) = (total.busy.0 as f64, stores as f64);
        Self {
            rate: stores / seconds,
            diverted: total.diverted as f64 / total.commands as f64,
            stays: 1.0 - total.movable.0 as f64 / busy,
            busy: busy / stores,
        }
    }
}
