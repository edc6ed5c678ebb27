//! Commands of drives without emulation that are answered without a task.

use crate::fabrics::host::{BLOCK, KV, World, pass, run, run_real};
use base::Nanos;
use controller::Work;
use engine::Ack;
use spec::{Command, DataPointer, Status, StoreOptions};

/// Stores are acknowledged from memory.
const BUFFER: Ack = Ack::Buffer { bytes: 1 << 20 };

const SUCCESS: Status = Status::SUCCESS;

/// The place of the next task that is spawned.
fn next_task() -> usize {
    clock::spawn(async {}).index()
}

#[test]
fn stores_and_retrieves_are_answered_without_a_task() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.store(b"a", b"one").await, SUCCESS);
        // A value in an open page is read by a task.
        assert_eq!(io.status(Command::flush(KV)).await, SUCCESS);
        let task = next_task();
        io.hold_store(b"b", b"two");
        io.hold_retrieve(b"a", 100);
        io.hold_retrieve(b"a", 2);
        assert_eq!(io.waiting(), 0, "they are held");
        io.queue.execute_held();
        let [stored, whole, part] = [(); 3].map(|()| io.responded());
        assert_eq!(stored.entry.status(), SUCCESS);
        let ids = [stored, whole.clone(), part.clone()].map(|it| it.entry.command_id());
        assert_eq!(ids, [4, 5, 6]);
        assert_eq!((whole.entry.result(), whole.data.bytes().unwrap()), (3, &b"one"[..]));
        assert_eq!((part.entry.result(), part.data.bytes().unwrap()), (3, &b"on"[..]));
        assert_eq!(next_task(), task + 1, "no task was spawned");
        let expected = Work { reads: 2, writes: 2, bytes_read: 5, bytes_written: 6, others: 1 };
        assert_eq!(world.subsystems.work_of(&world.device), expected);
        assert_eq!(world.subsystems.census()[0].work, expected);
        assert_eq!(world.subsystems.census()[0].queues[1].in_flight, 0);
    });
}

#[test]
fn reads_of_blocks_are_answered_without_a_task() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let written = [[1; 4_096], [2; 4_096]].concat();
        let write = io.answer(Command::write(BLOCK, 98, 2), &written, 0).await;
        assert_eq!(write.entry.status(), SUCCESS);
        let task = next_task();
        io.hold_read(97, 2, 8_192);
        io.hold_read(99, 1, 5_000);
        assert_eq!(io.waiting(), 0, "they are held");
        io.queue.execute_held();
        let data = [(); 2].map(|()| io.responded().data);
        assert_eq!(data[0].bytes(), Some(&[[0; 4_096], [1; 4_096]].concat()[..]));
        assert_eq!(data[1].bytes(), Some(&[2; 4_096][..]));
        assert_eq!(next_task(), task + 1, "no task was spawned");
        let expected =
            Work { reads: 2, writes: 1, bytes_read: 12_288, bytes_written: 8_192, others: 0 };
        assert_eq!(world.subsystems.work_of(&world.device), expected);
    });
}

#[test]
fn reads_of_blocks_that_cannot_be_answered_at_once_end_in_their_status() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        world.blocks.fail_next(media::Error::UnrecoveredBlock(5));
        let cases = [
            (5, 1, 4_096, Status::UNRECOVERED_READ_ERROR),
            (99, 2, 8_192, Status::LBA_OUT_OF_RANGE),
            (u64::MAX, 1, 4_096, Status::LBA_OUT_OF_RANGE),
            (5, 2, 8_191, Status::DATA_SGL_LENGTH_INVALID),
            (5, 1, 4_096, SUCCESS),
        ];
        for (first, blocks, room, status) in cases {
            io.hold_read(first, blocks, room);
            io.queue.execute_held();
            let response = io.next().await.expect("the queue is open");
            assert_eq!(response.entry.status(), status, "{blocks} blocks from {first}");
        }
    });
}

#[test]
fn reads_beside_one_that_waits_are_answered_at_once() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let written = [[4; 4_096], [5; 4_096], [6; 4_096]].concat();
        let write = io.answer(Command::write(BLOCK, 4, 3), &written, 0).await;
        assert_eq!(write.entry.status(), SUCCESS);
        world.blocks.fail_next(media::Error::UnrecoveredBlock(5));
        (4..7).for_each(|block| io.hold_read(block, 1, 4_096));
        io.queue.execute_held();
        let first = write.entry.command_id() + 1;
        for (id, content) in [(first, 4), (first + 2, 6)] {
            let response = io.responded();
            assert_eq!(response.entry.command_id(), id);
            assert_eq!(response.data.bytes(), Some(&[content; 4_096][..]));
        }
        assert_eq!(io.waiting(), 0, "one has to be waited for");
        let response = io.next().await.expect("the queue is open");
        assert_eq!(response.entry.command_id(), first + 1);
        assert_eq!(response.entry.status(), Status::UNRECOVERED_READ_ERROR);
    });
}

#[test]
fn commands_of_an_emulated_device_wait_for_its_gate() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let closed = world.gate.close();
        io.hold_store(b"a", b"one");
        io.queue.execute_held();
        pass(Nanos(1)).await;
        assert_eq!(io.waiting(), 0);
        drop(closed);
        assert_eq!(io.next().await.unwrap().entry.status(), SUCCESS);
    });
}

