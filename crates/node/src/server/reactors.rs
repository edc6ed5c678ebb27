//! The threads of a server, and what each runs.

use super::bridge::{FarDevice, FromDevice, MESSAGES, ToDevice, serve_far};
use super::connections::{Connections, accept_all, transport_address};
use super::drive::Drive;
use super::report::ReactorReport;
use super::{ServerConfig, ServerError, Stopper};
use controller::{Entrance, Port, Subsystem, Subsystems};
use reactor::{
    Inbox, Outbox, Reactor, ReceiveEnd, Remote, SendEnd, TcpListener, TcpStream, mailbox, stopped,
};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

/// Sockets that may be on their way from the reactor that accepts them to another.
const SOCKETS: usize = 64;

/// What is to run.
pub(super) struct Plan {
    pub(super) config: ServerConfig,
    /// A reactor's each, the device's first.
    pub(super) remotes: Vec<Remote>,
}

/// What a thread says when it has begun.
pub(super) enum Ready {
    /// Hosts can connect here.
    Listening(SocketAddr),
    Serving,
    /// It ends with an error.
    Failed,
}

type Thread = JoinHandle<Result<ReactorReport, ServerError>>;

/// An accepted connection on its way to its reactor, and the address of this end.
type Arrival = (TcpStream, SocketAddr);

/// What a reactor of connections has of the others.
struct Doorway {
    commands: SendEnd<ToDevice>,
    responses: ReceiveEnd<FromDevice>,
    /// Of the one that listens: to each of the others.
    deals: Vec<SendEnd<Arrival>>,
    /// Of those that do not.
    arrivals: Option<ReceiveEnd<Arrival>>,
}

/// What the device's reactor has of one of connections.
struct Bridgehead {
    commands: ReceiveEnd<ToDevice>,
    responses: SendEnd<FromDevice>,
}

/// Starts a thread for each reactor; each says once when it is ready.
pub(super) fn start(plan: Plan, ready: &Sender<Ready>) -> Result<Vec<Thread>, ServerError> {
    let Plan { config, remotes } = plan;
    let address = config.nvme_tcp;
    let listener =
        TcpListener::bind(address).map_err(|error| ServerError::Listen { address, error })?;
    let (device, doors) = remotes.split_first().expect("a server has a reactor");
    let stopper = Stopper(remotes.clone());
    let mut spawner = Spawner { threads: Vec::new(), ready: ready.clone(), stopper };
    if doors.is_empty() {
        spawner.spawn(device, |ready| alone(config, listener, ready))?;
        return Ok(spawner.threads);
    }
    let (bridgeheads, doorways) = connect(device, doors);
    spawner.spawn(device, |ready| device_side(config, bridgeheads, ready))?;
    let mut listener = Some(listener);
    for (remote, doorway) in doors.iter().zip(doorways) {
        let listener = listener.take();
        spawner.spawn(remote, |ready| door_side(doorway, listener, ready))?;
    }
    Ok(spawner.threads)
}

/// Mailboxes between the device's reactor and those of connections, and from the first of these to
/// the others.
fn connect(device: &Remote, doors: &[Remote]) -> (Vec<Bridgehead>, Vec<Doorway>) {
    let mut ends: (Vec<Bridgehead>, Vec<Doorway>) = Default::default();
    for door in doors {
        let (to_device, commands) = mailbox(MESSAGES, door, device);
        let (responses, from_device) = mailbox(MESSAGES, device, door);
        ends.0.push(Bridgehead { commands, responses });
        ends.1.push(Doorway {
            commands: to_device,
            responses: from_device,
            deals: Vec::new(),
            arrivals: None,
        });
    }
    for (place, door) in doors.iter().enumerate().skip(1) {
        let (deal, arrivals) = mailbox(SOCKETS, &doors[0], door);
        ends.1[0].deals.push(deal);
        ends.1[place].arrivals = Some(arrivals);
    }
    ends
}

struct Spawner {
    threads: Vec<Thread>,
    ready: Sender<Ready>,
    stopper: Stopper,
}

/// Stops the other reactors when one is over, for whatever reason.
struct StopOthers(Stopper);

