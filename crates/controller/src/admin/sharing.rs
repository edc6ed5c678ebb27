//! How the controllers of a subsystem share its namespaces.

/// NMIC: several controllers share a namespace, because each association has its own controller.
pub(super) const SHARED: u8 = 1;

/// The Asymmetric Namespace Access group of all namespaces.
pub(super) const ACCESS_GROUP: u32 = 1;
