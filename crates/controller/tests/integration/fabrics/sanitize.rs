//! Sanitize (Base 2.1, Sanitize command and Sanitize Operations).

use crate::fabrics::host::{BLOCK, HOST_ID, HOST_NQN, KV, Line, World, ZONED, pass, run};
use base::Nanos;
use media::Error;
use spec::{
    AdminOpcode, Cns, Command, CommandEffects, CommandSet, Configuration, ConnectAttributes,
    ConnectData, Effects, Feature, FeatureSelect, FormatOptions, IdentifyController, LogPage,
    NamespaceAttachment, Property, SanitizeLog, SanitizeOptions, Status, StoreOptions,
};

/// SANACT and AUSE.
const EXIT_FAILURE: u32 = 0b001;
const BLOCK_ERASE: u32 = 0b010;
const UNRESTRICTED: u32 = 1 << 3;

/// Type, information and log page.
const SANITIZED: u64 = 0x0081_0106;

/// SSTAT.
const NEVER: u16 = 0;
const DONE: u16 = 1;
const UNDER_WAY: u16 = 2;
const FAILED: u16 = 3;
const ALL_ERASED: u16 = 1 << 8;

/// SPROG where none is under way.
const NONE: u16 = 0xffff;

fn sanitize(dword_10: u32) -> Command {
    Command::sanitize(SanitizeOptions(dword_10))
}

impl Line {
    /// SPROG, SSTAT, SCDW10 and SSI.
    async fn sanitize_log(&self) -> (u16, u16, u32, u8) {
        let page = Command::get_log_page(LogPage::SANITIZE, u32::MAX, 512);
        let log: SanitizeLog = self.structure(page.with_retained_event()).await;
        (log.progress.get(), log.status.get(), log.options.get(), log.state)
    }

    /// Waits until what was begun has ended.
    async fn sanitized(&self) {
        while self.sanitize_log().await.1 == UNDER_WAY {
            pass(Nanos::from_micros(50)).await;
        }
    }
}

/// Has data in each namespace.
async fn fill(io: &Line) {
    assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
    for nsid in [BLOCK, ZONED] {
        let written = io.answer(Command::write(nsid, 0, 1), &[7; 4_096], 0).await;
        assert_eq!(written.entry.status(), Status::SUCCESS);
    }
}

/// Of pairs, blocks and zones, whether there is data.
async fn left(io: &Line) -> [bool; 3] {
    let is_there = io.status(Command::exist(KV, b"key")).await == Status::SUCCESS;
    let has_data = async |nsid| {
        let read = io.answer(Command::read(nsid, 0, 1), &[], 4_096).await;
        assert_eq!(read.entry.status(), Status::SUCCESS);
        read.data.bytes() != Some(&[0; 4_096][..])
    };
    [is_there, has_data(BLOCK).await, has_data(ZONED).await]
}

#[test]
fn controllers_say_what_they_can_do() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let controller: IdentifyController =
            admin.structure(Command::identify(Cns::CONTROLLER, 0)).await;
        // BES, NDI, and NODMMAS 01b.
        assert_eq!(controller.sanitize.get(), 1 << 1 | 1 << 29 | 0b01 << 30);
        let page = Command::get_log_page(LogPage::COMMAND_EFFECTS, 0, 4_096);
        let effects: CommandEffects = admin.structure(page).await;
        let changes = Effects::SUPPORTED | Effects::CHANGES_DATA;
        assert_eq!(effects.admin(AdminOpcode::SANITIZE), changes);
    });
}

#[test]
fn a_sanitize_leaves_nothing_and_tells_who_asked() {
    run(async |world| {
        let ((admin, id), (other, _)) = (world.admin().await, world.admin().await);
        let io = world.io(id, 1).await;
        fill(&io).await;
        assert_eq!(left(&io).await, [true; 3]);
        assert_eq!(admin.sanitize_log().await, (NONE, NEVER, 0, 0));
        let request = admin.send(Command::async_event_request(), &[], 0);
        other.send(Command::async_event_request(), &[], 0);
        for _ in 0..2 {
            assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
            assert_eq!(admin.sanitize_log().await, (0, UNDER_WAY, BLOCK_ERASE, 1));
            other.sanitized().await;
            let log = (NONE, DONE | ALL_ERASED, BLOCK_ERASE, 0);
            assert_eq!(other.sanitize_log().await, log, "it is the subsystem's");
            assert_eq!(left(&io).await, [false; 3]);
            let event = admin.next().await.unwrap().entry;
            assert_eq!(event.result(), SANITIZED);
            assert!(event.command_id() >= request);
            // An unread log page does not mask the next event.
            admin.send(Command::async_event_request(), &[], 0);
        }
        assert_eq!((admin.waiting(), other.waiting()), (0, 0));
        fill(&io).await;
        assert_eq!(admin.sanitize_log().await, (NONE, DONE, BLOCK_ERASE, 0), "there is data again");
        assert_eq!(left(&io).await, [true; 3]);
    });
}

