use super::*;
use core::mem::offset_of;

#[test]
fn fields_are_where_the_specification_has_them() {
    // Base 2.1, Identify Controller data structure.
    for (offset, specified) in [
        (offset_of!(IdentifyController, vendor_id), 0),
        (offset_of!(IdentifyController, subsystem_vendor_id), 2),
        (offset_of!(IdentifyController, serial_number), 4),
        (offset_of!(IdentifyController, model_number), 24),
        (offset_of!(IdentifyController, firmware_revision), 64),
        (offset_of!(IdentifyController, arbitration_burst), 72),
        (offset_of!(IdentifyController, oui), 73),
        (offset_of!(IdentifyController, multipath), 76),
        (offset_of!(IdentifyController, transfer_max_log2), 77),
        (offset_of!(IdentifyController, controller_id), 78),
        (offset_of!(IdentifyController, version), 80),
        (offset_of!(IdentifyController, resume_latency), 84),
        (offset_of!(IdentifyController, shutdown_latency), 88),
        (offset_of!(IdentifyController, async_events), 92),
        (offset_of!(IdentifyController, attributes), 96),
        (offset_of!(IdentifyController, controller_type), 111),
        (offset_of!(IdentifyController, fru_guid), 112),
        (offset_of!(IdentifyController, retry_delays), 128),
        (offset_of!(IdentifyController, optional_admin_commands), 256),
        (offset_of!(IdentifyController, abort_limit), 258),
        (offset_of!(IdentifyController, async_event_limit), 259),
        (offset_of!(IdentifyController, firmware_updates), 260),
        (offset_of!(IdentifyController, log_page_attributes), 261),
        (offset_of!(IdentifyController, error_log_entries), 262),
        (offset_of!(IdentifyController, power_states_len), 263),
        (offset_of!(IdentifyController, admin_vendor_commands), 264),
        (offset_of!(IdentifyController, power_transitions), 265),
        (offset_of!(IdentifyController, warning_temperature), 266),
        (offset_of!(IdentifyController, critical_temperature), 268),
        (offset_of!(IdentifyController, capacity), 280),
        (offset_of!(IdentifyController, unallocated_capacity), 296),
        (offset_of!(IdentifyController, keep_alive_granularity), 320),
        (offset_of!(IdentifyController, sanitize), 328),
        (offset_of!(IdentifyController, access_transition_seconds), 342),
        (offset_of!(IdentifyController, access_capabilities), 343),
        (offset_of!(IdentifyController, access_group_max), 344),
        (offset_of!(IdentifyController, access_groups), 348),
        (offset_of!(IdentifyController, submission_entry_sizes), 512),
        (offset_of!(IdentifyController, completion_entry_sizes), 513),
        (offset_of!(IdentifyController, commands_max), 514),
        (offset_of!(IdentifyController, namespaces_max), 516),
        (offset_of!(IdentifyController, optional_commands), 520),
        (offset_of!(IdentifyController, fused_operations), 522),
        (offset_of!(IdentifyController, format_attributes), 524),
        (offset_of!(IdentifyController, volatile_write_cache), 525),
        (offset_of!(IdentifyController, atomic_write), 526),
        (offset_of!(IdentifyController, atomic_write_power_fail), 528),
        (offset_of!(IdentifyController, io_vendor_commands), 530),
        (offset_of!(IdentifyController, write_protection), 531),
        (offset_of!(IdentifyController, atomic_compare_write), 532),
        (offset_of!(IdentifyController, copy_formats), 534),
        (offset_of!(IdentifyController, sgl_support), 536),
        (offset_of!(IdentifyController, allowed_namespaces_max), 540),
        (offset_of!(IdentifyController, subsystem), 768),
        (offset_of!(IdentifyController, command_capsule_size), 1792),
        (offset_of!(IdentifyController, response_capsule_size), 1796),
        (offset_of!(IdentifyController, capsule_data_offset), 1800),
        (offset_of!(IdentifyController, fabrics_attributes), 1802),
        (offset_of!(IdentifyController, capsule_descriptors_max), 1803),
        (offset_of!(IdentifyController, optional_fabrics_commands), 1804),
        (offset_of!(IdentifyController, discovery_controller_type), 1806),
        (offset_of!(IdentifyController, power_states), 2048),
        (offset_of!(IdentifyController, vendor_3072), 3072),
    ] {
        assert_eq!(offset, specified);
    }
}

