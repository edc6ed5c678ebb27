use super::record::{Content, Entry};
use crate::number::grouped;
use base::human_bytes;
use serde::{Deserialize, Serialize};

/// Counts and a checksum. Two archives of the same keys, values and expiry times have the same
/// totals, in any order and any parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::kv) struct Totals {
    pub(in crate::kv) strings: u64,
    pub(in crate::kv) hashes: u64,
    /// Fields of all hashes.
    pub(in crate::kv) fields: u64,
    pub(in crate::kv) sorted_sets: u64,
    /// Members of all sorted sets.
    pub(in crate::kv) members: u64,
    /// Keys with an expiry.
    pub(in crate::kv) expiring: u64,
    /// Bytes of strings, and of fields and members with their values.
    pub(in crate::kv) bytes: u64,
    /// The sum of the hashes of all items.
    pub(in crate::kv) checksum: u128,
}

/// First byte of the hashed data, by kind.
#[derive(Clone, Copy)]
enum Item {
    String = 0,
    Field = 1,
    Member = 2,
    Date = 3,
}

impl Totals {
    /// Returns the keys of all types.
    pub(in crate::kv) fn keys(&self) -> u64 {
        self.strings + self.hashes + self.sorted_sets
    }

    /// Adds the counts of `entry`.
    pub(in crate::kv) fn add(&mut self, entry: &Entry<'_>) {
        let key = entry.key.0;
        match &entry.content {
            Content::String(value) => {
                self.strings += 1;
                self.add_item(Item::String, key, b"", value.0);
            }
            Content::Hash(fields) => {
                self.hashes += u64::from(entry.is_first);
                self.fields += fields.len() as u64;
                for (field, value) in fields {
                    self.add_item(Item::Field, key, field.0, value.0);
                }
            }
            Content::SortedSet(members) => {
                self.sorted_sets += u64::from(entry.is_first);
                self.members += members.len() as u64;
                for (member, score) in members {
                    // Both zeros are the same score.
                    let score = score + 0.0;
                    self.add_item(Item::Member, key, member.0, &score.to_le_bytes());
                }
            }
        }
        if let Some(expires) = entry.expires.filter(|_| entry.is_last) {
            self.expiring += 1;
            self.checksum =
                self.checksum.wrapping_add(hash(Item::Date, key, b"", &expires.to_le_bytes()));
        }
    }

    fn add_item(&mut self, item: Item, key: &[u8], part: &[u8], value: &[u8]) {
        self.bytes += (part.len() + value.len()) as u64;
        self.checksum = self.checksum.wrapping_add(hash(item, key, part, value));
    }

    /// Returns the counts in words, for a table.
    pub(in crate::kv) fn facts(&self) -> Vec<(&'static str, String)> {
        let of = |count, parts, what| format!("{}, with {} {what}", grouped(count), grouped(parts));
        let mut facts = vec![("keys", grouped(self.keys())), ("strings", grouped(self.strings))];
        if self.hashes > 0 {
            facts.push(("hashes", of(self.hashes, self.fields, "fields")));
        }
        if self.sorted_sets > 0 {
            facts.push(("sorted sets", of(self.sorted_sets, self.members, "members")));
        }
        facts.push(("keys that expire", grouped(self.expiring)));
        facts.push(("bytes", human_bytes(self.bytes)));
        facts.push(("checksum", format!("{:032x}", self.checksum)));
        facts
    }
}

/// Returns the XXH3-128 of the item, preceded by the lengths of key and part.
fn hash(item: Item, key: &[u8], part: &[u8], value: &[u8]) -> u128 {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let (key_len, part_len) = (len(key), len(part));
    base::checksum::hash128(&[&[item as u8], &key_len[..], key, &part_len, part, value].concat())
}
