//! SMART / Health Information (Base 2.1, SMART / Health Information log page).

use super::warnings::{SPARE_THRESHOLD, TEMPERATURE, critical_warnings};
use crate::fabrics::{Association, Subsystem};
use base::Nanos;
use spec::SmartLog;

/// Bytes of a data unit: 1000 blocks of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;

const MINUTE: Nanos = Nanos::from_secs(60);

/// Returns the log page: the state of the device's flash, and the work of this subsystem's hosts.
pub(super) fn page(subsystem: &Subsystem, association: &Association) -> SmartLog {
    let (flash, tally, now) = (subsystem.flash(), &subsystem.tally, clock::now());
    let work = tally.work();
    let count = |number: u64| u128::from(number).into();
    let units = |bytes: u64| u128::from(bytes.div_ceil(DATA_UNIT_BYTES)).into();
    SmartLog {
        critical_warning: critical_warnings(
            flash.spare_percent,
            association.features.temperatures(),
        ),
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
