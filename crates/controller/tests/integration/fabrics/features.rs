//! Set Features and Get Features (Base 2.1 and KV 1.0d, Features).

use crate::fabrics::host::{BLOCK, HOST_ID, KV, Line, ZONED, run, run_volatile};
use spec::{Cns, Command, Feature, FeatureSelect, IdentifyController, QualifiedName, Status};

async fn get(admin: &Line, feature: Feature) -> u64 {
    admin.result(Command::get_features(feature, 0, FeatureSelect::Current)).await
}

async fn set(admin: &Line, feature: Feature, value: u32) -> Status {
    admin.status(Command::set_features(feature, 0, value)).await
}

#[test]
fn hosts_get_as_many_queues_as_there_can_be() {
    run(async |world| {
        for (wanted, granted) in [
            (0x03ff_03ff, 0x003f_003f), // SPDK
            (0x0001_0001, 0x0001_0001), // Linux on 2 processors
            (0x0000_0000, 0x0000_0000),
            (0x0003_0001, 0x0001_0001),
        ] {
            let (admin, _) = world.admin().await;
            let set = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, wanted);
            assert_eq!(admin.result(set).await, granted);
            assert_eq!(get(&admin, Feature::NUMBER_OF_QUEUES).await, granted);
        }
        let (admin, id) = world.admin().await;
        for wanted in [0x0000_ffff, 0xffff_0000] {
            let status = set(&admin, Feature::NUMBER_OF_QUEUES, wanted).await;
            assert_eq!(status, Status::INVALID_FIELD);
        }
        assert_eq!(get(&admin, Feature::NUMBER_OF_QUEUES).await, 0x003f_003f);
        let _io = world.io(id, 1).await;
        let late = set(&admin, Feature::NUMBER_OF_QUEUES, 1).await;
        assert_eq!(late, Status::COMMAND_SEQUENCE_ERROR);
    });
}

#[test]
fn what_spdk_asks_for_is_there() {
    run(async |world| {
        let (admin, _) = world.admin_of(crate::fabrics::host::NQN, 10_000).await;
        assert_eq!(get(&admin, Feature::KEEP_ALIVE_TIMER).await, 10_000);
        assert_eq!(get(&admin, Feature::ARBITRATION).await, 0);
        assert_eq!(get(&admin, Feature::POWER_MANAGEMENT).await, 0);
        assert_eq!(get(&admin, Feature::TEMPERATURE_THRESHOLD).await, 343);
    });
}

#[test]
fn what_is_set_is_got_and_has_a_default() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for (feature, value, got, default) in [
            (Feature::ARBITRATION, 0x0102_0304, 0x0102_0304, 0),
            (Feature::POWER_MANAGEMENT, 0, 0, 0),
            (Feature::TEMPERATURE_THRESHOLD, 400, 400, 343),
            (Feature::ASYNC_EVENTS, u32::MAX, 0x91f, 0),
            (Feature::KEEP_ALIVE_TIMER, 60_000, 60_000, 0),
            (Feature::COMMAND_SET_PROFILE, 0, 0, 0),
        ] {
            assert_eq!(set(&admin, feature, value).await, Status::SUCCESS, "{feature}");
            assert_eq!(get(&admin, feature).await, got, "{feature}");
            for select in [FeatureSelect::Default, FeatureSelect::Saved] {
                let get = Command::get_features(feature, 0, select);
                assert_eq!(admin.result(get).await, default, "{feature}");
            }
            let get = Command::get_features(feature, 0, FeatureSelect::Capabilities);
            assert_eq!(admin.result(get).await, 0b100, "{feature} can be changed");
            let save = Command::set_features(feature, 0, value).with_save();
            assert_eq!(admin.status(save).await, Status::FEATURE_NOT_SAVEABLE);
        }
    });
}

#[test]
fn a_delete_of_a_missing_key_fails_if_the_host_says_so() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let feature = Feature::KEY_VALUE_CONFIGURATION;
        let (set, get) = (
            |nsid, value| Command::set_features(feature, nsid, value),
            Command::get_features(feature, KV, FeatureSelect::Current),
        );
        assert_eq!(admin.result(get).await, 0);
        assert_eq!(io.status(Command::delete(KV, b"none")).await, Status::SUCCESS);
        assert_eq!(admin.status(set(KV, 1)).await, Status::SUCCESS);
        assert_eq!(admin.result(get).await, 1);
        assert_eq!(io.status(Command::delete(KV, b"none")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(admin.status(set(u32::MAX, 0)).await, Status::SUCCESS);
        assert_eq!(io.status(Command::delete(KV, b"none")).await, Status::SUCCESS);
        for nsid in [0, BLOCK, 4] {
            assert_eq!(admin.status(set(nsid, 1)).await, Status::INVALID_NAMESPACE);
        }
        let can = Command::get_features(feature, KV, FeatureSelect::Capabilities);
        assert_eq!(admin.result(can).await, 0b110, "changeable, of a namespace");
    });
}

