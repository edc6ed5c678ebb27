//! Vendor specific log pages: one file each, and a line here.

mod engine_figures;
mod key_counts;
mod page;

pub use engine_figures::EngineFigures;
pub use key_counts::KeyCounts;
pub(super) use page::Asked;

use page::VendorPage;

/// All vendor log pages.
pub(super) const PAGES: [VendorPage; 2] = [engine_figures::PAGE, key_counts::PAGE];
