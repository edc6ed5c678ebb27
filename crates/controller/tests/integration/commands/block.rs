//! The NVM command set (NVM 1.1), on blocks.

use crate::commands::host::{
    BLOCK, BLOCK_BYTES, BLOCKS, Host, UNRECOVERED, filled, nothing, run, run_with,
};
use base::checksum::Digest;
use base::{Buf, Nanos, Rng};
use clock::Stage;
use controller::{FirmwareCosts, Submission};
use media::Error;
use spec::{BlockRange, Command, CopyRange, Opcode, Status, StoreOptions, ZoneSendAction};
use zerocopy::IntoBytes;

/// Most blocks of a transfer: 2 MiB.
const MOST: u32 = (2 << 20) / BLOCK_BYTES;

impl Host {
    async fn write(&self, lba: u64, data: Buf) -> Status {
        let command = Command::write(BLOCK, lba, data.len() / BLOCK_BYTES);
        self.answer(command, data).await.status
    }

    async fn deallocate(&self, ranges: &[BlockRange]) -> Status {
        let command = Command::deallocate(BLOCK, ranges.len().try_into().expect("there are few"));
        self.answer(command, Buf::copy_from(ranges.as_bytes())).await.status
    }

    async fn copy(&self, lba: u64, ranges: &[CopyRange]) -> Status {
        let command = Command::copy(BLOCK, lba, ranges.len().try_into().expect("there are few"));
        self.answer(command, Buf::copy_from(ranges.as_bytes())).await.status
    }

    /// The first byte of each of `count` blocks, all of whose bytes are that one.
    async fn bytes(&self, lba: u64, count: u32) -> Vec<u8> {
        let data = self.read(BLOCK, lba, count).await;
        let blocks = data.bytes().expect("bytes were written").chunks(BLOCK_BYTES as usize);
        let first = |block: &[u8]| {
            assert!(block.iter().all(|&byte| byte == block[0]), "a block is of one write");
            block[0]
        };
        blocks.map(first).collect()
    }
}

#[test]
fn blocks_agree_with_a_plain_array_after_every_command() {
    run(async |host| {
        let mut array = [0_u8; 64];
        let mut rng = Rng::new(1);
        for step in 1..=2_000_u32 {
            let byte = step.to_le_bytes()[0];
            let count = usize::try_from(rng.below(8)).unwrap() + 1;
            let at = usize::try_from(rng.below(64 - 8)).unwrap();
            let from = usize::try_from(rng.below(64 - 8)).unwrap();
            let (lba, blocks) = (at as u64, u32::try_from(count).unwrap());
            let status = match rng.below(6) {
                0 => {
                    array[at..at + count].fill(0);
                    host.status(Command::write_zeroes(BLOCK, lba, blocks)).await
                }
                5 => {
                    array[at..at + count].fill(0);
                    host.status(Command::write_zeroes(BLOCK, lba, blocks).with_deallocation()).await
                }
                1 => {
                    array[at..at + count].fill(0);
                    array[from] = 0;
                    let other = BlockRange::new(from as u64, 1);
                    host.deallocate(&[other, BlockRange::new(lba, blocks)]).await
                }
                2 => {
                    let source = [&array[from..from + count], &array[at..=at]].concat();
                    array[at..=at + count].copy_from_slice(&source);
                    let first = CopyRange::new(from as u64, blocks);
                    host.copy(lba, &[first, CopyRange::new(lba, 1)]).await
                }
                _ => {
                    array[at..at + count].fill(byte);
                    host.write(lba, filled(byte, blocks)).await
                }
            };
            assert_eq!(status, Status::SUCCESS);
            assert_eq!(host.bytes(0, 64).await, array, "after step {step}");
        }
    });
}

