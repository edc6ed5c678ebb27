//! Compare and Write over a fabric: what each of its two commands is answered (Base 2.1, Fused
//! Operations; NVM 1.1, Fused Operation).

use crate::fabrics::host::{BLOCK, KV, Line, World, ZONED, pass, run, run_shuffled};
use base::Nanos;
use media::Error;
use spec::{Command, Configuration, ConnectAttributes, DataPointer, Fuse, Status};

const OLD: [u8; 4_096] = [1; 4_096];
const NEW: [u8; 4_096] = [2; 4_096];

/// The block that is exchanged, which is old.
const LBA: u64 = 9;

const DONE: [Status; 2] = [Status::SUCCESS; 2];
const INVALID: [Status; 2] = [Status::INVALID_FIELD; 2];

async fn connected(world: &World) -> (Line, Line) {
    let (admin, id) = world.admin().await;
    let io = world.io(id, 1).await;
    let write = io.answer(Command::write(BLOCK, LBA, 1), &OLD, 0).await;
    assert_eq!(write.entry.status(), Status::SUCCESS);
    (admin, io)
}

fn commands() -> [Command; 2] {
    [Command::compare(BLOCK, LBA, 1), Command::write(BLOCK, LBA, 1)]
}

async fn exchange(io: &Line, commands: [Command; 2], data: [&[u8]; 2]) -> [Status; 2] {
    io.answer_fused(commands, data).await.map(|response| response.entry.status())
}

async fn content(io: &Line) -> Vec<u8> {
    let read = io.answer(Command::read(BLOCK, LBA, 1), &[], 4_096).await;
    read.data.bytes().expect("there are bytes").to_vec()
}

#[test]
fn the_write_is_done_if_the_compare_succeeds() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, DONE);
        assert_eq!(content(&io).await, NEW);
        let failed = [Status::COMPARE_FAILURE, Status::FAILED_FUSED_COMMAND];
        assert_eq!(exchange(&io, commands(), [&OLD, &OLD]).await, failed);
        assert_eq!(content(&io).await, NEW, "it is not modified");
        let [_, write] = io.answer_fused(commands(), [&OLD, &OLD]).await;
        assert!(write.entry.do_not_retry());
    });
}

/// A controller ends a command whose other one is missing when it comes to it.
#[test]
fn a_part_alone_is_missing_the_other_one_and_other_parts_are_invalid_fields() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        let [compare, write] = commands();
        let missing = Status::MISSING_FUSED_COMMAND;
        for (command, fuse, expected) in [
            (compare, Fuse::First, missing),
            (write, Fuse::Second, missing),
            (compare, Fuse::Second, Status::INVALID_FIELD),
            (write, Fuse::First, Status::INVALID_FIELD),
            (compare, Fuse::Reserved, Status::INVALID_FIELD),
            (Command::read(BLOCK, LBA, 1), Fuse::First, Status::INVALID_FIELD),
            (Command::flush(BLOCK), Fuse::Second, Status::INVALID_FIELD),
            (Command::compare(ZONED, 0, 1), Fuse::First, Status::INVALID_FIELD),
            (Command::exist(KV, b"key"), Fuse::First, Status::INVALID_FIELD),
        ] {
            // Its data was not asked for.
            let pointer = DataPointer::Transport { len: 4_096 };
            let command = command.with_fuse(fuse).with_data_pointer(pointer);
            let status = io.answer(command, &[], 4_096).await.entry.status();
            assert_eq!(status, expected, "{command:?} {fuse:?}");
        }
        assert_eq!(content(&io).await, OLD);
    });
}

