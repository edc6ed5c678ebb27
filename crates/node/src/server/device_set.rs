use super::arrivals::{ConnectionInfo, RespArrival};
use super::connections::{ConnectionCensus, transport_address};
use super::dealer::Dealer;
use super::device_census::DeviceCensus;
use super::device_listeners::DeviceListeners;
use super::drive::Drive;
use super::error::ServerError;
use super::movable_connections::MovableConnections;
use super::placed_connections::DealtReactors;
use super::report::RedisReport;
use super::resp::{RespClients, RespDoor, RespListeners};
use super::served::Served;
use super::served_state::{DeviceStart, ServedState};
use super::setup::{ServedDevice, ServedSubsystem, ServerConfig};
use super::tenants::{Gate, Tenants};
use super::vfio::{VfioListener, VfioSocket};
use crate::DiskOptions;
use clock::Users;
use controller::{Entrance, Rules, Subsystem, SubsystemConfig, Subsystems};
use engine::WorkPool;
use reactor::{Outbox, Reactor, SendEnd};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// Sent once by each server.
const UNNAMED_HOST: &str = "warning: a host connected without an NQN: subsystems without `hosts` \
                            accept it, subsystems with `hosts` refuse it";

/// The part of a server's devices that one reactor builds.
pub(super) struct DeviceSetPlan {
    /// The reactors that do the work of shared devices.
    pool: Arc<WorkPool>,
    /// The devices, with their indices in the server's list.
    devices: Vec<(usize, ServedDevice)>,
    /// The Redis listeners of these devices.
    resp: Vec<RespListeners>,
    /// Takes Redis clients for each of the other reactors that may use shared devices.
    pub(super) resp_deals: Vec<SendEnd<RespArrival>>,
    /// These and this reactor, if the server is balanced.
    pub(super) resp_reactors: Option<DealtReactors>,
    /// The sockets for virtual machines of these devices.
    vfio_user: Vec<VfioListener>,
    /// The number of the reactor.
    reactor: u32,
    /// The subsystems of these devices, with none before the devices are open.
    pub(super) subsystems: Arc<Subsystems>,
    here: Vec<ServedSubsystem>,
    /// The names of subsystems in other reactors.
    elsewhere: Vec<String>,
    rules: Rules,
    /// Takes messages for the server's operator.
    tell: Sender<String>,
    has_warned: Arc<AtomicBool>,
    /// The tenants, if the server has any.
    tenants: Option<Arc<Tenants>>,
}

/// The devices of a reactor, and everything that hosts see of them.
pub(super) struct DeviceSet {
    drives: Vec<Drive>,
    /// The index of each drive in the server's list.
    places: Vec<usize>,
    /// The number of the reactor.
    pub(super) reactor: u32,
    pub(super) subsystems: Arc<Subsystems>,
    /// How devices with state files started, by their indices in the server's list.
    pub(super) starts: Vec<(usize, DeviceStart)>,
    resp: Vec<RespDoor>,
    /// The Redis clients of this reactor.
    pub(super) clients: Rc<RespClients>,
    /// The connections of this reactor that can move.
    pub(super) movable: MovableConnections,
    /// Grants the turns of this reactor's connections, if the server has tenants.
    pub(super) gate: Option<Rc<Gate>>,
    vfio_user: Vec<Rc<VfioSocket>>,
}

