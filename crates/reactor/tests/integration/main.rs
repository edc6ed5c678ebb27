//! Reactors on a real machine: sockets, files, threads and time. `cores` has some in virtual time.

mod busy_stages;
mod cores;
mod file;
mod long_polls;
mod mailbox;
mod notice;
mod peers;
mod polled_memory;
mod real_time;
mod serve;
mod settle;
mod station;
mod tcp;
mod trace;
mod unix;
mod waiting;
