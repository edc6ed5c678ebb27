//! Cleaning: the choice of victims, the copying of live records, and the expiry of values.

pub(crate) mod cleaner;
pub(crate) mod cleaning;
pub(crate) mod copy;
pub(crate) mod count_expiring;
mod dealing;
pub(crate) mod expiring;
pub(crate) mod expiry;
mod found;
pub(crate) mod room_queue;
pub(crate) mod turn;
pub(crate) mod victims;