#[test]
fn what_a_linux_host_checks_has_the_specifications_bytes() {
    // The host compares CNTLID, and wants KAS, IOCCSZ >= 4, IORCSZ >= 1, ICDOFF 0, SGLS and SUBNQN:
    // here 8 KiB of data in a capsule, so that IOCCSZ is (64 + 8192) / 16 = 204h.
    let controller = IdentifyController {
        serial_number: Text::new("KV1"),
        controller_id: 0x0102.into(),
        version: crate::Version::V2_1.0.into(),
        attributes: (IdentifyController::HOST_ID_128 | IdentifyController::TRAFFIC_KEEPS_ALIVE)
            .into(),
        controller_type: ControllerType::IO,
        keep_alive_granularity: 10.into(),
        submission_entry_sizes: IdentifyController::SUBMISSION_ENTRY_64,
        completion_entry_sizes: IdentifyController::COMPLETION_ENTRY_16,
        sgl_support: (IdentifyController::SGL
            | IdentifyController::SGL_LONGER
            | IdentifyController::SGL_OFFSET
            | IdentifyController::SGL_TRANSPORT)
            .into(),
        subsystem: QualifiedName::new("nqn.x"),
        command_capsule_size: 0x204.into(),
        response_capsule_size: 1.into(),
        ..IdentifyController::default()
    };
    let mut expected = [0; 4096];
    for (offset, part) in [
        (4, &b"KV1                 "[..]),
        (78, &[0x02, 0x01, 0x00, 0x01, 0x02, 0x00]),
        (96, &[0x41]),
        (111, &[1]),
        (320, &[10]),
        (512, &[0x66, 0x44]),
        (536, &[0x01, 0x00, 0x34, 0x00]),
        (768, b"nqn.x"),
        (1792, &[0x04, 0x02, 0, 0, 1]),
    ] {
        expected[offset..offset + part.len()].copy_from_slice(part);
    }
    assert_eq!(controller.as_bytes(), expected);
    assert_eq!(IdentifyController::read_from_bytes(&expected), Ok(controller));
}

#[test]
fn bits_are_the_specifications() {
    // Base 2.1, Identify Controller data structure: CMIC, FRMW, LPA, ONCS, VWC, OFCS.
    assert_eq!(IdentifyController::MULTIPLE_PORTS, 0x01);
    assert_eq!(IdentifyController::MULTIPLE_CONTROLLERS, 0x02);
    assert_eq!(IdentifyController::ONE_FIXED_SLOT, 0x03, "bits 3:1 are 001b");
    assert_eq!(IdentifyController::LOG_EFFECTS, 0x02);
    assert_eq!(IdentifyController::LOG_OFFSETS, 0x04);
    assert_eq!(IdentifyController::LOG_SUPPORTED, 0x20);
    assert_eq!(IdentifyController::DATASET_MANAGEMENT, 0x004);
    assert_eq!(IdentifyController::WRITE_ZEROES, 0x008);
    assert_eq!(IdentifyController::SAVE_AND_SELECT, 0x010);
    assert_eq!(IdentifyController::COPY, 0x100);
    assert_eq!(IdentifyController::WRITE_CACHE | IdentifyController::FLUSH_ALL, 0x07);
    assert_eq!(IdentifyController::DISCONNECT, 0x01);
    assert_eq!((ControllerType::DISCOVERY.0, ControllerType::ADMIN.0), (2, 3));
}

#[test]
fn a_power_state_starts_with_its_power() {
    // Base 2.1, Power State Descriptor data structure: MP 15:0.
    let mut controller = IdentifyController::default();
    controller.power_states[1].power_max = 0x0102.into();
    assert_eq!(controller.as_bytes()[2080..2084], [0x02, 0x01, 0, 0]);
}

#[test]
fn limits_of_the_nvm_command_set_have_the_specifications_bytes() {
    // NVM 1.1, I/O Command Set Specific Identify Controller data structure: VSL 0, WZSL 1, WUSL 2,
    // DMRL 3, DMRSL 7:4.
    let limits = NvmController {
        verify_max_log2: 1,
        write_zeroes_max_log2: 2,
        write_uncorrectable_max_log2: 3,
        deallocate_ranges_max: 4,
        deallocate_range_blocks_max: 0x0807_0605.into(),
        ..NvmController::default()
    };
    assert_eq!(limits.as_bytes()[..9], [1, 2, 3, 4, 5, 6, 7, 8, 0]);
}
