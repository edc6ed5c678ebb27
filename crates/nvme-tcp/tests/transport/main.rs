//! The transport from outside: PDUs through streams that cut them anywhere, and a target that hosts
//! of every kind speak to.

mod budget;
mod c2h_data;
mod crc;
mod data;
mod data_digest;
mod endings;
mod framing;
mod fused;
mod host;
mod in_capsule;
mod layouts;
mod leaving;
mod noise;
mod outbox;
mod port;
mod tape;
mod violations;
