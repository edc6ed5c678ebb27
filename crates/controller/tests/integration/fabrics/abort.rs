//! Abort: it ends the wait for a command, not the command (Base 2.1, Abort command).

use crate::fabrics::host::{KV, pass, run, run_shuffled};
use base::Nanos;
use spec::{Command, Status, StoreOptions};

const NOT_ABORTED: u64 = 1;

#[test]
fn an_aborted_command_is_answered_once_and_runs_to_its_end() {
    for shuffle in [None, Some(1), Some(2), Some(3)] {
        run_shuffled(shuffle, async |world| {
            let (admin, id) = world.admin().await;
            let io = world.io(id, 5).await;
            let closed = world.gate.close();
            let store = io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
            let other = io.send(Command::store(KV, b"other", 5, StoreOptions::NONE), b"value", 0);
            assert_eq!(admin.result(Command::abort(5, store)).await, 0);
            let aborted = io.next().await.unwrap();
            assert_eq!(aborted.entry.command_id(), store);
            assert_eq!(aborted.entry.status(), Status::ABORT_REQUESTED);
            assert!(!aborted.entry.do_not_retry());
            assert_eq!(admin.result(Command::abort(5, store)).await, NOT_ABORTED);
            drop(closed);
            let stored = io.next().await.unwrap();
            assert_eq!(stored.entry.command_id(), other);
            assert_eq!(stored.entry.status(), Status::SUCCESS);
            pass(Nanos::from_millis(1)).await;
            assert_eq!(io.retrieve(b"key", 9).await.data.bytes(), Some(&b"value"[..]));
            assert_eq!(io.waiting(), 0, "it was answered when it was aborted");
        });
    }
}

#[test]
fn an_id_is_free_when_its_command_was_aborted() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let closed = world.gate.close();
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE)
            .with_data_pointer(spec::DataPointer::Transport { len: 5 })
            .with_command_id(7);
        io.send_capsule(store, b"first");
        assert_eq!(admin.result(Command::abort(1, 7)).await, 0);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::ABORT_REQUESTED);
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        io.send_capsule(store, b"again");
        assert_eq!(io.next().await.unwrap().entry.status(), Status::SUCCESS);
        let retrieved = io.retrieve(b"key", 9).await;
        assert_eq!(retrieved.data.bytes(), Some(&b"again"[..]));
        assert_eq!(io.waiting(), 0);
    });
}

#[test]
fn what_is_not_there_is_not_aborted() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let done = io.send(Command::exist(KV, b"key"), &[], 0);
        io.next().await;
        for (queue, command) in [(1, done), (1, 999), (2, done), (0, 999), (u16::MAX, 0)] {
            assert_eq!(admin.result(Command::abort(queue, command)).await, NOT_ABORTED);
        }
    });
}

#[test]
fn a_request_for_events_is_aborted_too() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let request = admin.send(Command::async_event_request(), &[], 0);
        let abort = admin.send(Command::abort(0, request), &[], 0);
        let [first, second] = [admin.next().await.unwrap(), admin.next().await.unwrap()];
        assert_eq!((first.entry.command_id(), second.entry.command_id()), (request, abort));
        assert_eq!(first.entry.status(), Status::ABORT_REQUESTED);
        assert_eq!((second.entry.status(), second.entry.result()), (Status::SUCCESS, 0));
        // The same id on another queue is another command.
        let request = admin.send(Command::async_event_request(), &[], 0);
        assert_eq!(admin.result(Command::abort(1, request)).await, NOT_ABORTED);
        assert_eq!(io.waiting(), 0);
    });
}

#[test]
fn at_most_a_queue_of_aborted_commands_is_in_flight() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.line();
        io.connect(id, 1, 3).await.unwrap();
        let closed = world.gate.close();
        for round in 0..3 {
            for _ in 0..2 {
                let exist = io.send(Command::exist(KV, b"key"), &[], 0);
                let expected = if round < 2 { 0 } else { NOT_ABORTED };
                assert_eq!(admin.result(Command::abort(1, exist)).await, expected);
            }
        }
        drop(closed);
        for _ in 0..6 {
            io.next().await.unwrap();
        }
        assert_eq!(io.status(Command::exist(KV, b"key")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(io.waiting(), 0);
    });
}