#[test]
fn a_compare_succeeds_for_what_is_there_and_for_nothing_else() {
    run(async |host| {
        let two = Buf::copy_from(&[vec![1; 4_096], vec![2; 4_096]].concat());
        assert_eq!(host.write(7, two.clone()).await, Status::SUCCESS);
        let compare = async |lba, data: Buf| {
            let command = Command::compare(BLOCK, lba, data.len() / BLOCK_BYTES);
            host.answer(command, data).await.status
        };
        assert_eq!(compare(7, two.clone()).await, Status::SUCCESS);
        assert_eq!(compare(8, filled(2, 1)).await, Status::SUCCESS);
        assert_eq!(compare(9, filled(0, 3)).await, Status::SUCCESS, "never written");
        assert_eq!(compare(7, filled(1, 2)).await, Status::COMPARE_FAILURE);
        let mut other = vec![2; 4_096];
        other[4_095] = 3;
        assert_eq!(compare(8, Buf::copy_from(&other)).await, Status::COMPARE_FAILURE);
        assert_eq!(compare(BLOCKS - 1, two).await, Status::LBA_OUT_OF_RANGE);
        assert_eq!(compare(0, filled(0, MOST + 1)).await, Status::INVALID_FIELD);
        assert_eq!(host.bytes(7, 2).await, [1, 2], "nothing was written");
        // Of data that is not kept there is its tag.
        assert_eq!(host.write(0, Buf::phantom(BLOCK_BYTES, 5)).await, Status::SUCCESS);
        assert_eq!(compare(0, Buf::phantom(BLOCK_BYTES, 5)).await, Status::SUCCESS);
        assert_eq!(compare(0, Buf::phantom(BLOCK_BYTES, 6)).await, Status::COMPARE_FAILURE);
    });
}

#[test]
fn a_verify_reads_all_that_it_names_and_returns_nothing() {
    run(async |host| {
        let all = u32::try_from(BLOCKS).unwrap();
        let answered = host.answer(Command::verify(BLOCK, 0, all), nothing()).await;
        assert_eq!((answered.status, answered.data.len()), (Status::SUCCESS, 0));
        let past = Command::verify(BLOCK, 1, all);
        assert_eq!(host.status(past).await, Status::LBA_OUT_OF_RANGE);
        host.blocks.fail_next(UNRECOVERED);
        let verify = Command::verify(BLOCK, 0, all);
        assert_eq!(host.status(verify).await, Status::UNRECOVERED_READ_ERROR);
    });
}

#[test]
fn a_block_past_the_end_is_out_of_range_for_every_command() {
    run(async |host| {
        let last = BLOCKS - 1;
        assert_eq!(host.status(Command::read(BLOCK, last, 1)).await, Status::SUCCESS);
        assert_eq!(host.write(last, filled(1, 1)).await, Status::SUCCESS);
        for lba in [last, BLOCKS, u64::MAX] {
            let out = Status::LBA_OUT_OF_RANGE;
            assert_eq!(host.status(Command::read(BLOCK, lba, 2)).await, out);
            assert_eq!(host.write(lba, filled(2, 2)).await, out);
            assert_eq!(host.status(Command::write_zeroes(BLOCK, lba, 2)).await, out);
            let ranges = [BlockRange::new(0, 1), BlockRange::new(lba, 2)];
            assert_eq!(host.deallocate(&ranges).await, out);
            assert_eq!(host.copy(0, &[CopyRange::new(0, 1), CopyRange::new(lba, 2)]).await, out);
            assert_eq!(host.copy(lba, &[CopyRange::new(0, 2)]).await, out);
        }
        assert_eq!(host.bytes(last, 1).await, [1], "nothing was done by halves");
    });
}

#[test]
fn a_transfer_has_at_most_2_mib() {
    run(async |host| {
        assert_eq!(host.read(BLOCK, 0, MOST).await.len(), 2 << 20);
        assert_eq!(host.write(0, filled(3, MOST)).await, Status::SUCCESS);
        let status = host.status(Command::read(BLOCK, 0, MOST + 1)).await;
        assert_eq!(status, Status::INVALID_FIELD);
        assert_eq!(host.write(0, filled(4, MOST + 1)).await, Status::INVALID_FIELD);
        // Nothing is moved here, so that the length is free.
        let zeroes = Command::write_zeroes(BLOCK, 0, MOST + 1);
        assert_eq!(host.status(zeroes).await, Status::SUCCESS);
        assert_eq!(host.bytes(0, 1).await, [0]);
    });
}

#[test]
fn data_that_is_not_what_the_command_says_is_an_invalid_field() {
    run(async |host| {
        let invalid = Status::INVALID_FIELD;
        for blocks in [0, 1, 3] {
            let answered = host.answer(Command::write(BLOCK, 0, 2), filled(1, blocks)).await;
            assert_eq!(answered.status, invalid);
        }
        for data in [nothing(), Buf::copy_from(&[0; 31]), Buf::phantom(32, 5)] {
            let answered = host.answer(Command::deallocate(BLOCK, 2), data.clone()).await;
            assert_eq!(answered.status, invalid);
            let answered = host.answer(Command::copy(BLOCK, 0, 1), data).await;
            assert_eq!(answered.status, invalid);
        }
        let fewer = host.answer(Command::deallocate(BLOCK, 2), Buf::copy_from(&[0; 16])).await;
        assert_eq!(fewer.status, invalid);
        let fewer = host.answer(Command::copy(BLOCK, 0, 2), Buf::copy_from(&[0; 32])).await;
        assert_eq!(fewer.status, invalid);
        let formats = (0..16).map(copy_of_format);
        for (format, command) in (0..).zip(formats) {
            let source = Buf::copy_from(CopyRange::new(0, 1).as_bytes());
            let expected = if format == 0 { Status::SUCCESS } else { invalid };
            assert_eq!(host.answer(command, source).await.status, expected, "{format}");
        }
    });
}

