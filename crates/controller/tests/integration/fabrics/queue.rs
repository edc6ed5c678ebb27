//! Queues: heads, flow control, overruns (Base 2.1, message-based transport queue model).

use crate::fabrics::host::{KV, pass, run};
use base::Nanos;
use spec::{
    Command, Configuration, ConnectAttributes, ConnectData, Property, Status, StoreOptions,
};

#[test]
fn the_head_counts_commands_and_goes_round_at_the_size_of_the_queue() {
    run(async |world| {
        let admin = world.line();
        admin.connect(ConnectData::ANY_CONTROLLER, 0, 31).await.unwrap();
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        // Connect and Property Set were the first two of 32 entries.
        for number in 3..100_u16 {
            let response = admin.answer(Command::keep_alive(), &[], 0).await;
            let head = number % 32;
            assert_eq!((response.entry.queue_head(), response.entry.queue_id()), (head, 0));
        }
    });
}

#[test]
fn the_head_counts_what_is_no_io_command_as_well() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let not_here = Command::property_get(Property::CSTS);
        for (head, command) in (2..).zip([Command::exist(KV, b"key"), not_here].repeat(4)) {
            assert_eq!(io.answer(command, &[], 0).await.entry.queue_head(), head);
        }
    });
}

/// The highest place of so many tasks more than there are.
fn places_of(more: usize) -> usize {
    let places = (0..more).map(|_| clock::spawn(async {}).index());
    places.max().expect("some tasks")
}

#[test]
fn a_queue_that_was_full_keeps_some_tasks_and_one_that_is_closed_none() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.line();
        assert_eq!(io.connect(id, 1, 299).await, Ok(id));
        let closed = world.gate.close();
        (0..300).for_each(|_| {
            io.send(Command::exist(KV, b"none"), &[], 0);
        });
        pass(Nanos(1)).await;
        let last = places_of(1);
        drop(closed);
        for _ in 0..300 {
            let answer = io.next().await.expect("all are answered");
            assert_eq!(answer.entry.status(), Status::KEY_DOES_NOT_EXIST);
        }
        // 128 wait for the next commands. The place that was asked for is free, too.
        let free = 300 - 128 + 1;
        assert_eq!(places_of(free), last);
        pass(Nanos(1)).await;
        assert_eq!(places_of(free + 1), last + 1);
        assert_eq!(io.status(Command::exist(KV, b"none")).await, Status::KEY_DOES_NOT_EXIST);
        io.queue.close();
        pass(Nanos(1)).await;
        assert_eq!(places_of(300 + 2), last + 1, "none is left of a queue that is closed");
    });
}

#[test]
fn the_first_head_is_behind_the_connect() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.line();
        let connect = Command::connect(1, 1, ConnectAttributes::NONE, 0);
        let data = ConnectData::new(
            crate::fabrics::host::HOST_ID,
            crate::fabrics::host::HOST_NQN,
            crate::fabrics::host::NQN,
            id,
        );
        let response = io.answer(connect, zerocopy::IntoBytes::as_bytes(&data), 0).await;
        assert_eq!(response.entry.queue_head(), 1);
        assert!(!response.may_elide);
        for head in [0, 1, 0] {
            let response = io.answer(Command::exist(KV, b"key"), &[], 0).await;
            assert_eq!(response.entry.queue_head(), head);
        }
    });
}

#[test]
fn without_flow_control_the_head_means_nothing_and_empty_entries_need_not_be_sent() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.line();
        let connect = Command::connect(1, 127, ConnectAttributes::NO_FLOW_CONTROL, 0);
        let data = ConnectData::new(
            crate::fabrics::host::HOST_ID,
            crate::fabrics::host::HOST_NQN,
            crate::fabrics::host::NQN,
            id,
        );
        let response = io.answer(connect, zerocopy::IntoBytes::as_bytes(&data), 0).await;
        assert_eq!(response.entry.queue_head(), 0xffff, "the controller agrees");
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE);
        let stored = io.answer(store, b"value", 0).await;
        assert!(stored.may_elide && stored.entry.queue_head() == 0);
        let retrieved = io.retrieve(b"key", 64).await;
        assert!(!retrieved.may_elide, "the length of the value is in the entry");
        let listed = io.answer(Command::list(KV, b"", 64), &[], 64).await;
        assert!(listed.may_elide);
        let missed = io.retrieve(b"none", 64).await;
        assert!(!missed.may_elide);
    });
}

#[test]
fn with_flow_control_every_entry_is_sent() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE);
        assert!(!io.answer(store, b"value", 0).await.may_elide);
    });
}

#[test]
fn more_commands_than_entries_end_the_connection_alone() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (greedy, other) = (world.line(), world.io(id, 2).await);
        greedy.connect(id, 1, 3).await.unwrap();
        let closed = world.gate.close();
        for _ in 0..4 {
            greedy.send(Command::exist(KV, b"key"), &[], 0);
        }
        clock::sleep(base::Nanos(1), clock::Stage::Queue).await;
        assert!(!greedy.is_ended(), "as many as there are entries");
        greedy.send(Command::exist(KV, b"key"), &[], 0);
        assert!(greedy.next().await.is_none());
        // As a door does whose connection is ended.
        greedy.queue.close();
        drop(closed);
        assert_eq!(other.status(Command::exist(KV, b"key")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
        assert_eq!(world.line().connect(id, 1, 3).await, Ok(id), "its id is free");
    });
}

#[test]
fn a_connection_that_was_ended_hears_nothing_of_what_was_under_way() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let greedy = world.line();
        greedy.connect(id, 1, 3).await.unwrap();
        let closed = world.gate.close();
        // Which is refused on this queue, wherever its commands are executed.
        greedy.send(Command::property_get(Property::CSTS), &[], 0);
        for _ in 0..5 {
            greedy.send(Command::exist(KV, b"key"), &[], 0);
        }
        assert!(greedy.next().await.is_none());
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        assert_eq!(greedy.waiting(), 0);
    });
}

#[test]
fn a_closed_queue_is_answered_nothing_and_its_commands_run_to_their_end() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let (io, other) = (world.io(id, 1).await, world.io(id, 2).await);
        let closed = world.gate.close();
        io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
        io.queue.close();
        io.queue.close();
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        assert_eq!(other.status(Command::exist(KV, b"none")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(other.retrieve(b"key", 5).await.data.bytes(), Some(&b"value"[..]));
        assert_eq!((io.waiting(), io.is_ended()), (0, false));
        io.send(Command::exist(KV, b"key"), &[], 0);
        assert_eq!(other.status(Command::exist(KV, b"key")).await, Status::SUCCESS);
        assert_eq!(io.waiting(), 0);
    });
}
