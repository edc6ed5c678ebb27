//! Tests the host's end of NVMe/TCP against bytes of the specification, and against this
//! repository's target over a simulated network.

#[cfg(test)]
mod end_to_end;
#[cfg(test)]
mod fused;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod io;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod peer;
#[cfg(test)]
#[path = "../../../controller/tests/integration/commands/slow.rs"]
mod slow;
#[cfg(test)]
mod world;
