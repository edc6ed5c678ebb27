use crate::profile::error::ProfileError;
use crate::profile::log::{BUFFER_KIB_MAX, Stripe};
use crate::profile::section::Section;
use base::KIB;
use serde::Serialize;

/// The keys of zoned namespaces only.
pub(super) const KEYS: &[&str] = &["stripe", "max_open", "max_active", "buffer_kib"];

/// Most zones that can be open or active at a time.
const ZONES_MAX: u32 = 65_536;

/// A namespace of zones, each on an extent of an append translation layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Zoned {
    /// The dies that a zone spreads over, one block on each plane of them.
    pub stripe: Stripe,
    /// Zones that can be open at a time.
    pub max_open: u32,
    /// Zones that can be open or closed at a time.
    pub max_active: u32,
    /// Memory for partial pages and for data acknowledged before its program.
    pub buffer_bytes: u64,
}

impl Zoned {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let (open, active) = (section.field("max_open")?, section.field("max_active")?);
        let zoned = Self {
            stripe: Stripe::read(section.field("stripe")?)?,
            max_open: open.whole(1..=ZONES_MAX)?,
            max_active: active.whole(1..=ZONES_MAX)?,
            buffer_bytes: u64::from(section.field("buffer_kib")?.whole(0..=BUFFER_KIB_MAX)?) * KIB,
        };
        if zoned.max_open > zoned.max_active {
            return Err(open.wrong(format!(
                "max_open is {}, but only {} zones can be active (max_active in line {}), and an \
                 open zone is active",
                zoned.max_open, zoned.max_active, active.line
            )));
        }
        Ok(zoned)
    }
}
