//! A scene for every status that a controller answers with: what a host does to be told so.

use crate::fabrics::host::{BLOCK, HOST_ID, HOST_NQN, KV, Line, NQN, World, ZONED, run_volatile};
use controller::Rules;
use media::{Error, ExtentId, PageId};
use spec::{
    AdminOpcode, Command, CommandSet, Configuration, ConnectAttributes, ConnectData,
    ControllerList, CopyRange, DataPointer, Feature, FormatOptions, Fuse, IdentifyNamespace,
    LogPage, NamespaceAttachment, SanitizeOptions, Status, StoreOptions, ZoneSendAction,
};
use zerocopy::{FromBytes, IntoBytes};

/// Those that no host of a controller here is told, and why.
const ELSEWHERE: [(Status, &str); 19] = [
    (Status::COMMAND_ID_CONFLICT, "ids are not compared: a host that uses one twice harms itself"),
    (Status::DATA_TRANSFER_ERROR, "the transport ends the connection when data does not come"),
    (Status::ABORTED_WITH_QUEUE, "a queue of a fabric ends with its connection, and says nothing"),
    (Status::INVALID_SGL_SEGMENT, "there are no segments: one descriptor is in the command"),
    (Status::INVALID_SGL_COUNT, "there is one descriptor"),
    (Status::HOST_ID_INCONSISTENT, "host identifiers have 16 bytes everywhere"),
    (Status::KEEP_ALIVE_EXPIRED, "it is in the error log of a controller that ends with it"),
    (Status::KEEP_ALIVE_INVALID, "any time will do, and none"),
    (Status::TRANSIENT_TRANSPORT_ERROR, "it is the transport's, of a digest that is wrong"),
    (Status::PRP_OFFSET_INVALID, "a fabric has no PRP entries"),
    (Status::INVALID_COMPLETION_QUEUE, "queues are made by Connect, which has a status of its own"),
    (Status::INVALID_QUEUE_ID, "queues are made by Connect, which has a status of its own"),
    (Status::INVALID_QUEUE_SIZE, "queues are made by Connect, which has a status of its own"),
    (Status::INVALID_INTERRUPT_VECTOR, "a fabric has no interrupts"),
    (Status::INVALID_QUEUE_DELETION, "queues end with their connections"),
    (Status::ABORT_LIMIT_EXCEEDED, "each Abort is done at once"),
    (Status::FEATURE_NOT_NAMESPACE_SPECIFIC, "the id of a namespace is not looked at"),
    (Status::COMMAND_SET_NOT_ENABLED, "every command set is enabled"),
    (Status::INVALID_COMMAND_SET, "SPDK gives a controller up for it: an Invalid Field is told"),
];

/// Said by a host to its own users.
const OF_HOSTS: [Status; 1] = [Status::HOST_PATHING_ERROR];

const ALL: u32 = u32::MAX;

/// A host with its queues.
struct Scene {
    world: World,
    admin: Line,
    id: u16,
    io: Line,
}

#[test]
fn every_status_has_a_scene_or_a_reason_why_it_has_none() {
    for status in Status::all() {
        let reason = ELSEWHERE.iter().find(|(other, _)| *other == status);
        let is_elsewhere = reason.is_some() || OF_HOSTS.contains(&status);
        run_volatile(async |world| {
            let (admin, id) = world.admin().await;
            let io = world.io(id, 1).await;
            let scene = Scene { world, admin, id, io };
            let told = scene.play(status).await;
            assert_eq!(told, (!is_elsewhere).then_some(status), "{status} {reason:?}");
        });
    }
}

impl Scene {
    /// The status that the scene of `status` ends with, if there is one.
    async fn play(&self, status: Status) -> Option<Status> {
        if let Some(told) = self.of_commands(status).await {
            return Some(told);
        }
        if let Some(told) = self.of_connect(status).await {
            return Some(told);
        }
        if let Some(told) = self.of_admin(status).await {
            return Some(told);
        }
        if let Some(told) = self.of_namespaces(status).await {
            return Some(told);
        }
        if let Some(told) = self.of_data(status).await {
            return Some(told);
        }
        self.of_zones(status).await
    }

