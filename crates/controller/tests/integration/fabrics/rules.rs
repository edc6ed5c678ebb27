//! Access rules, limits and discovery entries of hosts (Base 2.1, Connect command and Discovery log
//! page).

use crate::fabrics::host::{BLOCK, HOST_ID, HOST_NQN, KV, Line, NQN, World, run, subsystem};
use controller::{Limits, Rules, TransportAddress};
use spec::{
    AddressFamily, Cns, Command, CommandSet, ConnectAttributes, ConnectData, DiscoveryEntry,
    Feature, LogPage, Property, QualifiedName, Status, StoreOptions, Text,
};
use zerocopy::FromBytes;

const OTHER: &str = "nqn.2026-01.org.example:other";
const STRANGER: &str = "nqn.2026-01.org.example:stranger";

/// Rules by which these hosts alone may connect to the subsystem of the world.
fn only(hosts: &[&str]) -> Rules {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    Rules { hosts: [(NQN.to_owned(), hosts)].into(), ..Rules::default() }
}

fn limited(limits: Limits) -> Rules {
    Rules { limits, ..Rules::default() }
}

/// How the Connect of `host` fails as queue `queue` of controller `id`.
async fn refusal(world: &World, (host, nqn): (&str, &str), (queue, id): (u16, u16)) -> Refused {
    let connect = Command::connect(queue, 31, ConnectAttributes::NONE, 0);
    let data = ConnectData::new(HOST_ID, host, nqn, id);
    let entry = world.line().connect_with(connect, &data).await.expect_err("it may not");
    Refused { status: entry.status(), result: entry.result(), is_final: entry.do_not_retry() }
}

#[derive(Debug, PartialEq)]
struct Refused {
    status: Status,
    result: u64,
    is_final: bool,
}

/// 184h, and no use in trying again.
const INVALID_HOST: Refused =
    Refused { status: Status::CONNECT_INVALID_HOST, result: 0, is_final: true };

/// Kind, name, address and port of each entry that `host` is told of.
async fn told(discovery: &Line) -> Vec<(u8, String, String, String)> {
    let bytes = page(discovery).await;
    let count = usize::from(bytes[8]);
    let entry = |at: usize| {
        let bytes = &bytes[1_024 * at..1_024 * (at + 1)];
        let entry = DiscoveryEntry::read_from_bytes(bytes).expect("it has 1,024 bytes");
        let [name, address, port] = [
            entry.subsystem.as_str().expect("it is text"),
            entry.address.as_str().expect("it is text"),
            entry.service.as_str().expect("it is text"),
        ];
        (entry.subsystem_type.0, name.to_owned(), address.to_owned(), port.to_owned())
    };
    (1..=count).map(entry).collect()
}

async fn page(discovery: &Line) -> Vec<u8> {
    let get = Command::get_log_page(LogPage::DISCOVERY, 0, 8_192);
    discovery.answer(get, &[], 8_192).await.data.bytes().expect("there are bytes").to_vec()
}

async fn discovery_of(world: &World, host: &str) -> Line {
    let line = world.line();
    let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
    let name = QualifiedName::DISCOVERY;
    let data = ConnectData::new(HOST_ID, host, name, ConnectData::ANY_CONTROLLER);
    line.connect_with(connect, &data).await.expect("any host may ask");
    line.set_configuration(spec::Configuration::ENABLE_ALL_COMMAND_SETS).await;
    line
}

#[test]
fn only_a_host_in_the_list_connects() {
    run(async |world| {
        world.subsystems.set_rules(only(&[HOST_NQN]));
        let any = ConnectData::ANY_CONTROLLER;
        assert_eq!(refusal(&world, (STRANGER, NQN), (0, any)).await, INVALID_HOST);
        // Before it learns whether the controller is there.
        assert_eq!(refusal(&world, (STRANGER, NQN), (0, 7)).await, INVALID_HOST);
        assert_eq!(refusal(&world, (STRANGER, NQN), (1, 7)).await, INVALID_HOST);
        let (_admin, id) = world.admin().await;
        world.io(id, 1).await;
        assert_eq!(INVALID_HOST.status.0, 0x184);
    });
}

#[test]
fn an_empty_host_list_admits_no_host_and_a_missing_one_all() {
    run(async |world| {
        world.subsystems.add(subsystem(OTHER, &world.device, &world.flash));
        world.subsystems.set_rules(only(&[]));
        let any = ConnectData::ANY_CONTROLLER;
        assert_eq!(refusal(&world, (HOST_NQN, NQN), (0, any)).await, INVALID_HOST);
        world.admin_of(OTHER, 0).await;
    });
}

