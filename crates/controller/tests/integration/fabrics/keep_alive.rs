//! Keep alive: a host that is silent for too long is gone (Base 2.1, Keep Alive).

use crate::fabrics::host::{KV, NQN, pass, run};
use base::Nanos;
use spec::{Command, ConnectAttributes, ConnectData, Feature, Property, QualifiedName, Status};

const fn millis(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

#[test]
fn a_silent_host_is_gone_between_its_time_and_a_second_more() {
    run(async |world| {
        for offset in [0, 300, 999] {
            pass(millis(offset)).await;
            let (admin, id) = world.admin_of(NQN, 5_000).await;
            let (first, second) = (world.io(id, 1).await, world.io(id, 2).await);
            pass(millis(4_999)).await;
            assert!(!admin.is_ended());
            pass(millis(1_002)).await;
            assert!(admin.is_ended() && first.is_ended() && second.is_ended());
            let late = world.line().connect(id, 3, 31).await.expect_err("it is gone");
            assert_eq!(late.result(), 1 << 16 | 16);
        }
    });
}

#[test]
fn keep_alive_and_every_other_command_keep_it() {
    run(async |world| {
        let (admin, id) = world.admin_of(NQN, 2_000).await;
        let io = world.io(id, 1).await;
        for _ in 0..10 {
            pass(millis(1_900)).await;
            assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
        }
        for _ in 0..10 {
            pass(millis(1_900)).await;
            assert_eq!(io.status(Command::exist(KV, b"key")).await, Status::KEY_DOES_NOT_EXIST);
        }
        for _ in 0..10 {
            pass(millis(1_900)).await;
            admin.property(Property::CSTS).await;
        }
        pass(millis(3_001)).await;
        assert!(admin.is_ended() && io.is_ended());
    });
}

#[test]
fn a_host_without_a_time_may_be_silent_for_ever_and_may_change_its_mind() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        pass(Nanos::from_secs(100_000)).await;
        assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
        let set = |ms| Command::set_features(Feature::KEEP_ALIVE_TIMER, 0, ms);
        assert_eq!(admin.status(set(1)).await, Status::SUCCESS);
        assert_eq!(admin.status(set(0)).await, Status::SUCCESS);
        pass(Nanos::from_secs(100)).await;
        assert_eq!(admin.status(set(100_000)).await, Status::SUCCESS);
        pass(Nanos::from_secs(50)).await;
        assert_eq!(admin.status(set(3_000)).await, Status::SUCCESS);
        pass(millis(2_999)).await;
        assert!(!admin.is_ended());
        pass(millis(1_001)).await;
        assert!(admin.is_ended());
    });
}

#[test]
fn one_silent_host_takes_no_other_along() {
    run(async |world| {
        let (silent, _) = world.admin_of(NQN, 1_000).await;
        let (other, id) = world.admin_of(NQN, 60_000).await;
        let io = world.io(id, 1).await;
        pass(millis(2_001)).await;
        assert!(silent.is_ended() && !other.is_ended());
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
    });
}

#[test]
fn what_a_silent_host_started_runs_to_its_end() {
    run(async |world| {
        let (_admin, id) = world.admin_of(NQN, 1_000).await;
        let io = world.io(id, 1).await;
        let closed = world.gate.close();
        io.send(Command::store(KV, b"key", 5, spec::StoreOptions::NONE), b"value", 0);
        assert!(io.next().await.is_none());
        drop(closed);
        pass(millis(1)).await;
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.retrieve(b"key", 5).await.data.bytes(), Some(&b"value"[..]));
    });
}

#[test]
fn a_host_of_the_discovery_subsystem_has_2_minutes_unless_it_says_so() {
    run(async |world| {
        let line = world.line();
        let data = ConnectData::new(
            [1; 16],
            "nqn.2014-08.org.example:h",
            QualifiedName::DISCOVERY,
            ConnectData::ANY_CONTROLLER,
        );
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        line.connect_with(connect, &data).await.unwrap();
        pass(Nanos::from_secs(119)).await;
        assert!(!line.is_ended());
        pass(millis(2_001)).await;
        assert!(line.is_ended());
    });
}
