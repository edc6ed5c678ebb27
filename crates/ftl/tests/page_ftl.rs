//! Tests the page-mapped translation layer against a model, formulas from the literature and closed
//! forms.

#[path = "page_ftl/blocking.rs"]
mod blocking;
#[path = "page_ftl/content.rs"]
mod content;
#[path = "page_ftl/crowd.rs"]
mod crowd;
#[path = "page_ftl/faults.rs"]
mod faults;
#[path = "page_ftl/latency.rs"]
mod latency;
#[path = "page_ftl/model.rs"]
mod model;
#[path = "page_ftl/power_cut.rs"]
mod power_cut;
#[path = "page_ftl/readers.rs"]
mod readers;
#[path = "page_ftl/resume.rs"]
mod resume;
#[path = "page_ftl/rig.rs"]
mod rig;
#[path = "page_ftl/wear.rs"]
mod wear;
#[path = "page_ftl/write_amplification.rs"]
mod write_amplification;
