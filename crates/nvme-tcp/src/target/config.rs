use crate::framing::Counters;
use base::BufPool;
use std::rc::Rc;

/// Resources shared by connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// The pool of buffers for data of hosts.
    pub pool: BufPool,
    /// The counters of the connections.
    pub counters: Rc<Counters>,
}
