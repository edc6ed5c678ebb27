//! What is attacked.

mod admin;
mod capsule;
mod io;
mod pcie;
mod pointer;
mod resp;
mod stream;
mod vfio_user;

pub use admin::admin;
pub use capsule::capsule;
pub use io::io;
pub use pcie::pcie;
pub use pointer::pointer;
pub use resp::resp;
pub use stream::stream;
pub use vfio_user::vfio_user;

use crate::input::Input;
use base::Nanos;

/// The most actions of a host in a run, which bounds the run's time.
const ACTIONS_MAX: usize = 100;

/// Returns the length of a pause: zero, as long as commands take, or until the target times out.
fn pause(input: &mut Input<'_>) -> Nanos {
    input.pick(&[
        Nanos::ZERO,
        Nanos(300),
        Nanos::from_micros(5),
        Nanos::from_micros(100),
        Nanos::from_millis(1),
        Nanos::from_secs(2),
        Nanos::from_secs(31),
        Nanos::from_secs(125),
    ])
}