/// Distributes the devices of `config` over `count` reactors in turn, each with its subsystems.
pub(super) fn deal(
    config: ServerConfig,
    count: usize,
    DeviceListeners { resp, vfio_user }: DeviceListeners,
    (pool, tenants): (&Arc<WorkPool>, &Option<Arc<Tenants>>),
    tell: &Sender<String>,
) -> Vec<DeviceSetPlan> {
    let ServerConfig { devices, subsystems, rules, cores, .. } = config;
    let has_warned = Arc::<AtomicBool>::default();
    // That of the device, and those for connections.
    let users = 1 + u32::from(cores.count().get()) - u32::try_from(count).expect("a few");
    let mut plans: Vec<DeviceSetPlan> = (0..count)
        .map(|device_set| {
            let is_here = |subsystem: &ServedSubsystem| subsystem.device % count == device_set;
            let (here, elsewhere): (Vec<_>, Vec<_>) = subsystems.iter().cloned().partition(is_here);
            let elsewhere = elsewhere.into_iter().map(|subsystem| subsystem.nqn).collect();
            DeviceSetPlan {
                pool: pool.clone(),
                devices: Vec::new(),
                resp: Vec::new(),
                resp_deals: Vec::new(),
                resp_reactors: None,
                vfio_user: Vec::new(),
                reactor: u32::try_from(device_set).expect("a few"),
                subsystems: Subsystems::new(),
                here,
                elsewhere,
                rules: rules.clone(),
                tell: tell.clone(),
                has_warned: has_warned.clone(),
                tenants: tenants.clone(),
            }
        })
        .collect();
    for (place, device) in devices.into_iter().enumerate() {
        let served = device.served.used_by(users);
        plans[place % count].devices.push((place, ServedDevice { served, ..device }));
    }
    for gate in resp {
        plans[gate.device % count].resp.push(gate);
    }
    for listener in vfio_user {
        plans[listener.device % count].vfio_user.push(listener);
    }
    plans
}

/// The state files of a reactor's devices, by the devices' indices in the reactor.
#[derive(Default)]
pub(super) struct StateFiles(Vec<(usize, ServedState)>);

/// The devices of a reactor, built as far as possible before it serves.
pub(super) struct DeviceSetBuilder {
    pool: Arc<WorkPool>,
    rooms: Vec<DeviceSlot>,
    places: Vec<usize>,
    resp: Vec<RespListeners>,
    resp_deals: Vec<SendEnd<RespArrival>>,
    resp_reactors: Option<DealtReactors>,
    vfio_user: Vec<VfioListener>,
    reactor: u32,
    subsystems: Arc<Subsystems>,
    here: Vec<ServedSubsystem>,
    elsewhere: Vec<String>,
    rules: Rules,
    tell: Sender<String>,
    has_warned: Arc<AtomicBool>,
    starts: Vec<(usize, DeviceStart)>,
    tenants: Option<Arc<Tenants>>,
}

/// A built device, or a disk to open.
enum DeviceSlot {
    Ready(Drive),
    /// Opened later, because its background tasks need a reactor that serves files.
    Disk(PathBuf, DiskOptions),
}

impl DeviceSetBuilder {
    /// Builds the devices without a disk, before the clock of `reactor` follows the wall clock.
    pub(super) fn build(
        reactor: &mut Reactor,
        plan: DeviceSetPlan,
    ) -> Result<(Self, StateFiles), ServerError> {
        let DeviceSetPlan { pool, devices, resp, resp_deals, reactor: number, subsystems, .. } =
            plan;
        let DeviceSetPlan {
            here,
            elsewhere,
            rules,
            tell,
            has_warned,
            resp_reactors,
            vfio_user,
            tenants,
            ..
        } = plan;
        let (mut rooms, mut places) = (Vec::new(), Vec::new());
        let (mut state_files, mut starts) = (StateFiles::default(), Vec::new());
        for (place, ServedDevice { served, seed, state, .. }) in devices {
            rooms.push(match (served, state) {
                (Served::Memory { .. } | Served::Disk { .. }, Some(_)) => {
                    return Err(ServerError::NoState);
                }
                (Served::Disk { path, options }, None) => DeviceSlot::Disk(path, options),
                (Served::Memory { size_bytes, kind, reactors }, None) => {
                    let made = Drive::in_memory(pool.clone(), kind, size_bytes, reactors, seed);
                    DeviceSlot::Ready(reactor.run(made)?)
                }
                (Served::Emulated(profile), None) => {
                    DeviceSlot::Ready(reactor.run(Drive::format(profile, seed))?)
                }
                (Served::Emulated(profile), Some(path)) => {
                    let (kept, drive) = ServedState::open(path, (profile, seed), reactor)?;
                    starts.push((place, kept.start));
                    state_files.0.push((rooms.len(), kept));
                    DeviceSlot::Ready(drive)
                }
            });
            // No timer of this device must delay the clock of the next one.
            reactor.settle();
            places.push(place);
        }
        let shell = Self {
            pool,
            rooms,
            places,
            resp,
            resp_deals,
            resp_reactors,
            vfio_user,
            reactor: number,
            subsystems,
            here,
            elsewhere,
            rules,
            tell,
            has_warned,
            starts,
            tenants,
        };
        Ok((shell, state_files))
    }

