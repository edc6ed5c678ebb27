//! A whole server on real sockets, some of whose hosts are broken, slow, silent, oversized or
//! hostile, all at the same time: each gets what the specification has for it, alone. The others go
//! on, memory stays bounded, and nothing of the bad ones is left when they are gone.
//!
//! Ten thousand connections that come and go leave nothing behind either.
//!
//! Good hosts are `client`'s. Bad ones are bytes on blocking sockets, a thread each. How long the
//! server waits for a PDU that does not go on is tried in virtual time, in `nvme-tcp`.

#[cfg(test)]
mod abuse;
#[cfg(test)]
mod breach;
#[cfg(test)]
mod census;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod droves;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod stall;
