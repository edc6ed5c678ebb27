//! Opening: from a checkpoint or by a scan, also after a loss of power.

pub(crate) mod checkpoint;
pub(crate) mod enter;
pub(crate) mod entered;
pub(crate) mod listing;
pub(crate) mod open;
pub(crate) mod power;
pub(crate) mod rebuild;
pub(crate) mod repair;
pub(crate) mod saved;
pub(crate) mod sort;
pub(crate) mod torn;
