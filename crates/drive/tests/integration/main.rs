//! A drive on blocks, compared with a model of it while everything fails that can.

mod damage;
mod flips;
mod once;
mod padding;
mod rig;

mod checking;
mod landing;
mod old_copies;
mod opening;
mod random_use;
mod reading;
mod slow;
mod superblocks;
