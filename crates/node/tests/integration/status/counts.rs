use crate::status::guest::{Guest, Load, Visit};
use crate::status::peer::Debtor;
use crate::status::scene::{BLOCKS, FLASH, MORE_PAIRS, PAIRS, Scene, of_host};
use node::server::{Status, WorkStatus};
use std::time::Instant;

const FIRST: &str = "nqn.2026-11.com.example:first-host";
const SECOND: &str = "nqn.2026-11.com.example:second-host";
const THIRD: &str = "nqn.2026-11.com.example:third-host";

/// One reactor for all; one for devices; one for two of them; one for each, and one or two for
/// connections.
const REACTORS: [u16; 5] = [1, 2, 3, 4, 5];

/// What hosts were told to do, in the words of the document.
fn work(load: Load) -> WorkStatus {
    match load {
        Load::Pairs { stores, retrieves, missing, len } => WorkStatus {
            commands: stores + retrieves + missing,
            reads: retrieves,
            writes: stores,
            bytes_read: retrieves * u64::from(len),
            bytes_written: stores * u64::from(len),
        },
        Load::Blocks { writes, reads } => WorkStatus {
            commands: writes + reads,
            reads,
            writes,
            bytes_read: reads * 4_096,
            bytes_written: writes * 4_096,
        },
    }
}

fn sum(a: WorkStatus, b: WorkStatus) -> WorkStatus {
    WorkStatus {
        commands: a.commands + b.commands,
        reads: a.reads + b.reads,
        writes: a.writes + b.writes,
        bytes_read: a.bytes_read + b.bytes_read,
        bytes_written: a.bytes_written + b.bytes_written,
    }
}

#[test]
fn counters_are_what_hosts_did_each_and_together() {
    for reactors in REACTORS {
        let began = Instant::now();
        let scene = Scene::new(reactors);
        let none = scene.status();
        assert_eq!((none.associations.len(), none.server.connections), (0, 0));
        assert!(none.devices.iter().all(|device| device.work == WorkStatus::default()));
        let visit =
            |host, subsystem, queues| Visit { address: scene.address(), subsystem, host, queues };
        let of_pairs = Load::Pairs { stores: 10, retrieves: 17, missing: 5, len: 4_096 };
        let more_pairs = Load::Pairs { stores: 3, retrieves: 2, missing: 0, len: 100 };
        let of_blocks = Load::Blocks { writes: 6, reads: 11 };
        let first = Guest::come(visit(FIRST, PAIRS, 3), of_pairs);
        let second = Guest::come(visit(SECOND, BLOCKS, 1), of_blocks);
        let third = Guest::come(visit(THIRD, MORE_PAIRS, 1), more_pairs);

        // Those of the three admin queues, and of five others.
        let status = scene.wait_for(|status| status.server.connections == 8);
        for (guest, host, subsystem, load, queues) in [
            (&first, FIRST, PAIRS, of_pairs, 3),
            (&second, SECOND, BLOCKS, of_blocks, 1),
            (&third, THIRD, MORE_PAIRS, more_pairs, 1),
        ] {
            let found = of_host(&status, host, subsystem).expect("it is there");
            assert_eq!(found.work, work(load), "{host} on {reactors} reactors");
            let ids: Vec<u16> = found.queues.iter().map(|queue| queue.id).collect();
            assert_eq!(ids, (0..=queues).collect::<Vec<_>>());
            assert!(
                found.queues[1..].iter().all(|queue| (queue.depth, queue.in_flight) == (128, 0))
            );
            assert_eq!(found.address, Some(guest.from.to_string()));
            assert_eq!(found.memory_bytes, 0);
            assert!(u128::from(found.connected_ns) <= began.elapsed().as_nanos());
        }
        assert_eq!(status.associations.len(), 3);
        check_devices(&status, [sum(work(of_pairs), work(more_pairs)), work(of_blocks)]);
        check_frame(&status, reactors);

        third.leave();
        let status = scene.wait_for(|status| status.associations.len() == 2);
        assert!(of_host(&status, THIRD, MORE_PAIRS).is_none());
        // What it did stays the device's.
        check_devices(&status, [sum(work(of_pairs), work(more_pairs)), work(of_blocks)]);
        first.leave();
        second.leave();
        scene.wait_for(|status| status.server.connections == 0 && status.associations.is_empty());
        scene.server.stop().unwrap();
    }
}