#[test]
fn a_host_that_is_taken_off_the_list_keeps_its_association_and_gets_no_more_queues() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        world.subsystems.set_rules(only(&[STRANGER]));
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
        assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
        assert_eq!(refusal(&world, (HOST_NQN, NQN), (2, id)).await, INVALID_HOST);
        world.subsystems.set_rules(Rules::default());
        world.io(id, 2).await;
    });
}

#[test]
fn a_host_is_told_of_what_it_may_connect_to_and_of_referrals() {
    run(async |world| {
        world.subsystems.add(subsystem(OTHER, &world.device, &world.flash));
        world.subsystems.add_elsewhere("nqn.2026-01.org.example:far");
        let address = TransportAddress {
            family: AddressFamily::IPV6,
            address: Text::new("2001:db8::4"),
            port: 8009,
        };
        world.subsystems.set_rules(Rules { referrals: vec![address], ..only(&[HOST_NQN]) });
        let nvm = |name: &str| (2, name.to_owned(), "192.0.2.7".to_owned(), "4420".to_owned());
        // SUBTYPE 1, with the name that all discovery subsystems have.
        let referral = (
            1,
            "nqn.2014-08.org.nvmexpress.discovery".to_owned(),
            "2001:db8::4".to_owned(),
            "8009".to_owned(),
        );
        let far = nvm("nqn.2026-01.org.example:far");
        let host = discovery_of(&world, HOST_NQN).await;
        assert_eq!(told(&host).await, [nvm(NQN), nvm(OTHER), far.clone(), referral.clone()]);
        let stranger = discovery_of(&world, STRANGER).await;
        assert_eq!(told(&stranger).await, [nvm(OTHER), far, referral]);
        let bytes = page(&host).await;
        // ADRFAM 2 is IPv6.
        assert_eq!(bytes[1_024 * 4..1_024 * 4 + 3], [3, 2, 1]);
    });
}

#[test]
fn a_change_is_told_to_those_who_see_it() {
    run(async |world| {
        world.subsystems.set_rules(only(&[HOST_NQN]));
        let hosts = [HOST_NQN, STRANGER].map(|host| discovery_of(&world, host));
        let [host, stranger] = hosts;
        let (host, stranger) = (host.await, stranger.await);
        for line in [&host, &stranger] {
            let set = Command::set_features(Feature::ASYNC_EVENTS, 0, 1 << 31);
            assert_eq!(line.status(set).await, Status::SUCCESS);
            line.send(Command::async_event_request(), &[], 0);
        }
        let generation = told_generation(&host).await;
        world.subsystems.set_rules(only(&[HOST_NQN]));
        assert_eq!(told_generation(&host).await, generation, "nothing has changed");
        assert_eq!((host.waiting(), stranger.waiting()), (0, 0));
        world.subsystems.set_rules(only(&[HOST_NQN, STRANGER]));
        assert_eq!(host.waiting(), 0, "it sees what it saw");
        let event = stranger.next().await.unwrap().entry;
        assert_eq!(event.result(), 0x0070_f002, "Discovery Log Page Change");
        assert_ne!(told_generation(&host).await, generation);
    });
}

async fn told_generation(discovery: &Line) -> u64 {
    let get = Command::get_log_page(LogPage::DISCOVERY, 0, 1_024).with_retained_event();
    let bytes = discovery.read(get).await;
    u64::from_le_bytes(bytes[..8].try_into().expect("there are 8"))
}

#[test]
fn a_subsystem_takes_as_many_associations_as_it_may() {
    run(async |world| {
        world.subsystems.set_rules(limited(Limits { associations: 2, ..Limits::default() }));
        let (_first, (second, _)) = (world.admin().await, world.admin().await);
        let any = ConnectData::ANY_CONTROLLER;
        // 181h, and the host may try again.
        let busy = Refused { status: Status(0x181), result: 0, is_final: false };
        assert_eq!(refusal(&world, (HOST_NQN, NQN), (0, any)).await, busy);
        second.queue.close();
        world.admin().await;
    });
}

#[test]
fn discovery_takes_256_associations_whatever_the_limit_is() {
    run(async |world| {
        world.subsystems.set_rules(limited(Limits { associations: 1, ..Limits::default() }));
        let mut lines = Vec::new();
        for _ in 0..256 {
            lines.push(discovery_of(&world, HOST_NQN).await);
        }
        let any = ConnectData::ANY_CONTROLLER;
        let busy = Refused { status: Status(0x181), result: 0, is_final: false };
        assert_eq!(refusal(&world, (HOST_NQN, QualifiedName::DISCOVERY), (0, any)).await, busy);
    });
}

