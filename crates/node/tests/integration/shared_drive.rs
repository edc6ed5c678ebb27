//! A drive on a disk or in memory that is served by several reactors, each of which executes the
//! commands of its own connections, while the first one answers all that is not of an I/O queue.

#[cfg(test)]
mod differential;
#[cfg(test)]
mod end;
#[cfg(test)]
mod moved;
#[cfg(test)]
mod moved_redis;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod placed;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod work;