/// A Copy of one range whose descriptor is said to be of `format`: CDW12 bits 11:8.
fn copy_of_format(format: u8) -> Command {
    let mut command = Command::copy(BLOCK, 8, 1);
    command.as_mut_bytes()[49] = format;
    command
}

#[test]
fn a_copy_of_more_than_2_mib_exceeds_its_size_limit() {
    run(async |host| {
        let halves = [CopyRange::new(0, MOST / 2), CopyRange::new(600, MOST / 2)];
        assert_eq!(host.copy(900, &halves).await, Status::SUCCESS);
        let limit = Status::COMMAND_SIZE_LIMIT_EXCEEDED;
        assert_eq!(host.copy(900, &[CopyRange::new(0, MOST + 1)]).await, limit);
        let more = [halves[0], halves[1], CopyRange::new(0, 1)];
        assert_eq!(host.copy(900, &more).await, limit);
        let most = [CopyRange::new(0, 1); 256];
        assert_eq!(host.copy(900, &most).await, Status::SUCCESS);
        assert_eq!(host.copy(900, &[CopyRange::new(0, 65_536); 256]).await, limit);
    });
}

#[test]
fn a_dataset_management_that_deallocates_nothing_changes_nothing() {
    run(async |host| {
        assert_eq!(host.write(5, filled(9, 1)).await, Status::SUCCESS);
        let mut hint = Command::deallocate(BLOCK, 1);
        hint.as_mut_bytes()[44] = 0b011;
        let range = Buf::copy_from(BlockRange::new(5, 1).as_bytes());
        assert_eq!(host.answer(hint, range).await.status, Status::SUCCESS);
        assert_eq!(host.bytes(5, 1).await, [9]);
        assert_eq!(host.deallocate(&[BlockRange::new(5, 0)]).await, Status::SUCCESS);
        assert_eq!(host.bytes(5, 1).await, [9]);
    });
}

#[test]
fn what_the_medium_could_not_do_is_told_apart() {
    run(async |host| {
        let one = [CopyRange::new(0, 1)];
        for (error, of_read, of_write) in [
            (UNRECOVERED, Status::UNRECOVERED_READ_ERROR, Status::WRITE_FAULT),
            (Error::NoFreeExtent, Status::INTERNAL_ERROR, Status::CAPACITY_EXCEEDED),
        ] {
            let fails = || host.blocks.fail_next(error);
            fails();
            assert_eq!(host.status(Command::read(BLOCK, 0, 1)).await, of_read);
            fails();
            assert_eq!(host.copy(8, &one).await, of_read);
            fails();
            assert_eq!(host.write(0, filled(1, 1)).await, of_write);
            fails();
            assert_eq!(host.status(Command::write_zeroes(BLOCK, 0, 1)).await, of_write);
            fails();
            assert_eq!(host.deallocate(&[BlockRange::new(0, 1)]).await, of_write);
            fails();
            assert_eq!(host.status(Command::flush(BLOCK)).await, of_write);
        }
    });
}

#[test]
fn what_is_forced_waits_for_a_flush() {
    run(async |host| {
        let range = Buf::copy_from(CopyRange::new(0, 1).as_bytes());
        let commands = [
            (Command::write(BLOCK, 0, 1), filled(1, 1)),
            (Command::write_zeroes(BLOCK, 0, 1), nothing()),
            (Command::copy(BLOCK, 0, 1), range),
        ];
        for (command, data) in commands {
            let before = host.blocks.flushes();
            assert_eq!(host.answer(command, data.clone()).await.status, Status::SUCCESS);
            assert_eq!(host.blocks.flushes(), before);
            let forced = host.answer(command.with_force_unit_access(), data).await;
            assert_eq!((forced.status, host.blocks.flushes()), (Status::SUCCESS, before + 1));
        }
        assert_eq!(host.status(Command::flush(BLOCK)).await, Status::SUCCESS);
        assert_eq!(host.blocks.flushes(), 4);
    });
}

