//! Has other reactors execute commands of busy ones: the key-value stage of plain Stores and
//! Retrieves over NVMe/TCP, and with it the submission to the drive.
//!
//! 1. Each reactor measures what it does for its connections ([`shared`]).
//! 2. The [`monitor`], a task of the first reactor, ends a window of the [`balance::Balancer`]
//!    again and again, and publishes the routes.
//! 3. The [`diverter`] of each reactor deals out the commands of its queues by its route. It sends
//!    a command to a [`peer`], another reactor, and gets the outcome back, both as messages.

mod diverter;
mod monitor;
mod peer;
mod shared;
mod window;

pub use diverter::{Diverter, DiverterLinks, link};
pub use shared::Shared;
pub(super) use window::end_of_window;

use balance::{Policy, Settings};

/// How a server balances its reactors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BalanceConfig {
    /// How the load is divided.
    pub policy: Policy,
    /// The bounds and shares.
    pub settings: Settings,
}
