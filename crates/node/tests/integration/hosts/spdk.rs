//! A program on SPDK 26.05 (`spdk/nvme_kv.h`), and the identify tool.

use crate::hosts::attach::{connect_data, settle};
use crate::hosts::entry::{ALL, CAP, CC, CSTS, Entry, VS};
use crate::hosts::line::{IN_CAPSULE_MAX, Ids, Line};
use crate::hosts::namespace::KEY_VALUE;
use crate::hosts::passthrough::{listed, size, value};
use crate::hosts::pdu::Digests;
use crate::hosts::world::{NQN, NSID, World, play};
use base::Nanos;
use clock::Stage;

const NAME: &str = "SPDK 26.05";

/// KATO, and how often it sends Keep Alive.
const KEEP_ALIVE_MS: u32 = 10_000;
const IDLE: Nanos = Nanos::from_secs(5);

/// Requests for events.
const EVENTS: u16 = 4;

/// Where it changes how it sends a value: one capsule, one R2T with one data PDU, with many.
const SIZES: [usize; 6] = [5, IN_CAPSULE_MAX, IN_CAPSULE_MAX + 1, 262_144, 262_145, 2 << 20];

#[test]
fn spdk_attaches_finds_the_namespace_and_uses_it() {
    for digests in [Digests::NONE, Digests::HEADER, Digests::DATA.padded(), Digests::BOTH.padded()]
    {
        play(&async |world| session(world, digests).await);
    }
}

/// Attaches, probes, identifies, uses two queues, idles, and detaches.
pub(crate) async fn session(world: &World, digests: Digests) {
    let mut admin = Line::open(world, NAME, Ids::Slots, digests).await;
    let controller = enable(&mut admin).await;
    let events = identify_controller(&mut admin, controller).await;
    find_namespace(&mut admin, world.capacity).await;
    identify_tool(&mut admin).await;
    for (queue, entries) in [(1, 255), (2, 127)] {
        let mut io = Line::open(world, NAME, Ids::Slots, digests).await;
        let connect = Entry::connect(queue, entries, 0).moves(1_024);
        let data = connect_data(controller, NQN);
        let connected = io.give("Connect of an I/O queue", connect, &data).await.ok();
        assert_eq!(connected.result, u64::from(controller));
        use_keys(&mut io).await;
        use_values(&mut io, queue.into()).await;
    }
    for _ in 0..4 {
        clock::sleep(IDLE, Stage::Queue).await;
        admin.ask("Keep Alive", Entry::keep_alive()).await.ok();
    }
    admin.ask("Property Get CC", Entry::property_get(CC)).await.ok();
    admin.ask("Property Set CC.SHN", Entry::property_set(CC, 0x0046_4061)).await.ok();
    let csts = admin.ask("Property Get CSTS", Entry::property_get(CSTS)).await.ok();
    csts.needs(
        "CSTS.SHST",
        |answer| answer.result >> 2 & 0b11 == 0b10,
        "It polls for ten seconds, and detaches anyway",
    );
    assert!(events.into_iter().all(|id| admin.waits(id)), "there was no event");
    drop(admin);
    settle(world).await;
}

async fn enable(admin: &mut Line) -> u16 {
    let connect = Entry::connect(0, 31, KEEP_ALIVE_MS).moves(1_024);
    let data = connect_data(0xffff, NQN);
    let connected = admin.give("Connect of the admin queue", connect, &data).await.ok();
    let controller = u16::try_from(connected.result).expect("no authentication is asked for");
    for (step, property) in [("Property Get VS", VS), ("Property Get CAP", CAP)] {
        admin.ask(step, Entry::property_get(property)).await.ok().needs(
            "CAP.CSS bit 6",
            |answer| property != CAP || answer.result >> 43 & 1 == 1,
            "It does not ask for the limits of keys and values (CNS 05h)",
        );
    }
    let cc = admin.ask("Property Get CC", Entry::property_get(CC)).await.ok();
    cc.needs(
        "CC.EN",
        |answer| answer.result & 1 == 0,
        "It waits until the controller is ready, and disables it first",
    );
    let csts = admin.ask("Property Get CSTS", Entry::property_get(CSTS)).await.ok();
    csts.needs(
        "CSTS.RDY",
        |answer| answer.result & 1 == 0,
        "It waits until the controller is disabled",
    );
    admin.ask("Property Set CC", Entry::property_set(CC, 0x0046_0061)).await.ok();
    let csts = admin.ask("Property Get CSTS", Entry::property_get(CSTS)).await.ok();
    csts.needs("CSTS.RDY", |answer| answer.result & 1 == 1, "It polls until CAP.TO is over");
    controller
}

