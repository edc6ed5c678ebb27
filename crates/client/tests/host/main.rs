//! The host's end of NVMe/TCP: against bytes of the specification, and against this repository's
//! own target over a simulated network.

#[cfg(test)]
mod end_to_end;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod io;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod world;
