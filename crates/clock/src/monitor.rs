use std::sync::{Arc, Mutex};

/// Lets the tasks of several schedules, each on its own thread, share data written for one thread.
/// One task at a time runs inside, until it waits (Hoare, "Monitors: an operating system
/// structuring concept", 1974).
///
/// Tasks spawned inside run inside as well. Device code keeps its invariant: nothing changes
/// between two of its waits. The waits themselves, and the kernel's work, happen outside.
#[derive(Debug, Default)]
pub struct Monitor(pub(crate) Mutex<()>);

impl Monitor {
    /// Returns a monitor with no task inside.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }
}
