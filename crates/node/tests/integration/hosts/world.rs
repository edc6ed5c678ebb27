use crate::hosts::tape::{Tape, Taped};
use base::{BufPool, Nanos};
use controller::{
    Entrance, FlashFigures, Subsystem, SubsystemConfig, Subsystems, TransportAddress,
};
use net::{Conditions, Network};
use node::{Device, FaultPlan, Profile};
use nvme_tcp::framing::Counters;
use nvme_tcp::target;
use reactor::Reactor;
use spec::{AddressFamily, Text};
use std::rc::Rc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";
pub(crate) const ADDRESS: &str = "192.0.2.7";
pub(crate) const PORT: u16 = 4420;

/// The namespace.
pub(crate) const NSID: u32 = 1;

/// Pieces that end in the middle of headers, of digests and of data, and take their time.
const ROUGH: Conditions = Conditions {
    delay: (Nanos::from_micros(1), Nanos::from_micros(300)),
    piece_max: 3_000,
    capacity: 20_000,
    life: None,
};

/// The device `ideal` behind a target, and the wires to it.
pub(crate) struct World {
    network: Network,
    tape: Rc<Tape>,
    /// Bytes of the device.
    pub(crate) capacity: u64,
}

/// Plays `session` in virtual time, over a calm network, and over one that cuts everything.
pub(crate) fn play(session: &impl AsyncFn(&World)) {
    play_on(1, Conditions::CALM, session);
    play_on(2, ROUGH, session);
}

/// Plays `session` over a calm network, and returns what went over it.
pub(crate) fn record(session: &impl AsyncFn(&World)) -> Rc<Tape> {
    play_on(1, Conditions::CALM, session)
}

fn play_on(seed: u64, conditions: Conditions, session: &impl AsyncFn(&World)) -> Rc<Tape> {
    Reactor::new(Some(seed)).run(async {
        let network = Network::new(seed, conditions);
        let capacity = serve(&network).await;
        let world = World { network, tape: Rc::default(), capacity };
        session(&world).await;
        world.tape
    })
}

impl World {
    /// A new connection to the target.
    pub(crate) async fn connect(&self) -> Taped {
        let end = self.network.connect(ADDRESS).await.expect("the target listens");
        Taped::new(end, self.tape.clone())
    }

    /// How many connections the target and a host have.
    pub(crate) fn connections(&self) -> usize {
        self.network.open().len()
    }
}

/// Lets hosts connect to a new device, and says how many bytes it has.
async fn serve(network: &Network) -> u64 {
    let profile = Profile::load("ideal").expect("a built-in profile");
    let cells = Device::manufacture(&profile, 1);
    let device = Device::format(&profile, cells, 1, FaultPlan::default()).await;
    let device = device.expect("the device is large enough");
    let capacity = device.store().capacity_bytes();
    let config = SubsystemConfig {
        nqn: NQN.to_owned(),
        serial: "KV-0001".to_owned(),
        firmware: "1.2.3".to_owned(),
        flash: Box::new(|| FlashFigures::NEW),
    };
    let subsystems = Subsystems::new();
    subsystems.add(Subsystem::new(config, device.controller().clone()));
    let address =
        TransportAddress { family: AddressFamily::IPV4, address: Text::new(ADDRESS), port: PORT };
    let entrance = Rc::new(Entrance::new(subsystems, address));
    let listener = network.listen(ADDRESS);
    clock::spawn(async move {
        let config =
            target::Config { pool: BufPool::new(16 << 20), counters: Rc::<Counters>::default() };
        while let Some(end) = listener.accept().await {
            let (entrance, config) = (entrance.clone(), config.clone());
            clock::spawn(async move {
                target::serve(Rc::new(end), entrance, config, Rc::default()).await;
            });
        }
        // It owns what is served.
        drop(device);
    });
    capacity
}
