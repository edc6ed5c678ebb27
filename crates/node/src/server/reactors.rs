//! The threads of a server.

use super::arrivals::{Arrival, MovedConnection, RespArrival};
use super::balance::{self, BalanceConfig, Diverter, DiverterLinks, Shared};
use super::bridge::{FarConnections, FarQueues, FromDevice, MESSAGES, PeerDevices, ToDevice};
use super::connection_mover::{MoverLinks, link_movers};
use super::connections::{Connections, accept_all};
use super::cores::Cores;
use super::dealer::Dealer;
use super::device_listeners::DeviceListeners;
use super::device_set::{DeviceSet, DeviceSetBuilder, DeviceSetPlan, deal};
use super::error::ServerError;
use super::movable_connections::MovableConnections;
use super::placed_connections::{DealtReactors, PlacedConnections};
use super::places::ConnectionLimit;
use super::reactor_counters::{Question, Questions, answer};
use super::report::ReactorReport;
use super::resp::{RespAddrs, RespClients};
use super::router::{Home, Homes, Router};
use super::served::Served;
use super::served_state::DeviceStart;
use super::setup::{ServedDevice, ServerConfig};
use super::stopper::Stopper;
use super::tenants::{Gate, Tenants};
use clock::{Stage, Users};
use controller::{Placement, Rules, Subsystems};
use engine::WorkPool;
use reactor::{
    CommonClock, Lateness, NoticeEnd, NoticeWriter, Outbox, Peer, Reactor, ReceiveEnd, Remote,
    SendEnd, TcpListener, mailbox, notices, peers, stopped,
};
use std::mem::take;
use std::net::SocketAddr;
use std::ops::Range;
use std::process::abort;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle, panicking};

/// Capacity of an inbox for accepted sockets, from the listening reactor to another.
const SOCKETS: usize = 64;

/// The configuration of all threads.
pub(super) struct Plan {
    pub(super) config: ServerConfig,
    /// One for each reactor, those with devices first.
    pub(super) remotes: Vec<Remote>,
    pub(super) places: ConnectionLimit,
    /// Takes messages for the server's operator.
    pub(super) tell: Sender<String>,
    /// The tenants, if the server has any.
    pub(super) tenants: Option<Arc<Tenants>>,
}

/// How a running server receives new rules: a writer for each reactor with devices.
pub(super) type RuleWriters = Vec<NoticeWriter<Rules>>;

/// Handles of a server's threads.
#[derive(Debug, Default)]
pub(super) struct ServerHandles {
    pub(super) threads: Vec<Thread>,
    pub(super) rules: RuleWriters,
    pub(super) questions: Questions,
    /// Where clients of the Redis protocol connect.
    pub(super) resp: Vec<RespAddrs>,
    /// What balanced reactors know of each other.
    pub(super) balance: Option<Arc<Shared>>,
}

/// A thread's message after its start.
pub(super) enum Ready {
    Up {
        /// The addresses where hosts can connect, from the listening thread.
        addresses: Vec<SocketAddr>,
        /// How devices with state files started.
        starts: Vec<(usize, DeviceStart)>,
    },
    /// The thread ends with an error.
    Failed,
}

pub(super) type Thread = JoinHandle<Result<ReactorReport, ServerError>>;

/// The listeners for hosts, and the connection slots.
struct Listeners {
    listeners: Vec<TcpListener>,
    places: ConnectionLimit,
}

/// The links of a connections' reactor to the others.
struct DeviceLinks {
    /// The number of the reactor.
    reactor: u32,
    /// Links to each reactor of devices.
    devices: Vec<DeviceLink>,
    homes: Homes,
    /// In the listening reactor: links to each of the others.
    deals: Vec<SendEnd<Arrival>>,
    /// In the listening reactor of a balanced server: the others and itself.
    reactors: Option<DealtReactors>,
    /// In the other reactors: the connections from the listening one.
    arrivals: Option<ReceiveEnd<Arrival>>,
    /// Redis clients of devices that reactors share.
    resp: Vec<ReceiveEnd<RespArrival>>,
    /// The reactors that do the work of devices which they share, if they share any.
    pool: Option<Arc<WorkPool>>,
    /// Links to the reactors that execute commands for each other.
    diverter: Option<DiverterLinks>,
    /// The tenants, if the server has any.
    tenants: Option<Arc<Tenants>>,
    /// Links to the reactors that give each other connections.
    mover: Option<MoverLinks>,
}

