use engine::{HashIndex, MakeIndex};
use examples::BTreeIndex;

/// Every index, by the name that profiles and targets call it. A new one is one line here.
pub const INDEXES: &[(&str, MakeIndex)] = &[
    // Parts of hashes, in their order.
    ("hash", || Box::new(HashIndex::default())),
    // Whole keys, in the order of their bytes.
    ("btree", || Box::new(BTreeIndex::default())),
];
