use crate::admin::events::{DISCOVERY_EVENTS, REQUESTS_MAX, STORAGE_EVENTS};
use crate::admin::sanitize::CAPABILITIES as SANITIZE_CAPABILITIES;
use crate::admin::sharing::ACCESS_GROUP;
use crate::admin::warnings::{CRITICAL_TEMPERATURE, WARNING_TEMPERATURE};
use crate::fabrics::{
    Association, ERRORS_KEPT, KEEP_ALIVE_GRANULARITY, PCI_VENDOR_ID, Subsystem, TransportModel,
    VERSION,
};
use crate::fused::BLOCKS_MAX;
use crate::host_queue::IN_CAPSULE_BYTES_MAX;
use crate::namespace::NAMESPACES_MAX;
use crate::span::TRANSFER_BYTES_MAX;
use spec::{CommandSet, ControllerType, IdentifyController, QualifiedName, Text};

/// Optional admin commands for all hosts.
const ADMIN_COMMANDS: u16 = IdentifyController::FORMAT | IdentifyController::NAMESPACE_MANAGEMENT;

/// MDTS, in units of the smallest memory page.
const TRANSFER_MAX_LOG2: u8 = (TRANSFER_BYTES_MAX / 4_096).ilog2().to_le_bytes()[0];

/// Aborts at a time, 0's based. Each completes at once, so the number is no real limit.
const ABORT_LIMIT: u8 = 3;

/// ANATT: maximum seconds of a path change. Paths never change; 0 is reserved.
const ACCESS_TRANSITION_SECONDS: u8 = 10;

/// Supported formats of a Copy's source ranges: format 0.
const COPY_FORMATS: u16 = 1 << 0;

/// Bits 2:1 of VWC: Flush of all namespaces is not supported.
const NO_FLUSH_ALL: u8 = 0b10 << 1;

/// Returns the structure of an I/O controller.
pub(super) fn of_storage(subsystem: &Subsystem, association: &Association) -> IdentifyController {
    IdentifyController {
        serial_number: subsystem.serial,
        firmware_revision: subsystem.firmware,
        multipath: IdentifyController::MULTIPLE_CONTROLLERS | IdentifyController::ASYMMETRIC_ACCESS,
        async_events: STORAGE_EVENTS.into(),
        controller_type: ControllerType::IO,
        abort_limit: ABORT_LIMIT,
        firmware_updates: IdentifyController::ONE_FIXED_SLOT,
        log_page_attributes: IdentifyController::LOG_EFFECTS | IdentifyController::LOG_OFFSETS,
        warning_temperature: WARNING_TEMPERATURE.into(),
        critical_temperature: CRITICAL_TEMPERATURE.into(),
        capacity: u128::from(subsystem.capacity_bytes()).into(),
        unallocated_capacity: u128::from(subsystem.device.inventory.unallocated_bytes()).into(),
        sanitize: SANITIZE_CAPABILITIES.into(),
        access_transition_seconds: ACCESS_TRANSITION_SECONDS,
        access_capabilities: IdentifyController::ACCESS_OPTIMIZED
            | IdentifyController::ACCESS_GROUP_STAYS,
        access_group_max: ACCESS_GROUP.into(),
        access_groups: ACCESS_GROUP.into(),
        submission_entry_sizes: IdentifyController::SUBMISSION_ENTRY_64,
        completion_entry_sizes: IdentifyController::COMPLETION_ENTRY_16,
        namespaces_max: NAMESPACES_MAX.into(),
        allowed_namespaces_max: NAMESPACES_MAX.into(),
        optional_commands: (IdentifyController::COMPARE
            | IdentifyController::DATASET_MANAGEMENT
            | IdentifyController::WRITE_ZEROES
            | IdentifyController::SAVE_AND_SELECT
            | IdentifyController::VERIFY
            | IdentifyController::COPY)
            .into(),
        copy_formats: COPY_FORMATS.into(),
        volatile_write_cache: if subsystem.device.has_volatile_cache() {
            NO_FLUSH_ALL | IdentifyController::WRITE_CACHE
        } else {
            NO_FLUSH_ALL
        },
        fused_operations: if subsystem.command_sets().contains(&CommandSet::NVM) {
            IdentifyController::COMPARE_AND_WRITE.into()
        } else {
            0.into()
        },
        atomic_compare_write: (BLOCKS_MAX - 1).into(),
        subsystem: QualifiedName::new(subsystem.nqn()),
        ..of_model(association)
    }
}

/// Returns the structure of an I/O controller as far as the way of its host decides.
fn of_model(association: &Association) -> IdentifyController {
    match association.model {
        TransportModel::Message => IdentifyController {
            optional_admin_commands: ADMIN_COMMANDS.into(),
            command_capsule_size: ((64 + IN_CAPSULE_BYTES_MAX) / 16).into(),
            response_capsule_size: 1.into(),
            capsule_descriptors_max: 1,
            optional_fabrics_commands: IdentifyController::DISCONNECT.into(),
            ..common(association)
        },
        TransportModel::Memory { offers_shadow_doorbells } => IdentifyController {
            vendor_id: PCI_VENDOR_ID.into(),
            subsystem_vendor_id: PCI_VENDOR_ID.into(),
            sgl_support: (IdentifyController::SGL | IdentifyController::SGL_LONGER).into(),
            attributes: IdentifyController::HOST_ID_128.into(),
            keep_alive_granularity: 0.into(),
            optional_admin_commands: if offers_shadow_doorbells {
                ADMIN_COMMANDS | IdentifyController::DOORBELL_BUFFER
            } else {
                ADMIN_COMMANDS
            }
            .into(),
            ..common(association)
        },
    }
}

/// Returns the structure of a discovery controller.
pub(super) fn of_discovery(association: &Association) -> IdentifyController {
    IdentifyController {
        firmware_revision: Text::new(""),
        async_events: DISCOVERY_EVENTS.into(),
        controller_type: ControllerType::DISCOVERY,
        log_page_attributes: IdentifyController::LOG_OFFSETS,
        subsystem: QualifiedName::new(QualifiedName::DISCOVERY),
        ..common(association)
    }
}

fn common(association: &Association) -> IdentifyController {
    let error_log_entries = u8::try_from(ERRORS_KEPT - 1).expect("few errors are kept");
    IdentifyController {
        serial_number: Text::new(""),
        model_number: Text::new("Kvasir"),
        transfer_max_log2: TRANSFER_MAX_LOG2,
        controller_id: association.id.into(),
        version: VERSION.0.into(),
        attributes: (IdentifyController::HOST_ID_128 | IdentifyController::TRAFFIC_KEEPS_ALIVE)
            .into(),
        async_event_limit: REQUESTS_MAX - 1,
        error_log_entries,
        keep_alive_granularity: KEEP_ALIVE_GRANULARITY.into(),
        commands_max: association.limits.queue_entries.into(),
        sgl_support: (IdentifyController::SGL
            | IdentifyController::SGL_LONGER
            | IdentifyController::SGL_OFFSET
            | IdentifyController::SGL_TRANSPORT)
            .into(),
        ..IdentifyController::default()
    }
}
