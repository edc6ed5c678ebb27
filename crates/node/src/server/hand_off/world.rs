//! A server in virtual time: what `reactors` does on threads, without sockets.

use super::host::{Host, Moving};
use super::ledger::{Ledger, executed_bytes};
use super::plan::{HostPlan, Plan, draw_balance};
use crate::MemoryDrive;
use crate::MemoryKind;
use crate::server::arrivals::ConnectionInfo;
use crate::server::balance::{DiverterLinks, Shared, link};
use crate::server::bridge::{
    FarConnections, FarQueues, FromDevice, MESSAGES, PeerDevices, ToDevice,
};
use crate::server::device_set::DeviceSet;
use crate::server::router::{Home, Homes, Router};
use base::{Nanos, Rng};
use clock::{CodeCosts, Cores, Gate, Group, Notify, Stage, Users};
use controller::{
    Config, Controller, Emulation, FirmwareCosts, FlashFigures, LinkTiming, Namespace, Placement,
    Port, Subsystem, SubsystemConfig, Subsystems,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store, WorkPool};
use media::{Memory, Shape, Victims};
use reactor::{Outbox, PeerGroup, ReceiveEnd, Remote, SendEnd, mailbox, stopped};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::AddAssign;
use std::rc::Rc;
use std::sync::Arc;

/// The subsystems of the drive in memory, and of the emulated device.
const NQNS: [&str; 2] = [
    "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000002",
    "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000003",
];

const DRIVE_BYTES: u64 = 8 << 20;

/// A run that takes longer waits for a message or a wake-up that was lost.
const LONGEST: Nanos = Nanos::from_secs(1);

/// Nothing is executed in this time after the last reactor has left.
const AFTER: Nanos = Nanos::from_micros(200);

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Commands of I/O queues.
    pub(super) commands: u64,
    /// Those of them for the emulated device.
    pub(super) far: u64,
    /// Commands that another reactor executed.
    pub(super) diverted: u64,
    /// Commands that were aborted.
    pub(super) aborted: u64,
    /// Queues that moved to another reactor.
    pub(super) moved: u64,
    /// Those of them that belong to the emulated device.
    pub(super) far_moved: u64,
    /// Commands in flight when their connection closed.
    pub(super) unanswered: u64,
    /// Of all answers and their order.
    pub(super) digest: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, more: Self) {
        *self = Self {
            commands: self.commands + more.commands,
            far: self.far + more.far,
            diverted: self.diverted + more.diverted,
            aborted: self.aborted + more.aborted,
            moved: self.moved + more.moved,
            far_moved: self.far_moved + more.far_moved,
            unanswered: self.unanswered + more.unanswered,
            digest: base::mix(self.digest ^ more.digest),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commands, far, diverted, aborted, moved, far_moved, unanswered, digest } = self;
        write!(
            f,
            "{commands} commands ({far} of the emulated device, {diverted} diverted, {aborted} \
             aborted, {unanswered} unanswered), {moved} queues moved ({far_moved} of the \
             emulated device), digest {digest:016x}"
        )
    }
}

/// What the reactors of a run share.
pub(super) struct World {
    pub(super) plan: Plan,
    /// Of the drive in memory, and of the emulated device.
    ledgers: [Ledger; 2],
    remotes: Vec<Remote>,
    subsystems: Arc<Subsystems>,
    pool: Arc<WorkPool>,
    balance: Arc<Shared>,
    /// The hosts that run in each reactor, and what their ends notify.
    hosts: Vec<(Cell<usize>, Notify)>,
    /// Of each reactor: what takes queues for the others.
    movers: Vec<RefCell<Movers>>,
    is_stopping: Cell<bool>,
    /// Reactors that have ended, besides the first.
    ended: Cell<usize>,
    outcome: Cell<Outcome>,
}

/// Takes queues that leave a reactor, for each of the others.
type Movers = Vec<(usize, Outbox<Moving>)>;

/// The links between reactors with hosts, for queues that move.
#[derive(Default)]
struct MoverLinks {
    to: Vec<(usize, SendEnd<Moving>)>,
    from: Vec<ReceiveEnd<Moving>>,
}

/// Links the reactors from number `first` on.
fn link_movers(remotes: &[Remote], first: usize) -> Vec<MoverLinks> {
    let mut links: Vec<MoverLinks> = remotes.iter().map(|_| MoverLinks::default()).collect();
    for from in first..remotes.len() {
        for to in (first..remotes.len()).filter(|to| *to != from) {
            let (send, receive) = mailbox(4, &remotes[from], &remotes[to]);
            links[from].to.push((to, send));
            links[to].from.push(receive);
        }
    }
    links
}

