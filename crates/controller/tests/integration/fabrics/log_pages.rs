//! Get Log Page (Base 2.1, Get Log Page command).

use crate::fabrics::host::{BLOCK, KV, Line, ZONED, run, subsystem};
use base::Nanos;
use controller::{EngineFigures, FlashFigures};
use spec::{
    AdminOpcode, BlockRange, Command, CommandEffects, CommandSet, CopyRange, Effects, ErrorEntry,
    FirmwareSlots, LogPage, Opcode, SmartLog, Status, SupportedLogPages,
};
use zerocopy::{FromBytes, IntoBytes};

fn get(page: LogPage, bytes: u32) -> Command {
    Command::get_log_page(page, u32::MAX, bytes)
}

async fn errors(admin: &Line) -> Vec<ErrorEntry> {
    let bytes = admin.read(get(LogPage::ERRORS, 4_096)).await;
    let (entries, rest) = <[ErrorEntry]>::ref_from_prefix(&bytes).expect("entries of 64 bytes");
    assert!(rest.is_empty());
    entries.to_vec()
}

#[test]
fn failed_commands_are_in_the_error_log_and_missing_keys_are_no_failures() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 3).await;
        assert!(errors(&admin).await.iter().all(|entry| *entry == ErrorEntry::default()));
        let failed = io.send(Command::exist(KV, &[1; 17]), &[], 0);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::INVALID_FIELD);
        assert_eq!(io.status(Command::exist(KV, b"none")).await, Status::KEY_DOES_NOT_EXIST);
        let wrong = admin.send(get(LogPage(0x99), 4), &[], 4);
        assert_eq!(admin.next().await.unwrap().entry.status(), Status::INVALID_LOG_PAGE);

        let entries = errors(&admin).await;
        let [latest, first] = [&entries[0], &entries[1]];
        assert_eq!((latest.count.get(), latest.queue_id.get()), (2, 0));
        assert_eq!(latest.command_id.get(), wrong);
        // Type 1, code 09h and DNR, behind the phase bit.
        assert_eq!(latest.status.get(), (0x109 | 0x4000) << 1);
        assert_eq!((latest.opcode, latest.nsid.get()), (0x02, u32::MAX));
        assert_eq!((first.count.get(), first.queue_id.get()), (1, 3));
        assert_eq!((first.command_id.get(), first.nsid.get()), (failed, KV));
        assert_eq!((first.status.get(), first.opcode), ((0x02 | 0x4000) << 1, 0x14));
        assert_eq!(entries[2], ErrorEntry::default());
        let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
        assert_eq!(smart.error_entries.get(), 2);
    });
}

#[test]
fn the_error_log_keeps_the_latest_64() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for _ in 0..100 {
            admin.status(Command::get_log_page(LogPage(0x99), 0, 4)).await;
        }
        let entries = errors(&admin).await;
        assert_eq!((entries.len(), entries[0].count.get()), (64, 100));
        assert_eq!(entries[63].count.get(), 37);
        let (other, _) = world.admin().await;
        assert_eq!(errors(&other).await[0], ErrorEntry::default(), "each controller has its own");
    });
}

#[test]
fn health_counts_what_hosts_moved() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
        assert_eq!((smart.host_reads.get(), smart.host_writes.get()), (0, 0));
        assert_eq!((smart.data_units_read.get(), smart.data_units_written.get()), (0, 0));
        assert_eq!((smart.critical_warning, smart.available_spare), (0, 100));
        for number in 0..3_u8 {
            io.store(&[number], &vec![7; 300_000]).await;
        }
        io.retrieve(&[0], 300_000).await;
        io.retrieve(&[1], 1_000).await;
        io.retrieve(b"none", 1_000).await;
        io.status(Command::exist(KV, b"none")).await;
        let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
        assert_eq!((smart.host_reads.get(), smart.host_writes.get()), (2, 3));
        // 301,000 and 900,000 bytes, in units of 512,000.
        assert_eq!((smart.data_units_read.get(), smart.data_units_written.get()), (1, 2));
        assert_eq!((smart.media_errors.get(), smart.error_entries.get()), (0, 0));
    });
}

