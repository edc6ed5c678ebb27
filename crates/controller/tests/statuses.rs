//! What a host is answered, command by command (KV command set 1.0d), on a store in memory.

use base::{Buf, Key, Nanos};
use clock::{CodeCosts, Cores, Group};
use controller::{
    Completion, Config, Controller, FirmwareCosts, LinkTiming, QueuePair, Submission,
};
use engine::{Ack, HashIndex, KeySpaceId, Store, Victims};
use media::{Memory, Shape};
use reactor::Reactor;
use spec::{Command, Opcode, Status, StoreOptions};
use std::sync::Arc;

const SHAPE: Shape = Shape {
    page_bytes: 16_384,
    spare_bytes: 1_000,
    pages_per_extent: 256,
    extents: 16,
    parallelism: 4,
};

/// A link on which 1,000 bytes take 1 us.
const LINK: LinkTiming = LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) };

async fn controller() -> Arc<Controller> {
    let group = Group::new();
    let config = engine::Config {
        capacity_bytes: 16 << 20,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: || Box::new(HashIndex::default()),
        group,
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(SHAPE)), config);
    store.create_key_space(KeySpaceId(1)).await.expect("the store is empty");
    let cores = Cores::new(group, 1, CodeCosts::default());
    let costs = FirmwareCosts::default();
    Controller::new(store, Config { group, link: LINK, handlers: 1, costs, cores })
}

fn run(test: impl AsyncFnOnce(Arc<Controller>, QueuePair)) {
    Reactor::new(None).run(async {
        let controller = controller().await;
        let queue = controller.queue_pair();
        test(controller, queue).await;
    });
}

async fn answer(queue: &QueuePair, command: Command, long: Option<Key>, data: Buf) -> Completion {
    queue.submit(Submission { command, long_key: long, data });
    queue.next().await
}

async fn status(queue: &QueuePair, command: Command) -> Status {
    answer(queue, command, None, Buf::phantom(0, 0)).await.status
}

async fn store(queue: &QueuePair, key: &[u8], len: u32, options: StoreOptions) -> Status {
    let command = Command::store(1, key, len, options);
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
        assert_eq!(status(&queue, Command::retrieve(1, b"", 9)).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::exist(1, b"")).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::delete(1, b"")).await, Status::INVALID_KEY_SIZE);
        let long = [b'x'; 17];
        assert_eq!(store(&queue, &long, 5, none).await, Status::INVALID_KEY_SIZE);
        assert_eq!(status(&queue, Command::retrieve(1, &long, 9)).await, Status::INVALID_FIELD);
        let other_length = Key::new(&[b'x'; 18]).ok();
        let command = Command::store(1, &long, 0, none);
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
        let too_long = Command::store(1, b"k", (2 << 20) + 1, none);
        assert_eq!(status(&queue, too_long).await, Status::INVALID_VALUE_SIZE);
        let lies = Command::store(1, b"k", 5, none);
        assert_eq!(status(&queue, lies).await, Status::INVALID_FIELD, "the host brings nothing");
        for nsid in [0, 2, 65_536] {
            let other = Command::exist(nsid, b"k");
            assert_eq!(status(&queue, other).await, Status::INVALID_NAMESPACE, "{nsid}");
        }
        for command in [Command::exist(1, b"k"), Command::delete(1, b"k"), Command::list(1, b"", 9)]
        {
            let reserved = command.with_options(1);
            assert_eq!(status(&queue, reserved).await, Status::INVALID_FIELD);
        }
        assert_eq!(status(&queue, Command::list(1, b"", 3)).await, Status::INVALID_FIELD);
        let unknown = Command::default();
        assert_eq!(unknown.opcode(), Opcode(0));
        assert_eq!(status(&queue, unknown).await, Status::INVALID_OPCODE);
    });
}

#[test]
fn a_retrieve_tells_the_whole_length_and_fills_the_hosts_buffer() {
    run(async |_, queue| {
        let value = Buf::copy_from(b"0123456789");
        let command = Command::store(1, b"k", 10, StoreOptions::NONE);
        answer(&queue, command, None, value).await;
        for (room, expected) in
            [(0, &b""[..]), (4, b"0123"), (10, b"0123456789"), (99, b"0123456789")]
        {
            let command = Command::retrieve(1, b"k", room);
            let retrieved = answer(&queue, command, None, Buf::phantom(0, 0)).await;
            assert_eq!((retrieved.status, retrieved.result), (Status::SUCCESS, 10));
            assert_eq!(retrieved.data.bytes().unwrap_or_default(), expected);
        }
    });
}

#[test]
fn deleting_what_is_not_there_fails_only_if_the_feature_says_so() {
    run(async |controller, queue| {
        assert_eq!(status(&queue, Command::delete(1, b"k")).await, Status::SUCCESS);
        controller.set_delete_reports_missing(true);
        assert_eq!(status(&queue, Command::delete(1, b"k")).await, Status::KEY_DOES_NOT_EXIST);
        assert_eq!(status(&queue, Command::exist(1, b"k")).await, Status::KEY_DOES_NOT_EXIST);
    });
}

#[test]
fn the_two_directions_of_the_link_do_not_wait_for_each_other() {
    run(async |_, queue| {
        assert_eq!(store(&queue, b"k", 10_000, StoreOptions::NONE).await, Status::SUCCESS);
        let start = clock::now();
        let command = Command::store(1, b"other", 10_000, StoreOptions::NONE);
        queue.submit(Submission { command, long_key: None, data: Buf::phantom(10_000, 7) });
        let retrieve = Command::retrieve(1, b"k", 10_000);
        queue.submit(Submission { command: retrieve, long_key: None, data: Buf::phantom(0, 0) });
        queue.next().await;
        queue.next().await;
        // 100 ns and 10,000 bytes at 1 GB/s, once for both.
        assert_eq!(clock::now() - start, Nanos(10_100));
    });
}
