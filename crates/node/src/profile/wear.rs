use crate::profile::error::ProfileError;
use crate::profile::field::{Field, to_u32};
use crate::profile::section::Section;
use serde::Serialize;

/// Maximum variation of page times in percent: above it a time could be zero.
const VARIABILITY_PERCENT_MAX: f64 = 90.0;

/// Maximum average read retries, far above those of drives.
const RETRIES_MAX: f64 = 100.0;

/// Maximum erases of a block.
const CYCLES_MAX: u32 = 1_000_000;

/// How blocks differ and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wear {
    /// Maximum variation of a page's read and program times, in millionths.
    pub variability_ppm: u32,
    /// Senses of a read beyond the first, on average.
    pub read_retries: Option<ReadRetries>,
    /// Average erases of a block before the device's first use.
    pub worn_cycles: u32,
}

/// Average senses of a read beyond the first, a linear function of the block's erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReadRetries {
    /// In millionths, of a block never erased.
    pub fresh_ppm: u32,
    /// In millionths, of one erased `endurance_cycles` times.
    pub worn_ppm: u32,
    /// Erases that wear a block out.
    pub endurance_cycles: u32,
}

impl Wear {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let variability = section.optional("variability_percent");
        let variability =
            variability.map(|field| millionths(field, 0.0..=VARIABILITY_PERCENT_MAX, 1e4));
        Ok(Self {
            variability_ppm: variability.transpose()?.unwrap_or(0),
            read_retries: ReadRetries::read(section)?,
            worn_cycles: section.whole_or("worn_cycles", 0..=CYCLES_MAX, 0)?,
        })
    }
}

impl ReadRetries {
    fn read(section: Section<'_>) -> Result<Option<Self>, ProfileError> {
        match (section.optional("read_retries"), section.optional("endurance_cycles")) {
            (None, None) => Ok(None),
            (None, Some(cycles)) => {
                Err(cycles.wrong("endurance_cycles is given, but read_retries is not".to_owned()))
            }
            (Some(retries), None) => {
                Err(retries.wrong("read_retries is given, but endurance_cycles is not".to_owned()))
            }
            (Some(retries), Some(cycles)) => {
                let [fresh, worn] = retries.elements()[..] else {
                    return Err(retries.must_be("two numbers: [fresh, worn out]"));
                };
                Ok(Some(Self {
                    fresh_ppm: millionths(fresh, 0.0..=RETRIES_MAX, 1e6)?,
                    worn_ppm: millionths(worn, 0.0..=RETRIES_MAX, 1e6)?,
                    endurance_cycles: cycles.whole(1..=CYCLES_MAX)?,
                }))
            }
        }
    }
}

/// Reads a number in `range`, in units of `unit` millionths.
fn millionths(
    field: Field<'_>,
    range: std::ops::RangeInclusive<f64>,
    unit: f64,
) -> Result<u32, ProfileError> {
    Ok(to_u32(field.number(range)? * unit))
}