#[test]
fn a_controller_is_busy_while_commands_are_under_way() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let busy = async || {
            let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
            smart.busy_minutes.get()
        };
        crate::fabrics::host::pass(Nanos::from_secs(3_600)).await;
        assert_eq!(busy().await, 0);
        let closed = world.gate.close();
        io.send(Command::exist(KV, b"none"), &[], 0);
        io.send(Command::exist(KV, b"none"), &[], 0);
        crate::fabrics::host::pass(Nanos::from_secs(90)).await;
        assert_eq!(busy().await, 1, "of a command that has not ended, too");
        drop(closed);
        io.next().await;
        io.next().await;
        crate::fabrics::host::pass(Nanos::from_secs(3_600)).await;
        assert_eq!(busy().await, 1);
        let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
        assert_eq!(smart.power_on_hours.get(), 2);
    });
}

#[test]
fn health_has_the_figures_of_the_flash() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        world.flash.set(FlashFigures { spare_percent: 9, used_percent: 104, ..FlashFigures::NEW });
        let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
        assert_eq!((smart.available_spare, smart.spare_threshold), (9, 10));
        assert_eq!((smart.percentage_used, smart.critical_warning), (104, 1));
        assert!((273..343).contains(&smart.temperature.get()));
    });
}

#[test]
fn one_slot_of_firmware_is_active() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let slots: FirmwareSlots = admin.structure(get(LogPage::FIRMWARE_SLOTS, 512)).await;
        assert_eq!((slots.active, slots.revisions[0].as_str()), (1, Some("1.2.3")));
        assert_eq!(slots.revisions[1].as_str(), Some(""));
    });
}

#[test]
fn effects_are_told_for_every_command_set_or_linux_shows_no_namespace() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let page = Command::get_log_page(LogPage::COMMAND_EFFECTS, 0, 4_096);
        let nvm: CommandEffects = admin.structure(page).await;
        let kv: CommandEffects =
            admin.structure(page.with_log_page_csi(CommandSet::KEY_VALUE)).await;
        let zoned: CommandEffects =
            admin.structure(page.with_log_page_csi(CommandSet::ZONED)).await;
        for effects in [&nvm, &kv, &zoned] {
            assert!(effects.admin(AdminOpcode::IDENTIFY).contains(Effects::SUPPORTED));
            assert_eq!(effects.admin(AdminOpcode::CREATE_IO_SQ), Effects::default());
        }
        let changes = Effects::SUPPORTED | Effects::CHANGES_DATA;
        for (opcode, effects) in [
            (Opcode::STORE, changes),
            (Opcode::RETRIEVE, Effects::SUPPORTED),
            (Opcode::LIST, Effects::SUPPORTED),
            (Opcode::DELETE, changes),
            (Opcode::EXIST, Effects::SUPPORTED),
            (Opcode::FLUSH, Effects::SUPPORTED),
            (Opcode::ZONE_APPEND, Effects::default()),
        ] {
            assert_eq!(kv.io(opcode), effects, "{opcode}");
        }
        for page in [&nvm, &zoned] {
            for (opcode, effects) in [
                (Opcode::FLUSH, Effects::SUPPORTED),
                (Opcode::WRITE, changes),
                (Opcode::READ, Effects::SUPPORTED),
                (Opcode::COMPARE, Effects::SUPPORTED),
                (Opcode::WRITE_ZEROES, changes),
                (Opcode::DATASET_MANAGEMENT, changes),
                (Opcode::VERIFY, Effects::SUPPORTED),
                (Opcode::COPY, changes),
                (Opcode::EXIST, Effects::default()),
            ] {
                assert_eq!(page.io(opcode), effects, "{opcode}");
            }
        }
        // Without both bits of this Linux takes zones for read only.
        assert_eq!(zoned.io(Opcode::ZONE_APPEND), changes);
        assert_eq!(zoned.io(Opcode::ZONE_MANAGEMENT_SEND), changes);
        assert_eq!(zoned.io(Opcode::ZONE_MANAGEMENT_RECEIVE), Effects::SUPPORTED);
        assert_eq!(nvm.io(Opcode::ZONE_APPEND), Effects::default());
    });
}

#[test]
fn every_namespace_is_reached_in_the_best_way() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let page = get(LogPage::ASYMMETRIC_ACCESS, 64);
        let bytes = admin.read(page).await;
        let mut expected = vec![0; 64];
        // One group, number 1, of three namespaces, in state 1: optimized.
        (expected[8], expected[16], expected[20], expected[32]) = (1, 1, 3, 1);
        (expected[48], expected[52], expected[56]) = (1, 2, 3);
        assert_eq!(bytes, expected);
        let mut groups_only: [u8; 64] = zerocopy::transmute!(page);
        groups_only[41] |= 1;
        expected[48..].fill(0);
        expected[20] = 0;
        let page = Command::read_from_bytes(&groups_only).unwrap();
        assert_eq!(admin.read(page).await, expected);
    });
}

