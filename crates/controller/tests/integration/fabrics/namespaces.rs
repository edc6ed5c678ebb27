//! Namespaces that come, go, and are made new (Base 2.1, Namespace Management, Namespace Attachment
//! and Format NVM commands).

use crate::fabrics::host::{BLOCK, HOST_ID, KV, Line, NQN, World, ZONED, run};
use clock::Stage;
use spec::{
    AsyncEvent, Cns, Command, CommandSet, Configuration, ConnectAttributes, ConnectData,
    ControllerList, Feature, FormatOptions, IdentifyController, IdentifyNamespace, LogPage,
    NamespaceAttachment, NamespaceList, Status,
};
use zerocopy::IntoBytes;

const ALL: u32 = u32::MAX;

/// The id that a new namespace gets where the first three are taken.
const NEXT: u32 = 4;

impl Line {
    async fn create(&self, set: CommandSet, blocks: u64) -> Result<u32, Status> {
        let size = blocks.into();
        let wanted = IdentifyNamespace { size, capacity: size, ..IdentifyNamespace::default() };
        self.create_as(set, &wanted).await
    }

    async fn create_as(&self, set: CommandSet, wanted: &IdentifyNamespace) -> Result<u32, Status> {
        let response = self.answer(Command::create_namespace(set), wanted.as_bytes(), 0).await;
        match response.entry.status() {
            Status::SUCCESS => Ok(u32::try_from(response.entry.result()).expect("an id")),
            status => Err(status),
        }
    }

    async fn delete(&self, nsid: u32) -> Status {
        self.status(Command::delete_namespace(nsid)).await
    }

    async fn attach(&self, nsid: u32, controllers: &[u16]) -> Status {
        self.change(nsid, NamespaceAttachment::Attach, controllers).await
    }

    pub(crate) async fn detach(&self, nsid: u32, controllers: &[u16]) -> Status {
        self.change(nsid, NamespaceAttachment::Detach, controllers).await
    }

    async fn change(&self, nsid: u32, what: NamespaceAttachment, controllers: &[u16]) -> Status {
        let list: ControllerList = controllers.iter().copied().collect();
        let command = Command::attach_namespace(nsid, what);
        self.answer(command, list.as_bytes(), 0).await.entry.status()
    }

    async fn format(&self, nsid: u32, options: FormatOptions) -> Status {
        self.status(Command::format_namespace(nsid, options)).await
    }

    async fn list(&self, cns: Cns) -> Vec<u32> {
        let list: NamespaceList = self.structure(Command::identify(cns, 0)).await;
        list.iter().collect()
    }

    /// TNVMCAP and UNVMCAP.
    async fn capacities(&self) -> (u128, u128) {
        let bytes: IdentifyController = self.structure(Command::identify(Cns::CONTROLLER, 0)).await;
        (bytes.capacity.get(), bytes.unallocated_capacity.get())
    }
}

/// The admin queue of another host, and its controller.
async fn another_host(world: &World) -> (Line, u16) {
    another_host_of(world, NQN).await
}

async fn another_host_of(world: &World, nqn: &str) -> (Line, u16) {
    let admin = world.line();
    let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
    let name = "nqn.2026-11.com.example:another";
    let data = ConnectData::new(HOST_ID, name, nqn, ConnectData::ANY_CONTROLLER);
    let id = admin.connect_with(connect, &data).await.expect("any host may connect");
    admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
    (admin, id)
}

