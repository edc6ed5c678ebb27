//! Connect: what binds a queue to a controller, and what does not (Base 2.1, Connect command).

use crate::fabrics::host::{HOST_ID, HOST_NQN, KV, NQN, World, pass, run, run_shuffled};
use base::Nanos;
use controller::Rules;
use spec::{
    Cns, Command, Configuration, ConnectAttributes, ConnectData, DataPointer, Feature,
    FeatureSelect, LogPage, Property, QualifiedName, SmartLog, Status, Transfer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use zerocopy::{FromBytes, IntoBytes};

const ANY: u16 = ConnectData::ANY_CONTROLLER;

fn connect(queue: u16, size: u16) -> Command {
    Command::connect(queue, size, ConnectAttributes::NONE, 0)
}

fn data(nqn: &str, id: u16) -> ConnectData {
    ConnectData::new(HOST_ID, HOST_NQN, nqn, id)
}

/// Status and result of a Connect on a connection of its own.
async fn failure(world: &World, command: Command, data: &ConnectData) -> (Status, u64) {
    let entry = world.line().connect_with(command, data).await.expect_err("it is wrong");
    assert!(entry.do_not_retry());
    (entry.status(), entry.result())
}

/// Result of a Connect with Invalid Parameters: the place in bits 15:0, in the data if bit 16.
const fn in_command(place: u64) -> (Status, u64) {
    (Status::CONNECT_INVALID_PARAMETERS, place)
}

const fn in_data(place: u64) -> (Status, u64) {
    (Status::CONNECT_INVALID_PARAMETERS, 1 << 16 | place)
}

#[test]
fn each_admin_queue_makes_a_controller_and_io_queues_join_it() {
    run(async |world| {
        let (first, second) = (world.line(), world.line());
        let one = first.connect(ANY, 0, 31).await.unwrap();
        let other = second.connect(ANY, 0, 31).await.unwrap();
        assert_ne!(one, other);
        assert!((1..0xfff0).contains(&one) && (1..0xfff0).contains(&other));
        first.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        assert_eq!(world.line().connect(one, 1, 127).await, Ok(one));
        assert_eq!(world.line().connect(one, 2, 127).await, Ok(one));
    });
}

#[test]
fn a_name_that_is_not_there_makes_nothing() {
    run(async |world| {
        let unknown = data("nqn.2026-01.org.example:other", ANY);
        assert_eq!(failure(&world, connect(0, 31), &unknown).await, in_data(256));
        let none = ConnectData { subsystem: QualifiedName::default(), ..data(NQN, ANY) };
        assert_eq!(failure(&world, connect(0, 31), &none).await, in_data(256));
        let line = world.line();
        line.connect_with(connect(0, 31), &unknown).await.expect_err("it is not there");
        assert_eq!(line.status(Command::property_get(Property::CAP)).await, SEQUENCE);
        assert!(line.connect(ANY, 0, 31).await.is_ok(), "the host may try again");
    });
}

const SEQUENCE: Status = Status::COMMAND_SEQUENCE_ERROR;

#[test]
fn an_admin_queue_asks_for_any_controller() {
    run(async |world| {
        for id in [0, 1, ConnectData::ANY_STATIC_CONTROLLER] {
            assert_eq!(failure(&world, connect(0, 31), &data(NQN, id)).await, in_data(16));
        }
    });
}

#[test]
fn an_io_queue_names_the_controller_of_its_own_host() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        for other in [0, id + 1, ANY] {
            assert_eq!(failure(&world, connect(1, 127), &data(NQN, other)).await, in_data(16));
        }
        let stranger = ConnectData { host_id: [7; 16], ..data(NQN, id) };
        assert_eq!(failure(&world, connect(1, 127), &stranger).await, in_data(0));
        let renamed = ConnectData::new(HOST_ID, "nqn.2014-08.org.example:b", NQN, id);
        assert_eq!(failure(&world, connect(1, 127), &renamed).await, in_data(512));
        let nameless = ConnectData { host: QualifiedName::default(), ..data(NQN, id) };
        assert_eq!(failure(&world, connect(1, 127), &nameless).await, in_data(512));
    });
}

/// 256 bytes of a name field as they are.
fn field(bytes: &[u8]) -> QualifiedName {
    let mut field = [0; 256];
    field[..bytes.len()].copy_from_slice(bytes);
    QualifiedName::read_from_bytes(&field).expect("it has 256 bytes")
}