#[test]
fn the_pages_that_there_are_and_no_others_are_told_of() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let supported: SupportedLogPages = admin.structure(get(LogPage::SUPPORTED, 1_024)).await;
        for number in 0..=u8::MAX {
            let page = LogPage(number);
            let status = admin.status(get(page, 4)).await;
            assert_eq!(supported.contains(page), status.is_success(), "{page}");
            assert!(status.is_success() || status == Status::INVALID_LOG_PAGE);
        }
        assert!(supported.contains(EngineFigures::LOG_PAGE));
        assert!(!supported.contains(LogPage::DISCOVERY));
    });
}

#[test]
fn a_part_of_a_page_is_read_and_zeros_behind_its_end() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let whole = admin.read(get(LogPage::FIRMWARE_SLOTS, 512)).await;
        let part = admin.read(get(LogPage::FIRMWARE_SLOTS, 16).with_log_page_offset(8)).await;
        assert_eq!(part, whole[8..24]);
        assert_eq!(&part[..8], b"1.2.3   ");
        let longer = admin.read(get(LogPage::FIRMWARE_SLOTS, 4_096)).await;
        assert_eq!((&longer[..512], &longer[512..]), (&whole[..], &[0; 3_584][..]));
        for wrong in [
            get(LogPage::FIRMWARE_SLOTS, 4).with_log_page_offset(516),
            get(LogPage::FIRMWARE_SLOTS, 4).with_log_page_offset(1),
            get(LogPage::FIRMWARE_SLOTS, 4).with_log_page_offset(6),
            get(LogPage::FIRMWARE_SLOTS, 4).with_log_page_offset(u64::MAX),
            get(LogPage::FIRMWARE_SLOTS, (2 << 20) + 4),
        ] {
            let response = admin.answer(wrong, &[], u32::MAX).await;
            assert_eq!(response.entry.status(), Status::INVALID_FIELD);
        }
        let short = admin.answer(get(LogPage::FIRMWARE_SLOTS, 512), &[], 64).await;
        assert_eq!(short.entry.status(), Status::DATA_SGL_LENGTH_INVALID);
    });
}

#[test]
fn the_engines_figures_are_those_of_its_store() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let get = get(EngineFigures::LOG_PAGE, 160);
        let before: EngineFigures = admin.structure(get).await;
        io.store(b"one", &[1; 100]).await;
        io.store(b"two", &[2; 200]).await;
        io.store(b"two", &[3; 300]).await;
        world.flash.set(FlashFigures { reads: 5, programs: 6, erases: 7, ..FlashFigures::NEW });
        let bytes = admin.read(get).await;
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        assert_eq!((word(0), word(1)), (2, before.live_records.get() + 2));
        let live = world.device.store().live_pairs().bytes;
        assert_eq!((word(2), word(3)), (live, crate::fabrics::host::CAPACITY));
        let stored = 100 + 200 + 300 + 3 * 3;
        assert_eq!(word(7), before.host_bytes.get() + stored);
        assert_eq!((word(13), word(14), word(15)), (5, 6, 7));
        assert_eq!(io.status(Command::delete(KV, b"one")).await, Status::SUCCESS);
        let after: EngineFigures = admin.structure(get).await;
        assert_eq!(after.live_records.get(), before.live_records.get() + 1);
        assert_eq!(after.tombstones.get(), before.tombstones.get() + 1);
    });
}

/// Data units of 512,000 bytes and commands: read, written.
async fn moved(admin: &Line) -> [u128; 4] {
    let smart: SmartLog = admin.structure(get(LogPage::SMART, 512)).await;
    let counts =
        [smart.data_units_read, smart.data_units_written, smart.host_reads, smart.host_writes];
    counts.map(zerocopy::little_endian::U128::get)
}