#[test]
fn a_namespace_is_made_attached_used_and_ended() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let (total, _) = admin.capacities().await;
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 1_000).await, Ok(NEXT));
        assert_eq!(admin.list(Cns::ALLOCATED_NAMESPACES).await, [KV, BLOCK, ZONED, NEXT]);
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED]);
        let store = Command::store(NEXT, b"key", 5, spec::StoreOptions::NONE);
        let early = io.answer(store, b"value", 0).await.entry.status();
        assert_eq!(early, Status::INVALID_NAMESPACE, "it is attached to no controller");
        assert_eq!(admin.attach(NEXT, &[id]).await, Status::SUCCESS);
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED, NEXT]);
        assert_eq!(io.answer(store, b"value", 0).await.entry.status(), Status::SUCCESS);
        let missing = io.status(Command::exist(KV, b"key")).await;
        assert_eq!(missing, Status::KEY_DOES_NOT_EXIST, "the key is of the other namespace");
        assert_eq!(admin.detach(NEXT, &[id]).await, Status::SUCCESS);
        let exist = Command::exist(NEXT, b"key");
        assert_eq!(io.status(exist).await, Status::INVALID_NAMESPACE);
        assert_eq!(admin.attach(NEXT, &[id]).await, Status::SUCCESS);
        assert_eq!(io.status(exist).await, Status::SUCCESS, "a detached namespace is kept");
        assert_eq!(admin.delete(NEXT).await, Status::SUCCESS);
        assert_eq!(io.status(exist).await, Status::INVALID_NAMESPACE);
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(NEXT), "the id is free again");
        assert_eq!(admin.attach(NEXT, &[id]).await, Status::SUCCESS);
        assert_eq!(io.status(exist).await, Status::KEY_DOES_NOT_EXIST, "it is another one");
        assert_eq!(admin.capacities().await, (total, 0));
    });
}

#[test]
fn the_blocks_of_a_deleted_namespace_are_those_of_new_ones() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let (total, free) = admin.capacities().await;
        assert_eq!(free, 0);
        let full = Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
        assert_eq!(admin.create(CommandSet::NVM, 1).await, full);
        let write = |nsid, lba| Command::write(nsid, lba, 1);
        for lba in [0, 59, 60, 99] {
            let written = io.answer(write(BLOCK, lba), &[7; 4_096], 0).await;
            assert_eq!(written.entry.status(), Status::SUCCESS);
        }
        assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
        assert_eq!(admin.capacities().await, (total, 100 * 4_096));
        assert_eq!(admin.create(CommandSet::NVM, 101).await, full);
        // Two of 60 and 40 blocks in its place.
        assert_eq!(admin.create(CommandSet::NVM, 60).await, Ok(BLOCK));
        assert_eq!(admin.create(CommandSet::NVM, 41).await, full);
        assert_eq!(admin.create(CommandSet::NVM, 40).await, Ok(NEXT));
        assert_eq!(admin.capacities().await, (total, 0));
        for (nsid, blocks) in [(BLOCK, 60), (NEXT, 40)] {
            assert_eq!(admin.attach(nsid, &[id]).await, Status::SUCCESS);
            let namespace: IdentifyNamespace =
                admin.structure(Command::identify(Cns::NAMESPACE, nsid)).await;
            assert_eq!(namespace.size.get(), blocks);
            let bytes = u32::try_from(blocks).unwrap() * 4_096;
            let read = Command::read(nsid, 0, bytes / 4_096);
            let read = io.answer(read, &[], bytes).await.data;
            assert!(read.bytes().unwrap().iter().all(|&byte| byte == 0), "nothing is left");
            let past = io.answer(write(nsid, blocks), &[1; 4_096], 0).await.entry.status();
            assert_eq!(past, Status::LBA_OUT_OF_RANGE);
        }
        // Neither reaches the other's blocks.
        for (nsid, byte) in [(BLOCK, 1), (NEXT, 2)] {
            for lba in [0, 39] {
                let written = io.answer(write(nsid, lba), &[byte; 4_096], 0).await;
                assert_eq!(written.entry.status(), Status::SUCCESS);
            }
        }
        let trim = spec::BlockRange::new(0, 40);
        let trimmed = io.answer(Command::deallocate(BLOCK, 1), trim.as_bytes(), 0).await;
        assert_eq!(trimmed.entry.status(), Status::SUCCESS);
        let first = io.answer(Command::read(NEXT, 0, 1), &[], 4_096).await;
        assert_eq!(first.data.bytes(), Some(&[2; 4_096][..]));
        // Whichever goes first, the blocks become one again.
        for order in [[BLOCK, NEXT], [NEXT, BLOCK]] {
            for nsid in order {
                assert_eq!(admin.delete(nsid).await, Status::SUCCESS);
            }
            assert_eq!(admin.create(CommandSet::NVM, 100).await, Ok(BLOCK));
            assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
            assert_eq!(admin.create(CommandSet::NVM, 60).await, Ok(BLOCK));
            assert_eq!(admin.create(CommandSet::NVM, 40).await, Ok(NEXT));
        }
    });
}