#[test]
fn the_33rd_command_has_the_first_32_executed() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        for (held, key) in (1..=33_u8).enumerate() {
            io.hold_store(&[key], b"value");
            assert_eq!(io.waiting(), if held < 31 { 0 } else { 32 });
        }
        io.queue.execute_held();
        assert_eq!(io.waiting(), 33);
    });
}

#[test]
fn a_store_is_answered_when_it_is_durable() {
    run_real(Ack::Program, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        io.hold_store(b"a", b"one");
        io.queue.execute_held();
        assert_eq!(io.waiting(), 0, "its page is not programmed");
        assert_eq!(world.subsystems.census()[0].queues[1].in_flight, 1);
        assert_eq!(io.next().await.unwrap().entry.status(), SUCCESS);
        assert_eq!(io.retrieve(b"a", 100).await.data.bytes().unwrap(), b"one");
    });
}

#[test]
fn stores_that_are_held_together_share_a_page() {
    run_real(Ack::Program, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let padded = || world.device.kv().unwrap().counters().padded_pages;
        let before = padded();
        for key in 1..=8_u8 {
            io.hold_store(&[key], b"value");
        }
        io.queue.execute_held();
        for _ in 1..=8 {
            assert_eq!(io.next().await.unwrap().entry.status(), SUCCESS);
        }
        assert_eq!(padded(), before + 1);
    });
}

#[test]
fn what_must_wait_or_be_refused_is_answered_as_by_an_emulated_device() {
    let test = async |world: World| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let none = Status::KEY_DOES_NOT_EXIST;
        assert_eq!(io.retrieve(b"a", 100).await.entry.status(), none);
        let store = |options| Command::store(KV, b"a", 3, options);
        let must_exist = store(StoreOptions::MUST_EXIST);
        assert_eq!(io.answer(must_exist, b"one", 0).await.entry.status(), none);
        let must_not_exist = store(StoreOptions::MUST_NOT_EXIST);
        assert_eq!(io.answer(must_not_exist, b"one", 0).await.entry.status(), SUCCESS);
        assert_eq!(io.answer(must_not_exist, b"one", 0).await.entry.status(), Status::KEY_EXISTS);
        // The SGL has less room than the command says, or brings other bytes.
        let pointer = DataPointer::Transport { len: 2 };
        let retrieve = Command::retrieve(KV, b"a", 100).with_data_pointer(pointer);
        let answer = io.answer(retrieve, &[], 2).await;
        assert_eq!(answer.entry.status(), Status::DATA_SGL_LENGTH_INVALID);
        let longer = store(StoreOptions::NONE).with_data_pointer(pointer);
        let answer = io.answer(longer, b"one", 0).await;
        assert_eq!(answer.entry.status(), Status::DATA_SGL_LENGTH_INVALID);
        let elsewhere = Command::store(77, b"a", 3, StoreOptions::NONE);
        let answer = io.answer(elsewhere, b"one", 0).await;
        assert_eq!(answer.entry.status(), Status::INVALID_NAMESPACE);
        let no_key = Command::retrieve(KV, b"", 100);
        assert_eq!(io.answer(no_key, &[], 100).await.entry.status(), Status::INVALID_KEY_SIZE);
        let work = world.subsystems.work_of(&world.device);
        let expected = Work { writes: 1, bytes_written: 3, others: 5, ..Work::default() };
        assert_eq!(work, expected);
    };
    run(test);
    run_real(Ack::Program, test);
    run_real(BUFFER, test);
}

#[test]
fn held_commands_take_entries_of_their_queue() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.line();
        // Three entries.
        assert_eq!(io.connect(id, 1, 2).await, Ok(id));
        for key in [b"a", b"b", b"c", b"d"] {
            io.hold_store(key, b"value");
        }
        assert_eq!(io.waiting(), 0);
        pass(Nanos::from_micros(200)).await;
        assert!(io.is_ended(), "four are too many");
        let io = world.io(id, 2).await;
        assert_eq!(io.retrieve(b"c", 100).await.entry.status(), SUCCESS, "they run to their end");
        assert_eq!(io.retrieve(b"d", 100).await.entry.status(), Status::KEY_DOES_NOT_EXIST);
    });
}

#[test]
fn held_commands_of_a_closed_queue_are_executed_without_a_response() {
    run_real(BUFFER, async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        io.hold_store(b"a", b"one");
        io.queue.close();
        assert_eq!(io.waiting(), 0);
        let io = world.io(id, 2).await;
        assert_eq!(io.retrieve(b"a", 100).await.data.bytes().unwrap(), b"one");
    });
}

#[test]
fn a_detached_namespace_takes_no_command() {
    run_real(BUFFER, async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.store(b"a", b"one").await, SUCCESS);
        assert_eq!(admin.detach(KV, &[id]).await, SUCCESS);
        assert_eq!(io.store(b"a", b"two").await, Status::INVALID_NAMESPACE);
        let retrieved = io.retrieve(b"a", 100).await;
        assert_eq!(retrieved.entry.status(), Status::INVALID_NAMESPACE);
    });
}
