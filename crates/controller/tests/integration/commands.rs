//! What a host is answered, command by command, by namespaces of all kinds on media in memory.

mod any_bytes;
mod block;
mod fused;
mod host;
mod kv;
mod slow;
mod traced;
mod zoned;
