//! Saves a list that is mostly kept in place as any list.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::{Array, SmallVec};

pub(crate) fn serialize<A, S>(list: &SmallVec<A>, serializer: S) -> Result<S::Ok, S::Error>
where
    A: Array<Item: Serialize>,
    S: Serializer,
{
    list.as_slice().serialize(serializer)
}

pub(crate) fn deserialize<'de, A, D>(deserializer: D) -> Result<SmallVec<A>, D::Error>
where
    A: Array<Item: Deserialize<'de>>,
    D: Deserializer<'de>,
{
    Vec::deserialize(deserializer).map(SmallVec::from_vec)
}
