//! The Set Features and Get Features commands (Base 2.1 and KV 1.0d, Features).

use super::delivery::delivered;
use super::events::{DISCOVERY_EVENTS, STORAGE_EVENTS};
use super::feature_values::{Features, TEMPERATURES};
use crate::completion::{Executed, Outcome};
use crate::fabrics::{Association, Service, Subsystem, TransportModel};
use spec::{
    AsyncEvents, Command, CommandSet, Feature, FeatureCapabilities, FeatureEffects, FeatureScope,
    FeatureSelect, QueueCounts, Status, TemperatureThreshold,
};

/// The features of every controller (Base 2.1, Feature Support Requirements).
const COMMON: [Feature; 2] = [Feature::ASYNC_EVENTS, Feature::KEEP_ALIVE_TIMER];

/// The other features of every I/O controller.
const STORAGE: [Feature; 6] = [
    Feature::ARBITRATION,
    Feature::POWER_MANAGEMENT,
    Feature::TEMPERATURE_THRESHOLD,
    Feature::NUMBER_OF_QUEUES,
    Feature::COMMAND_SET_PROFILE,
    Feature::HOST_IDENTIFIER,
];

/// The features of controllers with block or zoned namespaces (NVM 1.1, Features Support; ZNS 1.1a
/// refers to it).
const BLOCKS: [Feature; 2] = [Feature::ERROR_RECOVERY, Feature::WRITE_ATOMICITY_NORMAL];

/// The features of controllers with interrupts (NVMe over PCIe 1.1).
const INTERRUPTS: [Feature; 2] = [Feature::INTERRUPT_COALESCING, Feature::INTERRUPT_VECTOR];

/// Mask of the vector of Interrupt Vector Configuration.
const VECTOR: u32 = 0xffff;

/// Mask of the threshold and the time of Interrupt Coalescing.
const COALESCING: u32 = 0xffff;

/// Invalid number of queues.
const TOO_MANY_QUEUES: u16 = 0xffff;

/// Mask of the power state of Power Management.
const POWER_STATE: u32 = 0x1f;

/// Mask of the combination of an I/O Command Set Profile.
const COMBINATION: u32 = 0x1ff;

/// Every namespace.
const NSID_ALL: u32 = 0xffff_ffff;

/// Returns whether the controller has the feature.
fn has(association: &Association, feature: Feature) -> bool {
    let Service::Storage(subsystem) = &association.service else {
        return COMMON.contains(&feature);
    };
    let sets = subsystem.command_sets();
    let has_set = |set: &[CommandSet]| set.iter().any(|set| sets.contains(set));
    match feature {
        Feature::VOLATILE_WRITE_CACHE => subsystem.device.has_volatile_cache(),
        Feature::KEY_VALUE_CONFIGURATION => has_set(&[CommandSet::KEY_VALUE]),
        // A host on PCIe does not vanish without the end of its function.
        Feature::KEEP_ALIVE_TIMER => association.model == TransportModel::Message,
        _ if INTERRUPTS.contains(&feature) => association.model != TransportModel::Message,
        _ if BLOCKS.contains(&feature) => has_set(&[CommandSet::NVM, CommandSet::ZONED]),
        _ => COMMON.contains(&feature) || STORAGE.contains(&feature),
    }
}

/// Returns the log page of feature effects.
pub(super) fn effects(association: &Association) -> FeatureEffects {
    let all = (0..=u8::MAX).map(Feature).filter(|&feature| has(association, feature));
    all.fold(FeatureEffects::default(), |page, feature| {
        let is_of_namespace =
            capabilities(feature).contains(FeatureCapabilities::NAMESPACE_SPECIFIC);
        page.with(
            feature,
            if is_of_namespace { FeatureScope::Namespace } else { FeatureScope::Controller },
        )
    })
}