#[test]
fn zones_are_had_again_as_a_whole_and_empty() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let written = io.answer(Command::write(ZONED, 0, 1), &[7; 4_096], 0).await;
        assert_eq!(written.entry.status(), Status::SUCCESS);
        assert_eq!(admin.delete(ZONED).await, Status::SUCCESS);
        let full = Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
        assert_eq!(admin.create(CommandSet::ZONED, 64).await, full);
        assert_eq!(admin.create(CommandSet::ZONED, 128).await, Ok(ZONED));
        assert_eq!(admin.attach(ZONED, &[id]).await, Status::SUCCESS);
        let again = io.answer(Command::write(ZONED, 0, 1), &[8; 4_096], 0).await;
        assert_eq!(again.entry.status(), Status::SUCCESS, "the write pointer is at the start");
    });
}

#[test]
fn what_cannot_be_made_is_refused() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
        let size = 8.into();
        let good = IdentifyNamespace { size, capacity: size, ..IdentifyNamespace::default() };
        let thin = IdentifyNamespace { capacity: 4.into(), ..good.clone() };
        let of_group = IdentifyNamespace { ana_group: 2.into(), ..good.clone() };
        for (wanted, status) in [
            (&thin, Status::THIN_PROVISIONING_NOT_SUPPORTED),
            (&IdentifyNamespace { format: 1, ..good.clone() }, Status::INVALID_FORMAT),
            (&IdentifyNamespace { protection: 1, ..good.clone() }, Status::INVALID_FORMAT),
            (&of_group, Status::INVALID_FIELD),
            (&IdentifyNamespace::default(), Status::INVALID_FIELD),
        ] {
            assert_eq!(admin.create_as(CommandSet::NVM, wanted).await, Err(status));
        }
        let other = CommandSet(3);
        assert_eq!(admin.create(other, 8).await, Err(Status::COMMAND_SET_NOT_SUPPORTED));
        let more = admin.create(CommandSet::KEY_VALUE, (16 << 20) + 1).await;
        assert_eq!(more, Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY));
        let short = Command::create_namespace(CommandSet::NVM);
        let short = admin.answer(short, &good.as_bytes()[..4_000], 0).await;
        assert_eq!(short.entry.status(), Status::DATA_SGL_LENGTH_INVALID);
        let mut reserved: [u8; 64] = zerocopy::transmute!(Command::delete_namespace(KV));
        reserved[40] = 2;
        let reserved = zerocopy::transmute!(reserved);
        assert_eq!(admin.status(reserved).await, Status::INVALID_FIELD);
        for nsid in [0, BLOCK, 1_025] {
            assert_eq!(admin.delete(nsid).await, Status::INVALID_NAMESPACE);
        }
        assert_eq!(admin.list(Cns::ALLOCATED_NAMESPACES).await, [KV, ZONED]);
    });
}

#[test]
fn there_are_no_more_namespaces_than_ids() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for nsid in NEXT..=1_024 {
            assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(nsid));
        }
        let none = Err(Status::NAMESPACE_ID_UNAVAILABLE);
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, none);
        assert_eq!(admin.delete(500).await, Status::SUCCESS);
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(500));
        assert_eq!(admin.delete(ALL).await, Status::SUCCESS);
        assert_eq!(admin.list(Cns::ALLOCATED_NAMESPACES).await, []);
    });
}

