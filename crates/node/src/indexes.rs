use engine::{CachedHashIndex, HashIndex, MakeIndex};
use examples::BTreeIndex;

/// Every index, by the name that profiles and targets call it. A new one is one line here.
pub const INDEXES: &[(&str, MakeIndex)] = &[
    // Parts of hashes, in their order.
    ("hash", |_| Box::new(HashIndex::default())),
    // The same on flash, and in memory as much of it as a budget allows.
    ("cached-hash", |config| Box::new(CachedHashIndex::new(config))),
    // Whole keys, in the order of their bytes.
    ("btree", |_| Box::new(BTreeIndex::default())),
];