#[test]
fn what_it_cannot_do_begins_nothing() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        fill(&io).await;
        let (no_deallocate, verify) = (1 << 9, 1 << 10);
        for wrong in [0, 3, 4, 5, 6, 7, BLOCK_ERASE | no_deallocate, BLOCK_ERASE | verify] {
            assert_eq!(admin.status(sanitize(wrong)).await, Status::INVALID_FIELD, "{wrong:#x}");
        }
        assert_eq!(admin.status(sanitize(EXIT_FAILURE)).await, Status::SUCCESS, "there is none");
        assert_eq!(admin.sanitize_log().await, (NONE, NEVER, 0, 0));
        assert_eq!(left(&io).await, [true; 3]);
        let (discovery, _) = world.admin_of(spec::QualifiedName::DISCOVERY, 0).await;
        assert_eq!(discovery.status(sanitize(BLOCK_ERASE)).await, Status::INVALID_OPCODE);
    });
}

/// Every command that could see or change data ends with `status`; others are done.
async fn refuses(world: &World, admin: &Line, id: u16, io: &Line, status: Status) {
    let may_pass = status == Status::SANITIZE_IN_PROGRESS;
    for command in [
        Command::exist(KV, b"key"),
        Command::retrieve(KV, b"key", 64),
        Command::delete(KV, b"key"),
        Command::read(BLOCK, 0, 1),
        Command::verify(ZONED, 0, 1),
        Command::flush(BLOCK),
    ] {
        let response = io.answer(command, &[], 4_096).await.entry;
        assert_eq!(response.status(), status, "{command:?}");
        assert_eq!(response.do_not_retry(), !may_pass);
    }
    for command in [
        Command::format_namespace(BLOCK, FormatOptions::default()),
        Command::delete_namespace(BLOCK),
        Command::create_namespace(CommandSet::NVM),
        Command::attach_namespace(BLOCK, NamespaceAttachment::Detach),
    ] {
        assert_eq!(admin.status(command).await, status, "{command:?}");
    }
    for command in [
        Command::identify(Cns::CONTROLLER, 0),
        Command::get_log_page(LogPage::SMART, u32::MAX, 512),
        Command::get_features(Feature::NUMBER_OF_QUEUES, 0, FeatureSelect::Current),
        Command::set_features(Feature::ASYNC_EVENTS, 0, 0x100),
        Command::keep_alive(),
        Command::abort(1, 99),
        Command::property_get(Property::CSTS),
    ] {
        assert_eq!(admin.status(command).await, Status::SUCCESS, "{command:?}");
    }
    world.io(id, 2).await.queue.close();
}

#[test]
fn sanitize_waits_for_commands_in_flight_and_refuses_others() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let closed = world.gate.close();
        let late = io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
        assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
        refuses(&world, &admin, id, &io, Status::SANITIZE_IN_PROGRESS).await;
        for again in [BLOCK_ERASE, BLOCK_ERASE | UNRESTRICTED, EXIT_FAILURE] {
            assert_eq!(admin.status(sanitize(again)).await, Status::SANITIZE_IN_PROGRESS);
        }
        pass(Nanos::from_secs(1)).await;
        assert_eq!(admin.sanitize_log().await, (0, UNDER_WAY, BLOCK_ERASE, 1), "it waits");
        drop(closed);
        let stored = io.next().await.unwrap().entry;
        assert_eq!((stored.command_id(), stored.status()), (late, Status::SUCCESS));
        admin.sanitized().await;
        assert_eq!(admin.sanitize_log().await.1, DONE | ALL_ERASED);
        assert_eq!(left(&io).await, [false; 3]);
    });
}

#[test]
fn a_command_that_came_just_before_leaves_nothing() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        // The task that has executed a command is there for the next.
        for other in [&b"one"[..], b"two"] {
            io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
            admin.send(sanitize(BLOCK_ERASE), &[], 0);
            let (stored, begun) = (io.next().await.unwrap(), admin.next().await.unwrap());
            assert_eq!(begun.entry.status(), Status::SUCCESS);
            assert_eq!(stored.entry.status(), Status::SUCCESS, "it came first");
            admin.sanitized().await;
            assert_eq!(left(&io).await, [false; 3]);
            assert_eq!(io.store(other, b"value").await, Status::SUCCESS);
        }
    });
}

#[test]
fn progress_is_told_as_namespaces_are_done() {
    // Thirds of 65,536.
    for (nsid, progress) in [(KV, 0), (BLOCK, 21_845), (ZONED, 43_690)] {
        run(async |world| {
            let (admin, id) = world.admin().await;
            let io = world.io(id, 1).await;
            let closed = world.gate.close();
            io.send(Command::read(nsid, 0, 1), &[], 4_096);
            assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
            pass(Nanos::from_millis(1)).await;
            let log = (progress, UNDER_WAY, BLOCK_ERASE, 1);
            assert_eq!(admin.sanitize_log().await, log, "it waits for the command");
            drop(closed);
            admin.sanitized().await;
            assert_eq!(admin.sanitize_log().await.1, DONE | ALL_ERASED);
        });
    }
}