#[test]
fn namespaces_are_attached_to_hosts_and_lists_are_checked() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (other, other_id) = another_host(&world).await;
        let invalid = Status::CONTROLLER_LIST_INVALID;
        for list in [&[][..], &[999], &[id, 999]] {
            assert_eq!(admin.detach(KV, list).await, invalid);
        }
        let already = Status::NAMESPACE_ALREADY_ATTACHED;
        assert_eq!(admin.attach(KV, &[id]).await, already);
        assert_eq!(admin.detach(KV, &[other_id]).await, Status::SUCCESS);
        assert_eq!(other.list(Cns::ACTIVE_NAMESPACES).await, [BLOCK, ZONED]);
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED]);
        let none = Status::NAMESPACE_NOT_ATTACHED;
        assert_eq!(admin.detach(KV, &[id, other_id]).await, none);
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED], "all or nothing");
        for nsid in [0, NEXT, ALL] {
            assert_eq!(admin.attach(nsid, &[id]).await, Status::INVALID_NAMESPACE);
        }
        // Another controller of the same host has what the host has, one that comes later too.
        let (again, again_id) = another_host(&world).await;
        assert_eq!(again.list(Cns::ACTIVE_NAMESPACES).await, [BLOCK, ZONED]);
        let controllers = async |cns, nsid, from| {
            let command = Command::identify(cns, nsid).with_controller_id(from);
            let list: ControllerList = admin.structure(command).await;
            list.ids().unwrap().collect::<Vec<_>>()
        };
        assert_eq!(controllers(Cns::CONTROLLERS, 0, 0).await, [id, other_id, again_id]);
        assert_eq!(controllers(Cns::CONTROLLERS, 0, other_id).await, [other_id, again_id]);
        assert_eq!(controllers(Cns::CONTROLLERS_OF_NAMESPACE, KV, 0).await, [id]);
        assert_eq!(other.attach(KV, &[again_id]).await, Status::SUCCESS);
        assert_eq!(other.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED]);
    });
}

#[test]
fn hosts_are_told_of_namespaces_that_come_and_go() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (other, other_id) = another_host(&world).await;
        let wanted = Command::set_features(Feature::ASYNC_EVENTS, 0, 0x100);
        for line in [&admin, &other] {
            assert_eq!(line.status(wanted).await, Status::SUCCESS);
            line.send(Command::async_event_request(), &[], 0);
        }
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(NEXT));
        assert_eq!(other.waiting(), 0, "it has nothing new");
        assert_eq!(admin.attach(NEXT, &[id, other_id]).await, Status::SUCCESS);
        let event = other.next().await.unwrap().entry.result();
        assert_eq!(event, AsyncEvent::NAMESPACES_CHANGED.0.into());
        let changed = Command::get_log_page(LogPage::CHANGED_NAMESPACES, ALL, 4_096);
        let list: NamespaceList = other.structure(changed).await;
        assert_eq!(list.iter().collect::<Vec<_>>(), [NEXT]);
        other.send(Command::async_event_request(), &[], 0);
        assert_eq!(admin.delete(NEXT).await, Status::SUCCESS);
        let event = other.next().await.unwrap().entry.result();
        assert_eq!(event, AsyncEvent::NAMESPACES_CHANGED.0.into());
        assert_eq!(admin.waiting(), 0, "the host that made the change gets no event");
    });
}

#[test]
fn a_format_leaves_nothing() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let fill = async || {
            assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
            for nsid in [BLOCK, ZONED] {
                let written = io.answer(Command::write(nsid, 0, 1), &[7; 4_096], 0).await;
                assert_eq!(written.entry.status(), Status::SUCCESS);
            }
        };
        let left = async || {
            let is_there = io.status(Command::exist(KV, b"key")).await == Status::SUCCESS;
            let zeros = async |nsid| {
                let read = io.answer(Command::read(nsid, 0, 1), &[], 4_096).await;
                read.data.bytes() == Some(&[0; 4_096][..])
            };
            (is_there, !zeros(BLOCK).await, !zeros(ZONED).await)
        };
        fill().await;
        assert_eq!(left().await, (true, true, true));
        let erase =
            FormatOptions { secure_erase: FormatOptions::ERASE_USER_DATA, ..Default::default() };
        for (nsid, expected) in [
            (BLOCK, (true, false, true)),
            (ZONED, (true, false, false)),
            (KV, (false, false, false)),
        ] {
            assert_eq!(admin.format(nsid, erase).await, Status::SUCCESS);
            assert_eq!(left().await, expected);
        }
        fill().await;
        assert_eq!(admin.format(ALL, FormatOptions::default()).await, Status::SUCCESS);
        assert_eq!(left().await, (false, false, false));
        for (options, status) in [
            (FormatOptions { format: 1, ..erase }, Status::INVALID_FORMAT),
            (FormatOptions { protection: 1, ..erase }, Status::INVALID_FORMAT),
            (FormatOptions { secure_erase: 2, ..erase }, Status::INVALID_FIELD),
        ] {
            assert_eq!(admin.format(BLOCK, options).await, status);
        }
        for nsid in [0, NEXT] {
            assert_eq!(admin.format(nsid, erase).await, Status::INVALID_NAMESPACE);
        }
    });
}

