//! What is attacked.

mod admin;
mod capsule;
mod io;
mod pointer;
mod resp;
mod stream;

pub use admin::admin;
pub use capsule::capsule;
pub use io::io;
pub use pointer::pointer;
pub use resp::resp;
pub use stream::stream;

use crate::input::Input;
use base::Nanos;

/// What a host does at most in a run: it bounds the time that one takes.
const ACTIONS_MAX: usize = 100;

/// For how long a host does nothing: not at all, for what commands take, or until it is given up.
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
