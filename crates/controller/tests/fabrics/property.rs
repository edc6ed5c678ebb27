//! Properties: enable, reset, shutdown (Base 2.1, Controller Properties).

use crate::host::{World, entry, pass, run};
use base::Nanos;
use spec::{Command, Configuration, ConnectData, Feature, FeatureSelect, Property, Status};

/// CSTS: ready, failed, shut down.
const READY: u64 = 1;
const FATAL: u64 = 2;
const SHUT_DOWN: u64 = 8;

#[test]
fn capabilities_let_linux_find_key_value_namespaces() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let capabilities = admin.property(Property::CAP).await;
        assert_eq!(capabilities & 0xffff, 1_023, "MQES");
        assert_ne!(capabilities & 1 << 16, 0, "CQR");
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
fn a_property_has_one_size_and_only_one_is_written() {
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
            (4, 0, 0x20), // There is no NSSR,
            (4, 0, 0x24), // nor what only is in memory.
            (0, 1, 0x14),
            (0, 0, 0x00),
            (0, 0, 0x1c),
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
    assert_eq!(admin.waiting(), 0, "nobody awaits command {waiting} any more");

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