#[test]
fn health_counts_the_blocks_of_each_command_as_its_set_has_it() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        // 100 blocks of 4 KiB are 409,600 bytes: a unit each time, two of three times.
        let blocks = vec![0; 100 * 4_096];
        let ranges = [CopyRange::new(0, 50), CopyRange::new(0, 50)];
        let zeroes = Command::write_zeroes(BLOCK, 0, 100);
        let append = Command::zone_append(ZONED, 0, 1);
        let unwanted = BlockRange::new(0, 100);
        for (command, data, expected) in [
            (Command::write(BLOCK, 0, 100), &blocks[..], [0, 1, 0, 1]),
            (Command::copy(BLOCK, 50, 1), ranges[..1].as_bytes(), [0, 2, 0, 2]),
            (zeroes, &[], [0, 2, 0, 2]),
            (Command::deallocate(BLOCK, 1), unwanted.as_bytes(), [0, 2, 0, 2]),
            (append, &blocks[..4_096], [0, 2, 0, 3]),
            (Command::read(BLOCK, 0, 100), &[], [1, 2, 1, 3]),
            (Command::compare(BLOCK, 0, 100), &blocks, [2, 2, 2, 3]),
            (Command::verify(BLOCK, 0, 100), &[], [3, 2, 3, 3]),
            (Command::flush(BLOCK), &[], [3, 2, 3, 3]),
            (Command::list(KV, b"", 4_096), &[], [3, 2, 3, 3]),
        ] {
            let response = io.answer(command, data, 409_600).await;
            assert_eq!(response.entry.status(), Status::SUCCESS, "{command:?}");
            assert_eq!(moved(&admin).await, expected, "{command:?}");
        }
        assert_eq!(io.status(Command::verify(BLOCK, 1, 100)).await, Status::LBA_OUT_OF_RANGE);
        assert_eq!(moved(&admin).await, [3, 2, 3, 3], "what failed counts nothing");
    });
}

#[test]
fn figures_say_how_much_more_was_programmed_than_written() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let figures = async || {
            let figures: EngineFigures = admin.structure(get(EngineFigures::LOG_PAGE, 160)).await;
            let programmed = figures.flash_programmed_bytes.get();
            let amplification = figures.amplification_millionths.get();
            (figures.bytes_read.get(), figures.bytes_written.get(), programmed, amplification)
        };
        let program = |programmed_bytes| {
            world.flash.set(FlashFigures { programmed_bytes, ..FlashFigures::NEW });
        };
        program(16_384);
        assert_eq!(figures().await, (0, 0, 16_384, 0), "nothing was written yet");
        io.store(b"key", &[1; 3_000]).await;
        io.retrieve(b"key", 1_000).await;
        let write = Command::write(BLOCK, 0, 1);
        assert_eq!(io.answer(write, &[2; 4_096], 0).await.entry.status(), Status::SUCCESS);
        // 16,384 / 7,096 = 2.308906426...
        assert_eq!(figures().await, (1_000, 7_096, 16_384, 2_308_906));
        program(1 << 50);
        assert_eq!(figures().await.3, 158_666_841_437_799_323);
        program(u64::MAX);
        assert_eq!(figures().await.3, u64::MAX, "it is too much, and no little");
        let bytes = admin.read(get(EngineFigures::LOG_PAGE, 160)).await;
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        assert_eq!((word(16), word(17), word(18)), (1_000, 7_096, u64::MAX));
    });
}

#[test]
fn figures_are_of_the_device_and_health_of_the_subsystem_that_is_asked() {
    run(async |world| {
        let other = "nqn.2026-01.org.example:other";
        world.subsystems.add(subsystem(other, &world.device, &world.flash));
        let (first, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let (second, _) = world.admin_of(other, 0).await;
        let write = Command::write(BLOCK, 0, 100);
        let response = io.answer(write, &vec![1; 409_600], 0).await;
        assert_eq!(response.entry.status(), Status::SUCCESS);
        io.answer(Command::read(BLOCK, 0, 1), &[], 4_096).await;
        // One and a half times what was written.
        world.flash.set(FlashFigures { programmed_bytes: 614_400, ..FlashFigures::NEW });
        for admin in [&first, &second] {
            let figures: EngineFigures = admin.structure(get(EngineFigures::LOG_PAGE, 160)).await;
            let bytes = (figures.bytes_read.get(), figures.bytes_written.get());
            assert_eq!(
                (bytes, figures.amplification_millionths.get()),
                ((4_096, 409_600), 1_500_000)
            );
        }
        assert_eq!(moved(&first).await, [1, 1, 1, 1]);
        assert_eq!(moved(&second).await, [0; 4], "its hosts have done nothing");
    });
}