#[test]
fn phantoms_of_different_tags_read_as_a_digest_of_them() {
    run(async |host| {
        assert_eq!(host.write(0, Buf::phantom(2 * BLOCK_BYTES, 5)).await, Status::SUCCESS);
        assert_eq!(host.write(2, Buf::phantom(BLOCK_BYTES, 6)).await, Status::SUCCESS);
        let same = host.read(BLOCK, 0, 2).await;
        assert_eq!((same.len(), same.checksum()), (2 * BLOCK_BYTES, 5));
        let mut digest = Digest::default();
        digest.add(&[5, 6]);
        let joined = host.read(BLOCK, 1, 2).await;
        assert_eq!((joined.len(), joined.checksum()), (2 * BLOCK_BYTES, digest.value()));
    });
}

#[test]
fn commands_of_other_sets_are_invalid_opcodes() {
    run(async |host| {
        for command in [
            Command::list(BLOCK, b"", 64),
            Command::delete(BLOCK, b"k"),
            Command::exist(BLOCK, b"k"),
            Command::zone_append(BLOCK, 0, 1),
            Command::zone_management_send(BLOCK, 0, ZoneSendAction::Reset),
        ] {
            assert_eq!(host.status(command).await, Status::INVALID_OPCODE);
        }
        // A Store has the number of a Write, and is taken for one.
        let store = Command::store(BLOCK, b"k", 1, StoreOptions::NONE);
        assert_eq!(store.opcode(), Opcode::WRITE);
        assert_eq!(host.status(store).await, Status::INVALID_FIELD);
    });
}

const COSTS: FirmwareCosts = FirmwareCosts {
    t_read: Nanos(1_000),
    t_write: Nanos(2_000),
    t_delete: Nanos(7),
    t_exist: Nanos(7),
    t_update: Nanos(7),
    t_write_kib: Nanos(7),
    t_read_kib: Nanos(7),
};

#[test]
fn each_command_takes_its_handler_and_what_it_moves_over_the_link() {
    run_with(COSTS, async |host| {
        let ranges = Buf::copy_from([CopyRange::new(0, 4); 3].as_bytes());
        let unwanted = Buf::copy_from([BlockRange::new(0, 4); 3].as_bytes());
        // The handler, and 100 ns and 1 ns for each byte of each transfer.
        for (command, data, handler, moved) in [
            (Command::read(BLOCK, 0, 2), nothing(), 1_000, 8_192),
            (Command::write(BLOCK, 0, 3), filled(1, 3), 2_000, 12_288),
            (Command::copy(BLOCK, 90, 3), ranges, 2_000, 96),
            (Command::deallocate(BLOCK, 3), unwanted, 2_000, 48),
            (Command::compare(BLOCK, 50, 1), filled(0, 1), 1_000, 4_096),
        ] {
            let answered = host.answer(command, data).await;
            assert_eq!(answered.status, Status::SUCCESS);
            assert_eq!(answered.stages[Stage::Index], Nanos(handler));
            assert_eq!(answered.stages[Stage::Link], Nanos(100 + moved));
            assert_eq!(answered.latency(), Nanos(handler + 100 + moved));
        }
        let zeroes = host.answer(Command::write_zeroes(BLOCK, 0, 9), nothing()).await;
        assert_eq!(zeroes.latency(), Nanos(2_000), "no data is moved");
        let verify = host.answer(Command::verify(BLOCK, 0, 9), nothing()).await;
        assert_eq!(verify.latency(), Nanos(1_000), "no data is moved");
        let flush = host.answer(Command::flush(BLOCK), nothing()).await;
        assert_eq!(flush.latency(), Nanos(0), "nothing is looked up");
    });
}

#[test]
fn commands_wait_at_a_closed_gate_and_say_so() {
    run_with(COSTS, async |host| {
        let closed = host.gate.close();
        let command = Command::write_zeroes(BLOCK, 0, 1);
        host.queue.submit(Submission { command, long_key: None, data: nothing() });
        clock::sleep(Nanos(5_000), Stage::Queue).await;
        assert!(host.queue.try_next().is_none(), "the gate is closed");
        drop(closed);
        let answered = host.queue.next().await;
        assert_eq!(answered.stages[Stage::Gc], Nanos(5_000));
        assert_eq!(answered.latency(), Nanos(7_000));
    });
}