    /// Opens the disks. Runs inside the serving reactor.
    pub(super) async fn finish(self) -> Result<DeviceSet, ServerError> {
        let Self { pool, rooms, places, resp, resp_deals, reactor, subsystems, here, .. } = self;
        let (elsewhere, rules) = (self.elsewhere, self.rules);
        let (tell, has_warned, starts) = (self.tell, self.has_warned, self.starts);
        let mut drives = Vec::new();
        for room in rooms {
            drives.push(match room {
                DeviceSlot::Ready(drive) => drive,
                DeviceSlot::Disk(path, options) => {
                    Drive::on_disk(pool.clone(), &path, options, &tell).await?
                }
            });
        }
        for subsystem in here {
            let at = places.iter().position(|&place| place == subsystem.device);
            let drive = &drives[at.expect("a subsystem is where its device is")];
            let start = starts.iter().find(|(place, _)| *place == subsystem.device);
            let incarnation = start.map_or(0, |(_, start)| start.incarnation);
            let config = SubsystemConfig {
                nqn: subsystem.nqn,
                serial: subsystem.serial.of(incarnation),
                firmware: env!("CARGO_PKG_VERSION").to_owned(),
                flash: drive.flash(),
            };
            let device = drive.controller().clone();
            subsystems.add(Subsystem::of_incarnation(config, device, incarnation));
        }
        for nqn in &elsewhere {
            subsystems.add_elsewhere(nqn);
        }
        subsystems.set_rules(rules);
        let warn = tell.clone();
        subsystems.on_unnamed_host(move || {
            if !has_warned.swap(true, Ordering::Relaxed) {
                drop(warn.send(UNNAMED_HOST.to_owned()));
            }
        });
        let turns = self.tenants.as_ref().map(Gate::open);
        let (mut doors, movable) = (Vec::new(), MovableConnections::default());
        let clients = Rc::new(RespClients::new(movable.clone(), turns.clone()));
        let reactors = self.resp_reactors.filter(|_| !resp.is_empty());
        let (to_here, to_all) = resp_dealers(&clients, resp_deals, reactors);
        for gate in resp {
            let at = places.iter().position(|&place| place == gate.device);
            let drive = &drives[at.expect("a door is where its device is")];
            let store = drive.controller().kv().ok_or(ServerError::NoPairs)?;
            let deal = if drive.is_shared() { &to_all } else { &to_here };
            doors.push(gate.open(store.clone(), deal.clone()).await?);
        }
        let open = |listener: VfioListener| {
            let users = Users::default();
            // Discovery never reports it: a virtual machine has the subsystem's controller already.
            let address = transport_address((Ipv4Addr::LOCALHOST, 0).into());
            let entrance = Entrance::new(subsystems.clone(), address);
            listener.open(entrance.in_reactor(reactor, users.clone()), users, tell.clone())
        };
        let vfio_user = self.vfio_user.into_iter().map(open).collect();
        Ok(DeviceSet {
            drives,
            places,
            reactor,
            subsystems,
            starts,
            resp: doors,
            clients,
            movable,
            gate: turns,
            vfio_user,
        })
    }
}

/// Takes an accepted Redis client.
type RespDealer = Rc<dyn Fn(RespArrival)>;

