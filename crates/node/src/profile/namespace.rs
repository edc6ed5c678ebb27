use crate::profile::block::{self, Block};
use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::nand::Nand;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::profile::size::{Size, check_room};
use crate::profile::zoned::{self, Zoned};
use base::limits::BLOCK_BYTES;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "namespace",
    title: "[[namespace]]",
    keys: &[
        "kind",
        "size_gb",
        "over_provisioning",
        "ack",
        "buffer_kib",
        "gc_victims",
        "gc_blocking",
        "gc_frontier",
        "gc_free_blocks",
        "wear_gap",
        "stripe",
        "max_open",
        "max_active",
    ],
};

/// The keys of every kind.
pub(super) const KEYS: &[&str] = &["kind", "size_gb", "over_provisioning"];

/// The kinds, each with its own keys.
pub(super) const KINDS: &[(&str, (&str, &[&str]))] =
    &[("kv", ("kv", &[])), ("block", ("block", block::KEYS)), ("zoned", ("zoned", zoned::KEYS))];

/// Most namespaces of a device.
const NAMESPACES_MAX: usize = 1_024;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Namespace {
    /// The kind of namespace for hosts.
    #[serde(flatten)]
    pub kind: NamespaceKind,
    /// The capacity in bytes that it reports: whole logical blocks, or whole zones.
    pub size_bytes: u64,
    /// Data bytes of the flash beyond the reported size, as a fraction of that size.
    pub over_provisioning: f64,
}

/// The kind of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NamespaceKind {
    /// Keys and values.
    Kv,
    /// Logical blocks.
    Block(Block),
    /// Zones, which are appended to and reset as a whole.
    Zoned(Zoned),
}

/// A namespace and the key of its size, which errors name.
#[derive(Debug)]
pub(super) struct Given<'t> {
    pub(super) namespace: Namespace,
    pub(super) field: Field<'t>,
}

impl NamespaceKind {
    fn read(section: Section<'_>, nand: &Nand) -> Result<Self, ProfileError> {
        let kind = section.field("kind")?;
        let (word, keys) = kind.choice(KINDS)?;
        check_keys(section, word, keys)?;
        if word != "kv" && nand.page_bytes < BLOCK_BYTES {
            return Err(kind.wrong(format!(
                "a namespace of kind {word:?} has logical blocks of {BLOCK_BYTES} bytes, but \
                 page_bytes is {}",
                nand.page_bytes
            )));
        }
        match word {
            "block" => Block::read(section).map(Self::Block),
            "zoned" => Zoned::read(section).map(Self::Zoned),
            _ => Ok(Self::Kv),
        }
    }

    /// Returns whether it is of keys and values.
    pub fn is_kv(&self) -> bool {
        *self == Self::Kv
    }

    /// Returns its name in a profile.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Block(_) => "block",
            Self::Zoned(_) => "zoned",
        }
    }
}

/// Refuses keys of another kind of namespace.
fn check_keys(section: Section<'_>, kind: &str, keys: &[&'static str]) -> Result<(), ProfileError> {
    let others = SCHEMA.keys.iter().filter(|key| !KEYS.contains(key) && !keys.contains(key));
    let found = others.filter_map(|key| section.optional(key));
    match found.min_by_key(|field| field.line) {
        None => Ok(()),
        Some(field) => {
            let key = field.key;
            let whose = if block::KEYS.contains(&key) { "block" } else { "zoned" };
            let hint = if kind == "kv" { "; for keys and values it may be in [log]" } else { "" };
            Err(field.wrong(format!(
                "{key} is a key of namespaces of kind {whose:?}, but this one is of kind \
                 {kind:?}{hint}"
            )))
        }
    }
}

/// Reads the namespaces of a profile, in its order.
pub(super) fn read_all<'t>(top: Section<'t>, nand: &Nand) -> Result<Vec<Given<'t>>, ProfileError> {
    let sections = top.elements(&SCHEMA)?;
    if let Some(section) = sections.get(NAMESPACES_MAX) {
        return Err(section.wrong(format!("a device has at most {NAMESPACES_MAX} namespaces")));
    }
    let is_only = sections.len() == 1;
    let given = sections.into_iter().map(|section| {
        let kind = NamespaceKind::read(section, nand)?;
        let Size { bytes, over_provisioning, field } = Size::read(section, nand, &kind, is_only)?;
        Ok(Given { namespace: Namespace { kind, size_bytes: bytes, over_provisioning }, field })
    });
    let given: Vec<Given<'t>> = given.collect::<Result<_, ProfileError>>()?;
    check_room(&given, nand)?;
    Ok(given)
}

/// Returns the bytes that hosts see in all namespaces of keys and values.
pub(crate) fn kv_bytes(namespaces: &[Namespace]) -> u64 {
    let kv = namespaces.iter().filter(|namespace| namespace.kind.is_kv());
    kv.map(|namespace| namespace.size_bytes).sum()
}
