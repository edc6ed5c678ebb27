use crate::controller::Controller;
use crate::fabrics::association::{Association, Associations};
use crate::fabrics::count::PerReactor;
use crate::fabrics::tally::Tally;
use crate::namespace::NamespaceInUse;
use base::checksum::hash64;
use spec::{CommandSet, QualifiedName, Text, is_qualified_name};
use std::fmt;
use std::sync::Arc;

/// Counters of a device's flash, from the code that built the device.
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
    /// Remaining spare blocks, in percent of the initial number.
    pub spare_percent: u8,
    /// Used part of the flash's life, in percent; 255 for 255 and more.
    pub used_percent: u8,
    /// Damaged pages found without a host's command.
    pub damaged_pages: u64,
}

impl FlashFigures {
    /// The figures of a device without flash or with new flash.
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

/// The identity of a subsystem.
pub struct SubsystemConfig {
    /// The name by which hosts connect: an NVMe Qualified Name of at most 223 bytes.
    pub nqn: String,
    /// The serial number: at most 20 printable ASCII characters.
    pub serial: String,
    /// The firmware revision: at most 8 printable ASCII characters.
    pub firmware: String,
    /// Returns the flash figures; called for each request of a host.
    pub flash: Box<dyn Fn() -> FlashFigures + Send + Sync>,
}

/// A device as hosts connect to it (Base 2.1, NVM subsystem). Each host has a controller of its
/// own; all of them share the device and its namespaces.
pub struct Subsystem {
    nqn: String,
    incarnation: u64,
    pub(crate) serial: Text<20>,
    pub(crate) firmware: Text<8>,
    flash: Box<dyn Fn() -> FlashFigures + Send + Sync>,
    pub(crate) device: Arc<Controller>,
    pub(crate) associations: Arc<Associations>,
    pub(crate) tally: PerReactor<Tally>,
}

impl Subsystem {
    /// Creates a subsystem of a device that has never lost its content.
    ///
    /// # Panics
    /// If a part of `config` does not fit its field.
    pub fn new(config: SubsystemConfig, device: Arc<Controller>) -> Arc<Self> {
        Self::of_incarnation(config, device, 0)
    }

    /// Creates a subsystem of a device that has lost its content `incarnation` times. Each number
    /// gives its namespaces other identifiers, because hosts take equal identifiers for equal data.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn of_incarnation(
        config: SubsystemConfig,
        device: Arc<Controller>,
        incarnation: u64,
    ) -> Arc<Self> {
        assert!(
            is_qualified_name(&config.nqn),
            "a subsystem has an NVMe Qualified Name, not {:?}",
            config.nqn
        );
        device.list_short_keys();
        Arc::new(Self {
            nqn: config.nqn,
            incarnation,
            serial: Text::new(&config.serial),
            firmware: Text::new(&config.firmware),
            flash: config.flash,
            device,
            associations: Arc::default(),
            tally: PerReactor::default(),
        })
    }

    /// Returns the name by which hosts connect.
    pub fn nqn(&self) -> &str {
        &self.nqn
    }

    pub(crate) fn flash(&self) -> FlashFigures {
        (self.flash)()
    }

    /// Reports changed Identify data of a namespace to hosts.
    pub fn namespace_changed(&self, nsid: u32) {
        self.associations.all().iter().for_each(|association| association.namespace_changed(nsid));
    }

    /// Returns the namespace with this id, if it is attached to `host`.
    #[inline]
    pub(crate) fn namespace(&self, nsid: u32, host: &QualifiedName) -> Option<Arc<NamespaceInUse>> {
        self.device.namespace_of(nsid, host)
    }

    /// Returns the controllers whose hosts have this namespace attached.
    pub(crate) fn controllers_with(&self, nsid: u32) -> Vec<Arc<Association>> {
        let mut controllers = self.associations.all();
        controllers.retain(|controller| controller.namespace(nsid).is_some());
        controllers
    }

    /// Returns the I/O command sets of its namespaces only. A host may otherwise misidentify a
    /// namespace: xNVMe trusts the controller when it probes for zones.
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

    /// Returns the bytes of all namespaces and of free space for new ones.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let ids = self.device.namespace_ids();
        let all = ids.into_iter().filter_map(|id| self.device.namespace(id));
        let of_blocks = all.filter(|namespace| namespace.command_set() != CommandSet::KEY_VALUE);
        let of_pairs = self.device.kv().map_or(0, |store| store.capacity_bytes());
        let of_blocks: u64 = of_blocks.map(|namespace| namespace.capacity_bytes()).sum();
        of_pairs + of_blocks + self.device.inventory.unallocated_bytes()
    }

    /// Returns the UUID of a namespace, constant for the device's name and incarnation (RFC 9562,
    /// version 8: custom bits).
    pub(crate) fn uuid(&self, nsid: u32) -> [u8; 16] {
        let mut uuid = self.number(nsid, [b"high", b"low"]);
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }

    /// Returns the same as an NGUID (Base 2.1, Namespace Globally Unique Identifier). Kvasir has no
    /// OUI, so that field is marked as locally administered.
    pub(crate) fn nguid(&self, nsid: u32) -> [u8; 16] {
        let mut nguid = self.number(nsid, [b"nguid high", b"nguid low"]);
        nguid[8] = nguid[8] & !0b01 | 0b10;
        nguid
    }

    fn number(&self, nsid: u32, halves: [&[u8]; 2]) -> [u8; 16] {
        let half = |which: &[u8]| {
            let mut bytes = [self.nqn.as_bytes(), &nsid.to_le_bytes(), which].concat();
            // A later namespace with the same id has another UUID.
            match self.device.inventory.life(nsid) {
                0 => {}
                life => bytes.extend(life.to_le_bytes()),
            }
            if self.incarnation > 0 {
                bytes.extend(b"incarnation");
                bytes.extend(self.incarnation.to_le_bytes());
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
