//! Shares each reactor between tenants: groups of connections by host NQN or Redis user.
//!
//! 1. The [`config`] names the tenants; [`Tenants`] has their terms and counters for all reactors.
//! 2. A connection of a reactor is a [`Member`]. [`TenantPort`] learns the host from its Connect,
//!    and a Redis connection reports its user. The admin queue of a host belongs to no tenant.
//! 3. A [`TenantStream`] reads only in the member's turn. So a connection that waits for its turn
//!    leaves its requests in the socket, holds no lock, and has executed all that it has read.
//! 4. The [`Gate`] of the reactor grants one turn after another, by a [`balance::FairQueue`], to
//!    tenants within their limits. What a turn took is charged at the end of each poll.
//!
//! A server without tenants has no gate, and its connections have plain streams.

mod config;
mod gate;
mod member;
mod metered;
mod port;
mod stream;
mod tenant;
#[cfg(test)]
mod tests;

pub use config::{TenantConfig, TenantTerms};
pub(super) use gate::Gate;
pub(super) use member::Member;
pub(super) use metered::metered;
pub(super) use port::TenantPort;
pub(super) use stream::TenantStream;
pub(super) use tenant::{TenantUsage, Tenants};
