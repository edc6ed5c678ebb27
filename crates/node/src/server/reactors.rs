//! The threads of a server.

use super::bridge::{FarDevice, FarQueues, FromDevice, MESSAGES, ToDevice};
use super::census::{Question, Questions, answer};
use super::connections::{Arrival, Connections, accept_all, transport_address};
use super::house::{House, HousePlan, Shell, deal};
use super::kept::Began;
use super::places::Places;
use super::report::ReactorReport;
use super::resp::{RespGate, RespSign};
use super::router::{Homes, Router};
use super::turns::Turns;
use super::{Served, ServedDevice, ServerConfig, ServerError, Stopper};
use controller::{Entrance, Port, Rules};
use reactor::{
    Fellow, Lateness, NoticeEnd, NoticeWriter, Outbox, Reactor, ReceiveEnd, Remote, SendEnd,
    TcpListener, fellows, mailbox, notices, stopped,
};
use std::net::SocketAddr;
use std::process::abort;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle, panicking};

/// Capacity of an inbox for accepted sockets, from the listening reactor to another.
const SOCKETS: usize = 64;

/// The configuration of all threads.
pub(super) struct Plan {
    pub(super) config: ServerConfig,
    /// One for each reactor, those with devices first.
    pub(super) remotes: Vec<Remote>,
    pub(super) places: Places,
    /// Takes messages for the server's operator.
    pub(super) tell: Sender<String>,
}

/// How a running server receives new rules: a writer for each reactor with devices.
pub(super) type RuleWriters = Vec<NoticeWriter<Rules>>;

/// Handles of a server's threads.
#[derive(Debug, Default)]
pub(super) struct Reins {
    pub(super) threads: Vec<Thread>,
    pub(super) rules: RuleWriters,
    pub(super) questions: Questions,
    /// Where clients of the Redis protocol connect.
    pub(super) resp: Vec<RespSign>,
}

/// A thread's message after its start.
pub(super) enum Ready {
    Up {
        /// The addresses where hosts can connect, from the listening thread.
        addresses: Vec<SocketAddr>,
        /// How devices with state files started.
        began: Vec<(usize, Began)>,
    },
    /// The thread ends with an error.
    Failed,
}

pub(super) type Thread = JoinHandle<Result<ReactorReport, ServerError>>;

/// The listeners for hosts, and the connection slots.
struct Gates {
    listeners: Vec<TcpListener>,
    places: Places,
}

/// The links of a connections' reactor to the others.
struct Doorway {
    /// Links to each reactor of devices.
    devices: Vec<(SendEnd<ToDevice>, ReceiveEnd<FromDevice>)>,
    homes: Homes,
    /// In the listening reactor: links to each of the others.
    deals: Vec<SendEnd<Arrival>>,
    /// In the other reactors: the connections from the listening one.
    arrivals: Option<ReceiveEnd<Arrival>>,
}

/// The link of a devices' reactor to one of connections.
struct Bridgehead {
    /// The other reactor's number.
    reactor: u32,
    commands: ReceiveEnd<ToDevice>,
    responses: SendEnd<FromDevice>,
}

/// Returns how many of `reactors` have devices: one for each of `devices`, but one reactor is left
/// for connections.
pub(super) fn device_reactors(reactors: usize, devices: usize) -> usize {
    devices.min(reactors - 1).max(1)
}