#[track_caller]
fn check_devices(status: &Status, [pairs, blocks]: [WorkStatus; 2]) {
    let found: Vec<_> = status.devices.iter().map(|it| (&it.name[..], it.work)).collect();
    assert_eq!(found, [("pairs", pairs), ("blocks", blocks), ("flash", WorkStatus::default())]);
}

/// What does not depend on hosts.
#[track_caller]
fn check_frame(status: &Status, reactors: u16) {
    let subsystems: Vec<_> =
        status.subsystems.iter().map(|it| (&it.nqn[..], &it.device[..])).collect();
    let expected = [(PAIRS, "pairs"), (BLOCKS, "blocks"), (FLASH, "flash"), (MORE_PAIRS, "pairs")];
    assert_eq!(subsystems, expected);
    let namespaces: Vec<_> = status.devices.iter().flat_map(|it| &it.namespaces).collect();
    let kinds: Vec<_> = namespaces.iter().map(|it| (it.nsid, &it.kind[..])).collect();
    assert_eq!(kinds, [(1, "kv"), (1, "block"), (1, "kv")]);
    assert_eq!([namespaces[0].bytes, namespaces[1].bytes], [64 << 20; 2]);
    assert_eq!(status.reactors.len(), usize::from(reactors));
    let connections: u64 = status.reactors.iter().map(|it| it.connections).sum();
    assert_eq!(connections, status.server.connections);
    let came: u64 = status.reactors.iter().map(|it| it.bytes_received).sum();
    assert!(came > 13 * 4_096, "{came} bytes came");
    for reactor in &status.reactors {
        let known = reactor.busy_ns + reactor.idle_ns;
        assert!(reactor.busy_ns > 0 && known <= status.server.uptime_ns + 1_000_000_000);
    }
    assert_eq!(status.server.version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn flash_has_programmed_more_than_hosts_wrote_and_memory_nothing() {
    let scene = Scene::new(2);
    let visit = Visit { address: scene.address(), subsystem: FLASH, host: FIRST, queues: 1 };
    // One after the other, so that each is alone in its page of flash.
    let guest =
        Guest::come(visit, Load::Pairs { stores: 40, retrieves: 0, missing: 0, len: 1_000 });
    let status = scene.status();
    let [pairs, _, flash] = &status.devices[..] else { panic!("there are three") };
    assert_eq!((pairs.flash_bytes_programmed, pairs.write_amplification), (None, None));
    assert_eq!((pairs.flash_bytes_read, flash.read_amplification), (None, None));
    let programmed = flash.flash_bytes_programmed.unwrap();
    assert!(programmed >= 40 * 1_000, "{programmed}");
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let expected = programmed as f64 / 40_000.0;
    assert_eq!(flash.write_amplification, Some(expected));
    guest.leave();
    scene.server.stop().unwrap();
}

#[test]
fn status_shows_memory_and_commands_in_flight_of_each_connection() {
    for reactors in REACTORS {
        let scene = Scene::new(reactors);
        let visit = Visit { address: scene.address(), subsystem: PAIRS, host: FIRST, queues: 1 };
        let load = Load::Pairs { stores: 1, retrieves: 0, missing: 0, len: 1 };
        let guest = Guest::come(visit, load);
        let mut debtor = Debtor::come(scene.address(), PAIRS, SECOND);
        debtor.announce(1, 2 << 20);
        debtor.announce(2, 300_000);
        let owed = (2 << 20) + 300_000;
        let status = scene.wait_for(|status| {
            of_host(status, SECOND, PAIRS).is_some_and(|it| it.memory_bytes == owed)
        });
        assert_eq!(of_host(&status, FIRST, PAIRS).unwrap().memory_bytes, 0);
        drop(debtor);
        scene.wait_for(|status| of_host(status, SECOND, PAIRS).is_none());
        guest.leave();
        scene.server.stop().unwrap();
    }
}