pub(super) fn set(association: &Association, command: &Command) -> Executed {
    let (feature, value) = (command.feature_id(), command.feature_value());
    let is_of_all = feature == Feature::ERROR_RECOVERY && command.nsid() == NSID_ALL;
    if !(is_of_all && has(association, feature)) {
        current(association, command)?;
    }
    if command.feature_save() {
        return Err(Status::FEATURE_NOT_SAVEABLE);
    }
    let features = &association.features;
    match feature {
        Feature::ARBITRATION => features.arbitration.set(value),
        // An interrupt stands for what was posted in a turn, and none is delayed.
        Feature::INTERRUPT_COALESCING => features.coalescing.set(value & COALESCING),
        Feature::INTERRUPT_VECTOR => {
            features.vectors.lock().insert(value & VECTOR, value & Feature::COALESCING_DISABLED);
        }
        Feature::POWER_MANAGEMENT if value & POWER_STATE != 0 => {
            return Err(Status::INVALID_FIELD);
        }
        Feature::TEMPERATURE_THRESHOLD => {
            set_temperature(features, TemperatureThreshold(value))?;
            association.notice_health();
        }
        Feature::NUMBER_OF_QUEUES => return set_queues(association, value.into()),
        Feature::ASYNC_EVENTS => {
            let there_are = match association.service {
                Service::Storage(_) => AsyncEvents::WARNINGS.0 | STORAGE_EVENTS,
                Service::Discovery(_) => DISCOVERY_EVENTS,
            };
            association.events.set_wanted(AsyncEvents(value & there_are));
            association.notice_health();
        }
        Feature::KEEP_ALIVE_TIMER => association.set_keep_alive(value),
        Feature::COMMAND_SET_PROFILE if value & COMBINATION != 0 => {
            return Err(Status::COMMAND_SET_COMBINATION_REJECTED);
        }
        Feature::VOLATILE_WRITE_CACHE if value & Feature::WRITE_CACHE_ENABLED != 0 => {}
        Feature::ERROR_RECOVERY => set_recovery(association, command)?,
        Feature::WRITE_ATOMICITY_NORMAL => {
            features.atomicity.set(value & Feature::ATOMICITY_DISABLED);
        }
        // The only power state is 0, and so is the only combination of command sets.
        Feature::POWER_MANAGEMENT | Feature::COMMAND_SET_PROFILE => {}
        Feature::KEY_VALUE_CONFIGURATION => {
            let needs_key = value & Feature::DELETE_NEEDS_KEY != 0;
            subsystem(association)?.device.set_delete_reports_missing(needs_key);
        }
        // A fabrics host has set its identifier in its Connect.
        Feature::HOST_IDENTIFIER => return Err(Status::COMMAND_SEQUENCE_ERROR),
        // The write cache is a property of the device and cannot be turned off.
        _ => return Err(Status::FEATURE_NOT_CHANGEABLE),
    }
    Ok(Outcome::done())
}

pub(super) fn get(association: &Association, command: &Command) -> Executed {
    let feature = command.feature_id();
    let current = current(association, command)?;
    let result = match command.feature_select().ok_or(Status::INVALID_FIELD)? {
        FeatureSelect::Capabilities => capabilities(feature).0,
        FeatureSelect::Current if feature == Feature::HOST_IDENTIFIER => {
            return delivered(command, &association.host_id);
        }
        FeatureSelect::Current => current,
        FeatureSelect::Default | FeatureSelect::Saved => default(association, command),
    };
    Ok(Outcome { result: result.into(), ..Outcome::done() })
}

