//! The program as its users meet it: arguments in, output and status out.

#[cfg(test)]
mod authority;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod balance;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod blocks;
#[cfg(test)]
mod calibrate;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod device;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod drive_damage;
#[cfg(test)]
mod femu;
#[cfg(test)]
mod femu_gc;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod guide;
#[cfg(test)]
mod guide_commands;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod kv;
#[cfg(test)]
mod moved_connections;
mod moving;
#[cfg(test)]
mod octokv;
#[cfg(test)]
mod old;
#[cfg(test)]
mod precondition;
#[cfg(test)]
mod program;
#[cfg(test)]
mod real_time;
mod redis;
#[cfg(test)]
mod redis_py;
#[cfg(test)]
mod remote_blocks;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod reproduce;
#[cfg(test)]
mod sensitivity;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod state;
#[cfg(test)]
mod tenants;
mod tls;
#[cfg(test)]
mod top;
#[cfg(test)]
mod unplugging;
#[cfg(test)]
mod vfio_user;
#[cfg(test)]
mod workloads;
