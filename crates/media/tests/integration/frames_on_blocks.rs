//! A medium of frames on blocks, against a model of it and with everything going wrong that can.

mod damage;
mod drive;
mod flips;
mod once;
mod padding;

mod checking;
mod landing;
mod old_copies;
mod opening;
mod random_use;
mod reading;
mod slow;
mod superblocks;
