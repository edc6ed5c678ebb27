//! The Key Value command set (KV 1.0d), on a store.

use crate::commands::host::{KV, run as run_host};
use base::{Buf, Key, Nanos};
use controller::{Completion, Controller, QueuePair, Submission};
use spec::{Command, Status, StoreOptions, ZoneSendAction};
use std::sync::Arc;

fn run(test: impl AsyncFnOnce(Arc<Controller>, QueuePair)) {
    run_host(async |host| test(host.controller, host.queue).await);
}

async fn answer(queue: &QueuePair, command: Command, long: Option<Key>, data: Buf) -> Completion {
    queue.submit(Submission { command, long_key: long, data });
    queue.next().await
}

async fn status(queue: &QueuePair, command: Command) -> Status {
    answer(queue, command, None, Buf::phantom(0, 0)).await.status
}

async fn store(queue: &QueuePair, key: &[u8], len: u32, options: StoreOptions) -> Status {
    let command = Command::store(KV, key, len, options);
    answer(queue, command, None, Buf::phantom(len, 7)).await.status
}

#[test]
fn conditions_decide_and_contradict() {
    run(async |_, queue| {
        let (must, must_not) = (StoreOptions::MUST_EXIST, StoreOptions::MUST_NOT_EXIST);
        assert_eq!(store(&queue, b"k", 5, must).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(store(&queue, b"k", 5, must_not).await, Status::SUCCESS);
        assert_eq!(store(&queue, b"k", 6, must_not).await, Status::KEY_EXISTS);
        assert_eq!(store(&queue, b"k", 7, must).await, Status::SUCCESS);
        assert_eq!(store(&queue, b"k", 8, must | must_not).await, Status::INVALID_FIELD);
        assert_eq!(store(&queue, b"k", 9, StoreOptions::NO_COMPRESS).await, Status::SUCCESS);
    });
}

#[test]
fn keys_are_inline_or_in_the_hosts_memory_and_never_empty() {
    run(async |_, queue| {
        let none = StoreOptions::NONE;
        assert_eq!(store(&queue, b"", 5, none).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::retrieve(KV, b"", 9)).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::exist(KV, b"")).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::delete(KV, b"")).await, Status::INVALID_KEY_SIZE);
        let long = [b'x'; 17];
        assert_eq!(store(&queue, &long, 5, none).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::retrieve(KV, &long, 9)).await, Status::INVALID_FIELD);
        let other_length = Key::new(&[b'x'; 18]).ok();
        let command = Command::store(KV, &long, 0, none);
        let answered = answer(&queue, command, other_length, Buf::phantom(0, 0)).await;
        assert_eq!(answered.status, Status::INVALID_KEY_SIZE);
        let answered = answer(&queue, command, Key::new(&long).ok(), Buf::phantom(0, 0)).await;
        assert_eq!(answered.status, Status::SUCCESS);
    });
}

#[test]
fn sizes_namespaces_opcodes_and_reserved_bits_are_checked() {
    run(async |_, queue| {
        let none = StoreOptions::NONE;
        let too_long = Command::store(KV, b"k", (2 << 20) + 1, none);
        assert_eq!(status(&queue, too_long).await, Status::INVALID_VALUE_SIZE);
        let lies = Command::store(KV, b"k", 5, none);
        assert_eq!(status(&queue, lies).await, Status::INVALID_FIELD, "the host brings nothing");
        for nsid in [0, 4, 65_535, 65_537, u32::MAX] {
            let other = Command::exist(nsid, b"k");
            assert_eq!(status(&queue, other).await, Status::INVALID_NAMESPACE, "{nsid}");
        }
        for command in
            [Command::exist(KV, b"k"), Command::delete(KV, b"k"), Command::list(KV, b"", 9)]
        {
            let reserved = command.with_options(1);
            assert_eq!(status(&queue, reserved).await, Status::INVALID_FIELD);
        }
        assert_eq!(status(&queue, Command::list(KV, b"", 3)).await, Status::INVALID_FIELD);
        for command in [
            Command::write_zeroes(KV, 0, 1),
            Command::deallocate(KV, 1),
            Command::copy(KV, 0, 1),
            Command::zone_append(KV, 0, 1),
            Command::zone_management_send(KV, 0, ZoneSendAction::Reset),
        ] {
            assert_eq!(status(&queue, command).await, Status::INVALID_OPCODE);
        }
        assert_eq!(status(&queue, Command::flush(KV)).await, Status::SUCCESS);
    });
}

#[test]
fn a_retrieve_tells_the_whole_length_and_fills_the_hosts_buffer() {
    run(async |_, queue| {
        let value = Buf::copy_from(b"0123456789");
        let command = Command::store(KV, b"k", 10, StoreOptions::NONE);
        answer(&queue, command, None, value).await;
        for (room, expected) in
            [(0, &b""[..]), (4, b"0123"), (10, b"0123456789"), (99, b"0123456789")]
        {
            let command = Command::retrieve(KV, b"k", room);
            let retrieved = answer(&queue, command, None, Buf::phantom(0, 0)).await;
            assert_eq!((retrieved.status, retrieved.result), (Status::SUCCESS, 10));
            assert_eq!(retrieved.data.bytes().unwrap_or_default(), expected);
        }
    });
}

#[test]
fn deleting_what_is_not_there_fails_only_if_the_feature_says_so() {
    run(async |controller, queue| {
        assert_eq!(status(&queue, Command::delete(KV, b"k")).await, Status::SUCCESS);
        controller.set_delete_reports_missing(true);
        assert_eq!(status(&queue, Command::delete(KV, b"k")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(status(&queue, Command::exist(KV, b"k")).await, Status::KEY_DOES_NOT_EXIST);
    });
}

#[test]
fn the_two_directions_of_the_link_do_not_wait_for_each_other() {
    run(async |_, queue| {
        assert_eq!(store(&queue, b"k", 10_000, StoreOptions::NONE).await, Status::SUCCESS);
        let start = clock::now();
        let command = Command::store(KV, b"other", 10_000, StoreOptions::NONE);
        queue.submit(Submission { command, long_key: None, data: Buf::phantom(10_000, 7) });
        let retrieve = Command::retrieve(KV, b"k", 10_000);
        queue.submit(Submission { command: retrieve, long_key: None, data: Buf::phantom(0, 0) });
        queue.next().await;
        queue.next().await;
        // 100 ns and 10,000 bytes at 1 GB/s, once for both.
        assert_eq!(clock::now() - start, Nanos(10_100));
    });
}
