//! What of a queue is in two reactors.

use crate::shared_drive::peer::{ENABLED, Peer};
use crate::shared_drive::scene::{File, serve_memory};
use spec::{Command, FormatOptions, LogPage, Property, Status};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const NOT_ABORTED: u64 = 1;

#[test]
fn each_reactor_executes_the_commands_of_its_connections() {
    let on_disk = [2_u16, 3, 4].map(|reactors| File::formatted().serve(reactors));
    for scene in on_disk.into_iter().chain([2, 3].map(serve_memory)) {
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        let queues: Vec<_> = (1..=7).map(|id| Peer::io(scene.address(), controller, id)).collect();
        for (number, io) in queues.iter().enumerate() {
            let key = [b'k', u8::try_from(number).unwrap()];
            assert_eq!(io.store(&key, &[7; 100]), Some(Status::SUCCESS));
            assert!(queues.iter().all(|other| other.exists(&key)));
        }
        let status = scene.status();
        let commands: Vec<u64> = status.reactors.iter().map(|it| it.commands).collect();
        assert!(commands.iter().all(|count| *count > 0), "{commands:?}");
        let all = 7 + 7 * 7;
        assert_eq!((commands.iter().sum::<u64>(), status.devices[0].work.commands), (all, all));
        let host = &status.associations[0];
        assert_eq!((host.work.commands, host.work.bytes_written), (all, 700));
        assert!(host.queues.iter().all(|queue| queue.in_flight == 0));
        scene.server.stop().unwrap();
    }
}

#[test]
fn an_abort_ends_the_wait_for_a_command_in_another_reactor() {
    let scene = File::formatted().serve(3);
    let (admin, controller) = Peer::admin(scene.address(), 0);
    let io = Peer::io(scene.address(), controller, 1);
    let (began, mut aborted) = (Instant::now(), 0);
    while aborted < 3 {
        assert!(began.elapsed() < Duration::from_mins(1), "no command is aborted");
        let keys = 0..32_u8;
        let stores: Vec<_> = keys.map(|key| io.send_store(&[b'k', key], &[key; 4_000])).collect();
        let last = *stores.last().unwrap();
        let abort = admin.answer(Command::abort(1, last), &[]).entry;
        assert_eq!(abort.status(), Status::SUCCESS);
        let expected = if abort.result() == NOT_ABORTED {
            Status::SUCCESS
        } else {
            aborted += 1;
            Status::ABORT_REQUESTED
        };
        for _ in &stores {
            let entry = io.next().unwrap().entry;
            let expected = if entry.command_id() == last { expected } else { Status::SUCCESS };
            assert_eq!(entry.status(), expected);
        }
    }
    for (queue, command) in [(1, 9_999), (2, 1)] {
        let abort = admin.answer(Command::abort(queue, command), &[]).entry;
        assert_eq!((abort.status(), abort.result()), (Status::SUCCESS, NOT_ABORTED));
    }
    scene.server.stop().unwrap();
}

#[test]
fn a_reset_ends_the_queues_in_all_reactors() {
    let scene = File::formatted().serve(3);
    let (admin, controller) = Peer::admin(scene.address(), 0);
    for round in 0..20_u8 {
        let queues = [1, 2, 3].map(|id| Peer::io(scene.address(), controller, id));
        for (number, io) in (0_u8..).zip(&queues) {
            (0..50).for_each(|key| {
                io.send_store(&[round, number, key], &[key; 1_000]);
            });
        }
        admin.set_configuration(0);
        let ready = admin.answer(Command::property_get(Property::CSTS), &[]).entry.result();
        assert_eq!(ready, 0);
        for io in &queues {
            let answered = std::iter::from_fn(|| io.next());
            assert!(answered.map(|it| it.entry.status()).all(|it| it == Status::SUCCESS));
        }
        admin.set_configuration(ENABLED);
    }
    let io = Peer::io(scene.address(), controller, 1);
    assert_eq!(io.store(b"key", b"value"), Some(Status::SUCCESS));
    scene.server.stop().unwrap();
}

#[test]
fn nothing_is_left_by_a_format_whichever_reactors_are_at_work() {
    let scene = File::formatted().serve(3);
    let (admin, controller) = Peer::admin(scene.address(), 0);
    let io = |id| Peer::io(scene.address(), controller, id);
    let (mine, others) = (io(1), [(2_u8, io(2)), (3, io(3))]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, io) in others {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    let status = io.store(&[b'o', number], &[number; 2_000]).unwrap();
                    let is_known = matches!(status, Status::SUCCESS | Status::FORMAT_IN_PROGRESS);
                    assert!(is_known, "{status}");
                }
            });
        }
        for _ in 0..10 {
            let keys: Vec<_> = (0..30).map(|key| [b'k', key]).collect();
            for key in &keys {
                assert_eq!(mine.store(key, b"value"), Some(Status::SUCCESS));
            }
            let format = Command::format_namespace(1, FormatOptions::default());
            assert_eq!(admin.status(format), Status::SUCCESS);
            assert!(keys.iter().all(|key| !mine.exists(key)));
        }
        is_over.store(true, Relaxed);
    });
    scene.server.stop().unwrap();
}

#[test]
fn who_was_told_of_a_failure_finds_it_in_the_log() {
    let scene = File::formatted().serve(3);
    let (admin, controller) = Peer::admin(scene.address(), 0);
    let io = Peer::io(scene.address(), controller, 5);
    for count in 1..100_u64 {
        let failed = io.answer(Command::exist(9, b"key"), &[]).entry;
        assert_eq!(failed.status(), Status::INVALID_NAMESPACE);
        // ERRORS: the count in bytes 7:0, then the queue and the command.
        let log = admin.answer(Command::get_log_page(LogPage::ERRORS, 0, 64), &[]).data;
        assert_eq!(log[..8], count.to_le_bytes());
        assert_eq!(log[8..10], 5_u16.to_le_bytes());
        assert_eq!(log[10..12], failed.command_id().to_le_bytes());
    }
    scene.server.stop().unwrap();
}

#[test]
fn a_host_is_heard_in_whichever_reactor_it_speaks() {
    let scene = File::formatted().serve(3);
    let (admin, controller) = Peer::admin(scene.address(), 2_000);
    let io = Peer::io(scene.address(), controller, 1);
    let spoken = Instant::now();
    while spoken.elapsed() < Duration::from_secs(5) {
        assert!(!io.exists(b"key"));
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(admin.status(Command::keep_alive()), Status::SUCCESS);
    let silent = Instant::now();
    assert!(admin.next().is_none() && io.next().is_none(), "it was silent for too long");
    let silent = silent.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(30)).contains(&silent), "{silent:?}");
    scene.server.stop().unwrap();
}
