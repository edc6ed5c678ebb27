//! Decides on which core the stages of a request run: the balancers of `OctoKV` (MASCOTS'23), and
//! Kvasir's own.
//!
//! A core receives the requests of its connections and sends their replies. The key-value store
//! and the submission to the drive may run on any core: they are the *movable* stages. A core
//! *diverts* a request if another core runs them.
//!
//! # How it works
//! 1. For each window, the caller measures the [`Load`] of each core.
//! 2. [`Balancer::end_window`] changes the [`Route`]s of busy cores. The policies of `OctoKV` sort
//!    the cores into [`Groups`] by their utilisation. If some core is overloaded and the cores
//!    differ enough, each core above the mean diverts a little more. [`Policy::Auto`] knows what
//!    the stages that cannot move take of each core, so it computes at once the lowest level to
//!    which all cores can be evened out, and the shares that lead to it.
//! 3. A [`Router`] has the route of one core. For requests that the core has received together,
//!    [`Router::place`] returns the cores for the movable stages.
//!
//! [`ConnectionPlacer`] is independent of that. It chooses the core of each new connection by the
//! same measurements. A [`ConnectionMover`] of each core decides which open connection the core
//! gives to another one.
//!
//! Between tenants on one core, [`FairQueue`] chooses whose connection is next, and [`RateLimit`]
//! says when one may be. [`jain_index`] measures how fair the result is.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | one window | `load`, `settings`, `groups`, `balancer` |
//! | one window of `auto` | `load`, `level`, `auto`, `trial` |
//! | one request | `route` |
//! | one new connection | `connections`, `placer` |
//! | one turn of a tenant | `fair_queue`, `rate_limit` |
//! | one open connection that moves | `mover` |
//!
//! # Guarantees
//! - Equal loads give equal routes and places: there is no clock here, and no randomness but that
//!   of a fixed seed.
//! - By the policies of `OctoKV`, a core diverts its share of any number of requests, exact to one
//!   request.
//! - Tenants that wait all the time get service by weight, exact to one service of each.
//!
//! # Trusts
//! The loads of a window are of that window, but for a small part of the one before.
//!
//! # Not here
//! The clock that ends a window, and the transfer of a request or a connection to another core.

mod auto;
mod balancer;
mod connections;
mod fair_queue;
mod groups;
mod jain;
mod level;
mod load;
mod mover;
mod placer;
mod rate_limit;
mod route;
mod settings;
mod trial;

pub use balancer::Balancer;
pub use connections::Connections;
pub use fair_queue::FairQueue;
pub use groups::Groups;
pub use jain::jain_index;
pub use load::Load;
pub use mover::{ConnectionMove, ConnectionMover, ConnectionWork};
pub use placer::ConnectionPlacer;
pub use rate_limit::RateLimit;
pub use route::{Costs, Route, Router};
pub use settings::{Memory, Policy, Settings};
