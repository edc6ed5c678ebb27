//! Log pages of Kvasir's own: one file each, and a line here.

mod engine_figures;

pub use engine_figures::EngineFigures;

use crate::fabrics::{Subsystem, Subsystems};
use spec::LogPage;

/// A log page of the vendor's range, C0h and above.
pub(super) struct VendorPage {
    pub(super) id: LogPage,
    /// Of a subsystem, which is one of these.
    pub(super) read: fn(&Subsystem, &Subsystems) -> Vec<u8>,
}

/// All of them.
pub(super) const PAGES: [VendorPage; 1] = [engine_figures::PAGE];
