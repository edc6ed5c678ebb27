//! A simulated host in virtual time, which tests drive a function with: its driver, and its
//! interrupts. Its memory is a [`HostRam`](crate::HostRam).

mod driver;
mod mapped_page;
mod raised;

pub use driver::{Driver, Pair};
pub use mapped_page::MappedPage;
pub use raised::Raised;