/// The links of a reactor for connections to that of the devices.
struct Links {
    diverter: Option<DiverterLinks>,
    movers: MoverLinks,
    commands: SendEnd<ToDevice>,
    responses: ReceiveEnd<FromDevice>,
}

/// The other ends.
struct DeviceLinks {
    commands: ReceiveEnd<ToDevice>,
    responses: SendEnd<FromDevice>,
}

/// Runs a plan.
pub(super) fn run(plan: Plan) -> Outcome {
    let (count, seed) = (plan.reactors, plan.seed);
    let mut group = PeerGroup::on_cores(count, seed, Some(seed), plan.times);
    let remotes = group.remotes();
    let first = usize::from(plan.has_emulated);
    let mut diverters: Vec<Option<DiverterLinks>> = (0..count).map(|_| None).collect();
    let diverted = diverters[first..].iter_mut();
    let balance = link(plan.balance, group.clock(), &remotes[first..], diverted);
    let mut hosts: Vec<(Cell<usize>, Notify)> = (0..count).map(|_| Default::default()).collect();
    for host in &plan.hosts {
        *hosts[host.reactor].0.get_mut() += 1;
    }
    let world = Rc::new(World {
        ledgers: Default::default(),
        movers: remotes.iter().map(|_| RefCell::default()).collect(),
        remotes: remotes.clone(),
        subsystems: Subsystems::new(),
        pool: Arc::default(),
        balance,
        hosts,
        is_stopping: Cell::new(false),
        ended: Cell::new(0),
        outcome: Cell::default(),
        plan,
    });
    let mut devices = Vec::new();
    let mut own = diverters.into_iter().zip(link_movers(&remotes, first));
    let here = own.next().expect("there are reactors");
    for (place, (diverter, movers)) in (1..).zip(own) {
        let (to_device, commands) = mailbox(MESSAGES, &remotes[place], &remotes[0]);
        let (responses, from_device) = mailbox(MESSAGES, &remotes[0], &remotes[place]);
        devices.push(DeviceLinks { commands, responses });
        let links = Links { diverter, movers, commands: to_device, responses: from_device };
        let side = world.clone().connection_side(place, links);
        group.places().spawn(place, side);
    }
    group.run(world.clone().device_side(devices, here));
    world.outcome()
}

/// Creates a drive with delays in front of a store in memory.
async fn emulated(seed: u64) -> (Arc<Controller>, Arc<Store>) {
    let group = Group::new();
    let shape = Shape {
        page_bytes: 16_384,
        spare_bytes: 1_000,
        pages_per_extent: 64,
        extents: 24,
        parallelism: 4,
        frames: None,
    };
    let config = engine::Config {
        capacity_bytes: 16 << 20,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group,
        seed,
    };
    let store = Store::format(Arc::new(Memory::new(shape)), config);
    store.create_key_space(KeySpaceId(1)).await.expect("the store is empty");
    let emulation = Emulation {
        group,
        link: LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(500) },
        handlers: 2,
        costs: FirmwareCosts::default(),
        cores: Cores::new(group, 1, CodeCosts::default()),
        gate: Arc::new(Gate::new()),
    };
    let config = Config { emulation: Some(emulation), has_volatile_cache: false };
    (Controller::new(vec![Namespace::Kv(store.clone())], config), store)
}

impl World {
    /// Opens the devices in the first reactor, serves hosts of its own, and closes the devices when
    /// all others have left: see `reactors::device_side`.
    async fn device_side(
        self: Rc<Self>,
        links: Vec<DeviceLinks>,
        (diverter, movers): (Option<DiverterLinks>, MoverLinks),
    ) {
        clock::spawn(self.clone().watch());
        let stores = self.open_devices().await;
        let device_set = Rc::new(DeviceSet::without_listeners(self.subsystems.clone(), 0));
        let (mut bridges, far) = (Vec::new(), FarConnections::default());
        for DeviceLinks { commands, responses } in links {
            let queues = FarQueues::new(device_set.clone(), responses.open(), &far);
            clock::spawn(queues.clone().serve(commands.open()));
            bridges.push(queues);
        }
        let users = Users::default();
        if let Some(diverter) = diverter {
            let (placement, users): (Rc<dyn Placement>, _) = (diverter.open(), users.clone());
            let device_set = device_set.clone();
            let port = move |number| -> Rc<dyn Port> {
                let entrance = device_set.entrance(way(number), users.clone());
                Rc::new(entrance.placed_by(Some(placement.clone())))
            };
            self.start_hosts(0, movers, port);
        }
        clock::spawn(self.clone().change_policies());
        stopped().await;
        for queues in &bridges {
            queues.end();
        }
        self.hosts_ended(0).await;
        users.end(Stage::Queue).await;
        for queues in &bridges {
            queues.left().await;
        }
        self.check(&stores).await;
        drop(bridges);
        while self.ended.get() < self.plan.reactors - 1 {
            clock::sleep(Nanos::from_micros(5), Stage::Queue).await;
        }
    }