impl Drop for StopOthers {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Spawner {
    /// A thread that runs `work` in the reactor of `remote`.
    fn spawn<F, W>(&mut self, remote: &Remote, work: F) -> Result<(), ServerError>
    where
        F: FnOnce(Sender<Ready>) -> W + Send + 'static,
        W: Future<Output = Result<Connections, ServerError>>,
    {
        let (remote, ready) = (remote.clone(), self.ready.clone());
        let stop_others = StopOthers(self.stopper.clone());
        let name = format!("kvasir-{}", self.threads.len());
        let thread = Builder::new().name(name).spawn(move || {
            let _stop_others = stop_others;
            let report = run(&remote, work(ready.clone()));
            if report.is_err() {
                // Nobody listens any more if it was ready before.
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
    work: impl Future<Output = Result<Connections, ServerError>>,
) -> Result<ReactorReport, ServerError> {
    let mut reactor = Reactor::new(None);
    let (served, lateness) = reactor.serve(remote, work)?;
    let connections = served?;
    Ok(ReactorReport {
        lateness,
        load: remote.load(),
        connections: connections.count(),
        moved: connections.moved(),
        tasks: reactor.tasks(),
    })
}

/// Says that a thread is ready. Whoever asked may have seen another fail.
fn say(ready: &Sender<Ready>, what: Ready) {
    let _ = ready.send(what);
}

/// The device and everything that hosts see of it.
async fn device(config: ServerConfig) -> Result<(Drive, Rc<Subsystems>), ServerError> {
    let drive = Drive::format(config.served.clone(), config.seed).await?;
    let subsystems = Subsystems::new();
    let subsystem = config.subsystem(drive.flash());
    subsystems.add(Subsystem::new(subsystem, drive.controller().clone()));
    Ok((drive, subsystems))
}

/// Everything in one reactor.
async fn alone(
    config: ServerConfig,
    listener: TcpListener,
    ready: Sender<Ready>,
) -> Result<Connections, ServerError> {
    let (drive, subsystems) = device(config).await?;
    let connections = Connections::new();
    let serving = connections.clone();
    let address = listener.local_address()?;
    clock::spawn(async move {
        accept_all(&listener, |stream, address| {
            let entrance = Entrance::new(subsystems.clone(), transport_address(address));
            let port: Rc<dyn Port> = Rc::new(entrance);
            serving.serve(stream, port);
        })
        .await;
    });
    say(&ready, Ready::Listening(address));
    stopped().await;
    drive.flush().await?;
    Ok(connections)
}

/// The device, whose commands come from other reactors.
async fn device_side(
    config: ServerConfig,
    bridgeheads: Vec<Bridgehead>,
    ready: Sender<Ready>,
) -> Result<Connections, ServerError> {
    let (drive, subsystems) = device(config).await?;
    for Bridgehead { commands, responses } in bridgeheads {
        let (commands, responses): (Inbox<_>, Outbox<_>) = (commands.open(), responses.open());
        clock::spawn(serve_far(subsystems.clone(), commands, responses));
    }
    say(&ready, Ready::Serving);
    stopped().await;
    drive.flush().await?;
    Ok(Connections::new())
}

/// Connections, whose commands go to the device's reactor.
async fn door_side(
    doorway: Doorway,
    listener: Option<TcpListener>,
    ready: Sender<Ready>,
) -> Result<Connections, ServerError> {
    let device = FarDevice::new(doorway.commands.open(), doorway.responses.open());
    let connections = Connections::new();
    if let Some(arrivals) = doorway.arrivals {
        let (serving, device, arrivals) = (connections.clone(), device.clone(), arrivals.open());
        clock::spawn(async move {
            while let Some((stream, address)) = arrivals.receive().await {
                serving.serve(stream, device.port(address));
            }
        });
    }
    let begun = match listener {
        None => Ready::Serving,
        Some(listener) => {
            let address = listener.local_address()?;
            let deals: Vec<Outbox<Arrival>> =
                doorway.deals.into_iter().map(SendEnd::open).collect();
            let serving = connections.clone();
            clock::spawn(async move {
                let next = Cell::new(0);
                accept_all(&listener, |stream, address| {
                    let turn = next.replace((next.get() + 1) % (deals.len() + 1));
                    match deals.get(turn) {
                        Some(other) => other.send((stream, address)),
                        None => serving.serve(stream, device.port(address)),
                    }
                })
                .await;
            });
            Ready::Listening(address)
        }
    };
    say(&ready, begun);
    stopped().await;
    Ok(connections)
}