/// Each rule of Base 2.1, NVMe Qualified Names, broken in the name of the host and in that of the
/// subsystem.
#[test]
fn a_name_that_breaks_the_format_is_an_invalid_parameter() {
    let long = ["nqn.2026-01.org.example:", &"x".repeat(200)].concat();
    let endless = [b"nqn.2026-01.org.example:".as_slice(), &[b'x'; 232]].concat();
    run(async |world| {
        let (_admin, id) = world.admin().await;
        for name in [
            b"foo".as_slice(),
            b"nqn.",
            b"nqn.2026-13.org.example:x",
            b"nqn.2026-01:x",
            b"nqn.2014-08.org.nvmexpress:uuid:8d1b2c3e",
            b"nqn.2026-01.org.example:\xff",
            long.as_bytes(),
            &endless,
        ] {
            let text = name.escape_ascii().to_string();
            for (queue, id) in [(0, ANY), (1, id)] {
                let host = ConnectData { host: field(name), ..data(NQN, id) };
                assert_eq!(
                    failure(&world, connect(queue, 31), &host).await,
                    in_data(512),
                    "{text}"
                );
                let other = ConnectData { subsystem: field(name), ..data(NQN, id) };
                let failed = failure(&world, connect(queue, 31), &other).await;
                assert_eq!(failed, in_data(256), "{text}");
            }
            let discovery =
                ConnectData { host: field(name), ..data(QualifiedName::DISCOVERY, ANY) };
            assert_eq!(failure(&world, connect(0, 31), &discovery).await, in_data(512), "{text}");
        }
    });
}

#[test]
fn a_host_without_a_name_is_accepted_and_noticed_once() {
    run(async |world| {
        let noticed = Arc::new(AtomicU32::new(0));
        let count = noticed.clone();
        world.subsystems.on_unnamed_host(move || {
            count.fetch_add(1, Relaxed);
        });
        let nameless = |nqn, id| ConnectData { host: QualifiedName::default(), ..data(nqn, id) };
        let unknown = nameless("nqn.2026-01.org.example:other", ANY);
        assert_eq!(failure(&world, connect(0, 31), &unknown).await, in_data(256));
        assert_eq!(noticed.load(Relaxed), 0, "it has not connected");
        let admin = world.line();
        let id = admin.connect_with(connect(0, 31), &nameless(NQN, ANY)).await.unwrap();
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        let io = world.line();
        assert_eq!(io.connect_with(connect(1, 127), &nameless(NQN, id)).await, Ok(id));
        assert_eq!(io.status(Command::exist(KV, b"key")).await, Status::KEY_DOES_NOT_EXIST);
        let named = failure(&world, connect(2, 127), &data(NQN, id)).await;
        assert_eq!(named, in_data(512), "another host");
        let again = world.line();
        again.connect_with(connect(0, 31), &nameless(NQN, ANY)).await.unwrap();
        let discovery = world.line();
        let data = nameless(QualifiedName::DISCOVERY, ANY);
        discovery.connect_with(connect(0, 31), &data).await.unwrap();
        assert_eq!(noticed.load(Relaxed), 1);
    });
}

#[test]
fn a_host_without_a_name_is_in_no_list_of_hosts() {
    run(async |world| {
        let hosts = [(NQN.to_owned(), [HOST_NQN.to_owned()].into())].into();
        world.subsystems.set_rules(Rules { hosts, ..Rules::default() });
        let nameless = ConnectData { host: QualifiedName::default(), ..data(NQN, ANY) };
        let refused = failure(&world, connect(0, 31), &nameless).await;
        assert_eq!(refused, (Status::CONNECT_INVALID_HOST, 0));
    });
}

