use crate::profile::error::ProfileError;
use crate::profile::field::to_u64;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use serde::Serialize;

pub(super) const SCHEMA: Schema =
    Schema { name: "power", title: "[power]", keys: &["capacitor_mj", "program_uj"] };

/// Most energy of the capacitors in millijoules: a thousand joules is more than a drive can hold.
const CAPACITOR_MJ_MAX: f64 = 1e6;

/// Least energy of a program in microjoules.
const PROGRAM_UJ_MIN: f64 = 0.001;

/// Most energy of a program in microjoules.
const PROGRAM_UJ_MAX: f64 = 1e6;

/// The capacitors that power a device after a loss of power, to save acknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Power {
    /// Energy in the capacitors, in nanojoules.
    pub capacitor_nj: u64,
    /// Energy of a page's program and of its share of other work, in nanojoules.
    pub program_nj: u64,
}

impl Power {
    /// Returns the number of pages that the capacitors can program.
    pub const fn pages(self) -> u64 {
        self.capacitor_nj / self.program_nj
    }

    /// Reads the section, if present. A device without it saves all acknowledged data.
    pub(super) fn read(top: Section<'_>) -> Result<Option<Self>, ProfileError> {
        if top.optional(SCHEMA.name).is_none() {
            return Ok(None);
        }
        let section = top.section(&SCHEMA)?;
        let capacitor = section.field("capacitor_mj")?.number(0.0..=CAPACITOR_MJ_MAX)?;
        let program = section.field("program_uj")?.number(PROGRAM_UJ_MIN..=PROGRAM_UJ_MAX)?;
        Ok(Some(Self { capacitor_nj: to_u64(capacitor * 1e6), program_nj: to_u64(program * 1e3) }))
    }
}