    /// What any command may be told.
    async fn of_commands(&self, status: Status) -> Option<Status> {
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE);
        let with = |pointer| store.with_data_pointer(pointer);
        let transport = DataPointer::Transport { len: 4 };
        let outside = DataPointer::InCapsule { offset: 8_192, len: 5 };
        Some(match status {
            Status::SUCCESS => self.io.store(b"key", b"value").await,
            Status::INVALID_OPCODE => self.admin.status(admin(AdminOpcode::CREATE_IO_SQ)).await,
            Status::INVALID_FIELD => self.io.status(Command::exist(KV, &[1; 17])).await,
            Status::INVALID_NAMESPACE => self.io.status(Command::exist(9, b"key")).await,
            Status::DATA_SGL_LENGTH_INVALID => sent(&self.io, with(transport), b"valu").await,
            Status::SGL_TYPE_INVALID => sent(&self.io, with(DataPointer::Other(0)), b"").await,
            Status::SGL_OFFSET_INVALID => sent(&self.io, with(outside), b"").await,
            Status::COMMAND_SEQUENCE_ERROR => {
                self.admin.set_configuration(Configuration(0)).await;
                self.admin.status(Command::keep_alive()).await
            }
            Status::ABORT_REQUESTED => {
                let waiting = self.admin.send(Command::async_event_request(), &[], 0);
                self.admin.send(Command::abort(0, waiting), &[], 0);
                let first = self.admin.next().await.expect("the connection is there").entry;
                assert_eq!(first.command_id(), waiting);
                first.status()
            }
            _ => return None,
        })
    }

    async fn of_connect(&self, status: Status) -> Option<Status> {
        let any = ConnectData::ANY_CONTROLLER;
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        let connected = async |command: Command, name: &str| {
            let data = ConnectData::new(HOST_ID, HOST_NQN, name, any);
            let refused = self.world.line().connect_with(command, &data).await;
            refused.expect_err("it is refused").status()
        };
        Some(match status {
            Status::CONNECT_INCOMPATIBLE_FORMAT => {
                let mut bytes: [u8; 64] = zerocopy::transmute!(connect);
                bytes[40] = 1;
                let command = Command::read_from_bytes(&bytes).expect("any 64 bytes are one");
                connected(command, NQN).await
            }
            Status::CONNECT_INVALID_PARAMETERS => {
                connected(connect, "nqn.2026-01.org.example:unknown").await
            }
            Status::CONNECT_INVALID_HOST => {
                let hosts = [(NQN.to_owned(), [].into())].into();
                self.world.subsystems.set_rules(Rules { hosts, ..Rules::default() });
                connected(connect, NQN).await
            }
            Status::CONNECT_CONTROLLER_BUSY => {
                let mut lines = Vec::new();
                for _ in 1..256 {
                    let line = self.world.line();
                    line.connect(any, 0, 31).await.expect("there is room");
                    lines.push(line);
                }
                connected(connect, NQN).await
            }
            Status::INVALID_QUEUE_TYPE => self.admin.status(Command::disconnect()).await,
            _ => return None,
        })
    }

    async fn of_admin(&self, status: Status) -> Option<Status> {
        let erase = Command::sanitize(SanitizeOptions(0b010));
        let admin = &self.admin;
        Some(match status {
            Status::ASYNC_EVENT_LIMIT_EXCEEDED => {
                for _ in 0..4 {
                    admin.send(Command::async_event_request(), &[], 0);
                }
                admin.status(Command::async_event_request()).await
            }
            Status::INVALID_LOG_PAGE => {
                admin.status(Command::get_log_page(LogPage(0x99), ALL, 4)).await
            }
            Status::FEATURE_NOT_SAVEABLE => {
                admin.status(Command::set_features(Feature::ARBITRATION, 0, 0).with_save()).await
            }
            Status::FEATURE_NOT_CHANGEABLE => {
                admin.status(Command::set_features(Feature::VOLATILE_WRITE_CACHE, 0, 0)).await
            }
            Status::COMMAND_SET_COMBINATION_REJECTED => {
                admin.status(Command::set_features(Feature::COMMAND_SET_PROFILE, 0, 1)).await
            }
            Status::SANITIZE_IN_PROGRESS => {
                admin.status(erase).await;
                admin.status(erase).await
            }
            Status::SANITIZE_FAILED => {
                let event = admin.send(Command::async_event_request(), &[], 0);
                self.world.blocks.fail_next(Error::PowerLost);
                admin.send(erase, &[], 0);
                // Its answer, and then its end.
                while admin.next().await.expect("it is there").entry.command_id() != event {}
                self.io.status(Command::exist(KV, b"key")).await
            }
            _ => return None,
        })
    }

    async fn of_namespaces(&self, status: Status) -> Option<Status> {
        let one = IdentifyNamespace {
            size: 1.into(),
            capacity: 1.into(),
            ..IdentifyNamespace::default()
        };
        let thin = IdentifyNamespace { capacity: 0.into(), ..one.clone() };
        let options = FormatOptions { format: 1, ..FormatOptions::default() };
        Some(match status {
            Status::FORMAT_IN_PROGRESS => {
                let format = Command::format_namespace(KV, FormatOptions::default());
                self.admin.send(format, &[], 0);
                let exist = Command::exist(KV, b"key");
                let mut told = self.io.status(exist).await;
                while told == Status::KEY_DOES_NOT_EXIST && self.admin.waiting() == 0 {
                    told = self.io.status(exist).await;
                }
                told
            }
            Status::INVALID_FORMAT => {
                self.admin.status(Command::format_namespace(KV, options)).await
            }
            Status::THIN_PROVISIONING_NOT_SUPPORTED => self.create(CommandSet::NVM, &thin).await,
            Status::NAMESPACE_INSUFFICIENT_CAPACITY => self.create(CommandSet::NVM, &one).await,
            Status::COMMAND_SET_NOT_SUPPORTED => self.create(CommandSet(9), &one).await,
            Status::NAMESPACE_ID_UNAVAILABLE => {
                for _ in 4..=1_024 {
                    self.create(CommandSet::KEY_VALUE, &one).await;
                }
                self.create(CommandSet::KEY_VALUE, &one).await
            }
            Status::NAMESPACE_ALREADY_ATTACHED => {
                self.change(&self.admin, KV, NamespaceAttachment::Attach, self.id).await
            }
            Status::NAMESPACE_NOT_ATTACHED => {
                self.change(&self.admin, KV, NamespaceAttachment::Detach, self.id).await;
                self.change(&self.admin, KV, NamespaceAttachment::Detach, self.id).await
            }
            Status::CONTROLLER_LIST_INVALID => {
                self.change(&self.admin, KV, NamespaceAttachment::Detach, 999).await
            }
            Status::NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED => self.attach_to_too_many(&one).await,
            _ => return None,
        })
    }

    /// A namespace is attached to 4,096 hosts, and to one more.
    async fn attach_to_too_many(&self, wanted: &IdentifyNamespace) -> Status {
        self.create(CommandSet::KEY_VALUE, wanted).await;
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        for number in 0.. {
            let host = format!("nqn.2026-01.org.example:h{number}");
            let data = ConnectData::new(HOST_ID, &host, NQN, ConnectData::ANY_CONTROLLER);
            let line = self.world.line();
            let id = line.connect_with(connect, &data).await.expect("there is room");
            line.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
            let told = self.change(&line, 4, NamespaceAttachment::Attach, id).await;
            if !told.is_success() {
                assert_eq!(number, 4_096);
                return told;
            }
            line.queue.close();
        }
        unreachable!("there are not so many hosts")
    }

    async fn create(&self, set: CommandSet, wanted: &IdentifyNamespace) -> Status {
        let create = Command::create_namespace(set);
        self.admin.answer(create, wanted.as_bytes(), 0).await.entry.status()
    }

    async fn change(&self, by: &Line, nsid: u32, what: NamespaceAttachment, id: u16) -> Status {
        let list: ControllerList = [id].into_iter().collect();
        by.answer(Command::attach_namespace(nsid, what), list.as_bytes(), 0).await.entry.status()
    }

    /// Of pairs and of blocks.
    async fn of_data(&self, status: Status) -> Option<Status> {
        let io = &self.io;
        let write = Command::write(BLOCK, 0, 1);
        let block = [7; 4_096];
        let too_long = Command::store(KV, b"key", (2 << 20) + 1, StoreOptions::NONE)
            .with_data_pointer(DataPointer::Transport { len: (2 << 20) + 1 });
        let new = Command::store(KV, b"key", 5, StoreOptions::MUST_NOT_EXIST);
        Some(match status {
            Status::KEY_DOES_NOT_EXIST => io.status(Command::exist(KV, b"key")).await,
            Status::KEY_EXISTS => {
                sent(io, new, b"value").await;
                sent(io, new, b"value").await
            }
            Status::INVALID_KEY_SIZE => io.store(b"", b"value").await,
            Status::INVALID_VALUE_SIZE => sent(io, too_long, b"").await,
            Status::CAPACITY_EXCEEDED => {
                let value = vec![7; 1 << 20];
                let mut told = Status::SUCCESS;
                for key in 0..64_u8 {
                    told = io.store(&[key], &value).await;
                    if !told.is_success() {
                        break;
                    }
                }
                told
            }
            Status::UNRECOVERED_ERROR => {
                io.store(b"key", b"value").await;
                self.world.log.fail_next(UNRECOVERED);
                io.status(Command::retrieve(KV, b"key", 5)).await
            }
            Status::FAILED_FUSED_COMMAND => self.exchanged(1).await,
            Status::MISSING_FUSED_COMMAND => sent(io, write.with_fuse(Fuse::Second), &block).await,
            Status::ATOMIC_WRITE_UNIT_EXCEEDED => self.exchanged(2).await,
            Status::LBA_OUT_OF_RANGE => io.status(Command::read(BLOCK, 100, 1)).await,
            Status::COMPARE_FAILURE => sent(io, Command::compare(BLOCK, 0, 1), &block).await,
            Status::COMMAND_SIZE_LIMIT_EXCEEDED => {
                let ranges = [(); 6].map(|()| CopyRange::new(0, 100));
                sent(io, Command::copy(BLOCK, 0, 6), ranges.as_bytes()).await
            }
            Status::WRITE_FAULT => {
                self.world.blocks.fail_next(Error::PowerLost);
                sent(io, write, &block).await
            }
            Status::UNRECOVERED_READ_ERROR => {
                self.world.blocks.fail_next(Error::UnrecoveredBlock(0));
                io.status(Command::read(BLOCK, 0, 1)).await
            }
            Status::INTERNAL_ERROR => {
                self.world.blocks.fail_next(Error::PowerLost);
                io.status(Command::read(BLOCK, 0, 1)).await
            }
            _ => return None,
        })
    }

    /// How the Write of a Compare and Write of so many blocks ends, which compares with what is not
    /// there.
    async fn exchanged(&self, blocks: u32) -> Status {
        let data = vec![7; blocks as usize * 4_096];
        let commands = [Command::compare(BLOCK, 0, blocks), Command::write(BLOCK, 0, blocks)];
        let [_, written] = self.io.answer_fused(commands, [&data, &data]).await;
        written.entry.status()
    }

    /// Zones have 12 blocks each and start 16 apart; two may be open, and three active.
    async fn of_zones(&self, status: Status) -> Option<Status> {
        let send = async |zone: u64, action| {
            self.io.status(Command::zone_management_send(ZONED, 16 * zone, action)).await
        };
        let write = async |lba, blocks| {
            let data = vec![7; blocks as usize * 4_096];
            sent(&self.io, Command::write(ZONED, lba, blocks), &data).await
        };
        Some(match status {
            Status::ZONE_BOUNDARY_ERROR => write(0, 13).await,
            Status::ZONE_IS_FULL => {
                send(0, ZoneSendAction::Finish).await;
                write(0, 1).await
            }
            Status::ZONE_INVALID_WRITE => write(5, 1).await,
            Status::INVALID_ZONE_STATE_TRANSITION => send(0, ZoneSendAction::Close).await,
            Status::TOO_MANY_OPEN_ZONES => {
                send(0, ZoneSendAction::Open).await;
                send(1, ZoneSendAction::Open).await;
                send(2, ZoneSendAction::Open).await
            }
            Status::TOO_MANY_ACTIVE_ZONES => {
                for zone in 0..3 {
                    write(16 * zone, 1).await;
                    send(zone, ZoneSendAction::Close).await;
                }
                write(16 * 3, 1).await
            }
            Status::ZONE_IS_READ_ONLY => {
                self.world.zones.fail_next(UNRECOVERED);
                write(0, 4).await;
                crate::fabrics::host::pass(base::Nanos::from_millis(1)).await;
                write(4, 1).await
            }
            Status::ZONE_IS_OFFLINE => {
                write(0, 4).await;
                crate::fabrics::host::pass(base::Nanos::from_millis(1)).await;
                self.world.zones.fail_next(UNRECOVERED);
                send(0, ZoneSendAction::Reset).await;
                write(0, 1).await
            }
            _ => return None,
        })
    }
}

const UNRECOVERED: Error = Error::Unrecovered(PageId { extent: ExtentId(0), page: 0 });

/// The status of a command that brings `data`.
async fn sent(line: &Line, command: Command, data: &[u8]) -> Status {
    line.answer(command, data, 0).await.entry.status()
}

/// An admin command without fields.
fn admin(opcode: AdminOpcode) -> Command {
    Command::read_from_bytes(&crate::fabrics::host::entry(&[(0, &[opcode.0])]))
        .expect("64 bytes are one")
}
