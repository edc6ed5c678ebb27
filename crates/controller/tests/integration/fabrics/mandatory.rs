//! Every feature, log page and structure of Identify, asked of a controller of each kind: what the
//! specification makes mandatory is there, and nothing is that it prohibits or that is not told of.
//!
//! Base 2.1, Log Page Support Requirements, Feature Support Requirements, and Identify - CNS
//! Values; NVM 1.1, KV 1.0d and ZNS 1.1a, Features Support. There are no administrative
//! controllers.

use crate::fabrics::host::{LOG, Line, NQN, World, ZONES, run, store, subsystem, zoned};
use crate::fragile::Fragile;
use clock::Group;
use controller::{Config, Controller, Namespace};
use engine::Ack;
use media::{BlocksShape, Memory, MemoryBlocks};
use spec::{
    Cns, Command, CommandSet, Feature, FeatureEffects, FeatureSelect, LogPage, QualifiedName,
    Status, SupportedLogPages,
};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Which controllers have something.
#[derive(Clone, Copy)]
enum Of {
    Every,
    /// Of subsystems.
    Io,
    /// Of subsystems with logical blocks, in zones or not.
    Blocks,
    Pairs,
    Discovery,
}

/// A controller and what it is.
struct Kind {
    name: &'static str,
    admin: Line,
    /// None of a discovery controller.
    sets: Vec<CommandSet>,
}

impl Kind {
    fn has(&self, of: Of) -> bool {
        let has = |set| self.sets.contains(&set);
        match of {
            Of::Every => true,
            Of::Io => !self.sets.is_empty(),
            Of::Blocks => has(CommandSet::NVM) || has(CommandSet::ZONED),
            Of::Pairs => has(CommandSet::KEY_VALUE),
            Of::Discovery => self.sets.is_empty(),
        }
    }

    /// The id of a namespace that `of` is about.
    fn nsid(&self, of: Of) -> u32 {
        let is_of = |set: &CommandSet| (*set == CommandSet::KEY_VALUE) == matches!(of, Of::Pairs);
        let at = self.sets.iter().position(is_of).expect("it has such a namespace");
        u32::try_from(at + 1).expect("there are few")
    }
}

async fn controllers(world: &World) -> Vec<Kind> {
    let [pairs, blocks, zones] = [CommandSet::KEY_VALUE, CommandSet::NVM, CommandSet::ZONED];
    let mut all = vec![
        Kind {
            name: "of all sets",
            admin: world.admin().await.0,
            sets: vec![pairs, blocks, zones],
        },
        Kind {
            name: "discovery",
            admin: world.admin_of(QualifiedName::DISCOVERY, 0).await.0,
            sets: vec![],
        },
    ];
    for (name, set) in [("of pairs", pairs), ("of blocks", blocks), ("of zones", zones)] {
        let nqn = format!("{NQN}:{}", name.replace(' ', "-"));
        world.subsystems.add(subsystem(&nqn, &device(set).await, &world.flash));
        all.push(Kind { name, admin: world.admin_of(&nqn, 0).await.0, sets: vec![set] });
    }
    all
}

/// A device with one namespace.
async fn device(set: CommandSet) -> Arc<Controller> {
    let group = Group::new();
    let shape = BlocksShape { block_bytes: 4_096, blocks: 100, parallelism: 1 };
    let namespace = match set {
        CommandSet::NVM => Namespace::Block(Arc::new(MemoryBlocks::new(shape))),
        CommandSet::ZONED => Namespace::Zoned(zoned(Arc::new(Fragile::new(Memory::new(ZONES))))),
        _ => Namespace::Kv(
            store(group, Arc::new(Fragile::new(Memory::new(LOG))), Ack::Program).await,
        ),
    };
    let config = Config { emulation: None, has_volatile_cache: false };
    Controller::new(vec![namespace], config)
}

const CHANGEABLE: u64 = 0b100;
const OF_NAMESPACE: u64 = 0b110;

/// Id, controllers that support it, capabilities, a value to set, and the status of that.
type FeatureRow = (u8, Of, u64, u32, Status);

const FEATURES: [FeatureRow; 11] = [
    (0x01, Of::Io, CHANGEABLE, 0x0102_0304, Status::SUCCESS),
    (0x02, Of::Io, CHANGEABLE, 0, Status::SUCCESS),
    (0x04, Of::Io, CHANGEABLE, 400, Status::SUCCESS),
    (0x05, Of::Blocks, OF_NAMESPACE, 7, Status::SUCCESS),
    (0x07, Of::Io, CHANGEABLE, 0, Status::SUCCESS),
    (0x0a, Of::Blocks, CHANGEABLE, 1, Status::SUCCESS),
    (0x0b, Of::Every, CHANGEABLE, 0, Status::SUCCESS),
    (0x0f, Of::Every, CHANGEABLE, 60_000, Status::SUCCESS),
    (0x19, Of::Io, CHANGEABLE, 0, Status::SUCCESS),
    (0x20, Of::Pairs, OF_NAMESPACE, 1, Status::SUCCESS),
    (0x81, Of::Io, 0, 0, Status::COMMAND_SEQUENCE_ERROR),
];

#[test]
fn each_controller_has_its_features_and_no_others() {
    run(async |world| {
        for kind in controllers(&world).await {
            let page = kind.admin.read(Command::get_log_page(LogPage(0x12), 0, 1_024)).await;
            let told = FeatureEffects::read_from_bytes(&page).expect("it has 1,024 bytes");
            for id in 0..=u8::MAX {
                let row = FEATURES.iter().find(|row| row.0 == id && kind.has(row.1));
                assert_eq!(told.contains(Feature(id)), row.is_some(), "{} {id:02x}h", kind.name);
                match row {
                    Some(row) => feature_is_there(&kind, row).await,
                    None => feature_is_not_there(&kind, Feature(id)).await,
                }
            }
        }
    });
}