/// The links of a devices' reactor to those of connections.
#[derive(Default)]
struct ConnectionLinks {
    each: Vec<ConnectionLink>,
    /// The connections that it serves itself, from the listening reactor.
    arrivals: Option<ReceiveEnd<Arrival>>,
    /// Takes Redis clients for each of the others.
    resp: Vec<SendEnd<RespArrival>>,
    /// These and itself, if the server is balanced.
    resp_reactors: Option<DealtReactors>,
    /// Links to the reactors that execute commands for each other.
    diverter: Option<DiverterLinks>,
    /// Links to the reactors that give each other connections.
    mover: Option<MoverLinks>,
}

/// The link of a connections' reactor to one of devices.
struct DeviceLink {
    subsystems: Arc<Subsystems>,
    commands: SendEnd<ToDevice>,
    responses: ReceiveEnd<FromDevice>,
}

/// The link of a devices' reactor to one of connections.
struct ConnectionLink {
    commands: ReceiveEnd<ToDevice>,
    responses: SendEnd<FromDevice>,
}

/// Returns how many of `reactors` have devices: one for each of `devices`, but one reactor is left
/// for connections.
pub(super) fn device_reactors(reactors: usize, devices: usize) -> usize {
    devices.min(reactors - 1).max(1)
}

/// Starts a thread for each reactor; each reports once when it is ready.
pub(super) fn start(plan: Plan, ready: &Sender<Ready>) -> Result<ServerHandles, ServerError> {
    let Plan { config, remotes, places, tell, tenants } = plan;
    let device_listeners = DeviceListeners::bind(&config, &places)?;
    let resp = device_listeners.resp_addresses()?;
    let listeners = Listeners::bind(&config.nvme_tcp, places)?;
    let device_count = device_reactors(remotes.len(), config.devices.len());
    let shares = remotes.len() > 1 && has_shared(&config);
    // The clock of an emulated device is not that of the other reactors.
    let deals_resp = !config.devices.iter().any(is_emulated);
    let serves_all = deals_resp && device_count == 1;
    let mut slots = slots(shares, &remotes).into_iter();
    let mut slot = || slots.next().expect("there is one for each remote");
    let pool = Arc::new(WorkPool::default());
    let (homes, balance) = (homes(&config, device_count, shares), config.balance);
    let (stopper, cores) = (Stopper(remotes.clone()), config.cores.clone());
    let plans = deal(config, device_count, device_listeners, (&pool, &tenants), &tell);
    let mut spawner = Spawner { threads: Vec::new(), ready: ready.clone(), stopper, shares, cores };
    let (devices, connections) = remotes.split_at(device_count);
    let (rule_writers, rules): (RuleWriters, Vec<_>) = devices.iter().map(notices).unzip();
    let (askers, questions): (Questions, Vec<_>) = remotes.iter().map(notices).unzip();
    let mut handles =
        ServerHandles { rules: rule_writers, questions: askers, resp, ..ServerHandles::default() };
    let mut questions = questions.into_iter();
    let mut question = || questions.next().expect("each reactor is asked");
    if connections.is_empty() {
        let plan = plans.into_iter().zip(rules).next().expect("a server has a reactor");
        let (slot, question) = (slot(), question());
        spawner.spawn(&devices[0], move |remote, ready| {
            live(remote, slot, plan, |device_set| alone(device_set, listeners, question, ready))
        })?;
        handles.threads = spawner.threads;
        return Ok(handles);
    }
    let subsystems: Vec<_> = plans.iter().map(|plan| plan.subsystems.clone()).collect();
    let (mut connection_links, mut device_links) =
        connect((devices, &subsystems[..]), connections, serves_all, (&homes, &tenants));
    for links in &mut device_links {
        links.pool = shares.then(|| pool.clone());
    }
    let first = if serves_all { 0 } else { device_count };
    let links = (&mut connection_links[..], &mut device_links[..]);
    handles.balance = balance.map(|config| link_balanced(config, &remotes, first, links));
    let plans = plans.into_iter().zip(rules);
    for ((remote, mut plan), mut connection_links) in
        devices.iter().zip(plans).zip(connection_links)
    {
        let (slot, question, resp_deals) = (slot(), question(), take(&mut connection_links.resp));
        if deals_resp {
            plan.0.resp_deals = resp_deals;
            plan.0.resp_reactors = connection_links.resp_reactors.take();
        }
        spawner.spawn(remote, move |remote, ready| {
            live(remote, slot, plan, |device_set| {
                device_side(device_set, connection_links, question, ready)
            })
        })?;
    }
    let mut listeners = Some(listeners);
    for (remote, links) in connections.iter().zip(device_links) {
        let (slot, listeners, question) = (slot(), listeners.take(), question());
        spawner.spawn(remote, move |remote, ready| {
            let mut reactor = slot.reactor();
            let (report, _) =
                run(remote, &mut reactor, connection_side(links, listeners, question, ready))?;
            Ok(report)
        })?;
    }
    handles.threads = spawner.threads;
    Ok(handles)
}