#[test]
fn two_commands_that_are_no_operation_are_invalid_fields() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        let [compare, write] = commands();
        for pair in [
            [compare, Command::write(BLOCK, LBA + 1, 1)],
            [compare, Command::write(BLOCK, LBA, 2)],
            [Command::compare(BLOCK, LBA, 2), write],
            [compare, Command::write(ZONED, LBA, 1)],
            [Command::compare(ZONED, 0, 1), Command::write(ZONED, 0, 1)],
            [compare, Command::compare(BLOCK, LBA, 1)],
            [compare, Command::write_zeroes(BLOCK, LBA, 1)],
            [compare, Command::read(BLOCK, LBA, 1)],
            [write, write],
        ] {
            assert_eq!(exchange(&io, pair, [&OLD, &NEW]).await, INVALID, "{pair:?}");
        }
        assert_eq!(content(&io).await, OLD);
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, DONE, "the queue still works");
    });
}

#[test]
fn what_is_wrong_with_one_ends_both_before_anything_is_done() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        let failed = Status::FAILED_FUSED_COMMAND;
        let short = Status::DATA_SGL_LENGTH_INVALID;
        assert_eq!(exchange(&io, commands(), [&OLD[1..], &NEW]).await, [short, failed]);
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW[1..]]).await, [failed, short]);
        let out = [Command::compare(BLOCK, 100, 1), Command::write(BLOCK, 100, 1)];
        let expected = [Status::LBA_OUT_OF_RANGE, failed];
        assert_eq!(exchange(&io, out, [&OLD, &NEW]).await, expected);
        let two = [Command::compare(BLOCK, LBA, 2), Command::write(BLOCK, LBA, 2)];
        let data = [&[0; 8_192][..], &[0; 8_192][..]];
        let expected = [Status::ATOMIC_WRITE_UNIT_EXCEEDED; 2];
        assert_eq!(exchange(&io, two, data).await, expected, "ACWU");
        let none = [Command::compare(9, LBA, 1), Command::write(9, LBA, 1)];
        let expected = [Status::INVALID_NAMESPACE, failed];
        assert_eq!(exchange(&io, none, [&OLD, &NEW]).await, expected);
        assert_eq!(content(&io).await, OLD);
    });
}

#[test]
fn a_write_that_fails_leaves_the_status_of_the_compare() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        world.blocks.fail_next(Error::UnrecoveredBlock(LBA));
        let expected = [Status::UNRECOVERED_READ_ERROR, Status::FAILED_FUSED_COMMAND];
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, expected);
        world.blocks.fail_nth(2, Error::PowerLost);
        let expected = [Status::SUCCESS, Status::WRITE_FAULT];
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, expected);
        assert_eq!(content(&io).await, OLD);
    });
}

#[test]
fn a_write_with_force_unit_access_is_durable_first() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        let [compare, write] = commands();
        let flushes = world.blocks.flushes();
        let forced = [compare, write.with_force_unit_access()];
        assert_eq!(exchange(&io, forced, [&OLD, &NEW]).await, DONE);
        assert_eq!(world.blocks.flushes(), flushes + 1);
    });
}

/// An operation of which one command alone is aborted would be none: neither is (Base 2.1, Abort
/// command: a controller need not abort).
#[test]
fn an_abort_does_not_end_a_part_of_an_operation() {
    for shuffle in [None, Some(1), Some(2)] {
        run_shuffled(shuffle, async |world| {
            let (admin, io) = connected(&world).await;
            let closed = world.gate.close();
            let ids = io.send_fused(commands(), [&OLD, &NEW]);
            pass(Nanos::from_micros(1)).await;
            for id in ids {
                assert_eq!(admin.result(Command::abort(1, id)).await, 1, "not aborted");
            }
            drop(closed);
            for id in ids {
                let response = io.next().await.unwrap().entry;
                assert_eq!((response.command_id(), response.status()), (id, Status::SUCCESS));
            }
            assert_eq!(content(&io).await, NEW);
        });
    }
}

