//! A drive of frames on a disk whose cache forgets: cut at each write and flush and at any instant,
//! over several lives, what was answered is there, and nothing else.

mod disk;
mod ledger;
mod life;
mod lives;