/// A reactor's slot among its peers.
struct ReactorSlot(Option<Peer>);

impl ReactorSlot {
    fn reactor(self) -> Reactor {
        match self.0 {
            Some(peer) => Reactor::among(peer, None),
            None => Reactor::new(None),
        }
    }
}

/// Returns whether reactors share a device: only its tasks run in several reactors and wait for one
/// another.
fn has_shared(config: &ServerConfig) -> bool {
    config.devices.iter().any(|device| !is_emulated(device))
}

const fn is_emulated(device: &ServedDevice) -> bool {
    matches!(device.served, Served::Emulated(_))
}

/// Returns where the commands of each subsystem are executed. With `shares`, those of discovery are
/// executed in the reactors of connections.
fn homes(config: &ServerConfig, device_count: usize, shares: bool) -> Homes {
    let by_name = config.subsystems.iter().map(|subsystem| {
        let is_near = !is_emulated(&config.devices[subsystem.device]);
        let reactor = subsystem.device % device_count;
        (subsystem.nqn.clone(), Home { reactor, is_near })
    });
    let others = Home { reactor: 0, is_near: shares };
    Homes { by_name: Arc::new(by_name.collect()), others }
}

/// Returns a slot for each of `remotes`, linked as peers if they share a drive.
fn slots(shares: bool, remotes: &[Remote]) -> Vec<ReactorSlot> {
    if shares {
        peers(remotes).into_iter().map(|peer| ReactorSlot(Some(peer))).collect()
    } else {
        remotes.iter().map(|_| ReactorSlot(None)).collect()
    }
}

