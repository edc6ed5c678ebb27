//! The function under a simulated host in virtual time: a driver with memory of its own, which
//! rings doorbells and gets interrupts.

#[cfg(test)]
mod data;
#[cfg(test)]
mod doorbells;
#[cfg(test)]
mod enabling;
#[cfg(test)]
mod mapped_doorbells;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod ram;
#[cfg(test)]
mod world;
