//! The flash array against formulas in the tests, to the nanosecond.

mod abilities;
mod closed_form;
mod faults;
mod legality;