/// Creates the inboxes between the reactors of devices and those of connections, and from the first
/// reactor of connections to the others: with `serves_all` to the first one of devices too.
fn connect(
    (devices, subsystems): (&[Remote], &[Arc<Subsystems>]),
    connections: &[Remote],
    serves_all: bool,
    (homes, tenants): (&Homes, &Option<Arc<Tenants>>),
) -> (Vec<ConnectionLinks>, Vec<DeviceLinks>) {
    let mut connection_links: Vec<ConnectionLinks> =
        devices.iter().map(|_| ConnectionLinks::default()).collect();
    let mut device_links = Vec::new();
    for (number, door) in (devices.len()..).zip(connections) {
        let reactor = u32::try_from(number).expect("a reactor has a thread");
        let (mut ends, mut resp) = (Vec::new(), Vec::new());
        let each = devices.iter().zip(subsystems).zip(&mut connection_links);
        for ((device, subsystems), connection_links) in each {
            let (to_device, commands) = mailbox(MESSAGES, door, device);
            let (responses, from_device) = mailbox(MESSAGES, device, door);
            connection_links.each.push(ConnectionLink { commands, responses });
            let subsystems = subsystems.clone();
            ends.push(DeviceLink { subsystems, commands: to_device, responses: from_device });
            let (deal, arrivals) = mailbox(SOCKETS, device, door);
            connection_links.resp.push(deal);
            resp.push(arrivals);
        }
        let (homes, deals) = (homes.clone(), Vec::new());
        let (arrivals, pool, diverter, mover, reactors) = (None, None, None, None, None);
        device_links.push(DeviceLinks {
            reactor,
            devices: ends,
            homes,
            deals,
            reactors,
            arrivals,
            resp,
            pool,
            diverter,
            tenants: tenants.clone(),
            mover,
        });
    }
    if serves_all {
        let (deal, arrivals) = mailbox(SOCKETS, &connections[0], &devices[0]);
        device_links[0].deals.push(deal);
        connection_links[0].arrivals = Some(arrivals);
    }
    for (place, door) in connections.iter().enumerate().skip(1) {
        let (deal, arrivals) = mailbox(SOCKETS, &connections[0], door);
        device_links[0].deals.push(deal);
        device_links[place].arrivals = Some(arrivals);
    }
    (connection_links, device_links)
}

/// Links the reactors that serve connections, those from number `first` on, so that they
/// are balanced. Each reactor that accepts connections gets those that it deals to.
fn link_balanced(
    config: BalanceConfig,
    remotes: &[Remote],
    first: usize,
    (connection_links, device_links): (&mut [ConnectionLinks], &mut [DeviceLinks]),
) -> Arc<Shared> {
    let of_devices = connection_links.iter_mut().map(|links| &mut links.diverter);
    let of_connections = device_links.iter_mut().map(|links| &mut links.diverter);
    let diverters = of_devices.chain(of_connections).skip(first);
    let shared = balance::link(config, CommonClock::wall(), &remotes[first..], diverters);
    let placed = PlacedConnections::new(shared.clone(), remotes);
    let of_devices = connection_links.iter_mut().map(|links| &mut links.mover);
    let of_connections = device_links.iter_mut().map(|links| &mut links.mover);
    let movers = link_movers(&placed, &remotes[first..], first);
    let places = of_devices.chain(of_connections).skip(first);
    places.zip(movers).for_each(|(place, links)| *place = Some(links));
    // In the order of the links to them. The dealing reactor is the last.
    let reactors = |dealt: Range<usize>, dealer: usize| {
        placed.among(dealt.filter(|&number| number != dealer).chain([dealer]).collect())
    };
    let connecting = connection_links.len()..remotes.len();
    device_links[0].reactors = Some(reactors(first..remotes.len(), connecting.start));
    for (number, links) in connection_links.iter_mut().enumerate() {
        links.resp_reactors = Some(reactors(connecting.clone(), number));
    }
    shared
}

struct Spawner {
    threads: Vec<Thread>,
    ready: Sender<Ready>,
    stopper: Stopper,
    /// Whether reactors share a drive.
    shares: bool,
    /// The processor of each thread.
    cores: Cores,
}

/// Stops the other reactors when one ends, also by a panic.
struct StopOthers {
    stopper: Stopper,
    /// Whether they share a drive.
    shares: bool,
}

impl Drop for StopOthers {
    fn drop(&mut self) {
        // Other reactors could wait for ever for its tasks, or use data in the middle of a change.
        // A drive on a disk survives the end of the process at any instant. The content of one in
        // memory could be wrong.
        if self.shares && panicking() {
            abort();
        }
        self.stopper.stop();
    }
}

