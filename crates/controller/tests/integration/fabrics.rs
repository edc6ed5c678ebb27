//! What hosts of a fabric see of a controller: commands and their data go in at a port, and
//! responses come out, as on a transport's connections.

mod abort;
mod at_once;
mod census;
mod connect;
mod discovery;
mod diverted;
mod events;
mod features;
mod fused;
mod host;
mod hostile;
mod identify;
mod identity;
mod io;
mod keep_alive;
mod key_counts;
mod linux;
mod log_pages;
mod mandatory;
mod moved_queue;
mod namespaces;
mod property;
mod queue;
mod reactors;
mod rules;
mod sanitize;
mod spdk;
mod statuses;