/// What it asks of the controller, and the ids of its requests for events.
async fn identify_controller(admin: &mut Line, controller: u16) -> Vec<u16> {
    let identify = admin.ask("Identify controller", Entry::identify(0x01, 0)).await.whole();
    identify
        .needs(
            "CNTLID",
            |answer| answer.u16(78) == controller,
            "It says that the id is another one than that of the Connect",
        )
        .needs(
            "IOCCSZ",
            |answer| answer.u32(1_792) * 16 - 64 == 8_192,
            "Values longer than it says go by R2T",
        )
        .needs("MDTS", |answer| answer.data[77] == 9, "It splits or refuses what is longer")
        .needs(
            "SGLS",
            |answer| answer.u32(536) & 1 == 1 && answer.u32(536) >> 20 & 1 == 1,
            "It sends PRPs, or no data in capsules",
        )
        .needs(
            "AERL",
            |answer| answer.data[259] + 1 >= u8::try_from(EVENTS).expect("4"),
            "It makes as many requests for events as it says",
        )
        .needs("KAS", |answer| answer.u16(320) != 0, "It sends no Keep Alive");
    admin.ask("Async Event Configuration", Entry::set_features(0x0b, 0x11f)).await.ok();
    let mut events = Vec::new();
    for _ in 0..EVENTS {
        let request = Entry::async_event_request();
        events.push(admin.start("Async Event Request", request, &[]).await);
    }
    let timer = admin.ask("Get Features, keep alive", Entry::get_features(0x0f)).await.ok();
    timer.needs(
        "the time",
        |answer| answer.result == u64::from(KEEP_ALIVE_MS),
        "It keeps another time than it has asked for",
    );
    // Invalid I/O Command Set (402Ch) in place of an invalid field fails the whole attach.
    admin.ask("Identify of CSI 0", Entry::identify_of(0x06, 0, 0)).await.whole();
    admin.ask("Identify of CSI 2", Entry::identify_of(0x06, 0, 2)).await.fails(0x4002);
    admin.ask("Identify of CSI 1", Entry::identify_of(0x06, 0, 1)).await.whole();
    let queues = Entry::set_features(0x07, 0x03ff_03ff);
    let queues = admin.ask("Number of Queues", queues).await.ok();
    queues.needs(
        "both numbers of queues",
        |answer| answer.result & 0xffff >= 1 && answer.result >> 16 >= 1,
        "It makes no more queues than it gets",
    );
    events
}

async fn find_namespace(admin: &mut Line, capacity: u64) {
    let list = admin.ask("Identify active namespaces", Entry::identify(0x02, 0)).await.whole();
    assert_eq!((list.u32(0), list.u32(4)), (NSID, 0));
    let blocks = admin.ask("Identify namespace", Entry::identify(0x00, NSID)).await.whole();
    blocks
        .needs(
            "NCAP",
            |answer| answer.u64(8) > 0,
            "The namespace is inactive: left out without a word",
        )
        .needs(
            "NSZE, in blocks of the format's size",
            |answer| answer.u64(0) << answer.data[130] == capacity,
            "It shows another size",
        );
    let descriptors = admin.ask("Identify descriptors", Entry::identify(0x03, NSID)).await.whole();
    descriptors.needs(
        "a descriptor of the command set",
        |answer| answer.data.windows(5).any(|window| window == KEY_VALUE),
        "The namespace is one of blocks",
    );
    let pairs = Entry::identify_of(0x05, NSID, 1);
    let pairs = admin.ask("Identify namespace of CSI 1", pairs).await.whole();
    pairs
        .needs("NKVF, 0's based", |answer| answer.data[25] == 0, "It shows formats that are not")
        .needs("KVKML", |answer| answer.u16(72) == 16, "A program is told of shorter keys")
        .needs("KVVML", |answer| answer.u32(76) == 2 << 20, "A program is told of shorter values");
}