/// NVM 1.1, Error Recovery: TLER in bits 15:0, DULBE in bit 16.
#[test]
fn error_recovery_is_of_each_namespace_of_blocks() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let feature = Feature::ERROR_RECOVERY;
        let get = async |nsid| {
            admin.result(Command::get_features(feature, nsid, FeatureSelect::Current)).await
        };
        let set = |nsid, value| Command::set_features(feature, nsid, value);
        assert_eq!(admin.status(set(BLOCK, 7)).await, Status::SUCCESS);
        assert_eq!((get(BLOCK).await, get(ZONED).await), (7, 0));
        assert_eq!(admin.status(set(u32::MAX, 9)).await, Status::SUCCESS);
        assert_eq!((get(BLOCK).await, get(ZONED).await), (9, 9));
        // No namespace says that deallocated blocks can be errors.
        assert_eq!(admin.status(set(BLOCK, 1 << 16)).await, Status::INVALID_FIELD);
        for nsid in [0, KV, 4] {
            assert_eq!(admin.status(set(nsid, 1)).await, Status::INVALID_NAMESPACE);
        }
        let all = Command::get_features(feature, u32::MAX, FeatureSelect::Current);
        assert_eq!(admin.status(all).await, Status::INVALID_NAMESPACE);
        admin.set_configuration(spec::Configuration(0)).await;
        admin.set_configuration(spec::Configuration::ENABLE_ALL_COMMAND_SETS).await;
        assert_eq!(get(BLOCK).await, 0, "as before the reset");
    });
}

#[test]
fn a_host_is_who_it_said_it_was() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let get = Command::get_features(Feature::HOST_IDENTIFIER, 0, FeatureSelect::Current);
        assert_eq!(admin.read(get).await, HOST_ID);
        let status = set(&admin, Feature::HOST_IDENTIFIER, 1).await;
        assert_eq!(status, Status::COMMAND_SEQUENCE_ERROR);
    });
}

/// Base 2.1, Volatile Write Cache: bit 0 of VWC and WCE.
#[test]
fn a_volatile_cache_is_told_of_and_stays_on() {
    let vwc = async |admin: &Line| {
        let identity: IdentifyController =
            admin.structure(Command::identify(Cns::CONTROLLER, 0)).await;
        identity.volatile_write_cache
    };
    run(async |world| {
        let (admin, _) = world.admin().await;
        assert_eq!(vwc(&admin).await, 0b100, "none, and no Flush of all namespaces");
    });
    run_volatile(async |world| {
        let feature = Feature::VOLATILE_WRITE_CACHE;
        let (admin, id) = world.admin().await;
        assert_eq!(vwc(&admin).await, 0b101);
        for select in [FeatureSelect::Current, FeatureSelect::Default] {
            assert_eq!(admin.result(Command::get_features(feature, 0, select)).await, 1);
        }
        let can = Command::get_features(feature, 0, FeatureSelect::Capabilities);
        assert_eq!(admin.result(can).await, 0, "not changeable, nor saveable");
        assert_eq!(set(&admin, feature, 0).await, Status::FEATURE_NOT_CHANGEABLE);
        assert_eq!(set(&admin, feature, 1).await, Status::SUCCESS, "it is so");
        let io = world.io(id, 1).await;
        assert_eq!(io.status(Command::flush(BLOCK)).await, Status::SUCCESS);
        let all = Command::flush(u32::MAX);
        assert_eq!(io.status(all).await, Status::INVALID_NAMESPACE, "as VWC says");
        let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        assert_eq!(set(&discovery, feature, 1).await, Status::INVALID_FIELD);
    });
}

#[test]
fn what_is_not_there_is_an_invalid_field() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for feature in [0x00, 0x03, 0x06, 0x08, 0x16, 0x21, 0xc0] {
            let feature = Feature(feature);
            assert_eq!(set(&admin, feature, 0).await, Status::INVALID_FIELD, "{feature}");
            let get = Command::get_features(feature, 0, FeatureSelect::Current);
            assert_eq!(admin.status(get).await, Status::INVALID_FIELD, "{feature}");
        }
        assert_eq!(set(&admin, Feature::POWER_MANAGEMENT, 1).await, Status::INVALID_FIELD);
        assert_eq!(
            set(&admin, Feature::COMMAND_SET_PROFILE, 1).await,
            Status::COMMAND_SET_COMBINATION_REJECTED
        );
        for value in [0x0001_0000, 0x0020_0000] {
            let status = set(&admin, Feature::TEMPERATURE_THRESHOLD, value).await;
            assert_eq!(status, Status::INVALID_FIELD, "no such sensor, no such direction");
        }
        let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let status = set(&discovery, Feature::NUMBER_OF_QUEUES, 0).await;
        assert_eq!(status, Status::INVALID_FIELD);
    });
}