#[test]
fn commands_that_come_during_a_format_may_come_again() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        admin.send(Command::format_namespace(KV, FormatOptions::default()), &[], 0);
        let mut refused = 0;
        while admin.waiting() == 0 {
            let response = io.answer(Command::exist(KV, b"key"), &[], 0).await;
            if response.entry.status() == Status::FORMAT_IN_PROGRESS {
                assert!(!response.entry.do_not_retry());
                refused += 1;
            }
            clock::sleep(base::Nanos(0), Stage::Queue).await;
        }
        assert!(refused > 0, "a format takes some steps");
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
    });
}

#[test]
fn namespaces_are_restored_as_they_were_saved() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for nsid in [KV, BLOCK] {
            assert_eq!(admin.delete(nsid).await, Status::SUCCESS);
        }
        // Runs of 10, 20 and 30 blocks, of which the second goes.
        for (blocks, nsid) in [(10, KV), (20, BLOCK), (30, NEXT)] {
            assert_eq!(admin.create(CommandSet::NVM, blocks).await, Ok(nsid));
        }
        assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
        let saved = world.device.save_namespaces().unwrap();
        let before = (admin.list(Cns::ALLOCATED_NAMESPACES).await, admin.capacities().await);
        assert_eq!(admin.delete(ALL).await, Status::SUCCESS);
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(KV));
        world.device.restore_namespaces(&saved).unwrap();
        let after = (admin.list(Cns::ALLOCATED_NAMESPACES).await, admin.capacities().await);
        assert_eq!(after, before);
        assert_eq!(after.0, [KV, ZONED, NEXT]);
        let full = Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
        assert_eq!(admin.create(CommandSet::NVM, 41).await, full);
        assert_eq!(admin.create(CommandSet::NVM, 40).await, Ok(BLOCK), "behind the third");
        assert_eq!(admin.create(CommandSet::NVM, 20).await, Ok(NEXT + 1), "in the gap");
    });
}

#[test]
fn what_is_under_way_ends_before_its_namespace_does() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        for is_format in [true, false] {
            let held_up = world.gate.close();
            let write = io.send(Command::write(BLOCK, 3, 1), &[7; 4_096], 0);
            let change = if is_format {
                Command::format_namespace(BLOCK, FormatOptions::default())
            } else {
                Command::delete_namespace(BLOCK)
            };
            admin.send(change, &[], 0);
            clock::sleep(base::Nanos::from_millis(5), Stage::Queue).await;
            assert_eq!(admin.waiting(), 0, "it waits for the write");
            drop(held_up);
            let written = io.next().await.unwrap().entry;
            assert_eq!((written.command_id(), written.status()), (write, Status::SUCCESS));
            assert_eq!(admin.next().await.unwrap().entry.status(), Status::SUCCESS);
            if !is_format {
                assert_eq!(admin.create(CommandSet::NVM, 100).await, Ok(BLOCK));
                assert_eq!(admin.attach(BLOCK, &[id]).await, Status::SUCCESS);
            }
            let read = io.answer(Command::read(BLOCK, 3, 1), &[], 4_096).await;
            assert_eq!(read.data.bytes(), Some(&[0; 4_096][..]), "no host finds the old data");
        }
    });
}

#[test]
fn another_namespace_of_the_same_id_has_other_names() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let names = async || {
            admin.read(Command::identify(Cns::NAMESPACE_DESCRIPTORS, BLOCK)).await[..40].to_vec()
        };
        let first = names().await;
        assert_eq!(admin.format(BLOCK, FormatOptions::default()).await, Status::SUCCESS);
        assert_eq!(names().await, first, "it is the same namespace");
        let mut seen = vec![first];
        for _ in 0..3 {
            assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
            assert_eq!(admin.create(CommandSet::NVM, 100).await, Ok(BLOCK));
            assert_eq!(admin.attach(BLOCK, &[id]).await, Status::SUCCESS);
            let names = names().await;
            assert!(!seen.contains(&names), "Linux would take it for the one before");
            seen.push(names);
        }
        let saved = world.device.save_namespaces().unwrap();
        world.device.restore_namespaces(&saved).unwrap();
        assert_eq!(names().await, seen[3]);
    });
}

