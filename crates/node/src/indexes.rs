use engine::{CachedHashIndex, HashIndex, MakeIndex};
use examples::BTreeIndex;

/// Every index, by its name in profiles and targets. A new index needs one line here.
pub const INDEXES: &[(&str, MakeIndex)] = &[
    // Hash prefixes, in hash order.
    ("hash", |_, lanes| Box::new(HashIndex::new(lanes))),
    // The same on flash, cached in memory up to a budget.
    ("cached-hash", |config, _| Box::new(CachedHashIndex::new(config))),
    // Whole keys, in byte order.
    ("btree", |_, _| Box::new(BTreeIndex::default())),
];
