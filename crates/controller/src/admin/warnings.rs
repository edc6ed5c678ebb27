//! Critical warnings (Base 2.1, SMART / Health Information log page).

use spec::SmartLog;

/// The composite temperature in kelvins, constant: that of a cool drive, to test thresholds with.
pub(super) const TEMPERATURE: u16 = 313;

/// Warning temperature in kelvins (WCTEMP): the value that the specification recommends.
pub(super) const WARNING_TEMPERATURE: u16 = 343;

/// Critical temperature in kelvins (CCTEMP).
pub(super) const CRITICAL_TEMPERATURE: u16 = 358;

/// Spare blocks, in percent, below which the controller warns the host.
pub(super) const SPARE_THRESHOLD: u8 = 10;

/// Returns the critical warnings at this part of spare blocks, and with these thresholds of the
/// composite temperature in kelvins: over, under.
pub(crate) fn critical_warnings(spare_percent: u8, (over, under): (u16, u16)) -> u8 {
    let is_low = spare_percent < SPARE_THRESHOLD;
    let is_crossed = TEMPERATURE >= over || TEMPERATURE <= under;
    let bit = |is_so: bool, bit: u8| if is_so { bit } else { 0 };
    bit(is_low, SmartLog::SPARE_LOW) | bit(is_crossed, SmartLog::TEMPERATURE)
}