/// The transport holds a first command until the second one comes, which may be never (Base 2.1,
/// Abort command: bit 0 of the result is cleared for an aborted command).
#[test]
fn a_first_command_whose_second_has_not_come_is_aborted() {
    run(async |world| {
        let (admin, io) = connected(&world).await;
        let [compare, _] = commands();
        let head = io.answer(Command::flush(BLOCK), &[], 0).await.entry.queue_head();
        let held = io.send_first(compare);
        assert_eq!(admin.result(Command::abort(1, held + 1)).await, 1, "another id");
        assert_eq!(admin.result(Command::abort(1, held)).await, 0);
        let aborted = io.next().await.unwrap().entry;
        assert_eq!((aborted.command_id(), aborted.status()), (held, Status::ABORT_REQUESTED));
        assert_eq!((aborted.queue_head(), aborted.do_not_retry()), (head + 1, false));
        assert_eq!(admin.result(Command::abort(1, held)).await, 1, "it is aborted");
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, DONE, "the queue still works");
        assert_eq!(io.waiting(), 0);
    });
}

#[test]
fn a_first_command_is_not_aborted_while_its_queue_is_full() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.line();
        io.connect(id, 1, 1).await.unwrap();
        let closed = world.gate.close();
        let flushes = [(); 2].map(|()| io.send(Command::flush(BLOCK), &[], 0));
        let held = io.send_first(commands()[0]);
        assert_eq!(admin.result(Command::abort(1, held)).await, 1);
        drop(closed);
        for _ in flushes {
            assert_eq!(io.next().await.unwrap().entry.status(), Status::SUCCESS);
        }
        assert_eq!(admin.result(Command::abort(1, held)).await, 0);
    });
}

#[test]
fn an_operation_runs_to_its_end_when_its_controller_is_reset() {
    run(async |world| {
        let (admin, io) = connected(&world).await;
        let closed = world.gate.close();
        io.send_fused(commands(), [&OLD, &NEW]);
        pass(Nanos::from_micros(1)).await;
        admin.set_configuration(Configuration(0)).await;
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        assert_eq!((io.waiting(), io.is_ended()), (0, true));
        let (_admin, id) = world.admin().await;
        assert_eq!(content(&world.io(id, 1).await).await, NEW);
    });
}

#[test]
fn each_command_moves_the_head_of_its_queue() {
    run(async |world| {
        let (_admin, io) = connected(&world).await;
        let head = io.answer(Command::flush(BLOCK), &[], 0).await.entry.queue_head();
        let [first, second] = io.answer_fused(commands(), [&OLD, &NEW]).await;
        assert_eq!([first.entry.queue_head(), second.entry.queue_head()], [head + 2; 2]);
        let next = io.answer(Command::flush(BLOCK), &[], 0).await.entry.queue_head();
        assert_eq!(next, head + 3);
    });
}

#[test]
fn a_queue_that_has_room_for_one_of_two_commands_is_overrun() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.line();
        io.connect(id, 1, 1).await.unwrap();
        let closed = world.gate.close();
        io.send(Command::flush(BLOCK), &[], 0);
        io.send_fused(commands(), [&OLD, &NEW]);
        drop(closed);
        assert!(io.next().await.is_none(), "the connection ends");
    });
}

/// Nothing else than an I/O queue has fused operations.
#[test]
fn other_queues_refuse_both_commands() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        assert_eq!(exchange(&admin, commands(), [&OLD, &NEW]).await, INVALID);
        let line = world.line();
        let early = [Status::COMMAND_SEQUENCE_ERROR; 2];
        assert_eq!(exchange(&line, commands(), [&OLD, &NEW]).await, early);
    });
}

#[test]
fn an_operation_counts_as_a_read_and_a_write() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io_of(id, 1, ConnectAttributes::NO_FLOW_CONTROL).await;
        assert_eq!(exchange(&io, commands(), [&[0; 4_096], &NEW]).await, DONE);
        let failed = [Status::COMPARE_FAILURE, Status::FAILED_FUSED_COMMAND];
        assert_eq!(exchange(&io, commands(), [&OLD, &NEW]).await, failed);
        let work = world.subsystems.census().pop().expect("one host is here").work;
        assert_eq!((work.reads, work.writes, work.others), (1, 1, 2));
        assert_eq!((work.bytes_read, work.bytes_written), (4_096, 4_096));
    });
}
