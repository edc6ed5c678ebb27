//! A client and a server over loopback, on a core each: what experiments with NVMe/TCP share.

pub mod connect;
pub mod core;
pub mod echo;
pub mod exchange;
pub mod load;
pub mod reactor_thread;
mod send;
pub mod stage_clock;
pub mod target;
pub mod work;
