use crate::controller::Controller;
use crate::fabrics::association::{Association, Associations};
use crate::fabrics::count::PerReactor;
use crate::fabrics::tally::Tally;
use crate::namespace::Namespace;
use base::checksum::hash64;
use spec::{CommandSet, QualifiedName, Text, is_qualified_name};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// What whoever built a device knows of its flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashFigures {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Bytes of data programmed since it is served, copies within the flash included.
    pub programmed_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Spare blocks that are left, in percent of those that there were.
    pub spare_percent: u8,
    /// How much of its life the flash has used up, in percent; 255 for 255 and more.
    pub used_percent: u8,
    /// Pages found damaged that no host had asked for.
    pub damaged_pages: u64,
}

impl FlashFigures {
    /// Those of a device without flash, or as new.
    pub const NEW: Self = Self {
        reads: 0,
        programs: 0,
        programmed_bytes: 0,
        erases: 0,
        spare_percent: 100,
        used_percent: 0,
        damaged_pages: 0,
    };
}

/// What a subsystem says it is.
pub struct SubsystemConfig {
    /// The name by which hosts connect: an NVMe Qualified Name of at most 223 bytes.
    pub nqn: String,
    /// The serial number: at most 20 printable ASCII characters.
    pub serial: String,
    /// The firmware revision: at most 8 printable ASCII characters.
    pub firmware: String,
    /// Asked for whenever a host wants to know how the flash is.
    pub flash: Box<dyn Fn() -> FlashFigures>,
}

/// A device as hosts connect to it (Base 2.1, NVM subsystem). Each host has a controller of its
/// own; all of them share the device and its namespaces.
pub struct Subsystem {
    nqn: String,
    pub(crate) serial: Text<20>,
    pub(crate) firmware: Text<8>,
    flash: Box<dyn Fn() -> FlashFigures>,
    pub(crate) device: Arc<Controller>,
    pub(crate) associations: Rc<Associations>,
    pub(crate) tally: PerReactor<Tally>,
}

impl Subsystem {
    /// The subsystem of a device.
    ///
    /// # Panics
    /// When a part of `config` does not fit its field.
    pub fn new(config: SubsystemConfig, device: Arc<Controller>) -> Rc<Self> {
        assert!(
            is_qualified_name(&config.nqn),
            "a subsystem has an NVMe Qualified Name, not {:?}",
            config.nqn
        );
        device.list_short_keys();
        Rc::new(Self {
            nqn: config.nqn,
            serial: Text::new(&config.serial),
            firmware: Text::new(&config.firmware),
            flash: config.flash,
            device,
            associations: Rc::default(),
            tally: PerReactor::default(),
        })
    }

    /// The name by which hosts connect.
    pub fn nqn(&self) -> &str {
        &self.nqn
    }

    pub(crate) fn flash(&self) -> FlashFigures {
        (self.flash)()
    }

    /// Tells hosts that what Identify says of a namespace has changed.
    pub fn namespace_changed(&self, nsid: u32) {
        self.associations.all().iter().for_each(|association| association.namespace_changed(nsid));
    }

    /// The namespace of this id, if there is one and `host` has it.
    #[inline]
    pub(crate) fn namespace(&self, nsid: u32, host: &QualifiedName) -> Option<Arc<Namespace>> {
        self.device.namespace_of(nsid, host)
    }

    /// The controllers whose hosts have this namespace.
    pub(crate) fn controllers_with(&self, nsid: u32) -> Vec<Rc<Association>> {
        let mut controllers = self.associations.all();
        controllers.retain(|controller| controller.namespace(nsid).is_some());
        controllers
    }

    /// The I/O command sets that its namespaces are of. A host that is told of one that none is of
    /// may take a namespace for one of those: xNVMe asks of zones, and believes the controller.
    pub(crate) fn command_sets(&self) -> Vec<CommandSet> {
        let has_pairs = self.device.kv().is_some();
        let ids = self.device.namespace_ids();
        let all: Vec<_> = ids.into_iter().filter_map(|id| self.device.namespace(id)).collect();
        let is_there = |set: &CommandSet| match *set {
            CommandSet::KEY_VALUE => has_pairs,
            _ => all.iter().any(|namespace| namespace.command_set() == *set),
        };
        [CommandSet::NVM, CommandSet::KEY_VALUE, CommandSet::ZONED]
            .into_iter()
            .filter(is_there)
            .collect()
    }

    /// Bytes of all namespaces, and of those that there can be beside them.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let ids = self.device.namespace_ids();
        let all = ids.into_iter().filter_map(|id| self.device.namespace(id));
        let of_blocks = all.filter(|namespace| namespace.command_set() != CommandSet::KEY_VALUE);
        let of_pairs = self.device.kv().map_or(0, |store| store.capacity_bytes());
        let of_blocks: u64 = of_blocks.map(|namespace| namespace.capacity_bytes()).sum();
        of_pairs + of_blocks + self.device.inventory.unallocated_bytes()
    }

    /// A name for a namespace that is the same each time that the device is served by this name
    /// (RFC 9562, version 8: of the maker's own bits).
    pub(crate) fn uuid(&self, nsid: u32) -> [u8; 16] {
        let mut uuid = self.number(nsid, [b"high", b"low"]);
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }

    /// The same as an NGUID (Base 2.1, Namespace Globally Unique Identifier): Kvasir has no OUI of
    /// its own, so that the place of one says that it is locally administered.
    pub(crate) fn nguid(&self, nsid: u32) -> [u8; 16] {
        let mut nguid = self.number(nsid, [b"nguid high", b"nguid low"]);
        nguid[8] = nguid[8] & !0b01 | 0b10;
        nguid
    }

    fn number(&self, nsid: u32, halves: [&[u8]; 2]) -> [u8; 16] {
        let half = |which: &[u8]| {
            let mut bytes = [self.nqn.as_bytes(), &nsid.to_le_bytes(), which].concat();
            // Another namespace of the same id is another one.
            match self.device.inventory.life(nsid) {
                0 => {}
                life => bytes.extend(life.to_le_bytes()),
            }
            hash64(&bytes).to_be_bytes()
        };
        let mut number = [0; 16];
        number[..8].copy_from_slice(&half(halves[0]));
        number[8..].copy_from_slice(&half(halves[1]));
        number
    }
}

impl fmt::Debug for Subsystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subsystem({:?})", self.nqn)
    }
}
