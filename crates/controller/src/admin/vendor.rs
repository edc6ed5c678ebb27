//! Vendor specific log pages: one file each, and a line here.

mod engine_figures;
mod key_counts;

pub use engine_figures::EngineFigures;
pub use key_counts::KeyCounts;

use crate::fabrics::{Association, Subsystem, Subsystems};
use spec::{Command, LogPage, Status};

/// A log page of the vendor's range, C0h and above.
pub(super) struct VendorPage {
    pub(super) id: LogPage,
    pub(super) read: fn(&Asked<'_>) -> Result<Vec<u8>, Status>,
}

/// The association and the subsystem of a request for a log page.
pub(super) struct Asked<'a> {
    pub(super) association: &'a Association,
    pub(super) subsystem: &'a Subsystem,
    /// All subsystems, that one included.
    pub(super) subsystems: &'a Subsystems,
    pub(super) command: &'a Command,
}

/// All vendor log pages.
pub(super) const PAGES: [VendorPage; 2] = [engine_figures::PAGE, key_counts::PAGE];
