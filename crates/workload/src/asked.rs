/// The request of a command. `store` identifies a store or delete to the history; `oldest` is the
/// oldest version that may be found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Store {
        key: u32,
        version: u32,
        store: u32,
    },
    Retrieve {
        key: u32,
        oldest: u32,
    },
    Delete {
        key: u32,
        version: u32,
        store: u32,
        oldest: u32,
    },
    Exist {
        key: u32,
        oldest: u32,
    },
    List {
        start: u32,
        count: u32,
    },
    /// A reset of the zone that begins with block `key`, followed by a write of version `version`
    /// of the block.
    Reset {
        key: u32,
        version: u32,
    },
}