#[test]
fn a_failure_in_restricted_mode_stays_until_another_one_succeeds() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        fill(&io).await;
        admin.send(Command::async_event_request(), &[], 0);
        world.blocks.fail_next(Error::PowerLost);
        assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
        assert_eq!(admin.next().await.unwrap().entry.result(), SANITIZED);
        // FAILS 1h, SANS 2h.
        assert_eq!(admin.sanitize_log().await, (NONE, FAILED, BLOCK_ERASE, 0x12));
        refuses(&world, &admin, id, &io, Status::SANITIZE_FAILED).await;
        for no_way_out in [EXIT_FAILURE, BLOCK_ERASE | UNRESTRICTED] {
            assert_eq!(admin.status(sanitize(no_way_out)).await, Status::SANITIZE_FAILED);
        }
        assert_eq!(admin.status(sanitize(0b101)).await, Status::INVALID_FIELD);
        assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
        admin.sanitized().await;
        assert_eq!(admin.sanitize_log().await.1, DONE | ALL_ERASED);
        assert_eq!(left(&io).await, [false; 3]);
    });
}

#[test]
fn a_failure_in_unrestricted_mode_can_be_given_up() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        fill(&io).await;
        world.blocks.fail_next(Error::PowerLost);
        let options = BLOCK_ERASE | UNRESTRICTED;
        assert_eq!(admin.status(sanitize(options)).await, Status::SUCCESS);
        assert_eq!(admin.sanitize_log().await, (0, UNDER_WAY, options, 3));
        admin.sanitized().await;
        assert_eq!(admin.sanitize_log().await, (NONE, FAILED, options, 0x34));
        refuses(&world, &admin, id, &io, Status::SANITIZE_FAILED).await;
        assert_eq!(admin.status(sanitize(EXIT_FAILURE)).await, Status::SUCCESS);
        assert_eq!(admin.sanitize_log().await, (NONE, FAILED, options, 0));
        assert_eq!(left(&io).await, [false, true, false], "the others were wiped");
        let flushes = world.blocks.flushes();
        assert_eq!(io.status(Command::flush(BLOCK)).await, Status::SUCCESS);
        assert_eq!(world.blocks.flushes(), flushes + 1);
    });
}

#[test]
fn it_does_not_begin_in_the_middle_of_a_format_and_survives_resets() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        fill(&io).await;
        admin.send(Command::format_namespace(KV, FormatOptions::default()), &[], 0);
        while io.status(Command::exist(KV, b"key")).await != Status::FORMAT_IN_PROGRESS {}
        admin.send(sanitize(BLOCK_ERASE), &[], 0);
        let (first, second) = (admin.next().await.unwrap(), admin.next().await.unwrap());
        assert_eq!(first.entry.status(), Status::FORMAT_IN_PROGRESS, "the Sanitize");
        assert_eq!(second.entry.status(), Status::SUCCESS, "the format");
        assert_eq!(admin.sanitize_log().await.1, NEVER);

        let closed = world.gate.close();
        io.send(Command::exist(KV, b"key"), &[], 0);
        pass(Nanos(1)).await;
        assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
        let reset = Command::property_set(Property::NSSR, Property::RESET_SUBSYSTEM.into());
        assert_eq!(admin.status(reset).await, Status::SUCCESS);
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        assert_eq!(admin.sanitize_log().await.1, UNDER_WAY);
        drop(closed);
        admin.sanitized().await;
        assert_eq!(admin.sanitize_log().await.1, DONE | ALL_ERASED);
        assert_eq!(left(&world.io(id, 1).await).await, [false; 3]);
    });
}

/// A device may be several subsystems, and has all its data in common.
#[test]
fn hosts_of_another_subsystem_of_the_device_are_held_up_too() {
    run(async |world| {
        const OTHER: &str = "nqn.2026-01.org.example:other";
        world.subsystems.add(crate::fabrics::host::subsystem(OTHER, &world.device, &world.flash));
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let (other, other_id) = world.admin_of(OTHER, 0).await;
        let other_io = world.line();
        let data = ConnectData::new(HOST_ID, HOST_NQN, OTHER, other_id);
        let connect = Command::connect(1, 31, ConnectAttributes::NONE, 0);
        assert_eq!(other_io.connect_with(connect, &data).await, Ok(other_id));
        fill(&io).await;
        assert_eq!(admin.status(sanitize(BLOCK_ERASE)).await, Status::SUCCESS);
        assert_eq!(other.sanitize_log().await.1, UNDER_WAY);
        let read = Command::read(BLOCK, 0, 1);
        assert_eq!(other_io.status(read).await, Status::SANITIZE_IN_PROGRESS);
        other.sanitized().await;
        for line in [&admin, &other] {
            assert_eq!(line.sanitize_log().await.1, DONE | ALL_ERASED);
        }
        assert_eq!(other_io.store(b"key", b"value").await, Status::SUCCESS);
        for line in [&admin, &other] {
            assert_eq!(line.sanitize_log().await.1, DONE, "there is data again");
        }
    });
}
