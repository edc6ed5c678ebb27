//! Properties: enable, reset, shutdown (Base 2.1, Controller Properties).

use crate::fabrics::host::{World, entry, pass, run, run_volatile};
use base::Nanos;
use spec::{Command, Configuration, ConnectData, Feature, FeatureSelect, Property, Status};

/// CSTS: ready, failed, shut down.
const READY: u64 = 1;
const FATAL: u64 = 2;
const SHUTTING_DOWN: u64 = 4;
const SHUT_DOWN: u64 = 8;
/// The subsystem was reset.
const WAS_RESET: u64 = 16;

#[test]
fn capabilities_let_linux_find_key_value_namespaces() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let capabilities = admin.property(Property::CAP).await;
        assert_eq!(capabilities & 0xffff, 1_023, "MQES");
        assert_ne!(capabilities & 1 << 16, 0, "CQR");
        assert_ne!(capabilities & 1 << 36, 0, "NSSRS");
        assert_ne!(capabilities & 1 << 37, 0, "CSS: the NVM command set");
        assert_ne!(capabilities & 1 << 43, 0, "CSS: I/O command sets; without it Linux shows none");
        assert_ne!(capabilities >> 24 & 0xff, 0, "TO");
        assert_eq!(capabilities >> 48 & 0xff, 0, "pages of 4 KiB");
        assert_eq!(admin.property(Property::VS).await, 0x0002_0100);
        assert_ne!(capabilities & 1 << 59, 0, "CRMS: CRTO means something");
        assert_eq!(admin.property(Property::CRTO).await & 0xffff, capabilities >> 24 & 0xff);
    });
}

#[test]
fn a_property_has_one_size_and_few_are_written() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let command = |kind: u8, size: u8, offset: u8| {
            let parts: [(usize, &[u8]); 4] =
                [(0, &[0x7f, 0x40, 9, 0, kind]), (39, &[0x5a]), (40, &[size]), (44, &[offset])];
            entry(&parts)
        };
        for (kind, size, offset) in [
            (4, 0, 0x00), // CAP has 8 bytes,
            (4, 1, 0x14), // CC,
            (4, 1, 0x1c), // CSTS and
            (4, 1, 0x08), // VS have 4.
            (4, 0, 0x04),
            (4, 1, 0x20), // NSSR has 4, too.
            (4, 0, 0x24), // What only is in memory is not here.
            (0, 1, 0x14),
            (0, 1, 0x1c),
            (0, 1, 0x20),
            (0, 0, 0x00),
            (0, 0, 0x08),
            (0, 0, 0x68),
        ] {
            admin.send_bytes(&command(kind, size, offset), &[]);
            let response = admin.next().await.unwrap();
            assert_eq!(response.entry.status(), Status::INVALID_FIELD, "{kind} {size} {offset}");
            assert!(response.entry.do_not_retry());
        }
    });
}

#[test]
fn a_controller_is_ready_when_it_is_enabled_as_it_can() {
    run(async |world| {
        let line = world.line();
        line.connect(ConnectData::ANY_CONTROLLER, 0, 31).await.unwrap();
        assert_eq!(line.property(Property::CSTS).await, 0);
        for (configuration, status) in [
            (0x0046_0061, READY), // All command sets,
            (0x0046_0001, READY), // that of blocks,
            (0x0046_0071, READY), // none.
            (0x0046_0011, FATAL), // CSS reserved,
            (0x0045_0061, FATAL), // IOSQES,
            (0x0036_0061, FATAL), // IOCQES,
            (0x0046_00e1, FATAL), // MPS,
            (0x0046_0861, FATAL), // AMS.
        ] {
            line.set_configuration(Configuration(configuration)).await;
            assert_eq!(line.property(Property::CC).await, configuration.into());
            assert_eq!(line.property(Property::CSTS).await, status, "{configuration:x}");
            line.set_configuration(Configuration(configuration & !1)).await;
            assert_eq!(line.property(Property::CSTS).await, 0);
        }
    });
}

#[test]
fn a_shutdown_is_complete_at_once_and_ends_all_but_property_commands() {
    run(async |world| {
        for shutdown in [0x0046_4061, 0x0046_8061] {
            let (admin, id) = world.admin().await;
            let io = world.io(id, 1).await;
            admin.set_configuration(Configuration(shutdown)).await;
            assert_eq!(admin.property(Property::CSTS).await, READY | SHUT_DOWN);
            assert_eq!(io.store(b"key", b"value").await, Status::COMMAND_SEQUENCE_ERROR);
            assert_eq!(admin.status(Command::keep_alive()).await, Status::COMMAND_SEQUENCE_ERROR);
            admin.set_configuration(Configuration(0x0046_0060)).await;
            assert_eq!(admin.property(Property::CSTS).await, 0);
            admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
            assert_eq!(admin.property(Property::CSTS).await, READY);
        }
    });
}

#[test]
fn a_shutdown_flushes_a_volatile_cache_first() {
    run_volatile(async |world| {
        let (admin, _) = world.admin().await;
        admin.set_configuration(Configuration(0x0046_4061)).await;
        while admin.property(Property::CSTS).await == READY | SHUTTING_DOWN {}
        assert_eq!(admin.property(Property::CSTS).await, READY | SHUT_DOWN);
        assert_eq!(world.blocks.flushes(), 1);
        admin.set_configuration(Configuration(0x0046_0060)).await;
        assert_eq!(admin.property(Property::CSTS).await, 0);
    });
    run(async |world| {
        let (admin, _) = world.admin().await;
        admin.set_configuration(Configuration(0x0046_4061)).await;
        assert_eq!(world.blocks.flushes(), 0, "nothing needs it");
    });
}