    /// Serves hosts in another reactor: see `reactors::connection_side`.
    async fn connection_side(self: Rc<Self>, place: usize, links: Links) {
        let worker = self.pool.join();
        let diverter = links.diverter.expect("each reactor for connections has links").open();
        let placement: Rc<dyn Placement> = diverter;
        let commands: Outbox<ToDevice> = links.commands.open();
        let here = (u32::try_from(place).expect("a few"), Some(placement));
        let subsystems = self.subsystems.clone();
        let device = PeerDevices::new(subsystems, here, commands, links.responses.open());
        let router = Router::new(vec![device], self.homes());
        router.opened().await;
        let port = {
            let router = router.clone();
            move |number| router.port(way(number))
        };
        self.start_hosts(place, links.movers, port);
        stopped().await;
        router.end();
        self.hosts_ended(place).await;
        router.leave().await;
        router.gone().await;
        worker.leave().await;
        self.ended.set(self.ended.get() + 1);
    }

    async fn open_devices(&self) -> Vec<Arc<Store>> {
        let (pool, seed) = (self.pool.clone(), self.plan.seed);
        let reactors = u32::try_from(self.plan.reactors).expect("a few");
        let drive = MemoryDrive::format_among(pool, MemoryKind::Kv, DRIVE_BYTES, reactors, seed);
        let drive = drive.await.expect("it has some extents");
        let mut stores = vec![drive.kv().expect("it has pairs").clone()];
        let mut devices = vec![drive.controller().clone()];
        if self.plan.has_emulated {
            let (device, store) = emulated(seed).await;
            stores.push(store);
            devices.push(device);
        }
        self.ledgers.iter().zip(&stores).for_each(|(ledger, store)| ledger.begin(store));
        for (nqn, device) in NQNS.iter().zip(devices) {
            let config = SubsystemConfig {
                nqn: (*nqn).to_owned(),
                serial: "1".to_owned(),
                firmware: "1".to_owned(),
                flash: Box::new(|| FlashFigures::NEW),
            };
            self.subsystems.add(Subsystem::new(config, device));
        }
        stores
    }

    fn homes(&self) -> Homes {
        let home = |at: usize| Home { reactor: 0, is_near: at == 0 };
        let count = 1 + usize::from(self.plan.has_emulated);
        let by_name = NQNS.iter().enumerate().take(count);
        let by_name = by_name.map(|(at, nqn)| ((*nqn).to_owned(), home(at))).collect();
        Homes { by_name: Arc::new(by_name), others: home(0) }
    }

    /// Starts the hosts of a reactor, and continues with queues that come from others.
    fn start_hosts(
        self: &Rc<Self>,
        place: usize,
        MoverLinks { to, from }: MoverLinks,
        port: impl Fn(u64) -> Rc<dyn Port> + 'static,
    ) {
        let port = Rc::new(port);
        let to = to.into_iter().map(|(to, end)| (to, end.open())).collect();
        self.movers[place].replace(to);
        for end in from {
            let (inbox, port) = (end.open(), port.clone());
            clock::spawn(async move {
                while let Some(moving) = inbox.receive().await {
                    moving.arrive(place, &*port);
                }
            });
        }
        for plan in self.plan.hosts.iter().filter(|host| host.reactor == place) {
            let (host, port) = (Host::new(self, *plan), port.clone());
            clock::spawn(host.run(move |number| port(number)));
        }
        // Those of all reactors may have ended before.
        self.stop_after_hosts();
    }

    /// Returns when the hosts of this reactor have ended.
    async fn hosts_ended(&self, place: usize) {
        let (count, ended) = &self.hosts[place];
        while count.get() > 0 {
            ended.wait().await;
        }
    }

    /// Notes that a host of this reactor has a connection of its own task.
    pub(super) fn connection_begins(&self, place: usize) {
        let (count, _) = &self.hosts[place];
        count.set(count.get() + 1);
    }