#[test]
fn an_association_has_as_many_io_queues_as_it_was_granted_when_it_came() {
    run(async |world| {
        let (before, _) = world.admin().await;
        world.subsystems.set_rules(limited(Limits { io_queues: 3, ..Limits::default() }));
        let (admin, id) = world.admin().await;
        let all = |line| async move {
            let line: &Line = line;
            line.result(Command::set_features(Feature::NUMBER_OF_QUEUES, 0, 0x00ff_00ff)).await
        };
        assert_eq!(all(&admin).await, 0x0002_0002, "0's based");
        assert_eq!(all(&before).await, 0x003f_003f);
        world.io(id, 3).await;
        // The place of QID in the command.
        let invalid = Refused { status: Status(0x182), result: 42, is_final: true };
        assert_eq!(refusal(&world, (HOST_NQN, NQN), (4, id)).await, invalid);
    });
}

#[test]
fn a_queue_has_as_many_entries_as_it_may() {
    run(async |world| {
        world.subsystems.set_rules(limited(Limits { queue_entries: 32, ..Limits::default() }));
        let (admin, id) = world.admin().await;
        assert_eq!(admin.property(Property::CAP).await & 0xffff, 31, "MQES is 0's based");
        let controller = admin.read(Command::identify(Cns::CONTROLLER, 0)).await;
        assert_eq!(controller[514..516], [32, 0], "MAXCMD");
        let discovery = discovery_of(&world, HOST_NQN).await;
        let bytes = discovery.read(Command::get_log_page(LogPage::DISCOVERY, 0, 2_048)).await;
        assert_eq!(bytes[1_032..1_034], [32, 0], "ASQSZ");
        for queue in [0, 1] {
            let id = if queue == 0 { ConnectData::ANY_CONTROLLER } else { id };
            let connect = Command::connect(queue, 32, ConnectAttributes::NONE, 0);
            let data = ConnectData::new(HOST_ID, HOST_NQN, NQN, id);
            let refused = world.line().connect_with(connect, &data).await.unwrap_err();
            // The place of SQSIZE in the command.
            assert_eq!((refused.status().0, refused.result()), (0x182, 44));
        }
        assert_eq!(world.line().connect(id, 1, 31).await, Ok(id));
    });
}

#[test]
fn a_value_has_as_many_bytes_as_it_may() {
    run(async |world| {
        let (_before, before) = world.admin().await;
        let before = world.io(before, 1).await;
        assert_eq!(before.store(b"long", &[1; 5_000]).await, Status::SUCCESS);
        let limits = Limits { value_bytes: 4_097, ..Limits::default() };
        world.subsystems.set_rules(limited(limits));
        let (admin, id) = world.admin().await;
        // KVVML of format 0: for this namespace, and for all.
        for (cns, nsid) in [(Cns::NAMESPACE_OF_SET, KV), (Cns::FORMAT_OF_SET, 0)] {
            let identify = Command::identify(cns, nsid).with_csi(CommandSet::KEY_VALUE);
            assert_eq!(admin.read(identify).await[76..80], 4_097_u32.to_le_bytes());
        }
        let io = world.io(id, 1).await;
        assert_eq!(io.store(b"key", &[2; 4_097]).await, Status::SUCCESS);
        let data = [3; 4_098];
        let refused = io.answer(Command::store(KV, b"key", 4_098, NONE), &data, 0).await.entry;
        assert_eq!((refused.status(), refused.do_not_retry()), (Status(0x85), true));
        assert_eq!(io.retrieve(b"key", 9_000).await.data.bytes(), Some(&[2; 4_097][..]));
        // Stored values stay readable, and the limit does not apply to blocks.
        assert_eq!(io.retrieve(b"long", 9_000).await.data.len(), 5_000);
        let write = Command::write(BLOCK, 0, 2);
        assert_eq!(io.answer(write, &[4; 8_192], 0).await.entry.status(), Status::SUCCESS);
        assert_eq!(before.store(b"more", &[5; 6_000]).await, Status::SUCCESS, "as when it came");
        // What the device does not take is not taken because a rule would let it.
        world.subsystems.set_rules(limited(Limits { value_bytes: u32::MAX, ..Limits::default() }));
        let (admin, _) = world.admin().await;
        let identify = Command::identify(Cns::NAMESPACE_OF_SET, KV).with_csi(CommandSet::KEY_VALUE);
        assert_eq!(admin.read(identify).await[76..80], (2_u32 << 20).to_le_bytes());
    });
}

const NONE: StoreOptions = StoreOptions::NONE;