async fn reset(world: &World) {
    let (admin, id) = world.admin().await;
    let io = world.io(id, 1).await;
    let events = Command::set_features(Feature::ASYNC_EVENTS, 0, 0x11f);
    assert_eq!(admin.status(events).await, Status::SUCCESS);
    let waiting = admin.send(Command::async_event_request(), &[], 0);
    let closed = world.gate.close();
    io.send(Command::store(1, b"key", 5, spec::StoreOptions::NONE), b"value", 0);

    admin.set_configuration(Configuration(0x0046_0060)).await;
    assert_eq!(admin.property(Property::CSTS).await, 0);
    assert!(io.next().await.is_none(), "its I/O queues end");
    drop(closed);
    pass(Nanos::from_millis(1)).await;
    admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
    let wanted = Command::get_features(Feature::ASYNC_EVENTS, 0, FeatureSelect::Current);
    assert_eq!(admin.result(wanted).await, 0, "features are as at the start");
    world.subsystem.namespace_changed(1);
    assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
    assert_eq!(admin.waiting(), 0, "the reset dropped command {waiting}");

    let io = world.io(id, 1).await;
    let retrieved = io.retrieve(b"key", 5).await;
    assert_eq!(retrieved.data.bytes(), Some(&b"value"[..]), "what was started ran to its end");
    admin.queue.close();
}

#[test]
fn a_reset_ends_io_queues_and_waits_and_keeps_the_admin_queue() {
    run(async |world| {
        for _ in 0..3 {
            reset(&world).await;
        }
    });
}

/// A Property Set of 4 bytes.
fn write(property: Property, value: u32) -> Command {
    Command::property_set(property, value.into())
}

#[test]
fn a_reset_of_the_subsystem_resets_every_controller_and_keeps_the_data() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (other, other_id) = world.admin().await;
        let (io, other_io) = (world.io(id, 1).await, world.io(other_id, 1).await);
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
        // "NVMe" backwards, and what is not it, change nothing.
        for value in [0x654d_564e, 0, 1, u32::MAX] {
            assert_eq!(admin.status(write(Property::NSSR, value)).await, Status::SUCCESS);
            assert_eq!(other.property(Property::CSTS).await, READY);
        }
        assert_eq!(admin.property(Property::NSSR).await, 0);

        assert_eq!(admin.status(write(Property::NSSR, 0x4e56_4d65)).await, Status::SUCCESS);
        assert!(io.next().await.is_none() && other_io.next().await.is_none(), "I/O queues end");
        for line in [&admin, &other] {
            assert_eq!(line.property(Property::CSTS).await, WAS_RESET);
            assert_eq!(line.property(Property::CC).await, 0);
            assert_eq!(line.status(Command::keep_alive()).await, Status::COMMAND_SEQUENCE_ERROR);
            line.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
            assert_eq!(line.property(Property::CSTS).await, READY | WAS_RESET);
            assert_eq!(line.status(Command::keep_alive()).await, Status::SUCCESS);
        }
        let io = world.io(id, 1).await;
        assert_eq!(io.retrieve(b"key", 5).await.data.bytes(), Some(&b"value"[..]));
    });
}

#[test]
fn that_the_subsystem_was_reset_is_told_until_a_host_has_cleared_it() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let (other, _) = world.admin().await;
        assert_eq!(admin.status(write(Property::NSSR, 0x4e56_4d65)).await, Status::SUCCESS);
        for others in [0, 1, 0xffff_ffef] {
            assert_eq!(admin.status(write(Property::CSTS, others)).await, Status::SUCCESS);
            assert_eq!(admin.property(Property::CSTS).await, WAS_RESET, "it stands in bit 4");
        }
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        admin.set_configuration(Configuration(0x0046_0060)).await;
        assert_eq!(admin.property(Property::CSTS).await, WAS_RESET, "a reset of one keeps it");
        assert_eq!(admin.status(write(Property::CSTS, 0x10)).await, Status::SUCCESS);
        assert_eq!(admin.property(Property::CSTS).await, 0);
        assert_eq!(other.property(Property::CSTS).await, WAS_RESET, "each has its own");
        let (late, _) = world.admin().await;
        assert_eq!(late.property(Property::CSTS).await, READY | WAS_RESET, "it comes after it");
    });
}

#[test]
fn behind_a_discovery_controller_is_nothing_to_reset() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let (discovery, _) = world.admin_of(spec::QualifiedName::DISCOVERY, 0).await;
        assert_eq!(discovery.property(Property::CAP).await & 1 << 36, 0, "NSSRS");
        for command in [
            write(Property::NSSR, 0x4e56_4d65),
            write(Property::CSTS, 0x10),
            Command::property_get(Property::NSSR),
        ] {
            assert_eq!(discovery.status(command).await, Status::INVALID_FIELD);
        }
        assert_eq!(admin.property(Property::CSTS).await, READY);
    });
}