/// Base 2.1, Connect command, Data: the Connect of an admin queue sets the host's identifier,
/// whatever it is; that of an I/O queue is not compared where it is 0h.
#[test]
fn a_host_identifier_of_zero_is_taken_and_stands_for_any_on_io_queues() {
    run(async |world| {
        let zero = |id| ConnectData { host_id: [0; 16], ..data(NQN, id) };
        let admin = world.line();
        let id = admin.connect_with(connect(0, 31), &zero(ANY)).await.unwrap();
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        let get = Command::get_features(Feature::HOST_IDENTIFIER, 0, FeatureSelect::Current);
        assert_eq!(admin.read(get).await, [0; 16]);
        assert_eq!(world.line().connect_with(connect(1, 31), &zero(id)).await, Ok(id));
        assert_eq!(failure(&world, connect(2, 31), &data(NQN, id)).await, in_data(0));
        let (_named, id) = world.admin().await;
        assert_eq!(world.line().connect_with(connect(1, 31), &zero(id)).await, Ok(id));
        assert_eq!(world.line().connect(id, 2, 31).await, Ok(id));
    });
}

#[test]
fn a_queue_has_2_to_1024_entries() {
    run(async |world| {
        for size in [0, 1_024, u16::MAX] {
            assert_eq!(failure(&world, connect(0, size), &data(NQN, ANY)).await, in_command(44));
        }
        let (_admin, id) = world.admin().await;
        for size in [0, 1_024] {
            assert_eq!(failure(&world, connect(1, size), &data(NQN, id)).await, in_command(44));
        }
        assert_eq!(world.line().connect(id, 1, 1).await, Ok(id));
        assert_eq!(world.line().connect(id, 2, 1_023).await, Ok(id));
    });
}

#[test]
fn a_queue_id_is_used_once_and_again_when_its_connection_is_gone() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let first = world.io(id, 1).await;
        assert_eq!(failure(&world, connect(1, 127), &data(NQN, id)).await, (SEQUENCE, 0));
        first.queue.close();
        world.io(id, 1).await;
    });
}

#[test]
fn a_host_has_as_many_io_queues_as_it_was_granted() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        assert_eq!(failure(&world, connect(65, 127), &data(NQN, id)).await, in_command(42));
        world.io(id, 64).await.queue.close();
        let two = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, 0x0001_0001);
        assert_eq!(admin.result(two).await, 0x0001_0001);
        assert_eq!(failure(&world, connect(3, 127), &data(NQN, id)).await, in_command(42));
        world.io(id, 2).await;
    });
}

#[test]
fn a_queue_takes_one_connect() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let again = admin.connect(ANY, 0, 31).await.expect_err("it is connected");
        assert_eq!(again.status(), SEQUENCE);
        let io = world.io(id, 1).await;
        let again = io.connect(id, 2, 31).await.expect_err("it is connected");
        assert_eq!(again.status(), SEQUENCE);
    });
}

/// Base 2.1, Connect command: a Connect that fails adds no entry to the Error Information log.
#[test]
fn a_failed_connect_adds_no_entry_to_the_error_log() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        admin.connect(ANY, 0, 31).await.expect_err("it is connected");
        io.connect(id, 2, 31).await.expect_err("it is connected");
        failure(&world, connect(1, 127), &data(NQN, id)).await;
        let smart: SmartLog = admin.structure(Command::get_log_page(LogPage::SMART, 0, 512)).await;
        assert_eq!(smart.error_entries.get(), 0);
    });
}

#[test]
fn nothing_comes_before_a_connect() {
    run(async |world| {
        let line = world.line();
        for command in [
            Command::property_get(Property::CAP),
            Command::keep_alive(),
            Command::exist(1, b"key"),
            Command::disconnect(),
        ] {
            assert_eq!(line.status(command).await, SEQUENCE);
        }
    });
}

#[test]
fn commands_before_the_connect_response_are_answered() {
    for shuffle in [None, Some(1), Some(2), Some(3), Some(4)] {
        run_shuffled(shuffle, async |world| {
            let (admin, id) = world.admin().await;
            let io = world.line();
            let data = data(NQN, id);
            let connecting = io.send(connect(1, 127), data.as_bytes(), 0);
            let hasty = [
                Command::async_event_request(),
                Command::identify(Cns::CONTROLLER, 0),
                Command::exist(1, b"key"),
                connect(2, 127).with_data_pointer(DataPointer::Transport { len: 1_024 }),
            ];
            for command in hasty {
                io.send(command, if command == hasty[3] { data.as_bytes() } else { &[] }, 4_096);
            }
            let mut connected = 0;
            for _ in 0..=hasty.len() {
                let entry = io.next().await.unwrap().entry;
                if entry.status().is_success() {
                    connected += 1;
                    assert!([connecting, connecting + 4].contains(&entry.command_id()));
                } else {
                    assert_eq!(entry.status(), SEQUENCE);
                }
            }
            assert_eq!(connected, 1);
            world.subsystem.namespace_changed(1);
            assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
            assert_eq!((io.waiting(), admin.waiting()), (0, 0));
        });
    }
}

