use crate::fabrics::{Association, Subsystem, Subsystems};
use spec::{Command, LogPage, Status};

/// A log page of the vendor's range, C0h and above.
pub(in crate::admin) struct VendorPage {
    pub(in crate::admin) id: LogPage,
    pub(in crate::admin) read: fn(&Asked<'_>) -> Result<Vec<u8>, Status>,
}

/// The association and the subsystem of a request for a log page.
pub(in crate::admin) struct Asked<'a> {
    pub(in crate::admin) association: &'a Association,
    pub(in crate::admin) subsystem: &'a Subsystem,
    /// All subsystems, that one included.
    pub(in crate::admin) subsystems: &'a Subsystems,
    pub(in crate::admin) command: &'a Command,
}