/// Returns what serves Redis clients in this reactor, and what deals them to this one and others.
fn resp_dealers(
    clients: &Rc<RespClients>,
    deals: Vec<SendEnd<RespArrival>>,
    reactors: Option<DealtReactors>,
) -> (RespDealer, RespDealer) {
    let here = clients.clone();
    let to_here: RespDealer = Rc::new(move |arrival| here.serve(arrival));
    let others: Vec<Outbox<RespArrival>> = deals.into_iter().map(SendEnd::open).collect();
    let (dealer, here) = (Dealer::among(others.len() + 1, reactors), to_here.clone());
    let to_all: RespDealer = Rc::new(move |mut arrival: RespArrival| {
        match others.get(dealer.deal(&mut arrival.place)) {
            Some(other) => other.send(arrival),
            None => here(arrival),
        }
    });
    (to_here, to_all)
}

impl DeviceSet {
    /// Returns the devices of these subsystems, without drives and listeners of their own.
    #[cfg(test)]
    pub(super) fn without_listeners(subsystems: Arc<Subsystems>, reactor: u32) -> Self {
        let movable = MovableConnections::default();
        Self {
            drives: Vec::new(),
            places: Vec::new(),
            reactor,
            subsystems,
            starts: Vec::new(),
            resp: Vec::new(),
            clients: Rc::new(RespClients::new(movable.clone(), None)),
            movable,
            gate: None,
            vfio_user: Vec::new(),
        }
    }

    /// Returns the counters of the devices.
    pub(super) fn census(&self) -> Vec<DeviceCensus> {
        let drives = self.places.iter().zip(&self.drives);
        let census = |(&place, drive)| {
            let door = self.resp.iter().find(|door| door.device == place);
            let redis = door.map(RespDoor::status);
            let redis_by_reactor = door.map(RespDoor::commands_by_reactor).unwrap_or_default();
            let census = DeviceCensus::of(place, drive, &self.subsystems);
            DeviceCensus { redis, redis_by_reactor, ..census }
        };
        drives.map(census).collect()
    }

    /// Returns whether a device has the latencies of a profile.
    pub(super) fn is_emulated(&self) -> bool {
        self.drives.iter().any(Drive::is_emulated)
    }

    /// Returns the counters of the Redis services, if any.
    pub(super) fn redis(&self) -> Option<RedisReport> {
        let each = self.resp.iter().map(|door| RedisReport::from(door.totals()));
        each.reduce(RedisReport::and)
    }

    /// Returns the entrance to this reactor's devices for a host that connected by `way`. Its
    /// queues count as `users` until their last commands have ended.
    pub(super) fn entrance(&self, way: ConnectionInfo, users: Users) -> Entrance {
        let address = transport_address(way.address);
        let entrance = Entrance::new(self.subsystems.clone(), address).of_connection(way.number);
        entrance.in_reactor(self.reactor, users)
    }

    /// Returns the connections of virtual machines.
    pub(super) fn virtual_machines(&self) -> Vec<ConnectionCensus> {
        self.vfio_user.iter().filter_map(|socket| socket.census()).collect()
    }

    /// Returns the number of connections of virtual machines so far.
    pub(super) fn virtual_machine_count(&self) -> u64 {
        self.vfio_user.iter().map(|socket| socket.count()).sum()
    }

    /// Closes the devices, also after one fails: see [`Drive::close`].
    pub(super) async fn close(&self) -> Result<(), ServerError> {
        for socket in &self.vfio_user {
            socket.close().await;
        }
        self.resp.iter().for_each(RespDoor::end);
        self.clients.end().await;
        for door in &self.resp {
            door.close().await;
        }
        let mut closed = Ok(());
        for drive in &self.drives {
            closed = closed.and(drive.close().await);
        }
        closed
    }
}

impl StateFiles {
    /// Marks the state files as in use, before hosts use the devices.
    pub(super) fn mark(&mut self) -> Result<(), ServerError> {
        self.0.iter_mut().try_for_each(|(_, kept)| kept.mark())
    }

    /// Saves every device, also after one fails. No host uses the devices at this point.
    pub(super) fn save(
        self,
        reactor: &mut Reactor,
        device_set: &DeviceSet,
    ) -> Result<(), ServerError> {
        let saved = self.0.into_iter().map(|(place, kept)| {
            let drive = &device_set.drives[place];
            kept.save(reactor, drive)
        });
        // Collect first: a failure must not stop the others from being saved.
        saved.collect::<Vec<_>>().into_iter().collect()
    }
}
