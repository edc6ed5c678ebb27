use super::census::DeviceCensus;
use super::drive::Drive;
use super::kept::{Began, Kept};
use super::{Served, ServedDevice, ServedSubsystem, ServerConfig, ServerError};
use controller::{Rules, Subsystem, SubsystemConfig, Subsystems};
use reactor::Reactor;
use std::rc::Rc;

/// What a reactor is to have of a server's devices.
pub(super) struct HousePlan {
    /// With their places in the server's list.
    devices: Vec<(usize, ServedDevice)>,
    /// Those of these devices.
    here: Vec<ServedSubsystem>,
    /// The names of those in other reactors.
    elsewhere: Vec<String>,
    rules: Rules,
}

/// The devices of a reactor, and everything that hosts see of them.
pub(super) struct House {
    drives: Vec<Drive>,
    /// Of each, its place in the server's list.
    places: Vec<usize>,
    pub(super) subsystems: Rc<Subsystems>,
    /// What those were that are kept in files, by their places in the server's list.
    pub(super) began: Vec<(usize, Began)>,
}

/// Deals `config`'s devices out to `count` reactors in turn, each with its subsystems.
pub(super) fn deal(config: ServerConfig, count: usize) -> Vec<HousePlan> {
    let ServerConfig { devices, subsystems, rules, .. } = config;
    let mut plans: Vec<HousePlan> = (0..count)
        .map(|house| {
            let is_here = |subsystem: &ServedSubsystem| subsystem.device % count == house;
            let (here, elsewhere): (Vec<_>, Vec<_>) = subsystems.iter().cloned().partition(is_here);
            let elsewhere = elsewhere.into_iter().map(|subsystem| subsystem.nqn).collect();
            HousePlan { devices: Vec::new(), here, elsewhere, rules: rules.clone() }
        })
        .collect();
    for (place, device) in devices.into_iter().enumerate() {
        plans[place % count].devices.push((place, device));
    }
    plans
}

impl HousePlan {
    /// The names of the subsystems that are to be here.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.here.iter().map(|subsystem| &subsystem.nqn[..])
    }
}

/// Those of a reactor's devices that are kept in files, by their places in the reactor.
#[derive(Default)]
pub(super) struct Household(Vec<(usize, Kept)>);

impl House {
    /// Puts the devices together, before the clock of `reactor` goes by the wall.
    pub(super) fn build(
        reactor: &mut Reactor,
        plan: HousePlan,
    ) -> Result<(Self, Household), ServerError> {
        let HousePlan { devices, here, elsewhere, rules } = plan;
        let (mut drives, mut places) = (Vec::new(), Vec::new());
        let (mut household, mut began) = (Household::default(), Vec::new());
        for (place, ServedDevice { served, seed, state, .. }) in devices {
            drives.push(match (served, state) {
                (Served::Memory { .. }, Some(_)) => return Err(ServerError::NoState),
                (Served::Memory { size_bytes, kind }, None) => {
                    reactor.run(Drive::in_memory(kind, size_bytes, seed))?
                }
                (Served::Emulated(profile), None) => reactor.run(Drive::format(profile, seed))?,
                (Served::Emulated(profile), Some(path)) => {
                    let (kept, drive) = Kept::open(path, (profile, seed), reactor)?;
                    began.push((place, kept.began));
                    household.0.push((drives.len(), kept));
                    drive
                }
            });
            // No timer of one is in the way of the next one's clock.
            reactor.settle();
            places.push(place);
        }
        let subsystems = Subsystems::new();
        reactor.run(async {
            for subsystem in here {
                let at = places.iter().position(|&place| place == subsystem.device);
                let drive = &drives[at.expect("a subsystem is where its device is")];
                let config = SubsystemConfig {
                    nqn: subsystem.nqn,
                    serial: subsystem.serial,
                    firmware: env!("CARGO_PKG_VERSION").to_owned(),
                    flash: drive.flash(),
                };
                subsystems.add(Subsystem::new(config, drive.controller().clone()));
            }
            for nqn in &elsewhere {
                subsystems.add_elsewhere(nqn);
            }
            subsystems.set_rules(rules);
        });
        Ok((Self { drives, places, subsystems, began }, household))
    }

    /// What the devices are and have done.
    pub(super) fn census(&self) -> Vec<DeviceCensus> {
        let drives = self.places.iter().zip(&self.drives);
        drives.map(|(&place, drive)| DeviceCensus::of(place, drive, &self.subsystems)).collect()
    }

    /// Writes to the flash what was answered from memory.
    pub(super) async fn flush(&self) -> Result<(), ServerError> {
        for drive in &self.drives {
            drive.flush().await?;
        }
        Ok(())
    }
}

impl Household {
    /// Hosts may use the devices from here on.
    pub(super) fn mark(&mut self) -> Result<(), ServerError> {
        self.0.iter_mut().try_for_each(|(_, kept)| kept.mark())
    }

    /// Saves the devices, each if it can be, which nobody uses any more.
    pub(super) fn save(self, reactor: &mut Reactor, house: &House) -> Result<(), ServerError> {
        let saved = self.0.into_iter().map(|(place, kept)| {
            let drive = &house.drives[place];
            kept.save(reactor, drive)
        });
        // One that cannot be saved does not keep the others from it.
        saved.collect::<Vec<_>>().into_iter().collect()
    }
}
