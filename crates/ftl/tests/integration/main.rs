//! The translation layers against models, formulas of the literature and closed forms.

mod append_faults;
mod append_ftl;
mod page_ftl;
mod zones;
mod zones_power;
mod zones_time;