/// A device may have several subsystems.
#[test]
fn attachments_are_common_to_all_subsystems_of_a_device() {
    run(async |world| {
        const OTHER: &str = "nqn.2026-01.org.example:other";
        world.subsystems.add(crate::fabrics::host::subsystem(OTHER, &world.device, &world.flash));
        let (admin, id) = world.admin().await;
        let (other, other_id) = another_host_of(&world, OTHER).await;
        assert_eq!(id, other_id, "ids are those of a subsystem");
        let wanted = Command::set_features(Feature::ASYNC_EVENTS, 0, 0x100);
        assert_eq!(other.status(wanted).await, Status::SUCCESS);
        let changed = async || {
            let page = Command::get_log_page(LogPage::CHANGED_NAMESPACES, ALL, 4_096);
            let list: NamespaceList = other.structure(page).await;
            list.iter().collect::<Vec<_>>()
        };
        other.send(Command::async_event_request(), &[], 0);
        assert_eq!(admin.delete(BLOCK).await, Status::SUCCESS);
        let event = other.next().await.unwrap().entry.result();
        assert_eq!(event, AsyncEvent::NAMESPACES_CHANGED.0.into());
        assert_eq!(changed().await, [BLOCK]);
        assert_eq!(admin.create(CommandSet::NVM, 100).await, Ok(BLOCK));
        assert_eq!(admin.attach(BLOCK, &[id]).await, Status::SUCCESS);
        assert_eq!(other.list(Cns::ACTIVE_NAMESPACES).await, [KV, ZONED]);
        assert_eq!(other.attach(BLOCK, &[other_id]).await, Status::SUCCESS);
        assert_eq!(other.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED]);
        // What was said of a namespace is not said of the next one of its id.
        assert_eq!(other.detach(KV, &[other_id]).await, Status::SUCCESS);
        assert_eq!(admin.delete(KV).await, Status::SUCCESS);
        assert_eq!(other.create(CommandSet::KEY_VALUE, 0).await, Ok(KV));
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [BLOCK, ZONED]);
    });
}

#[test]
fn a_restored_device_has_its_namespaces_attached_to_the_hosts_that_had_them() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let (other, other_id) = another_host(&world).await;
        assert_eq!(admin.create(CommandSet::KEY_VALUE, 0).await, Ok(NEXT));
        assert_eq!(admin.attach(NEXT, &[id]).await, Status::SUCCESS);
        assert_eq!(admin.detach(KV, &[other_id]).await, Status::SUCCESS);
        let saved = world.device.save_namespaces().unwrap();
        assert_eq!(admin.attach(NEXT, &[other_id]).await, Status::SUCCESS);
        assert_eq!(admin.attach(KV, &[other_id]).await, Status::SUCCESS);
        world.device.restore_namespaces(&saved).unwrap();
        assert_eq!(other.list(Cns::ACTIVE_NAMESPACES).await, [BLOCK, ZONED]);
        assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED, NEXT]);
    });
}

#[test]
fn no_more_hosts_are_remembered_than_may_be_and_none_by_halves() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let mut hosts = 0_u32;
        // Each is gone when the next comes, and what was said of it stays.
        let status = loop {
            let line = world.line();
            let name = format!("nqn.2026-01.org.example:h{hosts}");
            let data = ConnectData::new(HOST_ID, &name, NQN, ConnectData::ANY_CONTROLLER);
            let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
            let other = line.connect_with(connect, &data).await.expect("any host may connect");
            let status = admin.detach(KV, &[id, other]).await;
            if status != Status::SUCCESS {
                // There is room for one of the two.
                assert_eq!(admin.list(Cns::ACTIVE_NAMESPACES).await, [KV, BLOCK, ZONED]);
                assert_eq!(admin.detach(KV, &[other]).await, Status::SUCCESS);
                break status;
            }
            assert_eq!(admin.attach(KV, &[id]).await, Status::SUCCESS);
            line.queue.close();
            hosts += 1;
        };
        assert_eq!(status, Status::NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED);
        assert_eq!(hosts, 4_095);
    });
}
