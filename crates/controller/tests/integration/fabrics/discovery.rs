//! The discovery subsystem (Base 2.1, Discovery log page).

use crate::fabrics::host::{Line, NQN, run, subsystem};
use spec::{
    Cns, Command, DiscoveryEntry, DiscoveryHeader, Feature, LogPage, Property, QualifiedName,
    Status, SupportedLogPages,
};
use zerocopy::FromBytes;

fn get(bytes: u32) -> Command {
    Command::get_log_page(LogPage::DISCOVERY, 0, bytes)
}

async fn header(discovery: &Line) -> DiscoveryHeader {
    discovery.structure(get(1_024).with_retained_event()).await
}

#[test]
fn it_tells_of_every_subsystem_at_the_address_that_the_host_used() {
    run(async |world| {
        let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let header = header(&discovery).await;
        assert_eq!((header.records.get(), header.record_format.get()), (1, 0));
        let bytes = discovery.read(get(2_048)).await;
        let entry = DiscoveryEntry::read_from_bytes(&bytes[1_024..]).unwrap();
        // TRTYPE 3 TCP, ADRFAM 1 IPv4, SUBTYPE 2 NVM.
        assert_eq!(&bytes[1_024..1_027], &[3, 1, 2]);
        assert_eq!(entry.subsystem.as_str(), Some(NQN));
        assert_eq!(entry.address.as_str(), Some("192.0.2.7"));
        assert_eq!(entry.service.as_str(), Some("4420"));
        assert_eq!(entry.controller_id.get(), 0xffff, "any controller");
        assert!(entry.admin_queue_entries.get() >= 32);
        assert_eq!(entry.security, 0);
    });
}

#[test]
fn a_new_subsystem_is_told_of_and_changes_the_generation() {
    run(async |world| {
        let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let before = header(&discovery).await.generation;
        let set = Command::set_features(Feature::ASYNC_EVENTS, 0, 1 << 31);
        assert_eq!(discovery.status(set).await, Status::SUCCESS);
        let request = discovery.send(Command::async_event_request(), &[], 0);
        let other = "nqn.2026-01.org.example:other";
        world.subsystems.add(subsystem(other, &world.device, &world.flash));
        let event = discovery.next().await.unwrap();
        assert_eq!(event.entry.command_id(), request);
        assert_eq!(event.entry.result(), 0x0070_f002);
        let after = header(&discovery).await;
        assert_ne!(after.generation, before);
        assert_eq!(after.records, 2);

        // The header was read with RAE, so a further change is not told before the page was read.
        let request = discovery.send(Command::async_event_request(), &[], 0);
        let third = "nqn.2026-01.org.example:third";
        world.subsystems.add(subsystem(third, &world.device, &world.flash));
        let bytes = discovery.read(get(4_096)).await;
        assert_eq!(bytes[8], 3);
        let fourth = "nqn.2026-01.org.example:fourth";
        world.subsystems.add(subsystem(fourth, &world.device, &world.flash));
        assert_eq!(discovery.next().await.unwrap().entry.command_id(), request);
        assert!(world.admin_of(other, 0).await.0.waiting() == 0, "it can be connected to");
    });
}

#[test]
fn its_controllers_are_of_another_type_and_do_little() {
    run(async |world| {
        let (discovery, id) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let bytes = discovery.read(Command::identify(Cns::CONTROLLER, 0)).await;
        assert_eq!(bytes[111], 2, "CNTRLTYPE");
        assert_eq!(bytes[78..80], id.to_le_bytes());
        assert_eq!(bytes[92..96], [0, 0, 0, 0x80], "OAES: changes of the log page");
        assert_eq!(bytes[261] & 0b110, 0b100, "LPA: offsets, and no effects that Linux would ask");
        assert_ne!(bytes[536] & 1, 0, "SGLS");
        assert!(bytes[768..].starts_with(QualifiedName::DISCOVERY.as_bytes()));
        for command in [
            Command::identify(Cns::ACTIVE_NAMESPACES, 0),
            Command::identify(Cns::NAMESPACE, 1),
            Command::set_features(Feature::NUMBER_OF_QUEUES, 0, 0),
        ] {
            assert_eq!(discovery.status(command).await, Status::INVALID_FIELD);
        }
        let smart = Command::get_log_page(LogPage::SMART, 0, 512);
        assert_eq!(discovery.status(smart).await, Status::INVALID_LOG_PAGE);
        let pages: SupportedLogPages =
            discovery.structure(Command::get_log_page(LogPage::SUPPORTED, 0, 1_024)).await;
        assert!(pages.contains(LogPage::DISCOVERY) && !pages.contains(LogPage::SMART));
        assert_eq!(discovery.property(Property::CSTS).await, 1);
        let (storage, _) = world.admin().await;
        assert_eq!(storage.status(get(1_024)).await, Status::INVALID_LOG_PAGE);
    });
}

#[test]
fn it_has_no_io_queues() {
    run(async |world| {
        let (_discovery, id) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let io = world.line();
        let data = spec::ConnectData::new(
            crate::fabrics::host::HOST_ID,
            crate::fabrics::host::HOST_NQN,
            QualifiedName::DISCOVERY,
            id,
        );
        let connect = Command::connect(1, 31, spec::ConnectAttributes::NONE, 0);
        let refused = io.connect_with(connect, &data).await.expect_err("there are none");
        assert_eq!(refused.status(), Status::CONNECT_INVALID_PARAMETERS);
        assert_eq!(refused.result(), 42, "the queue's id");
    });
}