async fn feature_is_there(kind: &Kind, &(id, of, can, value, becomes): &FeatureRow) {
    let what = format!("{} {id:02x}h", kind.name);
    let feature = Feature(id);
    let nsid = if can == OF_NAMESPACE { kind.nsid(of) } else { 0 };
    let get = async |select| kind.admin.result(Command::get_features(feature, nsid, select)).await;
    let default = get(FeatureSelect::Default).await;
    // A host says its keep alive time when it connects.
    if feature != Feature::KEEP_ALIVE_TIMER {
        assert_eq!(get(FeatureSelect::Current).await, default, "{what} is as it is at first");
    }
    assert_eq!(get(FeatureSelect::Saved).await, default, "{what} is not saved");
    assert_eq!(get(FeatureSelect::Capabilities).await, can, "{what}");
    let set = Command::set_features(feature, nsid, value);
    assert_eq!(kind.admin.status(set).await, becomes, "{what}");
    let save = set.with_save();
    assert_eq!(kind.admin.status(save).await, Status::FEATURE_NOT_SAVEABLE, "{what}");
    if becomes.is_success() {
        assert_eq!(get(FeatureSelect::Current).await, value.into(), "{what} is what was set");
        assert_eq!(get(FeatureSelect::Default).await, default, "{what} has the same default");
    }
}

async fn feature_is_not_there(kind: &Kind, feature: Feature) {
    let nsid = kind.sets.first().map_or(0, |_| 1);
    for select in [FeatureSelect::Current, FeatureSelect::Default, FeatureSelect::Capabilities] {
        let status = kind.admin.status(Command::get_features(feature, nsid, select)).await;
        assert_eq!(status, Status::INVALID_FIELD, "{} {feature}", kind.name);
    }
    let status = kind.admin.status(Command::set_features(feature, nsid, 0)).await;
    assert_eq!(status, Status::INVALID_FIELD, "{} {feature}", kind.name);
}

/// Id, and controllers that support it. Ids from C0h are vendor specific.
const LOG_PAGES: [(u8, Of); 10] = [
    (0x00, Of::Every),
    (0x01, Of::Every),
    (0x02, Of::Io),
    (0x03, Of::Io),
    (0x04, Of::Io),
    (0x05, Of::Every),
    (0x0c, Of::Io),
    (0x12, Of::Every),
    (0x70, Of::Discovery),
    (0x81, Of::Io),
];

#[test]
fn each_controller_has_its_log_pages_and_no_others() {
    run(async |world| {
        for kind in controllers(&world).await {
            let page = kind.admin.read(Command::get_log_page(LogPage::SUPPORTED, 0, 1_024)).await;
            let told = SupportedLogPages::read_from_bytes(&page).expect("it has 1,024 bytes");
            for id in 0..0xc0 {
                let what = format!("{} {id:02x}h", kind.name);
                let is_there = LOG_PAGES.iter().any(|&(page, of)| page == id && kind.has(of));
                assert_eq!(told.contains(LogPage(id)), is_there, "{what}");
                let get = Command::get_log_page(LogPage(id), 0, 512);
                let expected = if is_there { Status::SUCCESS } else { Status::INVALID_LOG_PAGE };
                assert_eq!(kind.admin.status(get).await, expected, "{what}");
            }
        }
    });
}

#[test]
fn only_controllers_with_blocks_have_fused_operations() {
    run(async |world| {
        for kind in controllers(&world).await {
            let controller = kind.admin.read(Command::identify(Cns::CONTROLLER, 0)).await;
            let expected = u8::from(kind.sets.contains(&CommandSet::NVM));
            assert_eq!(controller[522..524], [expected, 0], "FUSES {}", kind.name);
        }
    });
}

/// Value, and controllers that support it. 10h to 1Bh are for Namespace Management.
const STRUCTURES: [(u8, Of); 16] = [
    (0x00, Of::Io),
    (0x01, Of::Every),
    (0x02, Of::Io),
    (0x03, Of::Io),
    (0x05, Of::Io),
    (0x06, Of::Io),
    (0x07, Of::Io),
    (0x08, Of::Io),
    (0x0a, Of::Io),
    (0x10, Of::Io),
    (0x11, Of::Io),
    (0x12, Of::Io),
    (0x13, Of::Io),
    (0x1a, Of::Io),
    (0x1b, Of::Io),
    (0x1c, Of::Io),
];

#[test]
fn each_controller_has_its_structures_of_identify_and_no_others() {
    run(async |world| {
        for kind in controllers(&world).await {
            let sets = if kind.sets.is_empty() { vec![CommandSet::NVM] } else { kind.sets.clone() };
            for (nsid, set) in (1..).zip(sets) {
                for cns in 0..=u8::MAX {
                    let is_there = STRUCTURES.iter().any(|&(it, of)| it == cns && kind.has(of));
                    let identify = Command::identify(Cns(cns), nsid).with_csi(set);
                    let expected = if is_there { Status::SUCCESS } else { Status::INVALID_FIELD };
                    let status = kind.admin.status(identify).await;
                    assert_eq!(status, expected, "{} CNS {cns:02x}h of {set}", kind.name);
                }
            }
        }
    });
}