    /// Sends what `leave` returns to another reactor, which `choose` selects by the number of
    /// those. Returns false if `leave` returns `None`.
    pub(super) fn move_queue(
        &self,
        place: usize,
        choose: impl FnOnce(usize) -> usize,
        leave: impl FnOnce() -> Option<Moving>,
    ) -> bool {
        let movers = self.movers[place].borrow();
        if movers.is_empty() {
            return false;
        }
        let (to, outbox) = &movers[choose(movers.len())];
        let Some(moving) = leave() else { return false };
        let outcome = self.outcome.get();
        let far_moved = outcome.far_moved + u64::from(moving.is_far());
        self.outcome.set(Outcome { moved: outcome.moved + 1, far_moved, ..outcome });
        self.connection_begins(*to);
        outbox.send(moving);
        true
    }

    /// Notes that a host of this reactor has closed its last connection, or that a connection has
    /// ended or left.
    pub(super) fn host_ended(&self, place: usize) {
        let (count, ended) = &self.hosts[place];
        count.set(count.get() - 1);
        ended.notify();
        self.stop_after_hosts();
    }

    fn stop_after_hosts(&self) {
        if self.hosts.iter().all(|(count, _)| count.get() == 0) {
            self.stop();
        }
    }

    fn stop(&self) {
        self.is_stopping.set(true);
        self.remotes.iter().for_each(Remote::stop);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Stops the server when the plan says so, and panics if a run takes too long.
    async fn watch(self: Rc<Self>) {
        if let Some(at) = self.plan.stops_at {
            clock::sleep_until(at, Stage::Queue).await;
            self.stop();
        }
        clock::sleep_until(LONGEST, Stage::Queue).await;
        let hosts: Vec<usize> = self.hosts.iter().map(|(count, _)| count.get()).collect();
        panic!("hosts of each reactor after {LONGEST}: {hosts:?}, {:?}", self.outcome());
    }

    /// Changes policy and settings now and then, as a reload does.
    async fn change_policies(self: Rc<Self>) {
        let mut rng = Rng::fork(self.plan.seed, u64::MAX);
        while !self.is_stopping() {
            clock::sleep(Nanos(1_000 + rng.below(300_000)), Stage::Queue).await;
            self.balance.set_config(draw_balance(&mut rng));
        }
    }

    /// Checks that all is executed, and nothing later.
    async fn check(&self, stores: &[Arc<Store>]) {
        let before = executed_bytes(&stores[0]);
        clock::sleep(AFTER, Stage::Queue).await;
        assert_eq!(executed_bytes(&stores[0]), before, "nothing is executed after the end");
        for (at, (store, ledger)) in stores.iter().zip(&self.ledgers).enumerate() {
            // A bridge drops what arrives after the end.
            ledger.check(store, at == 1).await;
        }
    }

    fn host(&self, number: u16) -> &HostPlan {
        &self.plan.hosts[usize::from(number)]
    }

    /// Returns the name of the subsystem that a host uses.
    pub(super) fn nqn(&self, host: u16) -> &'static str {
        NQNS[usize::from(self.host(host).is_far)]
    }

    /// Returns the ledger of the device that a host uses.
    pub(super) fn ledger(&self, host: u16) -> &Ledger {
        &self.ledgers[usize::from(self.host(host).is_far)]
    }

    /// Adds an answer to the digest.
    pub(super) fn note(&self, host: u16, id: u16, status: u64) {
        let mut outcome = self.outcome.get();
        for part in [host.into(), id.into(), status, clock::now().0] {
            outcome.digest = base::mix(outcome.digest ^ part);
        }
        self.outcome.set(outcome);
    }

    pub(super) fn count_unanswered(&self, count: usize) {
        let outcome = self.outcome.get();
        self.outcome.set(Outcome { unanswered: outcome.unanswered + count as u64, ..outcome });
    }

    pub(super) fn count_aborted(&self, is_aborted: bool) {
        let outcome = self.outcome.get();
        self.outcome.set(Outcome { aborted: outcome.aborted + u64::from(is_aborted), ..outcome });
    }

    fn outcome(&self) -> Outcome {
        let [near, far] = self.ledgers.each_ref().map(Ledger::commands);
        let diverted = self.balance.loads().iter().map(|load| load.diverted).sum();
        Outcome { commands: near + far, far, diverted, ..self.outcome.get() }
    }
}

/// Returns the identity of a connection.
fn way(number: u64) -> ConnectionInfo {
    ConnectionInfo { number, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 4420)) }
}
