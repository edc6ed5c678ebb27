//! Converts byte streams to PDUs and back, for hosts and controllers.

mod check;
mod counters;
mod data_digest;
mod fault;
mod inbox;
mod outbox;
mod shared_copy;
mod terms;

pub use counters::Counters;
pub use data_digest::DataDigest;
pub use fault::Fault;
pub use inbox::{Arrival, Brought, Inbox, ParkedInbox, Read};
pub use outbox::{Outbox, Written};
pub use terms::Terms;
