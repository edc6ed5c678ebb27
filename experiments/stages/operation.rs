use experiments::loopback::exchange::{Exchange, Kind};

/// Commands outstanding.
const DEPTH: usize = 32;

/// An operation whose stages are measured.
pub(crate) struct Operation {
    /// Its name in the table and in the file.
    pub(crate) name: &'static str,
    pub(crate) exchange: Exchange,
}

impl Operation {
    pub(crate) const ALL: [Self; 4] = [
        Self::new("get-16k", Kind::Retrieve, 16 << 10),
        Self::new("put-16k", Kind::Store, 16 << 10),
        Self::new("get-4k", Kind::Retrieve, 4 << 10),
        Self::new("put-4k", Kind::Store, 4 << 10),
    ];

    const fn new(name: &'static str, kind: Kind, value_bytes: usize) -> Self {
        Self { name, exchange: Exchange { kind, value_bytes, depth: DEPTH } }
    }
}