/// Starts a thread for each reactor; each reports once when it is ready.
pub(super) fn start(plan: Plan, ready: &Sender<Ready>) -> Result<Reins, ServerError> {
    let Plan { config, remotes, places, tell } = plan;
    let listeners = config.nvme_tcp.iter().map(|&address| {
        TcpListener::bind(address).map_err(|error| ServerError::Listen { address, error })
    });
    let resp_gates = RespGate::bind_all(&config.devices, &places)?;
    let resp = resp_gates.iter().map(RespGate::sign).collect::<Result<_, _>>()?;
    let gates = Gates { listeners: listeners.collect::<Result<_, _>>()?, places };
    let houses = device_reactors(remotes.len(), config.devices.len());
    let shares = remotes.len() > 1 && has_disk(&config);
    let mut seats = seats(shares, &remotes).into_iter();
    let mut seat = || seats.next().expect("there is one for each remote");
    let plans = deal(config, houses, resp_gates, &tell);
    let stopper = Stopper(remotes.clone());
    let mut spawner = Spawner { threads: Vec::new(), ready: ready.clone(), stopper, shares };
    let (devices, doors) = remotes.split_at(houses);
    let (rule_writers, rules): (RuleWriters, Vec<_>) = devices.iter().map(notices).unzip();
    let (askers, questions): (Questions, Vec<_>) = remotes.iter().map(notices).unzip();
    let mut questions = questions.into_iter();
    let mut question = || questions.next().expect("each reactor is asked");
    if doors.is_empty() {
        let plan = plans.into_iter().zip(rules).next().expect("a server has a reactor");
        let (seat, question) = (seat(), question());
        spawner.spawn(&devices[0], move |remote, ready| {
            live(remote, seat, plan, |house| alone(house, gates, question, ready))
        })?;
        let threads = spawner.threads;
        return Ok(Reins { threads, rules: rule_writers, questions: askers, resp });
    }
    let homes = plans.iter().enumerate();
    let homes = homes.flat_map(|(at, plan)| plan.names().map(move |name| (name.to_owned(), at)));
    let (bridgeheads, doorways) = connect(devices, doors, &Homes::new(homes.collect()));
    let plans = plans.into_iter().zip(rules);
    for ((remote, plan), bridgeheads) in devices.iter().zip(plans).zip(bridgeheads) {
        let (seat, question) = (seat(), question());
        spawner.spawn(remote, move |remote, ready| {
            live(remote, seat, plan, |house| device_side(house, bridgeheads, question, ready))
        })?;
    }
    let mut gates = Some(gates);
    for (remote, doorway) in doors.iter().zip(doorways) {
        let (seat, gates, question) = (seat(), gates.take(), question());
        spawner.spawn(remote, move |remote, ready| {
            let mut reactor = seat.reactor();
            let (report, _) =
                run(remote, &mut reactor, door_side(doorway, gates, question, ready))?;
            Ok(report)
        })?;
    }
    Ok(Reins { threads: spawner.threads, rules: rule_writers, questions: askers, resp })
}

/// A reactor's slot among its peers.
struct Seat(Option<Fellow>);

impl Seat {
    fn reactor(self) -> Reactor {
        match self.0 {
            Some(fellow) => Reactor::among(fellow, None),
            None => Reactor::new(None),
        }
    }
}

/// Returns whether a device is on a disk: only its tasks run in several reactors and wait for one
/// another.
fn has_disk(config: &ServerConfig) -> bool {
    let is_on_disk = |device: &ServedDevice| matches!(device.served, Served::Disk { .. });
    config.devices.iter().any(is_on_disk)
}

/// Returns a slot for each of `remotes`, linked as peers if they share a drive.
fn seats(shares: bool, remotes: &[Remote]) -> Vec<Seat> {
    if shares {
        fellows(remotes).into_iter().map(|fellow| Seat(Some(fellow))).collect()
    } else {
        remotes.iter().map(|_| Seat(None)).collect()
    }
}

/// Creates the inboxes between the reactors of devices and those of connections, and from the first
/// reactor of connections to the others.
fn connect(
    devices: &[Remote],
    doors: &[Remote],
    homes: &Homes,
) -> (Vec<Vec<Bridgehead>>, Vec<Doorway>) {
    let mut bridgeheads: Vec<Vec<Bridgehead>> = devices.iter().map(|_| Vec::new()).collect();
    let mut doorways = Vec::new();
    for (number, door) in (devices.len()..).zip(doors) {
        let reactor = u32::try_from(number).expect("a reactor has a thread");
        let mut ends = Vec::new();
        for (device, bridgeheads) in devices.iter().zip(&mut bridgeheads) {
            let (to_device, commands) = mailbox(MESSAGES, door, device);
            let (responses, from_device) = mailbox(MESSAGES, device, door);
            bridgeheads.push(Bridgehead { reactor, commands, responses });
            ends.push((to_device, from_device));
        }
        let homes = homes.clone();
        doorways.push(Doorway { devices: ends, homes, deals: Vec::new(), arrivals: None });
    }
    for (place, door) in doors.iter().enumerate().skip(1) {
        let (deal, arrivals) = mailbox(SOCKETS, &doors[0], door);
        doorways[0].deals.push(deal);
        doorways[place].arrivals = Some(arrivals);
    }
    (bridgeheads, doorways)
}

