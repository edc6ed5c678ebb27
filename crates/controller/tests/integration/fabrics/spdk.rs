//! The commands of SPDK v26.05's host in their order: it attaches, sees the namespace, and uses it.

use crate::fabrics::host::{BLOCK, HOST_ID, HOST_NQN, KV, Line, NQN, ZONED, run};
use spec::{
    Cns, Command, CommandSet, Configuration, ConnectAttributes, ConnectData, ControllerStatus,
    Feature, FeatureSelect, IdentifyNamespace, KvNamespace, LogPage, NamespaceDescriptors,
    NamespaceList, Property, Shutdown, ShutdownStatus, Status, StoreOptions,
};

#[test]
fn spdk_attaches_and_uses_the_namespace() {
    run(async |world| {
        let admin = world.line();
        let data = ConnectData::new(HOST_ID, HOST_NQN, NQN, ConnectData::ANY_CONTROLLER);
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 10_000);
        let id = admin.connect_with(connect, &data).await.unwrap();
        for property in [Property::VS, Property::CAP, Property::CC, Property::CSTS] {
            admin.property(property).await;
        }
        let enabled = Configuration(0x0046_0061);
        admin.set_configuration(enabled).await;
        assert_eq!(admin.property(Property::CSTS).await, 1);
        admin.read(Command::identify(Cns::CONTROLLER, 0)).await;
        let events = Command::set_features(Feature::ASYNC_EVENTS, 0, 0x11f);
        assert_eq!(admin.status(events).await, Status::SUCCESS);
        for _ in 0..4 {
            admin.send(Command::async_event_request(), &[], 0);
        }
        let get = |feature| Command::get_features(feature, 0, FeatureSelect::Current);
        assert_eq!(admin.result(get(Feature::KEEP_ALIVE_TIMER)).await, 10_000);
        for set in [0, 2, 1] {
            let identify = Command::identify(Cns::CONTROLLER_OF_SET, 0).with_csi(CommandSet(set));
            assert_eq!(admin.status(identify).await, Status::SUCCESS);
        }
        let queues = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, 0x03ff_03ff);
        assert_eq!(admin.result(queues).await, 0x003f_003f);

        find_namespace(&admin).await;
        identify_tool(&admin).await;
        let io = world.line();
        let connect = Command::connect(1, 255, ConnectAttributes::NONE, 0);
        let data = ConnectData { controller_id: id.into(), ..data };
        assert_eq!(io.connect_with(connect, &data).await, Ok(id));
        use_keys(&io).await;

        admin.set_configuration(enabled.with_shutdown(Shutdown::Normal)).await;
        let status = u32::try_from(admin.property(Property::CSTS).await).unwrap();
        assert_eq!(ControllerStatus(status).shutdown(), ShutdownStatus::Complete);
        assert_eq!(admin.waiting(), 0, "nothing has happened that is worth an event");
    });
}

/// Which namespaces there are, and what each is.
async fn find_namespace(admin: &Line) {
    let list: NamespaceList = admin.structure(Command::identify(Cns::ACTIVE_NAMESPACES, 0)).await;
    assert_eq!(list.iter().collect::<Vec<_>>(), [KV, BLOCK, ZONED]);
    let blocks: IdentifyNamespace = admin.structure(Command::identify(Cns::NAMESPACE, KV)).await;
    assert!(blocks.capacity.get() > 0, "or the host leaves the namespace out");
    let descriptors: NamespaceDescriptors =
        admin.structure(Command::identify(Cns::NAMESPACE_DESCRIPTORS, KV)).await;
    assert_eq!(descriptors.command_set(), Some(CommandSet::KEY_VALUE));
    let of_set = Command::identify(Cns::NAMESPACE_OF_SET, KV).with_csi(CommandSet::KEY_VALUE);
    let pairs: KvNamespace = admin.structure(of_set).await;
    assert_eq!((pairs.formats_len, pairs.formats[0].key_bytes_max.get()), (0, 16));
}

/// What the identify tool asks for beyond.
async fn identify_tool(admin: &Line) {
    let get = |feature| Command::get_features(feature, 0, FeatureSelect::Current);
    for feature in [
        Feature::ARBITRATION,
        Feature::POWER_MANAGEMENT,
        Feature::TEMPERATURE_THRESHOLD,
        Feature::NUMBER_OF_QUEUES,
    ] {
        admin.result(get(feature)).await;
    }
    for (page, bytes) in [(1, 4_096), (2, 512), (3, 512), (5, 4_096)] {
        admin.read(Command::get_log_page(LogPage(page), u32::MAX, bytes)).await;
    }
}

/// The commands of its key-value driver.
async fn use_keys(io: &Line) {
    let store = |options| Command::store(KV, b"key", 5, options);
    let inside = spec::DataPointer::InCapsule { offset: 0, len: 5 };
    let stored = io.answer(store(StoreOptions::NONE).with_data_pointer(inside), b"value", 0);
    assert_eq!(stored.await.entry.status(), Status::SUCCESS);
    let again = io.answer(store(StoreOptions::MUST_NOT_EXIST), b"value", 0).await;
    assert_eq!(again.entry.status(), Status(0x89));
    for (room, value) in [(64, &b"value"[..]), (2, b"va")] {
        let retrieved = io.retrieve(b"key", room).await;
        assert_eq!(retrieved.entry.result(), 5);
        assert_eq!(retrieved.data.bytes(), Some(value));
    }
    assert_eq!(io.status(Command::exist(KV, b"key")).await, Status::SUCCESS);
    assert_eq!(io.status(Command::delete(KV, b"key")).await, Status::SUCCESS);
    assert_eq!(io.status(Command::delete(KV, b"key")).await, Status::SUCCESS);
    assert_eq!(io.status(Command::exist(KV, b"key")).await, Status(0x87));
}
