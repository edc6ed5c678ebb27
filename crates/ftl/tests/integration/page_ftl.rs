//! Tests the page-mapped translation layer against a model, formulas from the literature and closed
//! forms.

mod blocking;
mod content;
mod crowd;
mod faults;
mod latency;
mod model;
mod power_cut;
mod readers;
mod resume;
mod rig;
mod wear;
mod write_amplification;
