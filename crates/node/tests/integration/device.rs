//! The KV-SSD as a host sees it, whole: commands in, completions out, and the cells below.

mod batches;
mod buffer;
mod builtin;
mod capacity;
mod client;
mod closed_form;
mod damage;
mod drives;
mod host;
mod list;
mod machine;
mod memory;
mod model;
mod namespaces;
mod planes;
mod reopen;
mod undelayed;