/// What the identify tool asks for beyond.
async fn identify_tool(admin: &mut Line) {
    for feature in [0x01, 0x02, 0x04, 0x07] {
        admin.ask("Get Features of the identify tool", Entry::get_features(feature)).await.ok();
    }
    for (page, bytes) in [(0x01, 4_096), (0x02, 512), (0x03, 512), (0x05, 4_096)] {
        let page = Entry::log_page(page, ALL, bytes);
        admin.ask("log pages of the identify tool", page).await.whole();
    }
}

/// Each function of the driver, with each of its statuses.
async fn use_keys(io: &mut Line) {
    io.give("store", Entry::store(b"key", 5), b"value").await.ok();
    let absent = Entry::store(b"key", 5).options(1 << 1);
    io.give("store, DONT_STORE_IF_KEY_EXISTS", absent, b"other").await.fails(0x4089);
    let present = Entry::store(b"none", 5).options(1 << 0);
    io.give("store, STORE_IF_KEY_EXISTS", present, b"other").await.fails(0x4087);
    let raw = Entry::store(b"a key of 16 byte", 5).options(1 << 2);
    io.give("store, NO_COMPRESS", raw, b"value").await.ok();
    for (room, data) in [(64, &b"value"[..]), (2, b"va"), (0, b"")] {
        let got = io.ask("retrieve", Entry::retrieve(b"key", room)).await.ok();
        assert_eq!((got.result, &got.data[..]), (5, data), "{room} bytes of room");
    }
    io.ask("retrieve of none", Entry::retrieve(b"none", 64)).await.fails(0x4087);
    io.ask("exist", Entry::exist(b"key")).await.ok();
    io.ask("exist of none", Entry::exist(b"none")).await.fails(0x4087);
    let list = io.ask("list", Entry::list(b"", 4_096)).await.ok();
    let mut keys = vec![&b"a key of 16 byte"[..], b"key"];
    assert_eq!(listed(&list.data), keys);
    let from = io.ask("list from a key", Entry::list(b"key", 4_096)).await.ok();
    keys.retain(|key| listed(&from.data).iter().any(|listed| listed == key));
    assert!(keys.contains(&&b"key"[..]), "a list begins with the key that it is from");
    for key in [&b"key"[..], b"a key of 16 byte"] {
        io.ask("delete", Entry::delete(key)).await.ok();
    }
    io.ask("exist of a deleted key", Entry::exist(b"key")).await.fails(0x4087);
    io.ask("delete of none", Entry::delete(b"key")).await.ok();
}

/// Values of all sizes at a time, so that R2Ts of one come between data of others.
async fn use_values(io: &mut Line, seed: u64) {
    let value = |number: usize| value(SIZES[number], seed << 8 | number as u64);
    let key = |number: usize| [b'v', u8::try_from(number).expect("a few values")];
    let mut ids = Vec::new();
    for number in 0..SIZES.len() {
        let value = value(number);
        let store = Entry::store(&key(number), size(&value));
        ids.push(io.start("store of values", store, &value).await);
    }
    for (number, id) in ids.drain(..).enumerate() {
        let stored = io.finish(id).await.ok();
        assert_eq!(stored.asked_for > 0, SIZES[number] > IN_CAPSULE_MAX, "{}", stored.step);
    }
    for number in 0..SIZES.len() {
        let retrieve = Entry::retrieve(&key(number), size(&value(number)));
        ids.push(io.start("retrieve of values", retrieve, &[]).await);
    }
    for (number, id) in ids.into_iter().enumerate() {
        let got = io.finish(id).await.ok();
        assert_eq!(got.pieces, 1, "one C2HData");
        assert!(got.data == value(number), "a value of {} bytes", SIZES[number]);
        io.ask("delete of values", Entry::delete(&key(number))).await.ok();
    }
}
