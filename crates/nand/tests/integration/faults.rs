//! What goes wrong on an array: faults of a plan, and losses of power.

mod kinds;
mod plan;
mod power;
mod rig;
mod torn;