impl Spawner {
    /// Spawns a thread that runs `work` in the reactor of `remote`.
    fn spawn(
        &mut self,
        remote: &Remote,
        work: impl FnOnce(&Remote, &Sender<Ready>) -> Result<ReactorReport, ServerError>
        + Send
        + 'static,
    ) -> Result<(), ServerError> {
        let (remote, ready) = (remote.clone(), self.ready.clone());
        let stop_others = StopOthers { stopper: self.stopper.clone(), shares: self.shares };
        let (number, cores) = (self.threads.len(), self.cores.clone());
        let name = format!("kvasir-{number}");
        let thread = Builder::new().name(name).spawn(move || {
            let _stop_others = stop_others;
            let report = cores.pin(number).and_then(|()| work(&remote, &ready));
            if report.is_err() {
                // The receiver is dropped if this reactor was ready before it failed.
                let _ = ready.send(Ready::Failed);
            }
            report
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

fn run(
    remote: &Remote,
    reactor: &mut Reactor,
    work: impl Future<Output = Result<Connections, ServerError>>,
) -> Result<(ReactorReport, Lateness), ServerError> {
    let (served, lateness) = reactor.serve(remote, work)?;
    let connections = served?;
    let report = ReactorReport {
        lateness: None,
        load: remote.load(),
        connections: connections.count(),
        moved: connections.moved(),
        tasks: reactor.tasks(),
        redis: None,
        failure: None,
    };
    Ok((report, lateness))
}

/// How closing the devices of a reactor ended.
type Closed = Result<(), ServerError>;

/// Runs a reactor with devices, from building to closing them.
fn live<W>(
    remote: &Remote,
    slot: ReactorSlot,
    (plan, rules): (DeviceSetPlan, NoticeEnd<Rules>),
    work: impl FnOnce(Rc<DeviceSet>) -> W,
) -> Result<ReactorReport, ServerError>
where
    W: Future<Output = Result<(Connections, Closed), ServerError>>,
{
    let mut reactor = slot.reactor();
    let (shell, mut state_files) = DeviceSetBuilder::build(&mut reactor, plan)?;
    let (mut built, mut closed) = (None, Ok(()));
    let working = async {
        let device_set = Rc::new(shell.finish().await?);
        built = Some(device_set.clone());
        state_files.mark()?;
        let (rules, subsystems) = (rules.open(), device_set.subsystems.clone());
        clock::spawn(async move {
            loop {
                subsystems.set_rules(rules.read().await);
            }
        });
        let connections;
        (connections, closed) = work(device_set).await?;
        Ok(connections)
    };
    let ran = run(remote, &mut reactor, working);
    let Some(device_set) = built else { return ran.map(|(report, _)| report) };
    // Also after a failure: otherwise the file stays marked as in use.
    let saved = state_files.save(&mut reactor, &device_set);
    ran.map(|(report, lateness)| ReactorReport {
        connections: report.connections + device_set.virtual_machine_count(),
        redis: device_set.redis(),
        // Timers of a disk, such as those of its scrubber, emulate no latency.
        lateness: device_set.is_emulated().then_some(lateness),
        failure: closed.and(saved).err(),
        ..report
    })
}

/// Reports that a thread is ready. The receiver is dropped if another thread has failed.
fn say(ready: &Sender<Ready>, what: Ready) {
    let _ = ready.send(what);
}

/// Runs devices and connections in one reactor.
async fn alone(
    device_set: Rc<DeviceSet>,
    listeners: Listeners,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<(Connections, Closed), ServerError> {
    let connections = Connections::new(device_set.movable.clone(), device_set.gate.clone());
    let (addresses, listeners) =
        listeners.open(serve_here(&device_set, &connections, &Users::default(), None))?;
    let (clients, movable) = (&device_set.clients, &device_set.movable);
    answer(questions, Some(device_set.clone()), &connections, clients, movable);
    say(ready, Ready::Up { addresses, starts: device_set.starts.clone() });
    stopped().await;
    for listener in listeners {
        listener.close();
    }
    connections.end().await;
    let closed = device_set.close().await;
    Ok((connections, closed))
}

/// Runs devices that other reactors use, and connections of its own if it is dealt
/// some.
async fn device_side(
    device_set: Rc<DeviceSet>,
    links: ConnectionLinks,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<(Connections, Closed), ServerError> {
    let (mut bridges, far) = (Vec::new(), FarConnections::default());
    for ConnectionLink { commands, responses } in links.each {
        let queues = FarQueues::new(device_set.clone(), responses.open(), &far);
        clock::spawn(queues.clone().serve(commands.open()));
        bridges.push(queues);
    }
    let connections = Connections::new(device_set.movable.clone(), device_set.gate.clone());
    let users = Users::default();
    if let Some(arrivals) = links.arrivals {
        let diverter = links.diverter.map(DiverterLinks::open);
        let serve: Rc<dyn Fn(Arrival)> =
            Rc::new(serve_here(&device_set, &connections, &users, diverter));
        if let Some(mover) = links.mover {
            mover.open(&device_set.movable, serve_moved(&serve, &device_set.clients));
        }
        let arrivals = arrivals.open();
        clock::spawn(async move {
            while let Some(arrival) = arrivals.receive().await {
                serve(arrival);
            }
        });
    }
    let (clients, movable) = (&device_set.clients, &device_set.movable);
    answer(questions, Some(device_set.clone()), &connections, clients, movable);
    say(ready, Ready::Up { addresses: Vec::new(), starts: device_set.starts.clone() });
    stopped().await;
    for queues in &bridges {
        queues.end();
    }
    connections.end().await;
    // Other reactors may execute their commands.
    users.end(Stage::Queue).await;
    for queues in &bridges {
        queues.left().await;
    }
    // The bridges stay until then: without them, the other reactors end.
    let closed = device_set.close().await;
    Ok((connections, closed))
}

/// Returns what serves a connection in the reactor of its devices, as one of `users`.
fn serve_here(
    device_set: &Rc<DeviceSet>,
    connections: &Connections,
    users: &Users,
    diverter: Option<Rc<Diverter>>,
) -> impl Fn(Arrival) + 'static {
    let (serving, inside, users) = (connections.clone(), device_set.clone(), users.clone());
    let placement = diverter.map(|it| -> Rc<dyn Placement> { it });
    move |arrival: Arrival| {
        let entrance = inside.entrance(arrival.way(), users.clone());
        let entrance = entrance.placed_by(placement.clone());
        serving.serve(arrival, Rc::new(entrance));
    }
}

/// Returns what serves a connection that has come from another reactor.
fn serve_moved(
    serve: &Rc<dyn Fn(Arrival)>,
    clients: &Rc<RespClients>,
) -> impl Fn(MovedConnection) + 'static {
    let (serve, clients) = (serve.clone(), clients.clone());
    move |moved| match moved {
        MovedConnection::Nvme(arrival) => serve(arrival),
        MovedConnection::Redis(arrival) => clients.serve(arrival),
    }
}

/// Runs connections, executes their commands on drives without emulation, and does pieces of the
/// work of these drives.
async fn connection_side(
    mut links: DeviceLinks,
    listeners: Option<Listeners>,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<Connections, ServerError> {
    let worker = links.pool.take().map(|pool| pool.join());
    let served = serve_connections(links, listeners, questions, ready).await;
    // After an error the devices are still open: their tasks may wait for a piece of the worker. At
    // the end they are closed: only a scrub may wait for one, and it has been told to end.
    if let (Err(_), Some(worker)) = (&served, worker) {
        worker.leave().await;
    }
    served
}

async fn serve_connections(
    links: DeviceLinks,
    listeners: Option<Listeners>,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<Connections, ServerError> {
    let DeviceLinks { reactor, devices, homes, deals, reactors, .. } = links;
    let DeviceLinks { arrivals, resp, diverter, mover, tenants, .. } = links;
    let diverter = diverter.map(DiverterLinks::open);
    let placement = diverter.map(|it| -> Rc<dyn Placement> { it });
    let devices = devices.into_iter().map(|DeviceLink { subsystems, commands, responses }| {
        let here = (reactor, placement.clone());
        PeerDevices::new(subsystems, here, commands.open(), responses.open())
    });
    let router = Router::new(devices.collect(), homes);
    let gate = tenants.as_ref().map(Gate::open);
    let movable = MovableConnections::default();
    let connections = Connections::new(movable.clone(), gate.clone());
    let redis = Rc::new(RespClients::new(movable.clone(), gate));
    for arrivals in resp {
        let (arrivals, redis) = (arrivals.open(), redis.clone());
        clock::spawn(async move {
            while let Some(arrival) = arrivals.receive().await {
                redis.serve(arrival);
            }
            redis.abandon();
        });
    }
    answer(questions, None, &connections, &redis, &movable);
    router.opened().await;
    let (serving, leaving) = (connections.clone(), router.clone());
    let serve: Rc<dyn Fn(Arrival)> = Rc::new(move |arrival: Arrival| {
        let port = router.port(arrival.way());
        serving.serve(arrival, port);
    });
    if let Some(mover) = mover {
        mover.open(&movable, serve_moved(&serve, &redis));
    }
    match (arrivals, listeners) {
        (Some(arrivals), _) => {
            let arrivals = arrivals.open();
            clock::spawn(async move {
                while let Some(arrival) = arrivals.receive().await {
                    serve(arrival);
                }
            });
            say(ready, Ready::Up { addresses: Vec::new(), starts: Vec::new() });
        }
        (None, listeners) => {
            let listeners = listeners.expect("who gets no connections from others listens");
            let deals: Vec<Outbox<Arrival>> = deals.into_iter().map(SendEnd::open).collect();
            let dealer = Dealer::among(deals.len() + 1, reactors);
            let (addresses, _) = listeners.open(move |mut arrival| {
                match deals.get(dealer.deal(&mut arrival.place)) {
                    Some(other) => other.send(arrival),
                    None => serve(arrival),
                }
            })?;
            say(ready, Ready::Up { addresses, starts: Vec::new() });
        }
    }
    stopped().await;
    redis.end().await;
    leaving.end();
    connections.end().await;
    leaving.leave().await;
    leaving.gone().await;
    Ok(connections)
}

impl Listeners {
    fn bind(addresses: &[SocketAddr], places: ConnectionLimit) -> Result<Self, ServerError> {
        let bind = |&address: &SocketAddr| {
            TcpListener::bind(address).map_err(|error| ServerError::Listen { address, error })
        };
        let listeners = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { listeners, places })
    }

    /// Passes each connection with a slot to `take`, and closes others. Returns the addresses and
    /// the listeners.
    fn open(
        self,
        take: impl Fn(Arrival) + 'static,
    ) -> Result<(Vec<SocketAddr>, Vec<Rc<TcpListener>>), ServerError> {
        let addresses = self.listeners.iter().map(TcpListener::local_address);
        let addresses = addresses.collect::<Result<_, _>>()?;
        let listeners: Vec<Rc<TcpListener>> = self.listeners.into_iter().map(Rc::new).collect();
        let (take, places) = (Rc::new(take), self.places);
        for listener in &listeners {
            let (listener, take, places) = (listener.clone(), take.clone(), places.clone());
            clock::spawn(async move {
                accept_all(&listener, |stream, address, host| {
                    if let Some(place) = places.take() {
                        let (tenant, parked) = (None, None);
                        take(Arrival { stream, address, host, place, tenant, parked });
                    }
                })
                .await;
            });
        }
        Ok((addresses, listeners))
    }
}
