//! The Redis protocol: a door to the store of keys and values.
//!
//! # How it works
//! 1. [`serve`] parses requests from a stream (`inbox`) and sends the answers (`reply`, `outbox`).
//! 2. Requests of one read that can execute together do (`run`): plain GETs and SETs
//!    (`plain_set`), or other writes of one key (`pipelined_writes`).
//!    Any other request is checked against the table of commands (`check`, `table`) and executed
//!    (`execute`) by the function of its command (`dispatch`, `commands`).
//! 3. What a command reads and writes is a `transaction`: all its writes are one batch, which the
//!    store does only if what was read is still true. Otherwise the command executes again
//!    (`one_step`). EXEC is the same for several commands. Commands that change the same keys at
//!    once queue for them and share a transaction (`key_queues`).
//! 4. Database n is key space n + 1, created when something is first stored there. Hashes and
//!    sorted sets (`collection`) are trees of records in key spaces of their own (`hidden`);
//!    `values` tells what a key holds. [`Door::tend`] removes what is left of deleted collections
//!    (`reaper`).
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a SET | `serve`, `inbox`, `run`, `plain_set`, `session`, `outbox` |
//! | an INCR | `execute`, `dispatch`, `key_queues`, `commands/numbers`, `transaction` |
//! | a HSET, a ZADD | `commands/hashes`, `values`, `collection`, `collection/tree`, `transaction` |
//! | a MULTI | `commands/multi`, `session`, `transaction` |
//! | what SLOWLOG and INFO tell | `watcher`, `tally`, `slow_log`, `latency`, `commands/info` |
//! | a move to another reactor | `serve`, `arriving_client`, `wire` |
//! | a limit of clients | `parameters`, `commands/config`, `wire`, `sweep`, `commands/kill` |
//!
//! # Guarantees
//! - Answers come in the order of requests, and say of a write that it is durable, in the store's
//!   mode.
//! - A command is one step beside all others, of whatever door, unless it flushes, or counts or
//!   lists keys.
//! - One connection takes no more memory than its [`Settings`] and CONFIG SET say, whatever it
//!   sends or does not read.
//!
//! # Trusts
//! The owner of a store calls [`Door::prepare`] before it serves a client.
//!
//! The owner of the streams says where a connection comes from, and accepts or refuses it.
//!
//! # Not here
//! Sockets (`reactor`), expiry and durability (`engine`), what differs from Redis on purpose
//! (`docs/guide/redis-differences.tsv`).

mod arriving_client;
mod call;
mod census;
mod check;
mod client_limits;
mod collection;
mod command;
mod commands;
mod counters;
mod dispatch;
mod door;
mod execute;
mod failure;
mod glob;
mod hidden;
mod inbox;
mod inline;
mod key_queues;
mod latency;
mod limits;
mod lookups;
mod number;
mod numbering;
mod one_step;
mod outbox;
mod pace;
mod parameters;
mod pipelined_writes;
mod plain_set;
mod protocol_error;
mod rates;
mod reaper;
mod reply;
mod request;
mod run;
mod serve;
mod session;
mod settings;
mod slow_log;
mod spares;
mod staged_values;
mod sweep;
mod table;
mod tally;
mod transaction;
mod upkeep;
mod users;
mod values;
mod watch;
mod watcher;
mod wire;
mod word;

pub use arriving_client::ArrivingClient;
pub use census::ClientCensus;
pub use client_limits::ClientLimits;
pub use counters::{Counters, Totals};
pub use door::Door;
pub use hidden::is_internal;
pub use inbox::{Inbox, Read};
pub use limits::Limits;
pub use outbox::{Outbox, Sent};
pub use protocol_error::ProtocolError;
pub use reply::Protocol;
pub use request::Request;
pub use serve::{Account, Ended, Left, serve, serve_from, serve_until_moved, turn_away};
pub use settings::{Process, Settings};
pub use users::{Users, UsersError};
pub use wire::Ends;
