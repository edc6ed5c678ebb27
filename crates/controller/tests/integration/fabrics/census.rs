//! The census of each host and its queues.

use crate::fabrics::host::{BLOCK, HOST_NQN, KV, NQN, run};
use base::Nanos;
use clock::Stage;
use controller::{AssociationCensus, Work};
use spec::{Command, QualifiedName, Status, StoreOptions};

#[test]
fn each_host_has_what_it_had_done_counted_by_itself() {
    run(async |world| {
        let (_other, other) = world.admin().await;
        let other = world.io(other, 1).await;
        clock::sleep(Nanos::from_secs(7), Stage::Queue).await;
        let (admin, id) = world.admin().await;
        let since = clock::now();
        let io = world.io(id, 3).await;
        for key in [b"a", b"b", b"c"] {
            assert_eq!(io.store(key, &[1; 100]).await, Status::SUCCESS);
        }
        assert_eq!(io.retrieve(b"a", 4_096).await.data.len(), 100);
        assert_eq!(io.retrieve(b"b", 60).await.data.len(), 60);
        // Of these two no byte is moved.
        assert_eq!(io.retrieve(b"x", 60).await.entry.status(), Status::KEY_DOES_NOT_EXIST);
        assert_eq!(io.status(Command::exist(KV, b"a")).await, Status::SUCCESS);
        let write = Command::write(BLOCK, 0, 2);
        assert_eq!(io.answer(write, &[2; 8_192], 0).await.entry.status(), Status::SUCCESS);
        assert_eq!(io.answer(Command::read(BLOCK, 0, 1), &[], 4_096).await.data.len(), 4_096);
        assert_eq!(other.store(b"d", &[1; 7]).await, Status::SUCCESS);

        let mine = Work {
            reads: 3,
            writes: 4,
            others: 2,
            bytes_read: 100 + 60 + 4_096,
            bytes_written: 300 + 8_192,
        };
        let others = Work { writes: 1, bytes_written: 7, ..Work::default() };
        let census = world.subsystems.census();
        let [first, second] = &census[..] else { panic!("there are two hosts") };
        assert_eq!((first.work, second.work), (others, mine));
        assert_eq!(world.subsystems.work_of(&world.device), mine + others);
        assert_eq!((second.controller, second.since), (id, since));
        assert_eq!((&second.host[..], &second.subsystem[..]), (HOST_NQN, NQN));
        assert_eq!(second.queues.iter().map(|queue| queue.id).collect::<Vec<_>>(), [0, 3]);
        assert_eq!([second.queues[0].entries, second.queues[1].entries], [32, 128]);

        other.queue.close();
        let queues = |census: &[AssociationCensus]| census[0].queues.len();
        assert_eq!(queues(&world.subsystems.census()), 1, "the admin queue is left");
        admin.queue.close();
        let left = world.subsystems.census();
        assert!(left.iter().all(|host| host.controller != id), "it ended with its admin queue");
        assert_eq!(world.subsystems.work_of(&world.device), mine + others, "and was here");
    });
}

#[test]
fn commands_are_in_flight_until_they_end() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let closed = world.gate.close();
        for key in [b"a", b"b"] {
            io.send(Command::store(KV, key, 1, StoreOptions::NONE), b"v", 0);
        }
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        let in_flight = || world.subsystems.census()[0].queues[1].in_flight;
        assert_eq!(in_flight(), 2);
        drop(closed);
        let ends = [io.next().await, io.next().await];
        assert!(ends.iter().all(Option::is_some));
        assert_eq!(in_flight(), 0);
    });
}

#[test]
fn hosts_of_the_discovery_subsystem_are_hosts_too() {
    run(async |world| {
        let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
        let census = world.subsystems.census();
        assert_eq!(census.len(), 1);
        assert_eq!(census[0].subsystem, QualifiedName::DISCOVERY);
        discovery.queue.close();
        assert_eq!(world.subsystems.census(), []);
    });
}