#[test]
fn io_queues_come_after_the_controller_is_enabled() {
    run(async |world| {
        let admin = world.line();
        let id = admin.connect(ANY, 0, 31).await.unwrap();
        assert_eq!(failure(&world, connect(1, 127), &data(NQN, id)).await, (SEQUENCE, 0));
        assert_eq!(admin.status(Command::keep_alive()).await, SEQUENCE, "nor admin commands");
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        world.io(id, 1).await;
    });
}

#[test]
fn the_format_and_the_data_are_as_specified() {
    run(async |world| {
        let line = world.line();
        let mut bytes: [u8; 64] = zerocopy::transmute!(connect(0, 31));
        bytes[40] = 1;
        line.send_bytes(&bytes, data(NQN, ANY).as_bytes());
        let status = line.next().await.unwrap().entry.status();
        assert_eq!(status, Status::CONNECT_INCOMPATIBLE_FORMAT);
        for (pointer, len, status) in [
            (
                DataPointer::InCapsule { offset: 0, len: 1_023 },
                1_023,
                Status::DATA_SGL_LENGTH_INVALID,
            ),
            (DataPointer::InCapsule { offset: 0, len: 1_024 }, 0, Status::DATA_SGL_LENGTH_INVALID),
            (DataPointer::InCapsule { offset: 8_192, len: 1_024 }, 0, Status::SGL_OFFSET_INVALID),
            (DataPointer::Other(0x40), 0, Status::SGL_TYPE_INVALID),
        ] {
            let command = connect(0, 31).with_data_pointer(pointer);
            assert_eq!(command.transfer(), Transfer::ToController);
            let response = line.answer(command, &data(NQN, ANY).as_bytes()[..len], 0).await;
            assert_eq!(response.entry.status(), status, "{pointer:?}");
        }
        // PSDT in bits 7:6 of byte 1: 00b is PRP entries, which no fabric has, and 11b is reserved.
        for psdt in [0b00, 0b11] {
            let mut bytes: [u8; 64] = zerocopy::transmute!(connect(0, 31));
            bytes[1] = psdt << 6;
            line.send_bytes(&bytes, data(NQN, ANY).as_bytes());
            let entry = line.next().await.unwrap().entry;
            assert_eq!((entry.status(), entry.do_not_retry()), (Status::INVALID_FIELD, true));
        }
    });
}

#[test]
fn no_more_than_256_hosts_are_there_at_a_time() {
    run(async |world| {
        let mut lines = Vec::new();
        for _ in 0..256 {
            let line = world.line();
            line.connect(ANY, 0, 31).await.unwrap();
            lines.push(line);
        }
        let busy = world.line().connect(ANY, 0, 31).await.expect_err("that is one too many");
        assert_eq!(busy.status(), Status::CONNECT_CONTROLLER_BUSY);
        assert!(!busy.do_not_retry());
        lines.pop().unwrap().queue.close();
        assert!(world.line().connect(ANY, 0, 31).await.is_ok());
    });
}

#[test]
fn closing_the_admin_queue_ends_the_io_queues_but_not_vice_versa() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (first, second) = (world.io(id, 1).await, world.io(id, 2).await);
        first.queue.close();
        assert_eq!(second.store(b"key", b"value").await, Status::SUCCESS);
        assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
        admin.queue.close();
        pass(Nanos::from_millis(1)).await;
        assert!(second.is_ended() && !first.is_ended() && !admin.is_ended());
        assert_eq!(failure(&world, connect(3, 127), &data(NQN, id)).await, in_data(16));
    });
}

#[test]
fn a_disconnect_ends_an_io_queue_and_no_admin_queue() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.status(Command::disconnect()).await, Status::SUCCESS);
        assert!(io.next().await.is_none(), "the connection ends");
        world.io(id, 1).await;
        assert_eq!(admin.status(Command::disconnect()).await, Status::INVALID_QUEUE_TYPE);
        assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
    });
}