struct Spawner {
    threads: Vec<Thread>,
    ready: Sender<Ready>,
    stopper: Stopper,
    /// Whether reactors share a drive.
    shares: bool,
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
        // A drive on a disk survives the end of the process at any instant.
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
        let name = format!("kvasir-{}", self.threads.len());
        let thread = Builder::new().name(name).spawn(move || {
            let _stop_others = stop_others;
            let report = work(&remote, &ready);
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
    };
    Ok((report, lateness))
}

/// Runs a reactor with devices, from building to closing them.
fn live<W>(
    remote: &Remote,
    seat: Seat,
    (plan, rules): (HousePlan, NoticeEnd<Rules>),
    work: impl FnOnce(Rc<House>) -> W,
) -> Result<ReactorReport, ServerError>
where
    W: Future<Output = Result<Connections, ServerError>>,
{
    let mut reactor = seat.reactor();
    let (shell, mut household) = Shell::build(&mut reactor, plan)?;
    let mut built = None;
    let working = async {
        let house = Rc::new(shell.finish().await?);
        built = Some(house.clone());
        household.mark()?;
        let (rules, subsystems) = (rules.open(), house.subsystems.clone());
        clock::spawn(async move {
            loop {
                subsystems.set_rules(rules.read().await);
            }
        });
        work(house).await
    };
    let ran = run(remote, &mut reactor, working);
    let report = ran.map(|(report, lateness)| match &built {
        Some(house) => ReactorReport {
            redis: house.redis(),
            // Timers of a disk, such as those of its scrubber, emulate no latency.
            lateness: house.is_emulated().then_some(lateness),
            ..report
        },
        None => report,
    });
    // Also after a failure: otherwise the file stays marked as in use.
    let saved = built.map_or(Ok(()), |house| household.save(&mut reactor, &house));
    report.and_then(|report| saved.map(|()| report))
}

/// Reports that a thread is ready. The receiver is dropped if another thread has failed.
fn say(ready: &Sender<Ready>, what: Ready) {
    let _ = ready.send(what);
}

/// Runs devices and connections in one reactor.
async fn alone(
    house: Rc<House>,
    gates: Gates,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<Connections, ServerError> {
    let connections = Connections::new();
    let (serving, inside) = (connections.clone(), house.clone());
    let (addresses, listeners) = gates.open(move |arrival| {
        let address = transport_address(arrival.address);
        let entrance = Entrance::new(inside.subsystems.clone(), address);
        let port: Rc<dyn Port> = Rc::new(entrance.of_connection(arrival.way().number));
        serving.serve(arrival, port);
    })?;
    answer(questions, Some(house.clone()), Some(connections.clone()));
    say(ready, Ready::Up { addresses, began: house.began.clone() });
    stopped().await;
    for listener in listeners {
        listener.close();
    }
    connections.end().await;
    house.close().await?;
    Ok(connections)
}

/// Runs devices whose commands come from other reactors.
async fn device_side(
    house: Rc<House>,
    bridgeheads: Vec<Bridgehead>,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<Connections, ServerError> {
    let mut bridges = Vec::new();
    for Bridgehead { reactor, commands, responses } in bridgeheads {
        let queues = FarQueues::new(house.clone(), reactor, responses.open());
        clock::spawn(queues.clone().serve(commands.open()));
        bridges.push(queues);
    }
    answer(questions, Some(house.clone()), None);
    say(ready, Ready::Up { addresses: Vec::new(), began: house.began.clone() });
    stopped().await;
    for queues in &bridges {
        queues.end();
    }
    for queues in &bridges {
        queues.left().await;
    }
    house.close().await?;
    Ok(Connections::new())
}

/// Runs connections whose commands go to the reactors of devices.
async fn door_side(
    doorway: Doorway,
    gates: Option<Gates>,
    questions: NoticeEnd<Question>,
    ready: &Sender<Ready>,
) -> Result<Connections, ServerError> {
    let Doorway { devices, homes, deals, arrivals } = doorway;
    let devices = devices.into_iter().map(|(to, from)| FarDevice::new(to.open(), from.open()));
    let router = Router::new(devices.collect(), homes);
    let connections = Connections::new();
    answer(questions, None, Some(connections.clone()));
    let (serving, leaving) = (connections.clone(), router.clone());
    let serve = move |arrival: Arrival| {
        let port = router.port(arrival.way());
        serving.serve(arrival, port);
    };
    match (arrivals, gates) {
        (Some(arrivals), _) => {
            let arrivals = arrivals.open();
            clock::spawn(async move {
                while let Some(arrival) = arrivals.receive().await {
                    serve(arrival);
                }
            });
            say(ready, Ready::Up { addresses: Vec::new(), began: Vec::new() });
        }
        (None, gates) => {
            let gates = gates.expect("who gets no connections from others listens");
            let deals: Vec<Outbox<Arrival>> = deals.into_iter().map(SendEnd::open).collect();
            let turns = Turns::among(deals.len() + 1);
            let (addresses, _) = gates.open(move |arrival| match deals.get(turns.take()) {
                Some(other) => other.send(arrival),
                None => serve(arrival),
            })?;
            say(ready, Ready::Up { addresses, began: Vec::new() });
        }
    }
    stopped().await;
    leaving.leave().await;
    connections.end().await;
    leaving.gone().await;
    Ok(connections)
}

impl Gates {
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
                        take(Arrival { stream, address, host, place });
                    }
                })
                .await;
            });
        }
        Ok((addresses, listeners))
    }
}