/// Returns the current value of a feature, if the controller has it.
fn current(association: &Association, command: &Command) -> Result<u32, Status> {
    let features = &association.features;
    if !has(association, command.feature_id()) {
        return Err(Status::INVALID_FIELD);
    }
    match command.feature_id() {
        Feature::ASYNC_EVENTS => Ok(association.events.wanted().0),
        Feature::KEEP_ALIVE_TIMER => Ok(association.keep_alive.timeout_ms()),
        Feature::ARBITRATION => Ok(features.arbitration.get()),
        Feature::INTERRUPT_COALESCING => Ok(features.coalescing.get()),
        Feature::INTERRUPT_VECTOR => {
            let vector = command.feature_value() & VECTOR;
            if vector > features.io_queues_max.into() {
                return Err(Status::INVALID_FIELD);
            }
            Ok(vector | features.vectors.lock().get(&vector).copied().unwrap_or(0))
        }
        Feature::POWER_MANAGEMENT | Feature::COMMAND_SET_PROFILE | Feature::HOST_IDENTIFIER => {
            Ok(0)
        }
        Feature::TEMPERATURE_THRESHOLD => {
            of_direction(features.temperatures.get(), command.feature_value())
        }
        Feature::VOLATILE_WRITE_CACHE => Ok(Feature::WRITE_CACHE_ENABLED),
        Feature::ERROR_RECOVERY => {
            let namespace = blocks_of(association, command.nsid())?;
            Ok(features.recovery.lock().get(&namespace).copied().unwrap_or(0))
        }
        Feature::WRITE_ATOMICITY_NORMAL => Ok(features.atomicity.get()),
        Feature::NUMBER_OF_QUEUES => Ok(queues(features.io_queues.get())),
        Feature::KEY_VALUE_CONFIGURATION => {
            let subsystem = subsystem(association)?;
            let set = association.namespace(command.nsid()).map(|it| it.command_set());
            if command.nsid() != NSID_ALL && set != Some(CommandSet::KEY_VALUE) {
                return Err(Status::INVALID_NAMESPACE);
            }
            Ok(u32::from(subsystem.device.delete_reports_missing()) * Feature::DELETE_NEEDS_KEY)
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

fn default(association: &Association, command: &Command) -> u32 {
    match command.feature_id() {
        Feature::NUMBER_OF_QUEUES => queues(association.features.io_queues_max),
        Feature::INTERRUPT_VECTOR => command.feature_value() & VECTOR,
        Feature::VOLATILE_WRITE_CACHE => Feature::WRITE_CACHE_ENABLED,
        Feature::TEMPERATURE_THRESHOLD => {
            of_direction(TEMPERATURES, command.feature_value()).unwrap_or(0)
        }
        _ => 0,
    }
}

fn capabilities(feature: Feature) -> FeatureCapabilities {
    match feature {
        Feature::HOST_IDENTIFIER | Feature::VOLATILE_WRITE_CACHE => FeatureCapabilities::default(),
        Feature::KEY_VALUE_CONFIGURATION | Feature::ERROR_RECOVERY => {
            FeatureCapabilities::CHANGEABLE.with(FeatureCapabilities::NAMESPACE_SPECIFIC)
        }
        _ => FeatureCapabilities::CHANGEABLE,
    }
}

fn subsystem(association: &Association) -> Result<&Subsystem, Status> {
    match &association.service {
        Service::Storage(subsystem) => Ok(subsystem),
        Service::Discovery(_) => Err(Status::INVALID_FIELD),
    }
}

/// Returns the id of a block or zoned namespace that the host has, and how many namespaces had that
/// id before. Otherwise Invalid Namespace or Format.
fn blocks_of(association: &Association, nsid: u32) -> Result<(u32, u32), Status> {
    let namespace = association.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
    if namespace.command_set() == CommandSet::KEY_VALUE {
        return Err(Status::INVALID_NAMESPACE);
    }
    Ok((nsid, subsystem(association)?.device.inventory.life(nsid)))
}

/// Sets Error Recovery of one namespace, or of all that the host has. DULBE is refused: no
/// namespace sets DAE, because deallocated blocks read as zeros.
fn set_recovery(association: &Association, command: &Command) -> Result<(), Status> {
    if command.feature_value() & Feature::DEALLOCATED_IS_ERROR != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let ids = match command.nsid() {
        NSID_ALL => subsystem(association)?.device.namespace_ids(),
        nsid => vec![nsid],
    };
    let limit = command.feature_value() & Feature::RECOVERY_LIMIT;
    let namespaces = ids.into_iter().filter_map(|nsid| blocks_of(association, nsid).ok());
    let limits: Vec<_> = namespaces.map(|namespace| (namespace, limit)).collect();
    association.features.recovery.lock().extend(limits);
    Ok(())
}

/// Encodes `count` submission queues and completion queues.
fn queues(count: u16) -> u32 {
    QueueCounts { submission: count - 1, completion: count - 1 }.into()
}

/// Sets the number of queues: the lower of both requested numbers, because a fabrics queue is a
/// pair.
fn set_queues(association: &Association, wanted: QueueCounts) -> Executed {
    if [wanted.submission, wanted.completion].contains(&TOO_MANY_QUEUES) {
        return Err(Status::INVALID_FIELD);
    }
    if association.has_io_queues() {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    let most = association.features.io_queues_max;
    let count = wanted.submission.min(wanted.completion).min(most - 1) + 1;
    association.features.io_queues.set(count);
    Ok(Outcome { result: queues(count).into(), ..Outcome::done() })
}

fn set_temperature(features: &Features, threshold: TemperatureThreshold) -> Result<(), Status> {
    let is_there = matches!(
        threshold.sensor(),
        TemperatureThreshold::COMPOSITE | TemperatureThreshold::ALL_SENSORS
    );
    let (over, under) = features.temperatures.get();
    features.temperatures.set(match threshold.direction() {
        0 if is_there => (threshold.kelvins(), under),
        1 if is_there => (over, threshold.kelvins()),
        _ => return Err(Status::INVALID_FIELD),
    });
    Ok(())
}

/// Selects one of two thresholds by the direction in `value`.
fn of_direction((over, under): (u16, u16), value: u32) -> Result<u32, Status> {
    let threshold = TemperatureThreshold(value);
    match (threshold.sensor(), threshold.direction()) {
        (TemperatureThreshold::COMPOSITE, 0) => Ok(over.into()),
        (TemperatureThreshold::COMPOSITE, 1) => Ok(under.into()),
        _ => Err(Status::INVALID_FIELD),
    }
}
