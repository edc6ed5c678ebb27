//! SMART / Health Information (Base 2.1, SMART / Health Information log page).

use super::Features;
use crate::fabrics::{Association, Subsystem};
use base::Nanos;
use spec::SmartLog;

/// The composite temperature in kelvins, constant: that of a cool drive, to test thresholds with.
const TEMPERATURE: u16 = 313;

/// Warning temperature in kelvins (WCTEMP): the value that the specification recommends.
pub(super) const WARNING_TEMPERATURE: u16 = 343;

/// Critical temperature in kelvins (CCTEMP).
pub(super) const CRITICAL_TEMPERATURE: u16 = 358;

/// Spare blocks, in percent, below which the controller warns the host.
const SPARE_THRESHOLD: u8 = 10;

/// Bytes of a data unit: 1000 blocks of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;

const MINUTE: Nanos = Nanos::from_secs(60);

/// Returns the current critical warnings.
pub(super) fn critical_warnings(subsystem: &Subsystem, features: &Features) -> u8 {
    let is_low = subsystem.flash().spare_percent < SPARE_THRESHOLD;
    let (over, under) = features.temperatures();
    let is_crossed = TEMPERATURE >= over || TEMPERATURE <= under;
    let bit = |is_so: bool, bit: u8| if is_so { bit } else { 0 };
    bit(is_low, SmartLog::SPARE_LOW) | bit(is_crossed, SmartLog::TEMPERATURE)
}

/// Returns the log page: the state of the device's flash, and the work of this subsystem's hosts.
pub(super) fn page(subsystem: &Subsystem, association: &Association) -> SmartLog {
    let (flash, tally, now) = (subsystem.flash(), &subsystem.tally, clock::now());
    let work = tally.work();
    let count = |number: u64| u128::from(number).into();
    let units = |bytes: u64| u128::from(bytes.div_ceil(DATA_UNIT_BYTES)).into();
    SmartLog {
        critical_warning: critical_warnings(subsystem, &association.features),
        temperature: TEMPERATURE.into(),
        available_spare: flash.spare_percent,
        spare_threshold: SPARE_THRESHOLD,
        percentage_used: flash.used_percent,
        data_units_read: units(work.bytes_read),
        data_units_written: units(work.bytes_written),
        host_reads: count(work.reads),
        host_writes: count(work.writes),
        busy_minutes: count(tally.busy(now).0 / MINUTE.0),
        power_cycles: count(1),
        power_on_hours: count(now.0 / (60 * MINUTE.0)),
        media_errors: count(tally.media_errors() + flash.damaged_pages),
        error_entries: count(association.errors.count()),
        ..SmartLog::default()
    }
}
